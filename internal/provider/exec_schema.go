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
		MarkdownDescription: "Runs a command inside a sandbox when the resource is created, and again when `triggers` or the command " +
			"changes. Destroying the resource runs nothing.\n\nAn unexpected exit code fails the apply and shows the end of the output. The " +
			"next apply runs the command again. It also repeats a command that was interrupted or lost, which may have run in part; the apply " +
			"says so. If Terraform itself is killed, the command ends with it, no state records it, and the next apply runs it again.\n\nThe " +
			"output hides the secrets of the command and of the sandbox. The run that created the sandbox knows them; a later run reads them " +
			"from the sandbox. If it cannot, for example without the sandbox's ledger, errors show no output.\n\nTerraform shows no progress " +
			"of a resource. To see each line as it is printed, set `TF_LOG_PROVIDER=info` or use the action `sandboxer_exec`. A refresh " +
			"contacts nothing: the record stays, whatever happens to the sandbox. It cannot be imported.",
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
			MarkdownDescription: "Program and its arguments, passed without expansion or quoting. Set exactly one of `command` and `shell`.",
		},
		"shell": schema.StringAttribute{
			Optional: true, Validators: []validator.String{argument()},
			MarkdownDescription: "Script that `shell_path` runs. Set exactly one of `command` and `shell`.",
		},
		"shell_path": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a program")},
			MarkdownDescription: "Shell that runs the script, with `-c`. Default: `/bin/sh`.",
		},
		"stdin": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Standard input of the command. Default: none. The state stores it: use `secret_refs` for " +
				"secrets.",
		},
		"env": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Environment variables of the command, which override the sandbox's. The state stores them: use " +
				"`secret_refs` for secrets.",
		},
		"secret_refs": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(secretRef())},
			MarkdownDescription: "Secret environment variables of the command, as references such as `env://VARIABLE`, `file:///path` or " +
				"`exec://program?arg=a`. The machine that runs Terraform reads them when the command runs. The state stores only the references, " +
				"and the output hides the secrets.",
		},
		"dir": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a folder")},
			MarkdownDescription: "Working folder, absolute or relative to the workspace. Default: the workspace.",
		},
		"user": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a user")},
			MarkdownDescription: "User that runs the command. Default: the sandbox's user.",
		},
		"service": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("a service")},
			MarkdownDescription: "Service of a Compose stack. Default: the profile's.",
		},
		"timeout": schema.StringAttribute{
			Optional: true, Validators: []validator.String{duration()},
			MarkdownDescription: "Time limit, such as `90s` or `2h`. It ends the command and every process that it started. Default: `5m`.",
		},
		"expected_exit_codes": schema.ListAttribute{
			ElementType: types.NumberType, Optional: true,
			Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueNumbersAre(wholeNumber{0, 255})},
			MarkdownDescription: "Exit codes that count as success. A command ended by signal *n* has the exit code 128 + *n*. Default: `[0]`.",
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
			MarkdownDescription: "Secret environment variables of the command. Write-only: no state, plan, log or ledger holds them, and the " +
				"output hides them.",
		},
		"secrets_wo_version": schema.NumberAttribute{
			Optional: true, Validators: []validator.Number{anyWhole()},
			MarkdownDescription: "Any whole number. A change runs the command again with the current `secrets_wo`.",
		},
		"capture": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Stores the first 64 KiB of each stream in the state, as the sensitive `stdout` and `stderr`, with known " +
				"secrets hidden. Default: `false`.",
		},
		"id":          schema.StringAttribute{Computed: true, MarkdownDescription: "ID of this run of the command."},
		"ran_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "Time when it started, RFC 3339."},
		"exit_code":   schema.Int64Attribute{Computed: true, MarkdownDescription: "Exit code. Null if the command did not exit by itself."},
		"duration_ms": schema.Int64Attribute{Computed: true, MarkdownDescription: "How long it ran, in milliseconds."},
		"stdout": stream("Output, with `capture`; `nonsensitive()` shows it. Bytes that are not UTF-8 are replaced. A place that mixes " +
			"both streams puts everything here."),
		"stderr":           stream("Error output, with `capture`."),
		"stdout_base64":    stream("The exact bytes of `stdout` in base64, if they are not UTF-8."),
		"stderr_base64":    stream("The exact bytes of `stderr` in base64, if they are not UTF-8."),
		"stdout_truncated": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether `stdout` was cut off."},
		"stderr_truncated": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether `stderr` was cut off."},
	}
}
