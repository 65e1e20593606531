package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// guard says why the sandbox's change of p is never brought back; "" if it may be. The folder is on the
// user's machine, where tools act on what they find:
//
//   - through a link that leads out, anybody's next write would leave the folder;
//   - git runs what its config, hooks and attributes name, at a mere "git status" or in a
//     shell prompt, and obeys any ".git" file, bare repository or alternate object store
//     that it finds. Of .git, only history is brought back: objects, refs, HEAD, the index
//     and the logs.
func (s *syncer) guard(p string, t tarstream.Entry) string {
	if t.Type == tarstream.TypeSymlink && tarstream.LinkLeaves(p, t.Link) {
		return "the link may lead out of the folder"
	}
	if below, in := gitPart(p); in {
		return guardGit(below, t)
	}
	if path.Base(p) == "config" && s.besideBareRepository(p) {
		return "it would configure a git repository here"
	}
	return ""
}

// historyNames are the parts of .git that hold only history.
var historyNames = []string{"objects", "refs", "logs", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"MERGE_MSG", "MERGE_MODE", "COMMIT_EDITMSG", "index", "packed-refs", "shallow"}

func guardGit(below string, t tarstream.Entry) string {
	first, rest, _ := strings.Cut(below, "/")
	switch {
	case below == "" && t.Type == tarstream.TypeDir:
		return ""
	case below == "":
		return "it would point git to another place"
	case t.Type == tarstream.TypeSymlink, !slices.Contains(historyNames, first), first == "objects" && strings.HasPrefix(rest, "info/") &&
		rest != "info/packs" && rest != "info/commit-graph":
		return "git would run it on this machine"
	}
	return ""
}

// gitPart finds the first ".git" in p and returns what is below it.
func gitPart(p string) (below string, in bool) {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if isDotGit(part) {
			return strings.Join(parts[i+1:], "/"), true
		}
	}
	return "", false
}

func insideGit(p string) bool {
	_, in := gitPart(p)
	return in
}

// besideBareRepository reports whether git would take the folder of p for a bare repository, given both
// what is here and what is there.
func (s *syncer) besideBareRepository(p string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		at := path.Join(path.Dir(p), name)
		if _, there := s.there[at]; there {
			continue
		}
		if _, here, err := s.look(at); err != nil || !here {
			return false
		}
	}
	return true
}
