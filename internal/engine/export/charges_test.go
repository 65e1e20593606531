package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// table reads a CSV as rows by name, and demands RFC 4180.
func readCSV(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, raw []byte) (header []string, rows []map[string]string) {
	t.Helper()
	if n := bytes.Count(raw, []byte("\r\n")); n != bytes.Count(raw, []byte("\n")) || !bytes.HasSuffix(raw, []byte("\r\n")) {
		t.Fatal("a line does not end in CRLF")
	}
	all, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, v := range line {
			row[all[0][i]] = v
		}
		rows = append(rows, row)
	}
	return all[0], rows
}

func written(t interface {
	Helper()
	Fatal(...any)
}, l Ledger, f ledger.UsageFilter, format Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Charges(ctx, l, f, format, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var memos = []string{"", "byok_memo:ext.x", "infra_memo:ext.x"}

// randomCharge is priced as a ledger prices: rounded half up, once. Its amount is at most 10^18 nano-units, so a few of
// them have a sum.
func randomCharge(rt *rapid.T, i int) ledger.Charge {
	unit := rapid.SampledFrom(meter.Units()).Draw(rt, "unit")
	per, _, _ := meter.QuantaPerUnit(unit)
	c := ledger.Charge{Segment: rapid.Int64Range(0, 2).Draw(rt, "segment"),
		Component: fmt.Sprintf("%s:%d", rapid.SampledFrom([]string{"vcpu", "creation", "gpu", "surcharge", "new"}).Draw(rt, "component"), i),
		Unit:      unit,
		UnitPrice: rapid.Int64Range(0, 10_000_000_000).Draw(rt, "price"),
		Currency:  rapid.SampledFrom([]string{"EUR", "USD"}).Draw(rt, "currency"), Memo: rapid.SampledFrom(memos).Draw(rt, "memo"),
		Confidence: "estimated"}
	most := new(big.Int).Mul(big.NewInt(1_000_000_000_000_000_000), big.NewInt(per*1000))
	most.Div(most, big.NewInt(max(c.UnitPrice, 1)))
	c.Quantity = rapid.Int64Range(0, 1_000_000_000_000).Draw(rt, "quantity")
	if most.IsInt64() {
		c.Quantity = min(c.Quantity, most.Int64())
	}
	n := new(big.Int).Mul(big.NewInt(c.Quantity), big.NewInt(c.UnitPrice))
	n.Mul(n, big.NewInt(2)).Add(n, big.NewInt(per*1000)).Div(n, big.NewInt(2*per*1000))
	c.Amount = n.Int64()
	if rapid.IntRange(0, 3).Draw(rt, "not known") == 0 {
		c.UnitPrice, c.Amount, c.Confidence = 0, 0, "unknown"
		c.Currency = rapid.SampledFrom([]string{"", "USD"}).Draw(rt, "whose currency")
	}
	return c
}

func TestFocusKeepsEveryRuleForAnyLedger(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, _ := newLedger(t)
	org := 0
	rapid.Check(t, func(rt *rapid.T) {
		org++
		of := fmt.Sprint("org", org)
		want, bill := map[string]int64{}, map[string]int64{}
		rows := 0
		for i := range rapid.IntRange(1, 3).Draw(rt, "lives") {
			from := start.Add(time.Duration(rapid.Int64Range(0, int64(80*24*time.Hour/time.Microsecond)).Draw(rt, "from")) * time.Microsecond)
			v := lived{account: of + "/w", name: fmt.Sprint("n", i), from: from,
				rates: rapid.SampledFrom([]string{bookRates, `{}`}).Draw(rt, "rates")}
			v.paused = from.Add(time.Duration(rapid.Int64Range(0, int64(40*24*time.Hour)).Draw(rt, "run")))
			v.to = v.paused.Add(time.Duration(rapid.Int64Range(0, int64(40*24*time.Hour)).Draw(rt, "pause")))
			for n := range rapid.IntRange(0, 4).Draw(rt, "charges") {
				c := randomCharge(rt, n)
				v.charges = append(v.charges, c)
				rows++
				month := v.to.Truncate(time.Microsecond).Format("2006-01") + c.Currency
				want[month] += c.Amount
				if c.Memo == "" {
					bill[month] += c.Amount
				}
			}
			v.live(t, l)
		}
		header, got := readCSV(rt, written(rt, l, ledger.UsageFilter{Account: of}, FOCUS))
		for _, p := range focusHeader(header) {
			rt.Error(p)
		}
		if len(got) != rows {
			rt.Errorf("%d rows for %d charges", len(got), rows)
		}
		for _, row := range got {
			for _, p := range focusRow(row) {
				rt.Errorf("%s\n%v", p, row)
			}
			month := row["BillingPeriodStart"][:7] + row["BillingCurrency"]
			for cost, sums := range map[string]map[string]int64{"EffectiveCost": want, "BilledCost": bill} {
				if row[cost] != "" {
					sums[month] -= nano(rt, row[cost])
				}
			}
		}
		for _, left := range []map[string]int64{want, bill} {
			for month, n := range left {
				if n != 0 {
					rt.Errorf("%s is off by %d", month, n)
				}
			}
		}
	})
}

func nano(t *rapid.T, s string) int64 {
	a, err := meter.ParseAmount(s)
	if err != nil {
		t.Fatal(err)
	}
	return int64(a)
}

// The rules themselves find what is wrong.
func TestFocusRulesCanFail(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	lives(t, l, 1)
	header, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, FOCUS))
	if p := focusRow(rows[2]); len(p) > 0 {
		t.Fatal(p)
	}
	for _, name := range []string{"BilledCost", "BillingAccountId", "PricingQuantity", "SkuId", "SubAccountName", "ServiceName"} {
		row := maps.Clone(rows[2])
		row[name] = ""
		if len(focusRow(row)) == 0 {
			t.Errorf("%s may be null", name)
		}
		if name != "SubAccountName" && name != "SkuId" &&
			len(focusHeader(slices.DeleteFunc(slices.Clone(header), func(h string) bool { return h == name }))) == 0 {
			t.Errorf("%s may be missing", name)
		}
	}
	for name, values := range map[string][]string{
		"BilledCost": {"0.01", "1e3", "+1", "1,5", ".5", "0.00 EUR"}, "BillingCurrency": {"eur", "€", "EURO"}, "ChargeCategory": {"Fee", "usage"},
		"ServiceCategory": {"Sandboxes"},
		"ChargePeriodEnd": {"2026-03-01T12:00:00.5Z", "2026-03-01 12:00:00", "2026-03-01T12:00:00+01:00", "2026-02-30T12:00:00Z",
			"2026-01-01T00:00:00Z"}, "PricingUnit": {"vcpu-hour", "GBs", "core hours"},
		"Tags": {"a=b", `{"a":{"b":1}}`, `[]`}, "ContractedUnitPrice": {"-1", "7"}, "PricingQuantity": {"3"},
		"BillingPeriodStart": {"2026-03-02T00:00:00Z"}, "BillingPeriodEnd": {"2026-03-31T00:00:00Z"},
		"RegionId": {"N/A", " "}, "ListCost": {"0.05"},
	} {
		for _, v := range values {
			row := maps.Clone(rows[2])
			row[name] = v
			if len(focusRow(row)) == 0 {
				t.Errorf("%s may be %q", name, v)
			}
		}
	}
	for _, more := range []string{"Price", "x_price", "x_Price_Of", "BilledCost", "InvoiceID"} {
		if len(focusHeader(append(slices.Clone(header), more))) == 0 {
			t.Errorf("there may be a column %s", more)
		}
	}
}

