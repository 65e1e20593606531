package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// completeTime bounds what a shell waits for at a press of Tab.
const completeTime = 2 * time.Second

// namesOf lists what a word of a command's usage line stands for.
type namesOf func(context.Context, *engine.Engine) []string

// words are the placeholders of usage lines and of flags whose values can be listed.
func (a *app) words() map[string]namesOf {
	return map[string]namesOf{
		"ID|NAME":   sandboxNames,
		"SNAPSHOT":  snapshotNames,
		"PROFILE":   profileNames,
		"EXTENSION": extensionNames,
		"HOST":      hostNames,
	}
}

// flagWords say which placeholder a flag's value is, by the flag's name.
var flagWords = map[string]string{"host": "HOST", "on": "EXTENSION", "extension": "EXTENSION", "profile": "PROFILE", "sandbox": "ID|NAME"}

func sandboxNames(ctx context.Context, e *engine.Engine) (out []string) {
	all, err := e.List(ctx, false)
	if err != nil {
		return nil
	}
	for _, s := range all {
		about := "\t" + s.State + ", " + s.Profile
		out = append(out, string(s.ID)+about)
		if s.Name != string(s.ID) {
			out = append(out, s.Name+about)
		}
	}
	return out
}

func snapshotNames(ctx context.Context, e *engine.Engine) (out []string) {
	all, err := e.Snapshots(ctx, false)
	if err != nil {
		return nil
	}
	for _, s := range all {
		out = append(out, s.ID+"\t"+s.Name)
	}
	return out
}

func profileNames(_ context.Context, e *engine.Engine) (out []string) {
	all, err := e.Profiles()
	if err != nil {
		return nil
	}
	for _, p := range all {
		out = append(out, p.ID)
	}
	return slices.Compact(out)
}

func extensionNames(_ context.Context, e *engine.Engine) (out []string) {
	for _, b := range e.Bindings() {
		out = append(out, b.ID+"\t"+b.Title)
	}
	return out
}

func hostNames(ctx context.Context, e *engine.Engine) (out []string) {
	all, err := e.Hosts(ctx)
	if err != nil {
		return nil
	}
	for _, h := range all {
		out = append(out, h.Host.Name)
	}
	return out
}

// completes gives every command below c the completion that its usage line and its flags call for.
func (a *app) completes(c *cobra.Command) {
	words := a.words()
	for _, child := range c.Commands() {
		a.completes(child)
	}
	if _, args, ok := strings.Cut(c.Use, " "); ok && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = a.completeArgs(words, strings.Fields(args))
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.NoFileCompletions
		switch of, known := words[flagWords[f.Name]]; {
		case f.Value.Type() == "bool":
			return
		case f.Name == "format":
			complete = func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return formatsOf(c), cobra.ShellCompDirectiveNoFileComp
			}
		case f.Name == "catalog" || f.Name == "state-dir":
			complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		case known:
			complete = a.complete(of)
		case strings.Contains(f.Usage, "`file`"):
			return
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails for one that completes itself
	})
}

// completeArgs completes each argument as its placeholder says; the last one repeats if it ends in "...". What has
// no list is left to the shell's files if it is a path or part of a command, else to nobody.
func (a *app) completeArgs(words map[string]namesOf, placeholders []string) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
		at := len(given)
		last := len(placeholders) - 1
		if at > last && strings.HasSuffix(bare(placeholders[last]), "...") {
			at = last
		}
		if at > last {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := strings.TrimSuffix(bare(placeholders[at]), "...")
		switch of, known := words[word]; {
		case known:
			names, directive := a.complete(of)(c, given, typed)
			if len(names) == 0 && slices.Contains(placeholders, "--") { // cobra does not say whether "--" was typed before it
				directive = cobra.ShellCompDirectiveDefault
			}
			return names, directive
		case slices.Contains([]string{"SRC", "DST"}, word):
			return a.completeCopy(c, typed)
		case slices.Contains([]string{"PATH", "DIR", "FILE", "--", "COMMAND", "ARG"}, word):
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func bare(placeholder string) string { return strings.Trim(placeholder, "[]") }

// shortName is the name of a profile or an extension as commands also take it.
func shortName(name string) string {
	for _, prefix := range []string{"profile.", "ext."} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// complete lists names. It tells nothing of what fails: Tab is no place for errors.
func (a *app) complete(of namesOf) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completeTime)
		defer cancel()
		_ = a.withEngine(func(e *engine.Engine) error {
			for _, name := range of(ctx, e) {
				if !strings.HasPrefix(name, typed) {
					name = shortName(name)
				}
				word, _, _ := strings.Cut(name, "\t")
				if strings.HasPrefix(name, typed) && !slices.Contains(given, word) {
					found = append(found, name)
				}
			}
			return nil
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCopy offers sandboxes before a colon, beside the shell's files.
func (a *app) completeCopy(c *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.ContainsAny(typed, ":/") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names, _ := a.complete(sandboxNames)(c, nil, typed)
	for i, name := range names {
		word, about, _ := strings.Cut(name, "\t")
		names[i] = word + ":\t" + about
	}
	return names, cobra.ShellCompDirectiveNoSpace
}
