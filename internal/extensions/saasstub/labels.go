package saasstub

import (
	"maps"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// packed are a spec's labels as the vendor takes them: values of few letters.
func packed(spec extensions.Spec) (map[string]string, error) {
	all := maps.Clone(spec.Labels)
	if all == nil {
		all = map[string]string{}
	}
	all[extensions.LabelID] = string(spec.ID)
	all[extensions.LabelGeneration] = strconv.FormatInt(spec.Generation, 10)
	return labels.Pack(all, labels.Room{})
}

// generation is 0 for labels that are not ours.
func generation(o *vendor.Object) int64 {
	all, err := labels.Unpack(o.Labels, labels.Room{})
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(all[extensions.LabelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// raise writes a generation above the present one.
func raise(to int64) func(map[string]string) (map[string]string, error) {
	return func(present map[string]string) (map[string]string, error) {
		all, err := labels.Unpack(present, labels.Room{})
		if err != nil {
			return nil, err
		}
		if have, err := strconv.ParseInt(all[extensions.LabelGeneration], 10, 64); err == nil && have >= to {
			return nil, extensions.Errorf(extensions.KindConflict, "the sandbox already has generation %d, want %d", have, to)
		}
		all[extensions.LabelGeneration] = strconv.FormatInt(to, 10)
		return labels.Pack(all, labels.Room{})
	}
}
