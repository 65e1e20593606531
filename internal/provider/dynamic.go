package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func newSecret(v string) engine.Secret { return extensions.NewSecret(v) }

var errUnknown = errors.New("the value is not known yet")

// inputsOf reads the inputs argument: an object or map of strings, numbers, bools, lists and maps. Whole
// numbers become int64, exactly; other numbers float64. An unknown value is an error.
func inputsOf(d types.Dynamic) (map[string]any, error) {
	if d.IsNull() || d.IsUnderlyingValueNull() {
		return nil, nil
	}
	if d.IsUnknown() || d.IsUnderlyingValueUnknown() {
		return nil, errUnknown
	}
	v, err := plain(d.UnderlyingValue())
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("inputs must be an object such as { repo = \"…\" }")
	}
	return m, nil
}

func plain(v attr.Value) (any, error) {
	if v.IsUnknown() {
		return nil, errUnknown
	}
	if v.IsNull() {
		return nil, nil
	}
	switch t := v.(type) {
	case basetypes.StringValue:
		return t.ValueString(), nil
	case basetypes.BoolValue:
		return t.ValueBool(), nil
	case basetypes.NumberValue:
		return plainNumber(t.ValueBigFloat())
	case basetypes.DynamicValue:
		return plain(t.UnderlyingValue())
	case basetypes.ObjectValue:
		return plainMap(t.Attributes())
	case basetypes.MapValue:
		return plainMap(t.Elements())
	case basetypes.ListValue:
		return plainList(t.Elements())
	case basetypes.SetValue:
		return plainList(t.Elements())
	case basetypes.TupleValue:
		return plainList(t.Elements())
	}
	return nil, fmt.Errorf("a value of type %T cannot be an input", v)
}

// plainNumber keeps whole numbers exact.
func plainNumber(f *big.Float) (any, error) {
	if f.IsInt() {
		n, wrong := wholeOf(f)
		if wrong != "" {
			return nil, errors.New(wrong)
		}
		return n, nil
	}
	n, _ := f.Float64()
	return n, nil
}

// plainMap omits nulls: an input set to null is not given.
func plainMap(elems map[string]attr.Value) (any, error) {
	out := map[string]any{}
	for k, e := range elems {
		v, err := plain(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		if v != nil {
			out[k] = v
		}
	}
	return out, nil
}

func plainList(elems []attr.Value) (any, error) {
	out := make([]any, 0, len(elems))
	for i, e := range elems {
		v, err := plain(e)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// inputsValue is the reverse of inputsOf, for import. Lists become tuples and maps objects, as in
// configuration literals.
func inputsValue(m map[string]any) (types.Dynamic, error) {
	if len(m) == 0 {
		return types.DynamicNull(), nil
	}
	v, err := attrValue(m)
	if err != nil {
		return types.DynamicNull(), err
	}
	return types.DynamicValue(v), nil
}

func attrValue(v any) (attr.Value, error) {
	switch t := v.(type) {
	case string:
		return types.StringValue(t), nil
	case bool:
		return types.BoolValue(t), nil
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(t)), nil
	case int:
		return types.NumberValue(new(big.Float).SetInt64(int64(t))), nil
	case float64:
		return types.NumberValue(big.NewFloat(t)), nil
	case json.Number:
		f, _, err := big.ParseFloat(t.String(), 10, 512, big.ToNearestEven)
		if err != nil {
			return nil, err
		}
		return types.NumberValue(f), nil
	case map[string]any:
		return attrObject(t)
	case []any:
		return attrTuple(t)
	}
	return nil, fmt.Errorf("a %T cannot be an input", v)
}

func attrObject(m map[string]any) (attr.Value, error) {
	typs, vals := map[string]attr.Type{}, map[string]attr.Value{}
	for k, e := range m {
		v, err := attrValue(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		typs[k], vals[k] = v.Type(context.Background()), v
	}
	obj, diags := types.ObjectValue(typs, vals)
	if diags.HasError() {
		return nil, fmt.Errorf("%s", diags.Errors()[0].Detail())
	}
	return obj, nil
}

func attrTuple(l []any) (attr.Value, error) {
	typs, vals := make([]attr.Type, 0, len(l)), make([]attr.Value, 0, len(l))
	for i, e := range l {
		v, err := attrValue(e)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		typs, vals = append(typs, v.Type(context.Background())), append(vals, v)
	}
	tup, diags := types.TupleValue(typs, vals)
	if diags.HasError() {
		return nil, fmt.Errorf("%s", diags.Errors()[0].Detail())
	}
	return tup, nil
}

// sameInputs compares meaning, not Terraform's types: a list equals a tuple of the same elements, and null
// equals {}.
func sameInputs(a, b types.Dynamic) bool {
	x, errX := inputsOf(a)
	y, errY := inputsOf(b)
	if errX != nil || errY != nil {
		return false
	}
	if len(x) == 0 && len(y) == 0 {
		return true
	}
	return reflect.DeepEqual(x, y)
}

// inputText visits every string in v with its location, in a fixed order.
func inputText(at string, v any, visit func(at, s string)) {
	switch t := v.(type) {
	case string:
		visit(at, t)
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			visit(at+" (key)", k)
			inputText(at+"."+k, t[k], visit)
		}
	case []any:
		for i, e := range t {
			inputText(fmt.Sprintf("%s[%d]", at, i), e, visit)
		}
	}
}
