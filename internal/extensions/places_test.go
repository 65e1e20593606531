package extensions_test

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

func TestPlacesAreASetThatAgreesWithItself(t *testing.T) {
	t.Parallel()
	const machine, host, account = extensions.PlaceMachine, extensions.PlaceHost, extensions.PlaceAccount
	for _, c := range []struct {
		places []extensions.Place
		valid  bool
	}{
		{[]extensions.Place{machine}, true}, {[]extensions.Place{host}, true}, {[]extensions.Place{account}, true},
		{[]extensions.Place{machine, host}, true},
		{nil, false}, {[]extensions.Place{"moon"}, false}, {[]extensions.Place{host, machine}, false}, {[]extensions.Place{host, host}, false},
		{[]extensions.Place{machine, account}, false}, {[]extensions.Place{host, account}, false},
	} {
		d := local.New().Describe()
		d.Places = c.places
		if err := d.Validate(); (err == nil) != c.valid {
			t.Errorf("%v: %v", c.places, err)
		}
	}
}

func TestAHostIsAPlaceOfItsKind(t *testing.T) {
	t.Parallel()
	const machine, host, account = extensions.PlaceMachine, extensions.PlaceHost, extensions.PlaceAccount
	here, there := &extensions.Host{Local: true}, &extensions.Host{SSH: &extensions.SSH{Address: "a"}}
	for _, c := range []struct {
		places []extensions.Place
		at     *extensions.Host
		want   extensions.Place
		runs   bool
	}{
		{[]extensions.Place{machine}, nil, machine, true}, {[]extensions.Place{machine}, here, machine, true},
		{[]extensions.Place{machine}, there, machine, false},
		{[]extensions.Place{host}, nil, host, false}, {[]extensions.Place{host}, here, host, false},
		{[]extensions.Place{host}, there, host, true},
		{[]extensions.Place{machine, host}, nil, machine, true}, {[]extensions.Place{machine, host}, here, machine, true},
		{[]extensions.Place{machine, host}, there, host, true},
		{[]extensions.Place{account}, nil, account, true}, {[]extensions.Place{account}, here, account, false},
	} {
		if p, runs := (extensions.Descriptor{Places: c.places}).PlaceOf(c.at); p != c.want || runs != c.runs {
			t.Errorf("%v at %+v: %s, %v", c.places, c.at, p, runs)
		}
	}
}
