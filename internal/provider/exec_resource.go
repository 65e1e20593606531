package provider

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// execResource is the record of a command that ran. It outlives its sandbox: reading and destroying it contact
// nothing.
type execResource struct{ withEngine }

var (
	_ resource.ResourceWithConfigure      = (*execResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*execResource)(nil)
	_ resource.ResourceWithValidateConfig = (*execResource)(nil)
)

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *execResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config execModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if !resp.Diagnostics.HasError() {
		config.check(ctx, &resp.Diagnostics)
		config.setOnce(config.Env, "env", config.SecretsWO, "secrets_wo", &resp.Diagnostics)
		config.setOnce(config.SecretRefs, "secret_refs", config.SecretsWO, "secrets_wo", &resp.Diagnostics)
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan. It contacts nothing.
func (r *execResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state execModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		if !plan.Capture.IsUnknown() && !plan.Capture.ValueBool() {
			plan.noOutput()
		}
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	for name, changed := range plan.runsAgain(state) {
		if changed {
			resp.RequiresReplace.Append(path.Root(name))
		}
	}
	if len(resp.RequiresReplace) == 0 {
		plan.keep(state)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// runsAgain says which changed arguments make the command run again.
func (m execModel) runsAgain(state execModel) map[string]bool {
	changed := map[string]bool{"expected_exit_codes": !m.Expected.Equal(state.Expected) && !m.expects(state.ExitCode)}
	for name, v := range map[string][2]attr.Value{
		"sandbox_id": {m.SandboxID, state.SandboxID}, "command": {m.Command, state.Command}, "shell": {m.Shell, state.Shell},
		"shell_path": {m.ShellPath, state.ShellPath}, "stdin": {m.Stdin, state.Stdin}, "dir": {m.Dir, state.Dir},
		"user": {m.User, state.User}, "service": {m.Service, state.Service},
		"secrets_wo_version": {m.SecretsWOVersion, state.SecretsWOVersion},
	} {
		changed[name] = !v[0].Equal(v[1])
	}
	changed["capture"] = m.Capture.IsUnknown() || m.Capture.ValueBool() != state.Capture.ValueBool()
	changed["secret_refs"] = !sameMap(m.SecretRefs, state.SecretRefs)
	changed["env"], changed["triggers"] = !sameMap(m.Env, state.Env), !sameMap(m.Triggers, state.Triggers)
	return changed
}

// keep takes what became of the command from the state.
func (m *execModel) keep(s execModel) {
	m.ID, m.RanAt, m.ExitCode, m.DurationMillis = s.ID, s.RanAt, s.ExitCode, s.DurationMillis
	m.Stdout, m.Stderr, m.StdoutBase64, m.StderrBase64 = s.Stdout, s.Stderr, s.StdoutBase64, s.StderrBase64
	m.StdoutTruncated, m.StderrTruncated = s.StdoutTruncated, s.StderrTruncated
}

// Create implements resource.Resource. A command that ran, or may have, is in the state even if that failed:
// Terraform then marks it as tainted and runs it again.
func (r *execResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	e := r.changing(&resp.Diagnostics)
	var plan, config execModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	task, diags := config.task(ctx)
	resp.Diagnostics.Append(diags...)
	plain, diags := stringMap(ctx, config.SecretsWO)
	resp.Diagnostics.Append(diags...)
	task.Secrets, diags = config.resolve(ctx, secrets(plain))
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.Capture.ValueBool() {
		task.Keep = captured
	}
	task.Line = func(line string) { tflog.Info(ctx, line, map[string]any{"sandbox": plan.SandboxID.ValueString()}) }
	plan.ID, plan.RanAt = types.StringValue("exe-"+strings.ToLower(rand.Text())), stamp(time.Now())
	rec, err := receiptBy(ctx, e, plan.SandboxID, r.cfg.account)
	var done engine.TaskResult
	if err == nil {
		done, err = e.Perform(ctx, rec, task)
	}
	plan.take(done)
	if done.Began {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Command in sandbox "+plan.SandboxID.ValueString()+" failed", err)
	}
}

// Read implements resource.Resource: what ran has run, whatever became of its sandbox.
func (r *execResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update implements resource.Resource. It only records arguments that run nothing.
func (r *execResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan execModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// Delete implements resource.Resource: the record goes, and nothing runs.
func (r *execResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
