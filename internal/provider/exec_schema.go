package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Metadata implements resource.Resource.
func (r *execResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_exec"
}

// Schema implements resource.Resource.
func (r *execResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attrs := commandArguments()
	for name, a := range execArguments() {
		attrs[name] = a
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Runs a command inside a sandbox when it is created, and again when `triggers` or the command itself changes. " +
			"Destroying it runs nothing.\n\n" +
			"An exit code that is not expected fails the apply with the end of the output, and the next apply runs the command again. It also " +
			"runs one again that was interrupted or lost, and may have run in part: the apply says so. If Terraform itself is killed, the " +
			"command ends with it and no state tells of it: the next apply runs it again, too.\n\n" +
			"The secrets of the command and of the sandbox are hidden in what it prints. The run that made the sandbox knows them, and a " +
			"later one reads them inside. Where it cannot, such as without the sandbox's ledger, an error shows no output.\n\n" +
			"Terraform shows no progress of a resource: `TF_LOG_PROVIDER=info` shows each line as it is printed, and so does the action " +
			"`sandboxer_exec`. Reading it contacts nothing: the record stays, whatever becomes of the " +
			"sandbox. It cannot be imported.",
		Attributes: attrs,
	}
}

// commandArguments say what runs, and how.
func commandArguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"sandbox_id": schema.StringAttribute{
			Required: true, Validators: []validator.String{sandboxID()}, MarkdownDescription: "ID of the sandbox.",
		},
		"command": schema.ListAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(argument())},
			MarkdownDescription: "Program and its arguments, passed literally, without expansion or quoting. Either this or `shell`.",
		},
		"shell": schema.StringAttribute{
			Optional: true, Validators: []validator.String{argument()},
			MarkdownDescription: "Script for `shell_path`. Either this or `command`.",
		},
		"shell_path": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a program")},
			MarkdownDescription: "Shell inside that runs `shell`, with `-c`. Default: `/bin/sh`.",
		},
		"stdin": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Input of the command. Default: none. It is stored: use `secret_refs` for secrets.",
		},
		"env": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Environment variables of the command, over those of the sandbox. They are stored: use `secret_refs` for secrets.",
		},
		"secret_refs": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(secretRef())},
			MarkdownDescription: "Secrets of the command, as environment variables by name: references such as `env://VARIABLE`, `file:///path` " +
				"or `exec://program?arg=a`, read on the machine that runs Terraform when the command runs. Only the references are stored, and the " +
				"secrets are hidden in what the command prints.",
		},
		"dir": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a folder")},
			MarkdownDescription: "Folder inside, absolute or from the workspace. Default: the workspace.",
		},
		"user": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a user")},
			MarkdownDescription: "User inside. Default: the sandbox's user.",
		},
		"service": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a service")},
			MarkdownDescription: "Service of a Compose stack. Default: the profile's.",
		},
		"timeout": schema.StringAttribute{
			Optional: true, Validators: []validator.String{duration()},
			MarkdownDescription: "The command and all it began are ended after this time, such as `90s` or `2h`. Default: `5m`.",
		},
		"expected_exit_codes": schema.ListAttribute{
			ElementType: types.NumberType, Optional: true,
			Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueNumbersAre(wholeNumber{0, 255})},
			MarkdownDescription: "Exit codes that count as success; a command ended by signal *n* has 128 + *n*. Default: `[0]`.",
		},
	}
}

// execArguments are those that only a resource has, which keeps a state.
func execArguments() map[string]schema.Attribute {
	stream := func(doc string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: doc}
	}
	return map[string]schema.Attribute{
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Any values. A change runs the command again. So does a change of any other argument except `timeout`, and " +
				"`expected_exit_codes` while the exit code is among them.",
		},
		"secrets_wo": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Sensitive: true, WriteOnly: true,
			Validators: []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Secrets of the command, as environment variables by name. Write-only: no state, plan, log or ledger holds them, " +
				"and they are hidden in what the command prints.",
		},
		"secrets_wo_version": schema.NumberAttribute{
			Optional: true, Validators: []validator.Number{anyWhole()},
			MarkdownDescription: "Any whole number. A change runs the command again with the current `secrets_wo`.",
		},
		"capture": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Keep the first 64 KiB of each stream in the state, as the sensitive `stdout` and `stderr`. They hold whatever " +
				"the command printed, without the secrets known. Default: `false`.",
		},
		"id":          schema.StringAttribute{Computed: true, MarkdownDescription: "ID of this run of the command."},
		"ran_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "When it began, RFC 3339."},
		"exit_code":   schema.Int64Attribute{Computed: true, MarkdownDescription: "Exit code. Null if the command did not end by itself."},
		"duration_ms": schema.Int64Attribute{Computed: true, MarkdownDescription: "How long it ran, in milliseconds."},
		"stdout": stream("Output, with `capture`; `nonsensitive()` shows it. Bytes that are no UTF-8 are replaced. A place that mixes both " +
			"streams has them all here."),
		"stderr":           stream("Error output, with `capture`."),
		"stdout_base64":    stream("The exact bytes of `stdout` in base64, if they are no UTF-8."),
		"stderr_base64":    stream("The exact bytes of `stderr` in base64, if they are no UTF-8."),
		"stdout_truncated": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether there was more output than `stdout` has."},
		"stderr_truncated": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether there was more output than `stderr` has."},
	}
}
