package composessh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// imageVars are the variables of sh/pull.sh and sh/build.sh: what to pull and build, from which folder of the sandbox,
// unless it comes from the bundle's, and with which logins. keep leaves the built images on the host when the sandbox ends.
func imageVars(r compose.Rendered, base string, keep bool, all logins) map[string]string {
	vars := map[string]string{"pulls": pullLines(r.Pulls, all), "builds": buildLines(r.Builds, base, all), "keep_images": ""}
	if keep {
		vars["keep_images"] = "1"
	}
	for _, l := range all {
		vars["login_"+l.name], vars["helper_"+l.name] = l.answer, l.config
	}
	return vars
}

func pullLines(pulls []compose.Pull, all logins) string {
	var b strings.Builder
	for _, p := range pulls {
		policy := "missing"
		switch {
		case p.Always:
			policy = "always"
		case p.Never:
			policy = "never"
		}
		fmt.Fprintln(&b, shellFields(p.Image, p.Platform, policy, all.of(p.Image)))
	}
	return b.String()
}

func buildLines(builds []compose.Build, folder string, all logins) string {
	var b strings.Builder
	for _, x := range builds {
		args := make([]string, 0, len(x.Args))
		for _, name := range slices.Sorted(maps.Keys(x.Args)) {
			args = append(args, name+"="+x.Args[name])
		}
		base := folder
		if x.Bundled {
			base = "bundle"
		}
		line := shellFields(x.Digest, base, x.Context, x.Dockerfile, x.Text, x.Target, x.Network, x.Platform, strconv.FormatInt(x.ShmBytes, 10),
			strconv.FormatInt(x.MemoryBytes, 10), strconv.FormatInt(x.MilliCPU, 10), strconv.FormatInt(x.Pids, 10), x.Service)
		bases := make([]string, 0, len(x.Bases))
		for _, base := range x.Bases {
			bases = append(bases, all.of(base.Image)+" "+cmp.Or(base.Platform, x.Platform)+" "+base.Image)
		}
		fmt.Fprintf(&b, "%s|%s|%s|%s\n", line, shellList(args), shellList(x.ExtraHosts), shellList(bases))
	}
	return b.String()
}

// shellFields joins texts into one line that `IFS='|' read -r` splits again.
func shellFields(texts ...string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = shellText(t)
	}
	return strings.Join(out, "|")
}

func shellList(items []string) string {
	out := make([]string, len(items))
	for i, t := range items {
		out[i] = shellText(t)
	}
	return strings.Join(out, ",")
}

// shellText writes text for printf %b: everything that any shell might interpret, in any list, is an octal
// escape.
func shellText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_./:@=+-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}
