package labels_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
)

// kubernetes is what its API server checks values by.
var kubernetes = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)

const (
	id   = "sbx-abcdefghijklmnopqrst"
	hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

func object(account string) map[string]string {
	return map[string]string{extensions.LabelID: id, extensions.LabelAccount: account, extensions.LabelGeneration: "12",
		extensions.LabelSpecHash: hash, extensions.LabelInitialExpires: "2026-11-23T09:05:00Z"}
}

func TestValuesArePlainWhereThatIsPossible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", id: id, "acme/web": "acmeZ2Fweb", "a.b_c-d": "a.b_c-d", "-edge-": "Z2DedgeZ2D", "Zoo": "Z5Aoo", "é": "ZC3ZA9",
	} {
		if got := labels.Value(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("a", 63) + "/" + strings.Repeat("b", 63)
	if v := labels.Value(long); !strings.HasPrefix(v, "Z-") || !kubernetes.MatchString(v) || len(v) > labels.MaxValue {
		t.Errorf("a long account: %q", v)
	}
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}`),
		rapid.StringMatching(`[Z/a.-]{0,70}`), rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }))
}

func TestValuesFitReturnAndNeverMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		v := labels.Value(a)
		if len(v) > labels.MaxValue || !kubernetes.MatchString(v) {
			t.Fatalf("%q is no label value: %q", a, v)
		}
		text, known, err := labels.Text(v)
		if err != nil || known && text != a || !known && !strings.HasPrefix(v, "Z-") {
			t.Fatalf("%q came back as %q, %t, %v", a, text, known, err)
		}
		if (a == b) != (v == labels.Value(b)) {
			t.Fatalf("%q and %q: %q and %q", a, b, v, labels.Value(b))
		}
	})
}

// What is read is written again just as it was: two values never mean the same.
func TestOnlyCanonicalValuesAreRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.StringMatching(`[Z0-9A-Fa-f./_-]{0,66}`), texts()).Draw(t, "value")
		if text, known, err := labels.Text(v); err == nil && known && labels.Value(text) != v {
			t.Fatalf("%q is read as %q, which is written %q", v, text, labels.Value(text))
		}
	})
	for _, v := range []string{"Z61", "Z2f", "Z2", "Z", "-a", "a-", "a/b", "Z-", "Z-AAAA", strings.Repeat("a", 64)} {
		if text, known, err := labels.Text(v); err == nil {
			t.Errorf("%q is read as %q, %t", v, text, known)
		}
	}
}

func TestEveryAccountsLabelsFitIntoFive(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63) + "/" + strings.Repeat("b", 63)
	for account, room := range map[string]labels.Room{"acme/web": {Labels: 5}, strings.Repeat("a", 50) + "/" + strings.Repeat("b", 9): {Labels: 5},
		"org.with.dots_and-dashes/workspace.with.dots_and-dashes": {Labels: 5}, long: {Labels: 5, Value: 128}} {
		packed, err := labels.Pack(object(account), room)
		if err != nil {
			t.Errorf("%s: %v", account, err)
			continue
		}
		back, err := labels.Unpack(packed, room)
		if err != nil || !maps.Equal(back, object(account)) {
			t.Errorf("%s: %v, %v", account, back, err)
		}
	}
	if _, err := labels.Pack(object("acme/web"), labels.Room{Labels: 2}); !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" {
		t.Errorf("two labels: %v", err)
	}
}

func TestLabelsReturnAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := object(texts().Draw(t, "account"))
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			all["sandboxer."+texts().Draw(t, "name")] = texts().Draw(t, "value")
		}
		all[extensions.LabelID] = id
		if rapid.Bool().Draw(t, "fewer") {
			delete(all, rapid.SampledFrom([]string{extensions.LabelAccount, extensions.LabelGeneration}).Draw(t, "without"))
		}
		packed, err := labels.Pack(all, labels.Room{})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := labels.Pack(maps.Clone(all), labels.Room{})
		if !maps.Equal(packed, again) {
			t.Fatal("packed twice, it differs")
		}
		for k, v := range packed {
			if len(v) > labels.MaxValue || !kubernetes.MatchString(v) || len(k) > labels.MaxValue {
				t.Fatalf("%s: %q", k, v)
			}
		}
		packed["somebody.elses"] = "label"
		back, err := labels.Unpack(packed, labels.Room{})
		if err != nil || !maps.Equal(back, all) {
			t.Fatalf("%v came back as %v, %v", all, back, err)
		}
	})
}

func TestDamagedLabelsAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63) + "/" + strings.Repeat("b", 63)
	for name, damage := range map[string]func(map[string]string){
		"another account's digest": func(m map[string]string) { m[extensions.LabelAccount] = labels.Value(long + "x") },
		"a part missing":           func(m map[string]string) { delete(m, "sandboxer.rest-0") },
		"the last part missing":    func(m map[string]string) { delete(m, "sandboxer.rest-4") },
		"a part too short":         func(m map[string]string) { m["sandboxer.rest-0"] = "rr" },
		"not ours":                 func(m map[string]string) { m["sandboxer.rest-0"] = "hello" },
		"no base64":                func(m map[string]string) { m["sandboxer.rest-0"] = "r.r" },
		"no id":                    func(m map[string]string) { delete(m, extensions.LabelID) },
		"too many":                 func(m map[string]string) { m["sandboxer.rest-5"] = "rAAr" },
	} {
		packed, err := labels.Pack(object(long), labels.Room{})
		if err != nil {
			t.Fatal(err)
		}
		if _, last := packed["sandboxer.rest-4"]; !last {
			t.Fatal(fmt.Sprint("the parts are: ", packed))
		}
		damage(packed)
		if back, err := labels.Unpack(packed, labels.Room{}); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v, %v", name, back, err)
		}
	}
}
