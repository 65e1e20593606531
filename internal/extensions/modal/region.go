package modal

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

//go:embed regions.txt
var regionText string

// within has what lies in each region that the vendor can be asked for.
var within = readRegions(regionText)

func readRegions(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); words[0] != "#" {
			all[words[0]] = append(all[words[0]], words[1:]...)
		}
	}
	return all
}

// zone is the end of a place's name that says which part of it.
var zone = regexp.MustCompile(`-[a-z]$`)

// lies reports whether a place, as the vendor or its cloud names it, is a region or in it.
func lies(place, region string) bool {
	return place == region || slices.ContainsFunc(within[region], func(part string) bool { return lies(place, part) })
}

// placed refuses a sandbox that says it runs elsewhere than was asked for, or nothing that is known.
func placed(says, region string) error {
	if place := strings.ToLower(strings.TrimSpace(says)); lies(place, region) || lies(zone.ReplaceAllString(place, ""), region) {
		return nil
	}
	return extensions.Errorf(extensions.KindUnsupported, "%s was asked for the region %s and runs it in %q", vendor, region,
		extensions.Clean(says, 40)).At("region").WithRemedy("choose another region, or a place that has this one")
}
