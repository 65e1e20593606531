package export

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The rules of FOCUS 1.2 for a table of charges, as far as its columns can be
// judged by themselves or with each other.

type focusLevel string

const (
	mandatory   focusLevel = "mandatory"
	recommended focusLevel = "recommended"
	conditional focusLevel = "conditional"
)

type focusType string

const (
	aString   focusType = "string"
	aDecimal  focusType = "decimal"
	aDateTime focusType = "date/time"
	aKeyValue focusType = "key-value"
	aCurrency focusType = "currency"
	aUnit     focusType = "unit"
)

type focusRule struct {
	name    string
	level   focusLevel
	kind    focusType
	null    bool // nulls allowed at all
	usage   bool // and not null for usage that is no correction
	allowed []string
	// notNegative: a price or quantity that cannot be below zero.
	notNegative bool
}

var serviceCategories = []string{"AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases", "Developer Tools",
	"Multicloud", "Identity",
	"Integration", "Internet of Things", "Management and Governance", "Media", "Migration", "Mobile", "Networking", "Security", "Storage",
	"Web", "Other"}

var computeSubcategories = []string{"Containers", "End User Computing", "Quantum", "Serverless Compute", "Virtual Machines",
	"Other (Compute)"}

// focusRules12 lists every column of FOCUS 1.2.
var focusRules12 = []focusRule{
	{name: "AvailabilityZone", level: recommended, kind: aString, null: true},
	{name: "BilledCost", level: mandatory, kind: aDecimal},
	{name: "BillingAccountId", level: mandatory, kind: aString},
	{name: "BillingAccountName", level: mandatory, kind: aString, null: true},
	{name: "BillingAccountType", level: conditional, kind: aString, null: true},
	{name: "BillingCurrency", level: mandatory, kind: aCurrency},
	{name: "BillingPeriodEnd", level: mandatory, kind: aDateTime},
	{name: "BillingPeriodStart", level: mandatory, kind: aDateTime},
	{name: "CapacityReservationId", level: conditional, kind: aString, null: true},
	{name: "CapacityReservationStatus", level: conditional, kind: aString, null: true, allowed: []string{"Used", "Unused"}},
	{name: "ChargeCategory", level: mandatory, kind: aString, allowed: []string{"Usage", "Purchase", "Tax", "Credit", "Adjustment"}},
	{name: "ChargeClass", level: mandatory, kind: aString, null: true, allowed: []string{"Correction"}},
	{name: "ChargeDescription", level: mandatory, kind: aString, null: true},
	{name: "ChargeFrequency", level: recommended, kind: aString, allowed: []string{"One-Time", "Recurring", "Usage-Based"}},
	{name: "ChargePeriodEnd", level: mandatory, kind: aDateTime},
	{name: "ChargePeriodStart", level: mandatory, kind: aDateTime},
	{name: "CommitmentDiscountCategory", level: conditional, kind: aString, null: true, allowed: []string{"Spend", "Usage"}},
	{name: "CommitmentDiscountId", level: conditional, kind: aString, null: true},
	{name: "CommitmentDiscountName", level: conditional, kind: aString, null: true},
	{name: "CommitmentDiscountQuantity", level: conditional, kind: aDecimal, null: true},
	{name: "CommitmentDiscountStatus", level: conditional, kind: aString, null: true, allowed: []string{"Used", "Unused"}},
	{name: "CommitmentDiscountType", level: conditional, kind: aString, null: true},
	{name: "CommitmentDiscountUnit", level: conditional, kind: aUnit, null: true},
	{name: "ConsumedQuantity", level: conditional, kind: aDecimal, null: true, usage: true},
	{name: "ConsumedUnit", level: conditional, kind: aUnit, null: true, usage: true},
	{name: "ContractedCost", level: mandatory, kind: aDecimal},
	{name: "ContractedUnitPrice", level: conditional, kind: aDecimal, null: true, usage: true, notNegative: true},
	{name: "EffectiveCost", level: mandatory, kind: aDecimal},
	{name: "InvoiceId", level: recommended, kind: aString, null: true},
	{name: "InvoiceIssuerName", level: mandatory, kind: aString},
	{name: "ListCost", level: mandatory, kind: aDecimal},
	{name: "ListUnitPrice", level: conditional, kind: aDecimal, null: true, usage: true, notNegative: true},
	{name: "PricingCategory", level: conditional, kind: aString, null: true, usage: true,
		allowed: []string{"Standard", "Dynamic", "Committed", "Other"}},
	{name: "PricingCurrency", level: conditional, kind: aCurrency},
	{name: "PricingCurrencyContractedUnitPrice", level: conditional, kind: aDecimal, null: true, notNegative: true},
	{name: "PricingCurrencyEffectiveCost", level: conditional, kind: aDecimal},
	{name: "PricingCurrencyListUnitPrice", level: conditional, kind: aDecimal, null: true, notNegative: true},
	{name: "PricingQuantity", level: mandatory, kind: aDecimal, null: true, usage: true},
	{name: "PricingUnit", level: mandatory, kind: aUnit, null: true, usage: true},
	{name: "ProviderName", level: mandatory, kind: aString},
	{name: "PublisherName", level: mandatory, kind: aString},
	{name: "RegionId", level: conditional, kind: aString, null: true},
	{name: "RegionName", level: conditional, kind: aString, null: true},
	{name: "ResourceId", level: conditional, kind: aString, null: true},
	{name: "ResourceName", level: conditional, kind: aString, null: true},
	{name: "ResourceType", level: conditional, kind: aString, null: true},
	{name: "ServiceCategory", level: mandatory, kind: aString, allowed: serviceCategories},
	{name: "ServiceName", level: mandatory, kind: aString},
	{name: "ServiceSubcategory", level: recommended, kind: aString, allowed: computeSubcategories},
	{name: "SkuId", level: conditional, kind: aString, null: true, usage: true},
	{name: "SkuMeter", level: conditional, kind: aString, null: true},
	{name: "SkuPriceDetails", level: conditional, kind: aKeyValue, null: true},
	{name: "SkuPriceId", level: conditional, kind: aString, null: true, usage: true},
	{name: "SubAccountId", level: conditional, kind: aString, null: true},
	{name: "SubAccountName", level: conditional, kind: aString, null: true},
	{name: "SubAccountType", level: conditional, kind: aString, null: true},
	{name: "Tags", level: conditional, kind: aKeyValue, null: true},
}

