package extensions_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// What a descriptor says of pauses and snapshots agrees with itself, and with its powers.
func TestADeclarationOfPausesAndSnapshotsAgrees(t *testing.T) {
	t.Parallel()
	memory, workspace := []extensions.SnapshotKind{extensions.SnapshotMemory}, []extensions.SnapshotKind{extensions.SnapshotWorkspace}
	local := func(d *extensions.Descriptor) { // nothing leaves it
		d.Powers, d.Snapshots.Portable = without(d.Powers, extensions.PowerReadSnapshot), nil
	}
	for name, c := range map[string]struct {
		says func(d *extensions.Descriptor)
		ok   bool
	}{
		"as it is":                 {func(*extensions.Descriptor) {}, true},
		"stops its source":         {func(d *extensions.Descriptor) { d.Snapshots.StopsSource = true }, true},
		"ends its source":          {func(d *extensions.Descriptor) { d.Snapshots.EndsSource = true }, true},
		"stops and ends it":        {func(d *extensions.Descriptor) { d.Snapshots.StopsSource, d.Snapshots.EndsSource = true, true }, false},
		"not portable":             {local, true},
		"memory":                   {func(d *extensions.Descriptor) { local(d); d.Snapshots.Kinds, d.Snapshots.HoldsSecrets = memory, true }, true},
		"expires":                  {func(d *extensions.Descriptor) { d.Snapshots.Expires = time.Hour }, true},
		"no kinds":                 {func(d *extensions.Descriptor) { d.Snapshots.Kinds = nil }, false},
		"an unknown kind":          {func(d *extensions.Descriptor) { d.Snapshots.Kinds = []extensions.SnapshotKind{"picture"} }, false},
		"secretless memory":        {func(d *extensions.Descriptor) { d.Snapshots.Kinds = memory }, false},
		"find without order":       {func(d *extensions.Descriptor) { d.Snapshots.Find.Strength = extensions.FindEventual }, false},
		"no find":                  {func(d *extensions.Descriptor) { d.Snapshots.Find = extensions.Find{} }, false},
		"a claim":                  {func(d *extensions.Descriptor) { d.Snapshots.Find.Claim = time.Minute }, false},
		"portable unread":          {func(d *extensions.Descriptor) { d.Powers = without(d.Powers, extensions.PowerReadSnapshot) }, false},
		"read and not portable":    {func(d *extensions.Descriptor) { d.Snapshots.Portable = nil }, false},
		"portable and never taken": {func(d *extensions.Descriptor) { d.Snapshots.Portable = workspace }, false},
		"portable memory": {func(d *extensions.Descriptor) {
			d.Snapshots.Kinds, d.Snapshots.Portable, d.Snapshots.HoldsSecrets = memory, memory, true
		}, false},
		"expired before":            {func(d *extensions.Descriptor) { d.Snapshots.Expires = -time.Hour }, false},
		"forks of paused ones, too": {func(d *extensions.Descriptor) { d.Forks = extensions.Forks{} }, true},
		"forks of running ones":     {func(d *extensions.Descriptor) { d.Forks.RunningOnly = true }, true},
		"no forks": {func(d *extensions.Descriptor) {
			d.Powers = without(d.Powers, extensions.PowerFork)
			d.Forks.HoldsSecrets = true
		}, false},
		"nobody ends a paused one": {func(d *extensions.Descriptor) { d.Capabilities.PausedExpiry = "" }, false},
		"better ended than a running one": {func(d *extensions.Descriptor) {
			d.Capabilities.Expiry, d.Capabilities.PausedExpiry = extensions.ExpiryHost, extensions.ExpiryNative
		}, false},
	} {
		d := saasstub.New().Describe()
		c.says(&d)
		if err := d.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func without(powers []extensions.Power, gone ...extensions.Power) []extensions.Power {
	return slices.DeleteFunc(slices.Clone(powers), func(p extensions.Power) bool { return slices.Contains(gone, p) })
}

type elsewhere struct {
	extensions.SnapshotSource
	kind   extensions.SnapshotKind
	digest string
}

func (e elsewhere) Kind() extensions.SnapshotKind { return e.kind }
func (e elsewhere) Digest() string                { return e.digest }

// Bytes from another place are accepted where their kind is portable, and only with a digest.
func TestASnapshotOfAnotherPlaceIsAcceptedAsDeclared(t *testing.T) {
	t.Parallel()
	d := saasstub.New().Describe()
	stays := d
	stays.Powers, stays.Snapshots.Portable = without(d.Powers, extensions.PowerReadSnapshot), nil
	good := "sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		place extensions.Descriptor
		from  extensions.SnapshotSource
		want  extensions.Kind
	}{
		"kept here":     {stays, nil, ""},
		"portable":      {d, elsewhere{kind: extensions.SnapshotMetadata, digest: good}, ""},
		"another kind":  {d, elsewhere{kind: extensions.SnapshotWorkspace, digest: good}, extensions.KindUnsupported},
		"nothing moves": {stays, elsewhere{kind: extensions.SnapshotMetadata, digest: good}, extensions.KindUnsupported},
		"no digest":     {d, elsewhere{kind: extensions.SnapshotMetadata}, extensions.KindInvalid},
		"capitals":      {d, elsewhere{kind: extensions.SnapshotMetadata, digest: strings.ToUpper(good)}, extensions.KindInvalid},
		"too short":     {d, elsewhere{kind: extensions.SnapshotMetadata, digest: good[:len(good)-2]}, extensions.KindInvalid},
	} {
		err := c.place.Accept(extensions.Spec{FromSnapshot: &extensions.SnapshotRef{ID: "snp-x",
			Handle: extensions.SnapshotHandle{Extension: d.Handler}, Source: c.from}})
		if (err != nil || c.want != "") && !extensions.IsKind(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A binding without snapshots has none to send.
func TestABindingWithoutSnapshotsSendsNone(t *testing.T) {
	t.Parallel()
	x := saasstub.New().Describe()
	for name, powers := range map[string][]extensions.Power{
		"no snapshots": without(x.Powers, extensions.PowerSnapshot),
		"no reading":   without(x.Powers, extensions.PowerReadSnapshot),
	} {
		d, err := x.Narrow(extensions.Declaration{Powers: powers})
		if err != nil || d.Has(extensions.PowerReadSnapshot) || len(d.Snapshots.Portable) > 0 {
			t.Errorf("%s: %v, %v, %v", name, d.Powers, d.Snapshots.Portable, err)
		}
	}
}
