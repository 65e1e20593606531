package cli

import (
	"io"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) extensionsExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export [EXTENSION...]",
		Short: "Print an entry for each extension, as registries keep them",
		Long: `Prints one YAML document for each extension of the catalog, or for each one you name:
id, title, handler, capabilities and config, narrowed as the catalog says. A config
contains no secrets.`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, names []string) error {
			for i := range names {
				names[i] = prefixed("ext.", names[i])
			}
			return a.withEngine(func(e *engine.Engine) error {
				entries, err := e.Registry(names...)
				if err != nil {
					return err
				}
				return a.show(entries, func(w io.Writer) error { return printEntries(w, entries) })
			})
		},
	}
}

func printEntries(w io.Writer, entries []engine.RegistryEntry) error {
	for _, entry := range entries {
		text, err := yaml.Dump(entry, yaml.WithIndent(2))
		if err != nil {
			return err
		}
		if _, err := w.Write(append([]byte("---\n"), text...)); err != nil {
			return err
		}
	}
	return nil
}