func TestPlainFormsSayTheSame(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	hostile := []string{"=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "  =1", "\"quoted\", and more", "plain", "＝1"}
	for i, actor := range hostile {
		lived{account: "acme/web", name: fmt.Sprint("n", i), actor: actor, from: start, to: start.Add(time.Hour), rates: bookRates,
			charges: someCharges()}.live(t, l)
	}
	header, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, CSV))
	raw := written(t, l, ledger.UsageFilter{}, JSON)
	var objects []map[string]any
	if err := json.Unmarshal(raw, &objects); err != nil || len(objects) != len(rows) || len(rows) != 3*len(hostile) ||
		bytes.Count(raw, []byte("\n")) != len(rows)+2 {
		t.Fatal(err, len(objects), len(rows))
	}
	if d := strings.Join(header, " "); d != "account sandbox_id name profile profile_version extension host actor harness run_id meter_id "+
		"generation meter_started_at meter_ended_at end_estimated segment component mode "+
		"started_at ended_at quantity unit unit_price price_unit amount billed currency paid_by confidence price_book price_as_of price_source "+
		"region" {
		t.Errorf("the columns are not where they were: %s", d)
	}
	actors := map[string]bool{}
	for i, row := range rows {
		for name, v := range row {
			told := objects[i][name]
			if told == nil {
				told = ""
			}
			plain := strings.TrimPrefix(v, "'")
			if fmt.Sprint(told) != plain {
				t.Errorf("%s is %q in CSV and %v in JSON", name, v, told)
			}
			if lead := strings.TrimLeft(v, " "); lead != "" && strings.ContainsRune("=+-@＝", []rune(lead)[0]) {
				t.Errorf("%s is a formula: %q", name, v)
			}
		}
		if _, isText := objects[i]["amount"].(string); !isText {
			t.Errorf("an amount is not a decimal string: %v", objects[i]["amount"])
		}
		actors[objects[i]["actor"].(string)] = true
	}
	for _, actor := range hostile {
		if !actors[actor] {
			t.Errorf("%q did not arrive as it is", actor)
		}
	}
	if !bytes.Contains(raw, []byte(`"end_estimated":false,"segment":0,`)) {
		t.Errorf("%s", raw)
	}
}

