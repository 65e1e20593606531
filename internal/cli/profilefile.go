package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (a *app) profileShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show PROFILE",
		Short: "Show a profile with everything it inherits",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				v, err := e.ProfileText(prefixed("profile.", given[0]))
				if err != nil {
					return err
				}
				return a.show(v, func(w io.Writer) error { return printProfile(w, v) })
			})
		},
	}
}

func printProfile(w io.Writer, v engine.ProfileText) error {
	err := facts(w, [][2]string{{"profile", v.ID + "@" + v.Version}, {"file", v.File}, {"extends", strings.Join(v.Lineage[1:], ", ")}})
	if err == nil && len(v.Inputs) > 0 {
		rows := [][]string{{"INPUT", "TYPE", "REQUIRED", "DEFAULT", "WHAT"}}
		for _, in := range v.Inputs {
			preset := ""
			if in.Default != nil {
				preset = fmt.Sprint(in.Default)
			}
			rows = append(rows, []string{in.Name, in.Type, yes(in.Required), preset, in.Doc})
		}
		_, err = fmt.Fprintln(w)
		err = errors.Join(err, grid(w, rows))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s", v.Text)
	return err
}

func (a *app) profileExportCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "export PROFILE",
		Short: "Print a profile as one file that extends nothing",
		Long: `Prints a profile with all that it inherits, as a file for profiles/ of a catalog. That
catalog also needs the kits, the bundle and the extension that the profile names.`,
		Example: "  sandboxer profile export profile.quickstart --output catalog/profiles/profile.quickstart.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				v, err := e.ProfileText(prefixed("profile.", given[0]))
				if err != nil {
					return err
				}
				if a.structured() && output == "" {
					return a.show(v.Profile, nil)
				}
				return a.exportTo(c.Context(), output, func(w io.Writer) error {
					_, err := io.WriteString(w, v.Text)
					return err
				})
			})
		},
	}
	c.Flags().StringVar(&output, "output", "", "`file` to write, completely or not at all (default: standard output)")
	return c
}

// newProfile is what init writes; its words are the name, without the prefix, and the parent.
const newProfile = `# What it is for.
id: profile.%[1]s
version: "1.0.0"
extends: %[2]s
ttl: { default: 1h }
# resources: { cpu: 2, memory_mb: 2048 }
# network: { egress: ["pypi.org:443"] }
# toolchain: { post_acquire: ["make deps"], env: { CI: "true" } }
# inputs:
#   greeting: { type: string, default: hello, doc: "Use it as {{input.greeting}}." }
`

func (a *app) profileInitCommand() *cobra.Command {
	var parent, dir string
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Write a first profile of your own into a catalog folder",
		Long: `Writes profiles/profile.NAME.yaml below --dir, for you to change, and prints its path. It
replaces no file. Use the folder with --catalog, $SANDBOXER_CATALOG or the provider's
catalog.`,
		Example: `  sandboxer profile init mine --extends profile.quickstart
  sandboxer --catalog catalog sandbox create profile.mine`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			name := strings.TrimPrefix(given[0], "profile.")
			if _, _, err := engine.ParseProfile("profile." + name); err != nil || strings.Contains(name, "@") {
				return extensions.Errorf(extensions.KindInvalid, "%q cannot name a profile", extensions.Clean(given[0], 80)).
					WithRemedy("use lower-case letters, digits and hyphens, such as mine")
			}
			parent = prefixed("profile.", parent)
			return a.withEngine(func(e *engine.Engine) error {
				if _, err := e.Profile(parent); err != nil {
					return err
				}
				path := filepath.Join(dir, "profiles", "profile."+name+".yaml")
				if err := writeNew(path, fmt.Sprintf(newProfile, name, parent)); err != nil {
					return err
				}
				return a.showID(map[string]string{"id": "profile." + name, "file": path}, path)
			})
		},
	}
	c.Flags().StringVar(&parent, "extends", defaultProfile, "`profile` to start from")
	c.Flags().StringVar(&dir, "dir", "catalog", "catalog `folder`, made if it is missing")
	return c
}

// writeNew writes a file that must not exist yet.
func writeNew(path, text string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o777) //nolint:gosec // less the umask: a catalog is no secret
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // likewise
	}
	if errors.Is(err, fs.ErrExist) {
		return extensions.Errorf(extensions.KindConflict, "%s is there already", path).WithRemedy("edit it, or choose another name")
	}
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the profile cannot be written: %w", err).WithRemedy("choose another --dir")
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
