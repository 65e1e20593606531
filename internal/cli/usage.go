package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// usageError says what is wrong with a command line. No flag is a digit, so what looks like one is a negative
// number, which no argument takes.
func usageError(c *cobra.Command, err error) error {
	var flag interface {
		error
		GetSpecifiedShortnames() string
	}
	if errors.As(err, &flag) {
		if n := flag.GetSpecifiedShortnames(); n != "" && strings.ContainsRune("0123456789.", rune(n[0])) {
			return extensions.Errorf(extensions.KindInvalid, "%s: -%s is negative", c.CommandPath(), extensions.Clean(n, 80)).
				WithRemedy("give a number or an amount of at least zero, such as \"100 USD\"")
		}
	}
	wrapped := extensions.Errorf(extensions.KindInvalid, "%s: %w", c.CommandPath(), err)
	if extensions.RemedyOf(err) != "" {
		return wrapped // a flag's value is wrong
	}
	return wrapped.WithRemedy("run `%s --help`", c.CommandPath())
}

// args turns cobra's argument check into a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		if err := check(c, given); err != nil {
			return usageError(c, err)
		}
		return nil
	}
}

// group is a command that only holds others. Alone it shows help; an unknown word is an error.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noSuchCommand, RunE: showHelp}
	c.AddCommand(children...)
	return c
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

func noSuchCommand(c *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	err := extensions.Errorf(extensions.KindInvalid, "%s has no command %q", c.CommandPath(), given[0])
	c.SuggestionsMinimumDistance = 2
	near := named(c, given[0])
	if len(near) == 0 {
		near = c.SuggestionsFor(given[0])
	}
	if len(near) > 0 {
		return err.WithRemedy("did you mean %s?", strings.Join(near, " or "))
	}
	return err.WithRemedy("run `%s --help`", c.CommandPath())
}

// named returns the commands of a name below c's own, as they are called.
func named(c *cobra.Command, name string) (all []string) {
	for _, child := range c.Commands() {
		for _, below := range child.Commands() {
			if (below.Name() == name || below.HasAlias(name)) && below.IsAvailableCommand() {
				all = append(all, "`"+below.CommandPath()+"`")
			}
		}
	}
	return all
}

func splitPathList(v string) []string {
	var out []string
	for _, p := range filepath.SplitList(v) {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// pair splits "key=value".
func pair(flag, s string) (key, value string, err error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return "", "", extensions.Errorf(extensions.KindInvalid, "--%s %q is not key=value", flag, s)
	}
	return key, value, nil
}

func pairs(flag string, list []string) (map[string]string, error) {
	out := make(map[string]string, len(list))
	for _, s := range list {
		k, v, err := pair(flag, s)
		if err != nil {
			return nil, err
		}
		if _, twice := out[k]; twice {
			return nil, extensions.Errorf(extensions.KindInvalid, "--%s names %q twice", flag, k)
		}
		out[k] = v
	}
	return out, nil
}
