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

// imageVars are the variables of sh/pull.sh and sh/build.sh: what is to be pulled and built,
// and from which folder of the sandbox. keep leaves the built images on the
// host when the sandbox ends.
func imageVars(r compose.Rendered, bundled, keep bool) map[string]string {
	vars := map[string]string{"pulls": pullLines(r.Pulls), "builds": buildLines(r.Builds), "build_base": "workspace", "keep_images": ""}
	if bundled {
		vars["build_base"] = "bundle"
	}
	if keep {
		vars["keep_images"] = "1"
	}
	return vars
}

func pullLines(pulls []compose.Pull) string {
	var b strings.Builder
	for _, p := range pulls {
		policy := "missing"
		switch {
		case p.Always:
			policy = "always"
		case p.Never:
			policy = "never"
		}
		fmt.Fprintln(&b, shellFields(p.Image, p.Platform, policy))
	}
	return b.String()
}

func buildLines(builds []compose.Build) string {
	var b strings.Builder
	for _, x := range builds {
		args := make([]string, 0, len(x.Args))
		for _, name := range slices.Sorted(maps.Keys(x.Args)) {
			args = append(args, name+"="+x.Args[name])
		}
		line := shellFields(x.Digest, x.Context, x.Dockerfile, x.Text, x.Target, x.Network, x.Platform, strconv.FormatInt(x.ShmBytes, 10),
			strconv.FormatInt(x.MemoryBytes, 10), strconv.FormatInt(x.MilliCPU, 10), strconv.FormatInt(x.Pids, 10))
		bases := make([]string, 0, len(x.Bases))
		for _, base := range x.Bases {
			bases = append(bases, cmp.Or(base.Platform, x.Platform)+" "+base.Image)
		}
		fmt.Fprintf(&b, "%s|%s|%s|%s\n", line, shellList(args), shellList(x.ExtraHosts), shellList(bases))
	}
	return b.String()
}

// shellFields joins texts as one line that `IFS='|' read -r` takes apart again.
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

// shellText writes text for printf %b: everything that is not plainly itself
// to any shell, in any list, is an octal escape.
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
