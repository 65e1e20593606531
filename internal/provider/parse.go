package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func parseDuration(s string) (time.Duration, error) {
	d, err := engine.ParseDuration(s)
	if err == nil && d <= 0 {
		err = fmt.Errorf("the duration %q is not positive", s)
	}
	return d, err
}

// sameDuration reports whether two spellings mean the same duration.
func sameDuration(a, b types.String) bool {
	if a.Equal(b) {
		return true
	}
	if a.IsNull() || b.IsNull() || a.IsUnknown() || b.IsUnknown() {
		return false
	}
	x, errX := parseDuration(a.ValueString())
	y, errY := parseDuration(b.ValueString())
	return errX == nil && errY == nil && x == y
}

// optional returns null for "", which the engine uses for "unknown" and "none".
func optional(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// stamp formats t as RFC 3339 in UTC with whole seconds; null for the zero time.
func stamp(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Truncate(time.Second).Format(time.RFC3339))
}

func parseStamp(s types.String) time.Time {
	t, err := time.Parse(time.RFC3339, s.ValueString())
	if err != nil { // null, unknown or written by hand: unknown
		return time.Time{}
	}
	return t
}

// fullyKnown reports whether v and everything in it are known.
func fullyKnown(ctx context.Context, v attr.Value) bool {
	tv, err := v.ToTerraformValue(ctx)
	return err == nil && tv.IsFullyKnown()
}

// stringMap reads a map of strings, omitting null and unknown values.
func stringMap(ctx context.Context, m types.Map) (map[string]string, diag.Diagnostics) {
	if m.IsNull() || m.IsUnknown() {
		return nil, nil
	}
	var all map[string]types.String
	diags := m.ElementsAs(ctx, &all, false)
	out := map[string]string{}
	for k, v := range all {
		if !v.IsNull() && !v.IsUnknown() {
			out[k] = v.ValueString()
		}
	}
	return out, diags
}

// mapValue is the reverse of stringMap; empty becomes null.
func mapValue(ctx context.Context, m map[string]string) (types.Map, diag.Diagnostics) {
	if len(m) == 0 {
		return types.MapNull(types.StringType), nil
	}
	return types.MapValueFrom(ctx, types.StringType, m)
}

func listValue(ctx context.Context, l []string) (types.List, diag.Diagnostics) {
	if len(l) == 0 {
		return types.ListNull(types.StringType), nil
	}
	return types.ListValueFrom(ctx, types.StringType, l)
}

func secrets(plain map[string]string) map[string]engine.Secret {
	if len(plain) == 0 {
		return nil
	}
	out := map[string]engine.Secret{}
	for k, v := range plain {
		out[k] = newSecret(v)
	}
	return out
}

// schemaOf returns a resource's schema, for the types it defines.
func schemaOf(r resource.Resource) rschema.Schema {
	var resp resource.SchemaResponse
	r.Schema(context.Background(), resource.SchemaRequest{}, &resp)
	return resp.Schema
}
