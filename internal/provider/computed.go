package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// computedField is one read-only attribute of a nested object. Resources and data sources have separate
// schema types; both are built from this description.
type computedField struct {
	name string
	doc  string
	typ  attr.Type       // nil if list is set
	list []computedField // a list of objects
}

func attrTypes(fields []computedField) map[string]attr.Type {
	out := map[string]attr.Type{}
	for _, f := range fields {
		out[f.name] = f.attrType()
	}
	return out
}

func (f computedField) attrType() attr.Type {
	if f.list != nil {
		return types.ListType{ElemType: types.ObjectType{AttrTypes: attrTypes(f.list)}}
	}
	return f.typ
}

func resourceComputed(fields []computedField) map[string]rschema.Attribute {
	out := map[string]rschema.Attribute{}
	for _, f := range fields {
		switch t := f.typ.(type) {
		case nil:
			out[f.name] = rschema.ListNestedAttribute{Computed: true, MarkdownDescription: f.doc,
				NestedObject: rschema.NestedAttributeObject{Attributes: resourceComputed(f.list)}}
		case types.ListType:
			out[f.name] = rschema.ListAttribute{Computed: true, MarkdownDescription: f.doc, ElementType: t.ElemType}
		case types.MapType:
			out[f.name] = rschema.MapAttribute{Computed: true, MarkdownDescription: f.doc, ElementType: t.ElemType}
		default:
			out[f.name] = resourceScalar(f)
		}
	}
	return out
}

func resourceScalar(f computedField) rschema.Attribute {
	switch f.typ {
	case types.BoolType:
		return rschema.BoolAttribute{Computed: true, MarkdownDescription: f.doc}
	case types.Int64Type:
		return rschema.Int64Attribute{Computed: true, MarkdownDescription: f.doc}
	}
	return rschema.StringAttribute{Computed: true, MarkdownDescription: f.doc}
}

func dataComputed(fields []computedField) map[string]dschema.Attribute {
	out := map[string]dschema.Attribute{}
	for _, f := range fields {
		switch t := f.typ.(type) {
		case nil:
			out[f.name] = dschema.ListNestedAttribute{Computed: true, MarkdownDescription: f.doc,
				NestedObject: dschema.NestedAttributeObject{Attributes: dataComputed(f.list)}}
		case types.ListType:
			out[f.name] = dschema.ListAttribute{Computed: true, MarkdownDescription: f.doc, ElementType: t.ElemType}
		case types.MapType:
			out[f.name] = dschema.MapAttribute{Computed: true, MarkdownDescription: f.doc, ElementType: t.ElemType}
		default:
			out[f.name] = dataScalar(f)
		}
	}
	return out
}

func dataScalar(f computedField) dschema.Attribute {
	switch f.typ {
	case types.BoolType:
		return dschema.BoolAttribute{Computed: true, MarkdownDescription: f.doc}
	case types.Int64Type:
		return dschema.Int64Attribute{Computed: true, MarkdownDescription: f.doc}
	}
	return dschema.StringAttribute{Computed: true, MarkdownDescription: f.doc}
}