var (
	decimalForm  = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	dateForm     = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	columnForm   = regexp.MustCompile(`^(x_)?([A-Z][a-z0-9]*)+$`)
	pluralSize   = regexp.MustCompile(`^([KMGTPE]i?)?[bB]s`)
	unitForm     = regexp.MustCompile(`^([KMGTPE]i?)?[bB]$|^([A-Z][A-Za-z]*|([KMGTPE]i?)?[bB])(-(Years|Months|Days|Hours|Minutes|Seconds))?$`)
)

// header judges the columns' names and order, and that none is missing.
func focusHeader(header []string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	own := false
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			bad("%s is there twice", name)
		}
		if !columnForm.MatchString(name) || len(name) > 50 {
			bad("%s is no name of a column", name)
		}
		custom := strings.HasPrefix(name, "x_")
		if own && !custom {
			bad("%s comes after custom columns", name)
		}
		own = own || custom
		if !custom && !slices.ContainsFunc(focusRules12, func(r focusRule) bool { return r.name == name }) {
			bad("%s is no column of FOCUS 1.2", name)
		}
	}
	for _, r := range focusRules12 {
		if r.level == mandatory && !slices.Contains(header, r.name) {
			bad("%s is mandatory", r.name)
		}
	}
	// What our data has calls for these, too.
	for _, name := range []string{"ChargeFrequency", "ServiceSubcategory", "ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice",
		"ListUnitPrice", "PricingCategory", "RegionId", "RegionName",
		"ResourceId", "ResourceName", "ResourceType", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName",
		"Tags"} {
		if !slices.Contains(header, name) {
			bad("%s is missing, and there is data for it", name)
		}
	}
	return problems
}

