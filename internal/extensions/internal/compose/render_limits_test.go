package compose

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func resources(memory, milli, pids int64) extensions.Resources {
	var r extensions.Resources
	if memory > 0 {
		r.MemoryMB = &memory
	}
	if milli > 0 {
		cpu := extensions.Milli(milli)
		r.CPU = &cpu
	}
	if pids > 0 {
		r.Pids = &pids
	}
	return r
}

// What all containers may use together is never more than the sandbox's limit.
func TestLimitsNeverAddUpToMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &Project{Root: "/", Compose: &types.Project{Services: types.Services{}}}
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}`), 1, 5, rapid.ID).Draw(t, "services") {
			var s types.ServiceConfig
			s.Image = "i"
			scale := rapid.IntRange(0, 3).Draw(t, "scale")
			s.Scale = &scale
			if rapid.Bool().Draw(t, "claims") {
				s.MemLimit = types.UnitBytes(rapid.Int64Range(1, 256).Draw(t, "memory") << 20)
				s.CPUS = float32(rapid.Int64Range(1, 2000).Draw(t, "cpu")) / 1000
				s.PidsLimit = rapid.Int64Range(1, 200).Draw(t, "pids")
			}
			p.Compose.Services[name] = s
		}
		memory, milli, pids := rapid.Int64Range(1, 2048).Draw(t, "mb"), rapid.Int64Range(1, 8000).Draw(t, "milli"), rapid.Int64Range(1,
			2000).Draw(t, "limit")
		r, err := p.Render(withDefaults(RenderOptions{Resources: resources(memory, milli, pids)}))
		if err != nil {
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Fatal(err)
			}
			return
		}
		back, err := reloaded(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		var bytes, cpu, processes int64
		for name, s := range back.Services {
			n := int64(s.GetScale())
			if n != int64(*p.Compose.Services[name].Scale) {
				t.Fatalf("%s runs %d times", name, n)
			}
			if n > 0 && (s.MemLimit <= 0 || s.CPUS <= 0 || s.PidsLimit <= 0) {
				t.Fatalf("%s has no limit", name)
			}
			bytes += n * int64(s.MemLimit)
			cpu += n * int64(float64(s.CPUS)*1000+0.5)
			processes += n * s.PidsLimit
		}
		if bytes > memory<<20 || cpu > milli || processes > pids {
			t.Fatalf("%d bytes of %d MiB, %d of %d milli, %d of %d processes", bytes, memory, cpu, milli, processes, pids)
		}
	})
}

func TestLimitsOfBestEffortAreWholeForEach(t *testing.T) {
	t.Parallel()
	p := parse(t, "services: {a: {image: i}, b: {image: i, mem_limit: 64m, pids_limit: 20}, c: {image: i, mem_limit: 4g, cpus: 9}}", nil)
	res := resources(128, 500, 300)
	disk := int64(10)
	res.DiskMB, res.BestEffort = &disk, true
	res.GPU = &extensions.GPU{Count: 1}
	back := reload(t, render(t, p, RenderOptions{Resources: res}), nil)
	for name, want := range map[string][3]int64{"a": {128, 500, 300}, "b": {64, 500, 20}, "c": {128, 500, 300}} {
		s := back.Services[name]
		if got := [3]int64{int64(s.MemLimit) >> 20, int64(s.CPUS * 1000), s.PidsLimit}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if s.Deploy != nil {
			t.Errorf("%s reserves %+v", name, s.Deploy)
		}
	}
}

func TestLimitsThatCannotBeEnforcedAreRefused(t *testing.T) {
	t.Parallel()
	one := parse(t, "services: {a: {image: i}}", nil)
	two := parse(t, "services: {a: {image: i}, b: {image: i, mem_limit: 1g}}", nil)
	disk := int64(100)
	for what, c := range map[string]struct {
		p     *Project
		o     RenderOptions
		kind  extensions.Kind
		field string
	}{
		"disk": {one, RenderOptions{Resources: extensions.Resources{DiskMB: &disk}}, extensions.KindUnsupported, "resources.disk_mb"},
		"gpu": {one, RenderOptions{Resources: extensions.Resources{GPU: &extensions.GPU{Count: 1}}}, extensions.KindUnsupported,
			"resources.gpu"},
		"gpu model": {one, RenderOptions{GPU: true, Resources: extensions.Resources{GPU: &extensions.GPU{Count: 1, Model: "H100"}}},
			extensions.KindUnsupported, "resources.gpu.model"},
		"whose gpu": {two, RenderOptions{GPU: true, Resources: extensions.Resources{GPU: &extensions.GPU{Count: 1}}}, extensions.KindInvalid,
			"compose.service"},
		"claimed":    {two, RenderOptions{Resources: resources(512, 0, 0)}, extensions.KindInvalid, "resources.memory_mb"},
		"too little": {two, RenderOptions{Resources: resources(1026, 0, 0)}, extensions.KindInvalid, "resources.memory_mb"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := refuse(t, c.p, c.o, c.kind)
			if err.Field != c.field || err.Remedy == "" {
				t.Errorf("field %q remedy %q of %v", err.Field, err.Remedy, err)
			}
		})
	}
}

func TestAcceleratorsAreReserved(t *testing.T) {
	t.Parallel()
	p := parse(t, "services: {a: {image: i}, b: {image: i}}", nil)
	back := reload(t, render(t, p, RenderOptions{Service: "b", GPU: true, Resources: extensions.Resources{GPU: &extensions.GPU{Count: 2}}}),
		nil)
	if back.Services["a"].Deploy != nil {
		t.Error("the wrong service got them")
	}
	d := back.Services["b"].Deploy.Resources.Reservations.Devices
	if len(d) != 1 || d[0].Count != 2 || d[0].Driver != "nvidia" || d[0].Capabilities[0] != "gpu" {
		t.Errorf("devices: %+v", d)
	}
}
