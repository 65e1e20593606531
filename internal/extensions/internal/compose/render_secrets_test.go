package compose

import (
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func filesOf(o RenderOptions) RenderOptions {
	o.SecretFiles, o.SecretNames = true, []string{"TOKEN", "KEY"}
	return o
}

func TestSecretFilesReachWhomVariablesWould(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {image: i, environment: {KEY: , MODE: m}}
  b: {image: i, environment: [TOKEN, HOME]}
  c: {image: i}
  d: {image: i, post_start: [{command: [x], environment: [KEY]}], tmpfs: [/run/secrets, "/run:size=1m"]}
  e: {image: i, volumes: ["vol:/run", {type: tmpfs, target: /run/secrets}], environment: [KEY]}
volumes: {vol: {}}
`
	const key, token = "/host/mem/KEY>/run/secrets/KEY:ro", "/host/mem/TOKEN>/run/secrets/TOKEN:ro"
	r := render(t, parse(t, text, nil), filesOf(RenderOptions{Service: "a"}))
	env := types.Mapping{VarSecrets: "/host/mem", "HOME": "leaked"}
	back := reload(t, r, env)
	for name, want := range map[string]string{"a": key + " " + token, "b": token, "c": "", "d": key, "e": "vol>/run >/run/secrets " + key} {
		s := back.Services[name]
		if got := mountsOf(s); got != want {
			t.Errorf("%s mounts %s\n  want %s", name, got, want)
		}
		if got := envText(s.Environment); strings.Contains(got, "KEY") || strings.Contains(got, "TOKEN") {
			t.Errorf("%s has the variables %s", name, got)
		}
	}
	if hook := back.Services["d"].PostStart[0].Environment; len(hook) > 0 {
		t.Errorf("a hook has the variables %v", hook)
	}
	if len(r.SecretVars) > 0 {
		t.Errorf("variables carry secrets: %v", r.SecretVars)
	}
	back = reload(t, render(t, parse(t, text, nil), filesOf(RenderOptions{})), env)
	if got := mountsOf(back.Services["c"]); got != key+" "+token {
		t.Errorf("without a default service c mounts %s", got)
	}
}

func TestSecretFilesLieBesideTheStacksOwn(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {image: i, secrets: [own, {source: mine, target: TOKEN}, {source: mine, target: renamed}]}
secrets:
  own: {file: ./own}
  mine: {environment: TOKEN}
`
	r := render(t, parse(t, text, files{"own": "x"}), filesOf(RenderOptions{}))
	back := reload(t, r, types.Mapping{VarSecrets: "/host/mem"})
	if got, want := mountsOf(back.Services["a"]), "/host/mem/KEY>/run/secrets/KEY:ro"; got != want {
		t.Errorf("mounts %s, want %s", got, want)
	}
	if own, mine := back.Secrets["own"], back.Secrets["mine"]; own.File != "/host/ws/own" || mine.File != "/host/mem/TOKEN" ||
		mine.Environment != "" {
		t.Errorf("secrets %+v, %+v", own, mine)
	}
}

func TestWhatIsInTheWayOfASecretFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, service := range []string{
		`volumes: ["vol:/run/secrets"]`, `volumes: ["vol:/var/run/secrets"]`, `volumes: ["./own:/run/secrets/TOKEN"]`, `volumes: ["vol:/run:ro"]`,
		`volumes: ["./d:/run/secrets/"]`, `volumes: [{type: tmpfs, target: /run/secrets/TOKEN}]`, `tmpfs: ["/var/run/secrets/TOKEN:size=1m"]`,
		`secrets: [{source: own, target: TOKEN}]`, `secrets: [{source: own, target: /var/run/secrets/KEY}]`,
		`configs: [{source: c, target: /run/secrets/KEY}]`,
		`secrets: [TOKEN]`,
	} {
		text := "services: {a: {image: i, " + service +
			"}}\nvolumes: {vol: {}}\nconfigs: {c: {file: ./own}}\nsecrets: {own: {file: ./own}, TOKEN: {file: ./own}}"
		err := refuse(t, parse(t, text, files{"own": "x", "d/": ""}), filesOf(RenderOptions{}), extensions.KindInvalid)
		if err.Remedy == "" || !strings.Contains(err.Error(), "/run/secrets/") {
			t.Errorf("%s: %v, remedy %q", service, err, err.Remedy)
		}
	}
}
