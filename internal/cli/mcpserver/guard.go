package mcpserver

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// inputRepo is the input that names a folder of this machine.
const inputRepo = "repo"

// allowed is a profile that the agent may use.
type allowed struct {
	inputs []engine.ProfileInputView
	egress []string
}

// admit reads the profiles and refuses those that would give the agent what it must not have.
func admit(e *engine.Engine, limits Limits) (map[string]allowed, error) {
	if len(limits.Profiles) == 0 {
		return nil, extensions.Errorf(extensions.KindInvalid, "no profile is allowed").
			WithRemedy("name each profile that the agent may use: --profile profile.quickstart").At("profile")
	}
	all := map[string]allowed{}
	for _, ref := range limits.Profiles {
		view, x, err := e.Exposure(ref)
		if err != nil {
			return nil, err
		}
		refuse := func(why, remedy string) error {
			return extensions.Errorf(extensions.KindInvalid, "an agent cannot use %s: %s", ref, why).WithRemedy("%s", remedy).At("profile")
		}
		switch {
		case !x.Walls:
			return nil, refuse("it has no walls, so a command would run as you", "choose a profile with an isolation level")
		case len(x.Secrets) > 0:
			return nil, refuse("it takes the secrets "+strings.Join(x.Secrets, ", ")+" from your machine",
				"write a profile that extends it without setup.secret_refs")
		case x.Open && !limits.OpenNetwork:
			return nil, refuse("its network is open",
				"write a profile that extends it with network.default: deny and egress, or allow it with --open-network")
		}
		all[ref] = allowed{inputs: view.Inputs, egress: x.Egress}
	}
	return all, nil
}

func resolveRoots(roots []string) ([]string, error) {
	all := make([]string, 0, len(roots))
	for _, r := range roots {
		full, err := folder(r)
		if err != nil {
			return nil, extensions.Errorf(extensions.KindInvalid, "the root %q cannot be used: %w", r, err).At("root")
		}
		all = append(all, full)
	}
	return all, nil
}

// folder returns the folder's path without symbolic links.
func folder(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(full)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: name, Err: os.ErrInvalid}
	}
	return full, err
}

// inputs checks what the agent gives a profile: repo must be a folder in one of the roots, and is passed on without
// symbolic links. Whether a folder elsewhere exists is not told.
func (s *Server) inputs(given map[string]any) (map[string]any, error) {
	value, ok := given[inputRepo]
	if !ok {
		return given, nil
	}
	text, ok := value.(string)
	if ok && text == "" {
		return given, nil
	}
	refused := extensions.Errorf(extensions.KindInvalid, "repo must be a folder in %s", strings.Join(s.roots, ", ")).At("inputs.repo")
	if len(s.roots) == 0 {
		refused = extensions.Errorf(extensions.KindInvalid, "repo is not allowed in this session").At("inputs.repo").
			WithRemedy("leave it out, and write files with sandbox_write")
	}
	if u, err := url.Parse(text); !ok || !filepath.IsAbs(text) || err == nil && u.Scheme != "" {
		return nil, refused
	}
	full, err := folder(text)
	if err != nil {
		return nil, refused
	}
	for _, root := range s.roots {
		if rel, err := filepath.Rel(root, full); err == nil && filepath.IsLocal(rel) {
			checked := make(map[string]any, len(given))
			for k, v := range given {
				checked[k] = v
			}
			checked[inputRepo] = full
			return checked, nil
		}
	}
	return nil, refused
}
