package provider

import (
	"context"
	"encoding/base64"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// commandModel is a command inside, as the resource and the action have it.
type commandModel struct {
	SandboxID  types.String `tfsdk:"sandbox_id"`
	Command    types.List   `tfsdk:"command"`
	Shell      types.String `tfsdk:"shell"`
	ShellPath  types.String `tfsdk:"shell_path"`
	Stdin      types.String `tfsdk:"stdin"`
	Env        types.Map    `tfsdk:"env"`
	SecretRefs types.Map    `tfsdk:"secret_refs"`
	Dir        types.String `tfsdk:"dir"`
	User       types.String `tfsdk:"user"`
	Service    types.String `tfsdk:"service"`
	Timeout    types.String `tfsdk:"timeout"`
	Expected   types.List   `tfsdk:"expected_exit_codes"`
}

type execModel struct {
	commandModel
	SecretsWO        types.Map    `tfsdk:"secrets_wo"`
	Triggers         types.Map    `tfsdk:"triggers"`
	SecretsWOVersion types.Number `tfsdk:"secrets_wo_version"`
	Capture          types.Bool   `tfsdk:"capture"`

	ID              types.String `tfsdk:"id"`
	RanAt           types.String `tfsdk:"ran_at"`
	ExitCode        types.Int64  `tfsdk:"exit_code"`
	DurationMillis  types.Int64  `tfsdk:"duration_ms"`
	Stdout          types.String `tfsdk:"stdout"`
	Stderr          types.String `tfsdk:"stderr"`
	StdoutBase64    types.String `tfsdk:"stdout_base64"`
	StderrBase64    types.String `tfsdk:"stderr_base64"`
	StdoutTruncated types.Bool   `tfsdk:"stdout_truncated"`
	StderrTruncated types.Bool   `tfsdk:"stderr_truncated"`
}

// captured is how much of each stream a state keeps, in bytes.
const captured = 64 << 10

// task maps the arguments and omits unknown ones and secrets.
func (m commandModel) task(ctx context.Context) (t engine.Task, diags diag.Diagnostics) {
	t.Shell, t.ShellPath, t.Dir, t.User, t.Service = m.Shell.ValueString(), m.ShellPath.ValueString(), m.Dir.ValueString(),
		m.User.ValueString(), m.Service.ValueString()
	var words []types.String
	if !m.Command.IsNull() && !m.Command.IsUnknown() {
		diags.Append(m.Command.ElementsAs(ctx, &words, false)...)
	}
	for _, w := range words {
		t.Command = append(t.Command, w.ValueString())
	}
	if !m.Stdin.IsNull() {
		t.Stdin = strings.NewReader(m.Stdin.ValueString())
	}
	env, ds := stringMap(ctx, m.Env)
	diags.Append(ds...)
	t.Env = env
	if limit, err := parseDuration(m.Timeout.ValueString()); err == nil { // unset, unknown, or refused by its attribute
		t.Timeout = limit
	}
	codes, ds := m.expected(ctx)
	diags.Append(ds...)
	t.Expected = codes
	return t, diags
}

func (m commandModel) expected(ctx context.Context) (codes []int, diags diag.Diagnostics) {
	var all []types.Number
	if !m.Expected.IsNull() && !m.Expected.IsUnknown() {
		diags.Append(m.Expected.ElementsAs(ctx, &all, false)...)
	}
	for _, n := range all {
		codes = append(codes, int(int64Of(n)))
	}
	return codes, diags
}

// check refuses a command that could never run, as far as its arguments are known.
func (m commandModel) check(ctx context.Context, diags *diag.Diagnostics) {
	for _, v := range []interface{ IsUnknown() bool }{m.Command, m.Shell} {
		if v.IsUnknown() {
			return
		}
	}
	t, ds := m.task(ctx)
	diags.Append(ds...)
	for i := range t.Command { // an unknown word is not an empty one
		if v := m.Command.Elements()[i]; v.IsUnknown() {
			t.Command[i] = "unknown"
		}
	}
	maps.DeleteFunc(t.Env, func(name, _ string) bool { return !extensions.ValidEnvName(name) }) // refused by its attribute
	if err := t.Check(); err != nil && !diags.HasError() {
		addError(ctx, diags, "This command cannot run", err)
	}
	if m.ShellPath.ValueString() != "" && m.Shell.IsNull() {
		diags.AddAttributeError(path.Root("shell_path"), "shell_path without shell", "shell_path runs the script in shell, which is not "+
			"set.\n\nWhat to do: put the script into shell, or name the program as the first word of command.")
	}
	m.setOnce(m.Env, "env", m.SecretRefs, "secret_refs", diags)
}

// setOnce refuses a variable that two arguments set.
func (m commandModel) setOnce(a types.Map, aName string, b types.Map, bName string, diags *diag.Diagnostics) {
	for name := range a.Elements() {
		if _, twice := b.Elements()[name]; twice {
			// Not at secrets_wo: Terraform quotes the line, which may have the value.
			diags.AddAttributeError(path.Root(aName), "The variable "+name+" is set twice", "It is in "+aName+" and in "+bName+".\n\n"+
				"What to do: set it in one place.")
		}
	}
}

// resolve reads the secrets that secret_refs names, now and into memory only, and adds them to own.
func (m commandModel) resolve(ctx context.Context, own map[string]engine.Secret) (map[string]engine.Secret, diag.Diagnostics) {
	refs, diags := stringMap(ctx, m.SecretRefs)
	all := map[string]engine.Secret{}
	maps.Copy(all, own)
	for name, ref := range refs {
		s, err := engine.ResolveSecret(ctx, ref)
		if err != nil {
			addErrorAt(ctx, &diags, path.Root("secret_refs"), "The secret "+name+" cannot be read", err)
			continue
		}
		all[name] = s
	}
	return all, diags
}

// receiptBy returns what the engine needs to use a sandbox of which only the id is known here.
func receiptBy(ctx context.Context, e *engine.Engine, id types.String, account string) (engine.Receipt, error) {
	rec := engine.Receipt{Version: 1, ID: engine.ID(id.ValueString()), Account: account}
	sb, err := e.Lookup(ctx, rec.ID, "", "")
	switch {
	case err == nil:
		return sb.Receipt, nil
	case extensions.IsKind(err, extensions.KindNotFound): // made on another machine: found by its id
		return rec, nil
	}
	return rec, err
}

// take fills in what became of the command.
func (m *execModel) take(r engine.TaskResult) {
	m.ExitCode, m.DurationMillis = types.Int64Null(), types.Int64Value(r.Duration.Milliseconds())
	if r.Ended {
		m.ExitCode = types.Int64Value(int64(r.ExitCode))
	}
	m.noOutput()
	if m.Capture.ValueBool() {
		m.Stdout, m.StdoutBase64 = captureOf(r.Stdout)
		m.Stderr, m.StderrBase64 = captureOf(r.Stderr)
		m.StdoutTruncated, m.StderrTruncated = types.BoolValue(r.StdoutTruncated), types.BoolValue(r.StderrTruncated)
	}
}

// noOutput is a command whose output is not kept.
func (m *execModel) noOutput() {
	m.Stdout, m.Stderr, m.StdoutBase64, m.StderrBase64 = types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull()
	m.StdoutTruncated, m.StderrTruncated = types.BoolNull(), types.BoolNull()
}

// captureOf returns a stream as text, and the exact bytes if text cannot hold them.
func captureOf(b []byte) (text, exact types.String) {
	if utf8.Valid(b) {
		return types.StringValue(string(b)), types.StringNull()
	}
	return types.StringValue(strings.ToValidUTF8(string(b), "\ufffd")), types.StringValue(base64.StdEncoding.EncodeToString(b))
}

// expects reports whether the command's exit code is one of those expected now.
func (m execModel) expects(code types.Int64) bool {
	if m.Expected.IsUnknown() || code.IsNull() {
		return false
	}
	codes := m.Expected.Elements()
	if len(codes) == 0 {
		return code.ValueInt64() == 0
	}
	return slices.ContainsFunc(codes, func(v attr.Value) bool {
		n, ok := v.(types.Number)
		return ok && !n.IsUnknown() && !n.IsNull() && n.ValueBigFloat().Cmp(new(big.Float).SetInt64(code.ValueInt64())) == 0
	})
}
