package compose

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hostileDockerfiles are refused by the rule before the colon, where the build
// has no network.
var hostileDockerfiles = map[string][]string{
	"build-fetch": {
		"FROM a\nADD http://127.0.0.1:1/latest?$WORD /x", "FROM a\nadd https://h/x /x", "FROM a\nADD --chown=1:1 git://h/x.git /x",
		"FROM a\nADD git@h:x.git /x",
		"FROM a\nADD github.com/a/b /x", "FROM a\nARG U\nADD $U /x", "FROM a\nADD h${T}p://h/ /x",
		"FROM a\nADD [\"\\u0068ttp\\u003a\\u002f\\u002fh/x\", \"/x\"]",
		"FROM a\nADD [\"\\u0068ttp\\u003a\\u002f\\u002fh/x\", \"/x\"] more", "FROM a\nADD \"http\"://h /x", "FROM a\nADD ht\\tp://h /x",
		"FROM a\nADD a b \\\n# c\n\n  ht\\\ntp://h /x",
		"FROM a\nADD --checksum=sha256:0 x /x", "FROM a\nONBUILD ADD http://h /x", "FROM a\nonbuild\tadd http://h /x",
		"FROM a\r\nADD http://h /x\r\n", "\ufeffFROM a\n \tADD http://h /x",
		"FROM a\nCOPY --from=b /x /x", "FROM a\nCOPY --chown=1 --from=127.0.0.1:5000/x /x /x", "FROM a AS b\nCOPY --from=b /x /x",
		"FROM a\nCOPY --from=later /x /x\nFROM b AS later",
		"FROM a\nCOPY --from=0 /x /x", "FROM a\nCOPY --from=$X /x /x", "FROM a\nONBUILD COPY --from=b /x /x",
	},
	"build-frontend": {
		"# syntax=evil/frontend\nFROM a", "#syntax = docker/dockerfile:1\nFROM a", "# a comment\n\n# SYNTAX=x\nFROM a", "# check=skip=all\nFROM a", "#escape=\\\n# syntax=x\nFROM a",
	},
	"build-label": {
		"FROM a\nLABEL sandboxer.id=x", "FROM a\nLABEL a=1 \"sandboxer.id\"=x", "FROM a\nLABEL sand\"boxer\".id=x",
		"FROM a\nLABEL sandboxer\\.id=x", "FROM a\nLABEL a=1 \\\n  com.docker.compose.project=x",
		"FROM a\nLABEL sand\\\nboxer.id=x", "FROM a\nLABEL sandboxer.id x", "FROM a\nARG K\nLABEL $K=x",
		"FROM a\nENV K=s\nLABEL ${K}andboxer.id=x", "FROM a\nLABEL $K x",
		"FROM a\nONBUILD LABEL sandboxer.id=x", "FROM a\nLABEL a=b\u00a0sandboxer.id=x", "FROM a\nlabel SANDBOXER.ID=x",
	},
	"build-mount": {
		"FROM a\nRUN --mount=type=ssh id", "FROM a\nRUN --mount=type=cache,target=/x id", "FROM a\nRUN --network=host id",
		"FROM a\nRUN --security=insecure id", "FROM a\nONBUILD RUN --network=host id",
	},
	"dockerfile": {
		"", "# only this", "RUN id", "FROM a\nINCLUDE x", "FROM a\nCOPY <<EOF /x\nADD http://h /x\nEOF", "FROM a\nRUN cat <<-'EOF'\nEOF",
		"# escape=`\nFROM a\nRUN a `\nADD http://h /x",
		"FROM a\nRUN a \\\n  # c\nADD http://h /x", "FROM a\nRUN a \\\\\nADD http://h /x", "FROM a\nRUN a\x00", "FROM a\nRUN a\rADD http://h /x",
		"\u00a0# x\nFROM a", "FROM a\xff",
		"FROM $X", "ARG X=a\nFROM ${X#a}", "FROM a b", "FROM --platform=$BUILDPLATFORM a", "FROM --x=1 a", "FROM a\nCOPY --\"from\"=b /x /x",
		"FROM a\nCOPY --parent=x /x /x",
		"FROM a\nONBUILD ONBUILD ADD x /x", "FROM a\nONBUILD NOTHING", "{\"syntax\": \"x\"}", "//syntax=x\nFROM a", "FROM --all a",
		"ARG X=-a\nFROM $X", "FROM a\nADD [1, 2]", "#!/x\n// syntax=x\nFROM a",
	},
	"reserved-image": {
		"FROM sandboxer.invalid/build:" + strings.Repeat("0", 64), "FROM sandboxer/toolbox:1", "ARG X=invalid\nFROM sandboxer.$X/build:1",
		"FROM a\nCOPY --from=sandboxer.invalid/build:1 / /",
	},
}

func judged(t *testing.T, text string, o RenderOptions) (Rendered, []string) {
	t.Helper()
	img := extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	r, err := fromImage(t, img, files{"Dockerfile": text, "x": "1"}).Render(withDefaults(o))
	if err == nil {
		return r, nil
	}
	return r, rulesOf(t, err)
}

func TestHostileDockerfilesAreRefusedByTheirRule(t *testing.T) {
	t.Parallel()
	for rule, all := range hostileDockerfiles {
		for _, text := range all {
			_, got := judged(t, text, RenderOptions{})
			if !slices.Contains(got, rule) {
				t.Errorf("refused by %q, want %s:\n%s", got, rule, text)
			}
			// A network of its own lets a build fetch, and use the official words
			// for the same; nothing else.
			_, got = judged(t, text, RenderOptions{BuildNetwork: true})
			pass := rule == "build-fetch" && !strings.Contains(text, "--from=$X") || strings.Contains(text, "docker/dockerfile:1")
			if slices.Contains(got, rule) == pass {
				t.Errorf("with a network: refused by %q:\n%s", got, text)
			}
		}
	}
}