// A life that nobody told any price of is in every form, with nothing in the
// place of what it cost.
func TestAPriceThatNobodyToldIsNoZero(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	lived{account: "acme/web", name: "one", from: start, to: start.Add(time.Hour), rates: bookRates,
		charges: []ledger.Charge{{Component: "sandbox", Quantity: 3_600_000, Unit: "sandbox-second", Memo: "infra_memo:ext.x",
			Confidence: "unknown"}}}.live(t, l)
	for _, format := range []Format{CSV, FOCUS} {
		_, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, format))
		if len(rows) != 1 {
			t.Fatalf("%s: %v", format, rows)
		}
		for _, name := range []string{"amount", "billed", "unit_price", "currency", "ListCost", "EffectiveCost", "ContractedCost",
			"ListUnitPrice"} {
			if rows[0][name] != "" {
				t.Errorf("%s: %s is %q", format, name, rows[0][name])
			}
		}
		if rows[0]["confidence"]+rows[0]["x_Confidence"] != "unknown" {
			t.Errorf("%s: %v", format, rows[0])
		}
		if format == FOCUS && (rows[0]["BillingCurrency"] != "XXX" || rows[0]["BilledCost"] != "0.00" ||
			!strings.Contains(rows[0]["ChargeDescription"], "an unknown price")) {
			t.Error(rows[0])
		}
	}
	var objects []map[string]any
	if err := json.Unmarshal(written(t, l, ledger.UsageFilter{}, JSON), &objects); err != nil || len(objects) != 1 {
		t.Fatal(err, objects)
	}
	for _, name := range []string{"amount", "billed", "unit_price", "currency"} {
		if v, there := objects[0][name]; !there || v != nil {
			t.Errorf("%s: %v", name, v)
		}
	}
	events, err := l.Events(ctx, "acme", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range events {
		list, err := usageEvents(ctx, l, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range list {
			if found++; !bytes.Contains(raw, []byte(`"unit_price":null,"price_unit":"Seconds","amount":null,"billed":null,"currency":null`)) {
				t.Errorf("%s", raw)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d usage events", found)
	}
}

func TestQuantitiesAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := ledger.Charge{Unit: rapid.SampledFrom(meter.Units()).Draw(rt, "unit"), Quantity: rapid.Int64().Draw(rt, "quantity")}
		per, _, _ := meter.QuantaPerUnit(c.Unit)
		want := big.NewRat(c.Quantity, per)
		if got := number(priced(c)); !decimalForm.MatchString(priced(c)) || got.Sub(got, want).Abs(got).Cmp(big.NewRat(1, 2e18)) > 0 {
			rt.Errorf("%d quanta of %s are %s, not %s", c.Quantity, c.Unit, priced(c), want.FloatString(25))
		}
		// counted is coarser than quanta, by a power of ten, and exact.
		exact := new(big.Rat).Quo(number(counted(c)), big.NewRat(max(1, c.Quantity), 1))
		if c.Quantity > 0 && strings.Trim(exact.Denom().String(), "0") != "1" || exact.Num().Cmp(big.NewInt(1)) != 0 && c.Quantity > 0 {
			rt.Errorf("%d quanta of %s are not %s", c.Quantity, c.Unit, counted(c))
		}
	})
	for _, unit := range meter.Units() {
		if _, named := measures[unit]; !named {
			t.Errorf("%s has no name in FOCUS", unit)
		}
	}
	if c := (ledger.Charge{Unit: "later", Quantity: 7}); counted(c) != "7" || priced(c) != "7" {
		t.Error(counted(c), priced(c))
	}
}

func TestNothingToTellIsAWholeFile(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	if got := string(written(t, l, ledger.UsageFilter{}, JSON)); got != "[]\n" {
		t.Errorf("%q", got)
	}
	for _, format := range []Format{CSV, FOCUS} {
		if header, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, format)); len(header) < 30 || len(rows) != 0 {
			t.Error(header, rows)
		}
	}
	if _, err := Charges(ctx, l, ledger.UsageFilter{}, "xml", &bytes.Buffer{}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Error(err)
	}
}

type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	lives(t, l, 30)
	for _, format := range []Format{FOCUS, CSV, JSON} {
		for _, room := range []int{0, 100, 5000} {
			if _, err := Charges(ctx, l, ledger.UsageFilter{}, format, &full{room}); !errors.Is(err, errFull) {
				t.Errorf("%s, %d bytes: %v", format, room, err)
			}
		}
	}
}
