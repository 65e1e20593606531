package workspace

import (
	"context"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// resolution is what a ref stands for on the server.
type resolution struct {
	commit string // full; "" for a short commit that only the history can resolve
	branch string // set if the ref is a branch, for a checkout with history
}

func resolve(ctx context.Context, loc location, ref string) (resolution, error) {
	if fullCommit.MatchString(ref) {
		return resolution{commit: ref}, nil
	}
	if ref == "" {
		ref = "HEAD"
	}
	ask := []string{ref}
	if ref != "HEAD" && !strings.HasPrefix(ref, "refs/") {
		ask = []string{"refs/heads/" + ref, "refs/tags/" + ref, "refs/tags/" + ref + "^{}"}
	} else if ref != "HEAD" {
		ask = append(ask, ref+"^{}")
	}
	out, err := run(ctx, loc, neutralDir(), append([]string{"ls-remote", "--quiet", "--symref", "--", loc.url}, ask...)...)
	if err != nil {
		return resolution{}, err
	}
	res := pick(parseRefs(out), ref)
	if res.commit != "" {
		return res, nil
	}
	if shortCommit.MatchString(ref) {
		return resolveShort(ctx, loc, ref)
	}
	return resolution{}, noSuchRef(loc, ref)
}

// parseRefs maps names to hashes, and "symref NAME" to the name that it points at.
func parseRefs(out string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		left, name, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		switch target, sym := strings.CutPrefix(left, "ref: "); {
		case !ok:
		case sym:
			refs["symref "+name] = target
		case fullCommit.MatchString(left):
			refs[name] = left
		}
	}
	return refs
}

// pick prefers a branch to a tag, and the commit of an annotated tag to the tag.
func pick(refs map[string]string, ref string) resolution {
	if ref == "HEAD" {
		branch, _ := strings.CutPrefix(refs["symref HEAD"], "refs/heads/")
		return resolution{refs["HEAD"], branch}
	}
	if !strings.HasPrefix(ref, "refs/") {
		if hash := refs["refs/heads/"+ref]; hash != "" {
			return resolution{hash, ref}
		}
		ref = "refs/tags/" + ref
	}
	if hash := refs[ref+"^{}"]; hash != "" {
		return resolution{commit: hash}
	}
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		branch = ""
	}
	return resolution{refs[ref], branch}
}

// resolveShort finds the one branch or tag whose commit starts with ref.
func resolveShort(ctx context.Context, loc location, ref string) (resolution, error) {
	out, err := run(ctx, loc, neutralDir(), "ls-remote", "--quiet", "--heads", "--tags", "--", loc.url)
	if err != nil {
		return resolution{}, err
	}
	refs := parseRefs(out)
	found := map[string]bool{}
	for name, hash := range refs {
		if _, annotated := refs[name+"^{}"]; !annotated && strings.HasPrefix(hash, ref) {
			found[hash] = true
		}
	}
	if len(found) == 1 {
		for hash := range found {
			return resolution{commit: hash}, nil
		}
	}
	return resolution{}, nil
}

func noSuchRef(loc location, ref string) error {
	if ref == "" {
		ref = "HEAD"
	}
	return extensions.Errorf(extensions.KindInvalid, "the repository %s has no branch, tag or commit %q", loc.origin(),
		extensions.Clean(ref, 100)).
		WithRemedy("Push it, or give a ref that exists there.")
}