// focusRow judges the values of a row; "" is null.
func focusRow(row map[string]string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	usage := row["ChargeCategory"] == "Usage" && row["ChargeClass"] == ""
	for _, r := range focusRules12 {
		v, there := row[r.name]
		if !there {
			continue
		}
		if slices.Contains(absent(row), r.name) {
			if v != "" {
				bad("%s: %q stands for what nobody knows", r.name, v)
			}
			continue
		}
		if v == "" {
			if !r.null || r.usage && usage {
				bad("%s is null", r.name)
			}
			continue
		}
		if why := r.value(v); why != "" {
			bad("%s: %q %s", r.name, v, why)
		}
	}
	return append(problems, focusTogether(row)...)
}

// absent are the numbers that nobody knows: null handling forbids a placeholder
// for them, of columns that are not null, too.
func absent(row map[string]string) []string {
	if row["x_Confidence"] != "unknown" {
		return nil
	}
	out := []string{"ContractedCost", "ContractedUnitPrice", "EffectiveCost", "ListCost", "ListUnitPrice"}
	if row["x_PaidBy"] == PaidByWallet {
		out = append(out, "BilledCost")
	}
	return out
}

func (r focusRule) value(v string) string {
	if strings.TrimSpace(v) == "" || strings.EqualFold(v, "null") || strings.EqualFold(v, "n/a") {
		return "stands for nothing"
	}
	if r.allowed != nil && !slices.Contains(r.allowed, v) {
		return "is not allowed"
	}
	switch r.kind {
	case aDecimal:
		if !decimalForm.MatchString(v) || r.notNegative && v[0] == '-' {
			return "is no such decimal"
		}
	case aDateTime:
		if _, err := time.Parse("2006-01-02T15:04:05Z", v); err != nil || !dateForm.MatchString(v) {
			return "is no date and time"
		}
	case aCurrency:
		if !currencyForm.MatchString(v) {
			return "is no currency"
		}
	case aUnit:
		if !unitForm.MatchString(v) || pluralSize.MatchString(v) {
			return "is no unit"
		}
	case aKeyValue:
		var m map[string]any
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			return "is no object"
		}
		for key, value := range m {
			switch value.(type) {
			case string, bool, float64, nil:
			default:
				return key + " is not a scalar"
			}
		}
	}
	return ""
}

// focusTogether judges values by each other.
func focusTogether(row map[string]string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if row["ChargePeriodStart"] >= row["ChargePeriodEnd"] {
		bad("the charge period is empty")
	}
	from, _ := time.Parse(time.RFC3339, row["BillingPeriodStart"])
	to, _ := time.Parse(time.RFC3339, row["BillingPeriodEnd"])
	if from.Day() != 1 || !from.Equal(from.Truncate(24*time.Hour)) || !to.Equal(from.AddDate(0, 1, 0)) {
		bad("the billing period is no month")
	}
	for cost, price := range map[string]string{"ListCost": "ListUnitPrice", "ContractedCost": "ContractedUnitPrice"} {
		if slices.Contains(absent(row), cost) {
			continue
		}
		product := new(big.Rat).Mul(number(row[price]), number(row["PricingQuantity"]))
		// The charge is rounded to nano-units, the quantity to 10^-18.
		if off := product.Sub(product, number(row[cost])); off.Abs(off).Cmp(big.NewRat(500_000_001, 1e18)) > 0 {
			bad("%s is not %s x PricingQuantity: off by %s", cost, price, off.FloatString(20))
		}
	}
	if row["x_PaidBy"] != "wallet" && number(row["BilledCost"]).Sign() != 0 {
		bad("BilledCost is %s where somebody else is paid", row["BilledCost"])
	}
	if row["x_PaidBy"] == "wallet" && row["BilledCost"] != row["EffectiveCost"] {
		bad("BilledCost is not what is billed")
	}
	if (row["SubAccountId"] == "") != (row["SubAccountName"] == "") || (row["SkuId"] == "") != (row["SkuPriceId"] == "") ||
		(row["ConsumedQuantity"] == "") != (row["ConsumedUnit"] == "") ||
		(row["PricingQuantity"] == "") != (row["PricingUnit"] == "") || row["ResourceId"] != "" && row["ResourceType"] == "" {
		bad("one of a pair is null")
	}
	return problems
}

func number(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return new(big.Rat)
	}
	return r
}
