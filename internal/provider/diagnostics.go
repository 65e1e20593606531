package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// explanation is what users read for a Kind: the class of failure, and what to do if the error does not say.
type explanation struct{ summary, remedy string }

// explanations is the only place that puts a Kind into words.
var explanations = map[engine.Kind]explanation{
	extensions.KindInvalid: {"the request is not valid", "Correct it and run again. Nothing was created."},
	extensions.KindUnauthorized: {"access was refused",
		"Check this extension's credentials in the provider block or in its environment variables."},
	extensions.KindNotFound: {"it does not exist", "Run `terraform plan` to see what is left to do."},
	extensions.KindConflict: {"there is a conflict", "Wait for the other operation, or choose another name."},
	extensions.KindIndeterminate: {"the outcome is not known yet",
		"Run the same command again: it first finds out what happened."},
	extensions.KindExhausted:   {"no capacity is left", "Free some capacity, raise the limit, or add another host or extension."},
	extensions.KindUnavailable: {"it is temporarily unavailable", "Try again in a few minutes."},
	extensions.KindUnreachable: {"it cannot be reached",
		"Check the network and the machine, then run again. The state keeps what is known."},
	extensions.KindTimeout: {"it took too long",
		"Run again, or raise the timeout. The state keeps what was started, and a destroy removes it."},
	extensions.KindUnsupported: {"it is not supported here",
		"Change the profile or choose another place; `terraform plan` shows why each place was refused."},
	extensions.KindInterrupted: {"it was interrupted", "Run the same command again: it continues where this run stopped."},
	extensions.KindFailed:      {"a process inside failed", "Fix the process and run again."},
	extensions.KindInternal:    {"an unexpected failure", "Run again with TF_LOG=DEBUG. If it fails again, report it with the log."},
}

func explain(err error) explanation {
	if e, ok := explanations[extensions.KindOf(err)]; ok {
		return e
	}
	return explanations[extensions.KindInternal]
}

// addError reports what failed, why, and what to do next.
func addError(ctx context.Context, diags *diag.Diagnostics, what string, err error) {
	addErrorAt(ctx, diags, path.Empty(), what, err)
}

// addErrorAt is addError for one argument; path.Empty() is the whole block.
func addErrorAt(ctx context.Context, diags *diag.Diagnostics, at path.Path, what string, err error) {
	summary, detail := describe(ctx, what, err)
	if at.Equal(path.Empty()) {
		diags.AddError(summary, detail)
		return
	}
	diags.AddAttributeError(at, summary, detail)
}

// addWarning is addError as a warning.
func addWarning(ctx context.Context, diags *diag.Diagnostics, what string, err error) {
	diags.AddWarning(describe(ctx, what, err))
}

// describe puts err into words. ctx is the operation's: it tells whether the user pressed Ctrl-C or the time
// in `timeouts` ran out.
func describe(ctx context.Context, what string, err error) (summary, detail string) {
	err = engine.GivenUp(ctx, err)
	e := explain(err)
	if limit := engine.LimitOf(err); limit != "" {
		e.summary = limit
	}
	if errors.Is(err, engine.ErrLedgerUnusable) {
		e.summary = "the ledger cannot be used"
	}
	remedy := extensions.RemedyOf(err)
	if remedy == "" {
		remedy = e.remedy
	}
	return what + ": " + e.summary, sentence(err.Error()) + "\n\nWhat to do: " + sentence(remedy)
}

// sentence ends text with a full stop and starts it with a capital, unless it starts with a name that must
// stay as it is (an id, a path, an argument).
func sentence(text string) string {
	text = strings.TrimRight(text, " \n")
	if text == "" {
		return ""
	}
	first, _, _ := strings.Cut(text, " ")
	if !strings.ContainsAny(first, "-./_:\"'`") && !slices.Contains(planArguments, first) {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if strings.HasPrefix(text[strings.LastIndex(text, "\n")+1:], "  ") {
		return text // it ends in what a command printed
	}
	last := text[strings.LastIndexAny(text, " \n")+1:]
	if strings.ContainsAny(last, "-/=}") && !strings.HasSuffix(last, "`") || strings.HasSuffix(last, ".") || strings.HasSuffix(last, "?") {
		return text // an id, path or command to copy
	}
	return text + "."
}

// addNotices turns the engine's notices into warnings.
func addNotices(diags *diag.Diagnostics, ns []engine.Notice) {
	for _, n := range ns {
		diags.AddWarning(n.Summary, n.Detail)
	}
}

// fieldPath returns which of the block's arguments an error is about, else fallback.
func fieldPath(err error, fallback path.Path, arguments ...string) path.Path {
	name, _, _ := strings.Cut(extensions.FieldOf(err), ".")
	if slices.Contains(arguments, name) {
		return path.Root(name)
	}
	return fallback
}

// importBlock returns configuration that imports an existing sandbox.
func importBlock(id engine.ID) string {
	return fmt.Sprintf("import {\n  to = sandboxer_sandbox.NAME\n  id = %q\n}", string(id))
}

// addCreateError is addError for a sandbox that was not created. If a live sandbox is in the way, it prints
// the block that imports it. A provider does not learn its resource's address, so the user completes `to`.
func addCreateError(ctx context.Context, diags *diag.Diagnostics, at path.Path, own engine.ID, req engine.Request, err error) {
	what := "Sandbox " + subject(req) + " was not created"
	var e *engine.Error
	if extensions.KindOf(err) != extensions.KindConflict || !errors.As(err, &e) || e.ID == "" || e.ID == own {
		addErrorAt(ctx, diags, at, what, err)
		return
	}
	summary, detail := describe(ctx, what, err)
	if !strings.Contains(detail, "import {") {
		detail += "\n\nTo import it into this state, add this block with this resource's address in `to`, and apply:\n\n" + importBlock(e.ID)
	}
	diags.AddAttributeError(path.Root("name"), summary, detail)
}

// applyFirst says how an argument that governs a destroy takes effect: Terraform destroys with what the last
// apply put into the state.
func applyFirst(argument string) string {
	return "A destroy uses the arguments of the last apply, so apply the change first. With -refresh=false Terraform does not contact " +
		"places that may be unreachable:\n\n" +
		"  1. set " + argument + " in the resource block\n" +
		"  2. terraform apply -refresh=false\n" +
		"  3. terraform destroy -refresh=false"
}

func unreachable(err error) bool {
	return extensions.IsKind(err, extensions.KindUnreachable) || extensions.IsKind(err, extensions.KindTimeout)
}

func quoteName(name string) string { return `"` + name + `"` }

// subject names a sandbox that does not exist yet.
func subject(req engine.Request) string {
	switch {
	case req.Name != "":
		return quoteName(req.Name)
	case req.NamePrefix != "":
		return quoteName(req.NamePrefix + "…")
	}
	return "of " + req.Profile
}
