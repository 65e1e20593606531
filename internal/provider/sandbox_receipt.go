package provider

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// Keys of the private state, which Terraform keeps beside the attributes.
const (
	keyReceipt    = engine.ReceiptKey
	keyIncomplete = "incomplete" // true until a create has succeeded
	// keyReplaces is true in what is planned to be made. Terraform hands that to
	// the delete of what it replaces, too, which is told so by nothing else.
	keyReplaces = "replaces"
)

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// receipt returns what the engine needs to find, read and destroy the
// sandbox: the private copy, or what the attributes know where it is missing.
func (m sandboxModel) receipt(ctx context.Context, private privateReader) (engine.Receipt, diag.Diagnostics) {
	rec, diags, err := privateReceipt(ctx, private)
	if err != nil {
		diags.AddWarning("The private state of sandbox "+m.label()+" is damaged",
			"Its attributes are used instead, which is enough to read and destroy it.")
	}
	if string(rec.ID) == m.ID.ValueString() && rec.ID != "" {
		return rec, diags
	}
	return engine.Receipt{
		Version: 1, ID: engine.ID(m.ID.ValueString()), Account: m.Account.ValueString(), Name: m.Name.ValueString(),
		Extension: m.Extension.ValueString(), Host: m.Host.ValueString(), Handle: m.Handle.ValueString(),
		CreatedAt: parseStamp(m.CreatedAt), ExpiresAt: parseStamp(m.ExpiresAt),
	}, diags
}

// privateReceipt is the receipt of the private state; zero where there is none.
func privateReceipt(ctx context.Context, private privateReader) (rec engine.Receipt, diags diag.Diagnostics, err error) {
	raw, diags := private.GetKey(ctx, keyReceipt)
	if len(raw) > 0 {
		if err = json.Unmarshal(raw, &rec); err != nil {
			rec = engine.Receipt{}
		}
	}
	return rec, diags, err
}

func saveReceipt(ctx context.Context, private privateWriter, rec engine.Receipt) diag.Diagnostics {
	if rec.ID == "" {
		return nil
	}
	raw, err := json.Marshal(rec)
	if err != nil {
		var diags diag.Diagnostics
		diags.AddWarning("The receipt could not be saved", sentence(err.Error()))
		return diags
	}
	return private.SetKey(ctx, keyReceipt, raw)
}

func markIncomplete(ctx context.Context, private privateWriter, incomplete bool) diag.Diagnostics {
	return private.SetKey(ctx, keyIncomplete, strconv.AppendBool(nil, incomplete))
}

func markReplaces(ctx context.Context, private privateWriter, is bool) diag.Diagnostics {
	return private.SetKey(ctx, keyReplaces, strconv.AppendBool(nil, is))
}

func replaces(ctx context.Context, private privateReader) bool {
	raw, _ := private.GetKey(ctx, keyReplaces)
	return string(raw) == "true"
}

func incomplete(ctx context.Context, private privateReader) bool {
	raw, _ := private.GetKey(ctx, keyIncomplete)
	return string(raw) == "true"
}

// protected reports whether the sandbox must not be destroyed: protection
// guards ready ones; expired, failed and half-made ones can always go.
func (m sandboxModel) protected(ctx context.Context, private privateReader) bool {
	return m.DeletionProtection.ValueBool() && m.State.ValueString() == "ready" && !incomplete(ctx, private)
}

const protectionRemedy = "\n\nWhat to do: set deletion_protection = false, apply that alone, and run this again."

func addProtected(diags *diag.Diagnostics, m sandboxModel, verb string) {
	diags.AddError("Sandbox "+m.label()+" is protected",
		"It is ready and has deletion_protection = true in the state, so it is not "+verb+"."+protectionRemedy)
}

// identityModel is the resource identity.
type identityModel struct {
	Account types.String `tfsdk:"account"`
	Name    types.String `tfsdk:"name"`
}

func (m sandboxModel) identity() identityModel {
	return identityModel{Account: m.Account, Name: m.Name}
}
