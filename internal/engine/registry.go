package engine

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// RegistryEntry is one binding of the catalog as registries of extensions write it.
type RegistryEntry struct {
	ID           string               `json:"id" yaml:"id"`
	Title        string               `json:"title" yaml:"title"`
	Handler      string               `json:"handler" yaml:"handler"`
	Capabilities RegistryCapabilities `json:"capabilities" yaml:"capabilities"`
	Config       map[string]any       `json:"config" yaml:"config"`
}

// RegistryCapabilities are what others choose an extension by.
type RegistryCapabilities struct {
	IsolationLevels []extensions.Isolation    `json:"isolation_levels" yaml:"isolation_levels,flow"` // weakest first
	PricingModel    string                    `json:"pricing_model" yaml:"pricing_model"`            // self-hosted | metered
	Places          []extensions.Place        `json:"places" yaml:"places,flow"`
	Regions         []string                  `json:"regions" yaml:"regions,flow"` // "*" = any
	OS              []string                  `json:"os" yaml:"os,flow"`
	Arch            []string                  `json:"arch" yaml:"arch,flow"`
	GPU             bool                      `json:"gpu" yaml:"gpu"`
	Egress          extensions.Egress         `json:"egress" yaml:"egress"`
	Expiry          extensions.Expiry         `json:"expiry" yaml:"expiry"`
	Find            extensions.FindStrength   `json:"find" yaml:"find"`
	Snapshots       []extensions.SnapshotKind `json:"snapshots" yaml:"snapshots,flow"`
	Powers          []extensions.Power        `json:"powers" yaml:"powers,flow"`
}

// Registry lists an entry for each of the named bindings, and without names for all that are no test doubles, by id.
func (e *Engine) Registry(names ...string) ([]RegistryEntry, error) {
	out := []RegistryEntry{}
	for _, name := range names {
		b, err := e.catalog.Named(name)
		if err != nil {
			return nil, err
		}
		out = append(out, registryEntry(b))
	}
	if len(names) == 0 {
		for _, b := range e.catalog.Bindings {
			if !b.Descriptor.NamedOnly {
				out = append(out, registryEntry(b))
			}
		}
	}
	return out, nil
}

func registryEntry(b catalog.Binding) RegistryEntry {
	c, d := b.Capabilities, b.Descriptor
	config := b.Config
	if config == nil {
		config = map[string]any{}
	}
	return RegistryEntry{ID: b.ID, Title: b.Title, Handler: b.Handler, Config: config, Capabilities: RegistryCapabilities{
		IsolationLevels: c.IsolationLevels, PricingModel: c.PricingModel, Places: d.Places, Regions: c.Regions, OS: c.OS, Arch: c.Arch,
		GPU: c.GPU, Egress: c.Egress, Expiry: c.Expiry, Find: d.Find.Strength, Snapshots: some(d.Snapshots.Kinds), Powers: some(d.Powers)}}
}

// some is a list that is never null.
func some[T any](list []T) []T { return append([]T{}, list...) }
