package route_test

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestForbiddenAsksTheOwnersRulesAlone(t *testing.T) {
	t.Parallel()
	vendor := func() route.Candidate {
		return route.Candidate{Binding: "ext.vendor", Place: extensions.PlaceAccount, NamedOnly: true,
			Capabilities: extensions.Capabilities{PricingModel: extensions.PricingMetered, Expiry: extensions.ExpiryNative,
				IsolationLevels: []extensions.Isolation{extensions.IsolationContainer}, Regions: []string{"us-east"}}}
	}
	at := func(name string) route.Candidate {
		c := vendor()
		c.Binding, c.Place, c.Capabilities.PricingModel = "ext.ssh", extensions.PlaceHost, extensions.PricingSelfHosted
		c.Host = &extensions.Host{Name: name}
		return c
	}
	policy := func(p route.AccountPolicy) route.Permission {
		p.ID = "policy.acme"
		return route.Permission{Account: "acme/web", Required: true, Policies: []route.AccountPolicy{p}}
	}
	bound := vendor()
	bound.Billing = route.BillingPlatform
	keyed := vendor()
	keyed.Billing = route.BillingBYOK
	endlessKey := keyed
	endlessKey.Find, endlessKey.Capabilities.Expiry = extensions.Find{Strength: extensions.FindNone}, extensions.ExpirySweep
	endless := vendor()
	endless.Credit, endless.Price.Unbounded = true, true
	nothing := vendor()
	nothing.Capabilities.Expiry = extensions.ExpirySweep
	for name, c := range map[string]struct {
		permission route.Permission
		billing    string
		place      route.Candidate
		want       route.Rule
	}{
		"no policy":                   {place: vendor()},
		"one that says nothing":       {permission: policy(route.AccountPolicy{}), place: vendor()},
		"an unreadable one":           {permission: route.Permission{Unreadable: []string{"x"}}, place: vendor(), want: route.RulePolicyUnreadable},
		"none for the account":        {permission: route.Permission{Account: "acme/web", Required: true}, place: vendor(), want: route.RulePolicyAbsent},
		"a forbidden extension":       {permission: policy(route.AccountPolicy{Extensions: route.Access{Forbidden: []string{"ext.vendor"}}}), place: vendor(), want: route.RuleAllowedExtension},
		"one that is not listed":      {permission: policy(route.AccountPolicy{Extensions: route.Access{Allowed: []string{"ext.ssh"}}}), place: vendor(), want: route.RuleAllowedExtension},
		"a forbidden host":            {permission: policy(route.AccountPolicy{Hosts: route.Access{Forbidden: []string{"big"}}}), place: at("big"), want: route.RuleAllowedHost},
		"another host":                {permission: policy(route.AccountPolicy{Hosts: route.Access{Forbidden: []string{"big"}}}), place: at("small")},
		"a region":                    {permission: policy(route.AccountPolicy{Regions: route.Access{Allowed: []string{"eu"}}}), place: vendor(), want: route.RuleAllowedRegion},
		"isolation":                   {permission: policy(route.AccountPolicy{RequireIsolation: extensions.IsolationVM}), place: vendor(), want: route.RuleAllowedIsolation},
		"billing":                     {permission: policy(route.AccountPolicy{Billing: []string{route.BillingPlatform}}), billing: route.BillingBYOK, place: vendor(), want: route.RuleAllowedBilling},
		"billing of an own place":     {permission: policy(route.AccountPolicy{Billing: []string{}}), place: at("big")},
		"the platform's key":          {billing: route.BillingBYOK, place: bound, want: route.RuleBilling},
		"the platform's key, default": {place: bound},
		"the user's key":              {billing: route.BillingPlatform, place: keyed, want: route.RuleBilling},
		"the user's key, default":     {place: keyed},
		"the user's key, unbounded":   {place: endlessKey},
		"the user's key, by a policy": {permission: policy(route.AccountPolicy{Billing: []string{route.BillingBYOK}}), place: keyed},
		"credit without a bound":      {place: endless, want: route.RuleCredit},
		"what is never found":         {place: nothing, want: route.RuleExpiry},
	} {
		got := route.Forbidden(route.Query{Billing: c.billing, Permission: c.permission}, c.place)
		switch {
		case c.want == "" && len(got) == 0:
		case len(got) == 1 && got[0].Rule == c.want && got[0].Reason != "" && got[0].Help != "":
		default:
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