func TestOrdinaryDockerfilesPass(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"FROM a", "# a comment = with an equals sign\n#escape=\\\nfrom a as b\n", "FROM a:1@sha256:" +
			strings.Repeat("a", 64), "FROM localhost:5000/a/b:c",
		"ARG V=1 W\nARG T=\"$V-slim\"\nFROM --platform=linux/amd64 node:${T} AS base\nFROM base AS two\nCOPY --from=base /a /b\nCOPY --from=0 " +
			"/a /b\nFROM scratch\nCOPY --from=TWO --chown=1:1 /a /b\n",
		"FROM a\nADD x dir/$V/y $HOME/\nADD [\"x\", \"/a b\"]\nCOPY . .\n",
		"FROM a\nRUN apt-get update \\\n    # why\n    && apt-get install curl \\\n\n    && curl http://x $((1<<2)) <<<y\n",
		"FROM a\nLABEL maintainer=\"x y=$V\" org.opencontainers.image.source=http://x \\\n  version=\"1\"\nENV A=b C=\"d e\"\nHEALTHCHECK " +
			"--interval=5s --timeout=3s CMD true\n",
		"FROM a\nEXPOSE 80\nUSER x\nVOLUME /d\nWORKDIR /w\nSTOPSIGNAL KILL\nSHELL [\"/bin/sh\", \"-c\"]\nENTRYPOINT [\"x\"]\nCMD " +
			"[\"--y\"]\nMAINTAINER x\nONBUILD RUN id\n",
	} {
		if _, got := judged(t, text, RenderOptions{}); got != nil {
			t.Errorf("refused by %q:\n%s", got, text)
		}
	}
}

func TestBasesAreWhatTheHostMustLookAt(t *testing.T) {
	t.Parallel()
	text := "ARG V=1\nARG W\nARG U=${W:-none}\nFROM --platform=linux/arm64 a:$V AS one\nFROM one\nFROM scratch\nFROM b/$W-${V:+x}:$U\nCOPY " +
		"--from=one / /\nFROM a:1\n"
	img := extensions.Image{Build: &extensions.BuildStage{Context: ".", Args: map[string]string{"W": "given", "X": "ignored"}}}
	r := render(t, fromImage(t, img, files{"Dockerfile": text}), RenderOptions{})
	if want := []Base{{"a:1", "linux/arm64"}, {"b/given-x:given", ""}, {"a:1", ""}}; !slices.Equal(r.Builds[0].Bases, want) {
		t.Errorf("bases %+v, want %+v", r.Builds[0].Bases, want)
	}
}

func TestEveryDockerfileOfAStackIsJudged(t *testing.T) {
	t.Parallel()
	const bad = "FROM a\nADD http://h /x\n"
	for what, p := range map[string]*Project{
		"inline": parse(t, `services: {a: {build: {context: ., dockerfile_inline: "FROM a\nADD http://h /x\n"}}}`, files{"x": "1"}),
		"named":  parse(t, `services: {a: {build: {context: ., dockerfile: sub/My.file}}}`, files{"sub/My.file": bad}),
		"second": parse(t, `services: {a: {build: .}, b: {build: ./b}}`, files{"Dockerfile": "FROM a", "b/Dockerfile": bad}),
		"stage": fromImage(t, extensions.Image{Stages: []extensions.BuildStage{{Context: ".", Tag: "p"}, {Context: "b", ParentTag: "p"}}},
			files{"Dockerfile": "FROM a", "b/Dockerfile": "FROM p\nADD http://h /x\n"}),
	} {
		_, err := p.Render(withDefaults(RenderOptions{}))
		if err == nil {
			t.Errorf("%s passed", what)
			continue
		}
		if got := rulesOf(t, err); !slices.Equal(got, []string{"build-fetch"}) {
			t.Errorf("%s: %v", what, err)
		}
		if !strings.Contains(err.Error(), ":2: ") || !strings.Contains(err.Error(), `build_network: "default"`) {
			t.Errorf("%s: it does not say where and how: %v", what, err)
		}
	}
}

func TestLimitsOfBuilds(t *testing.T) {
	t.Parallel()
	mem, pids := int64(64), int64(32)
	img := extensions.Image{Build: &extensions.BuildStage{Context: "."}}
	one := func(res extensions.Resources) Build {
		return render(t, fromImage(t, img, files{"Dockerfile": "FROM a"}), RenderOptions{Resources: res}).Builds[0]
	}
	free, bound := one(extensions.Resources{}), one(extensions.Resources{MemoryMB: &mem, Pids: &pids})
	if free.MemoryBytes != DefaultBuildMemory || free.Pids != DefaultBuildPids || bound.MemoryBytes != 64<<20 || bound.Pids != 32 {
		t.Errorf("%+v\n%+v", free, bound)
	}
	if free.Digest != bound.Digest {
		t.Error("limits decide what the image is called")
	}
}

// Whatever a Dockerfile holds, it is judged or refused, and never a panic.
func FuzzDockerfile(f *testing.F) {
	for _, all := range hostileDockerfiles {
		for _, text := range all {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := newFindings(nil)
		judgeDockerfile(found, "x", text, Build{Network: "none"})
		var refused *PolicyError
		passed := !errors.As(found.err(), &refused)
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); passed && len(words) > 2 && words[0] == "ADD" && strings.HasPrefix(words[1], "http") &&
				strings.Contains(words[1], "://") &&
				!strings.Contains(text, "\\\n") && !strings.Contains(text, "\\\r") && !strings.Contains(text, "\\ ") &&
				!strings.Contains(text, "\\\t") {
				t.Errorf("it passed: %q", text)
			}
		}
	})
}
