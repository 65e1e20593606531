package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// Keys of the private state, which Terraform stores beside the attributes.
const (
	keyReceipt    = engine.ReceiptKey
	keyIncomplete = "incomplete" // set until a create has succeeded
	// keyReplaces is set on a planned new sandbox. Terraform passes it to the delete of the sandbox it
	// replaces too, which has no other way to know.
	keyReplaces = "replaces"
)

// handleVersion starts a handle in a state. The rest is base64url because Terraform shows JSON taken apart,
// one line per field.
const handleVersion = "handle:v1:"

// handleValue returns a handle as an attribute; null for none. It leaves out the id, which has its own attribute.
func handleValue(handle, id string) types.String {
	if handle == "" {
		return types.StringNull()
	}
	short := strings.Replace(handle, handleID(id), handleID(""), 1)
	return types.StringValue(handleVersion + base64.RawURLEncoding.EncodeToString([]byte(short)))
}

// handleOf reads what handleValue wrote; "" for anything else: the place is then asked for the id.
func handleOf(v types.String, id types.String) string {
	text, ok := strings.CutPrefix(v.ValueString(), handleVersion)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return ""
	}
	return strings.Replace(string(raw), handleID(""), handleID(id.ValueString()), 1)
}

func handleID(id string) string { return `"id":"` + id + `"` }

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// receipt returns what the engine needs to find, read and destroy the sandbox: the private copy, or what the
// attributes know if there is none.
func (m sandboxModel) receipt(ctx context.Context, private privateReader) (engine.Receipt, diag.Diagnostics) {
	rec, diags, err := privateReceipt(ctx, private)
	if err != nil {
		diags.AddWarning("The private state of sandbox "+m.label()+" is damaged",
			"Its attributes are used instead. They are enough to read and destroy it.")
	}
	if rec.Version == 0 {
		rec = engine.Receipt{Version: 1, ExpiresAt: parseStamp(m.ExpiresAt)}
	}
	rec.ID, rec.Account, rec.Name, rec.Extension = engine.ID(m.ID.ValueString()),
		m.Account.ValueString(), m.Name.ValueString(), m.Extension.ValueString()
	rec.Host, rec.Handle, rec.CreatedAt = m.Host.ValueString(), handleOf(m.Handle, m.ID), parseStamp(m.CreatedAt)
	return rec, diags
}

// privateReceipt returns the receipt in the private state; zero if there is none.
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
	raw, err := receiptText(rec)
	if err != nil {
		var diags diag.Diagnostics
		diags.AddWarning("The receipt could not be saved", sentence(err.Error()))
		return diags
	}
	return private.SetKey(ctx, keyReceipt, raw)
}

// receiptText returns the part of a receipt that no attribute holds. Attributes hold the end in whole
// seconds.
func receiptText(rec engine.Receipt) ([]byte, error) {
	rec.ID, rec.Account, rec.Name, rec.Extension, rec.Host, rec.Handle, rec.CreatedAt = "", "", "", "", "", "", time.Time{}
	return json.Marshal(rec)
}

func markIncomplete(ctx context.Context, private privateWriter, incomplete bool) diag.Diagnostics {
	return mark(ctx, private, keyIncomplete, incomplete)
}

func markReplaces(ctx context.Context, private privateWriter, is bool) diag.Diagnostics {
	return mark(ctx, private, keyReplaces, is)
}

// mark keeps key only while is is true.
func mark(ctx context.Context, private privateWriter, key string, is bool) diag.Diagnostics {
	if !is {
		return private.SetKey(ctx, key, nil)
	}
	return private.SetKey(ctx, key, []byte("true"))
}

func replaces(ctx context.Context, private privateReader) bool {
	raw, _ := private.GetKey(ctx, keyReplaces)
	return string(raw) == "true"
}

func incomplete(ctx context.Context, private privateReader) bool {
	raw, _ := private.GetKey(ctx, keyIncomplete)
	return string(raw) == "true"
}

// protected reports whether the sandbox must not be destroyed. Protection guards ready sandboxes; expired,
// failed and half-made ones can always go.
func (m sandboxModel) protected(ctx context.Context, private privateReader) bool {
	return m.DeletionProtection.ValueBool() && m.State.ValueString() == "ready" && !incomplete(ctx, private)
}

const protectionRemedy = "\n\nWhat to do: set deletion_protection = false, apply that alone, and run this again."

func addProtected(diags *diag.Diagnostics, m sandboxModel, verb string) {
	diags.AddError("Sandbox "+m.label()+" is protected",
		"It is ready and the state has deletion_protection = true, so it is not "+verb+"."+protectionRemedy)
}

// identityModel is the resource identity.
type identityModel struct {
	Account types.String `tfsdk:"account"`
	Name    types.String `tfsdk:"name"`
}

func (m sandboxModel) identity() identityModel {
	return identityModel{Account: m.Account, Name: m.Name}
}
