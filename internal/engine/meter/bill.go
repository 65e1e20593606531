package meter

import "slices"

// bill is one settlement in progress.
type bill struct {
	snapshot PriceSnapshot
	segments []Segment
	rounding rounding
	lines    []ChargeLine
}

// share is the use of one component in one mode.
type share struct {
	segment   int64 // first segment, from 1
	quantity  int64
	used      bool // such a segment exists
	unsized   bool // a size is unknown
	estimated bool
}

func (b *bill) price(p SnapshotPrice) error {
	component := base(p.Component)
	switch {
	case timed(component):
		return b.timed(p, component)
	case component == ComponentCreation:
		return b.line(p, "", p.Price, share{quantity: 1})
	case component == ComponentEgress:
		return b.egress(p)
	}
	return nil // surcharges and fees come last
}

func (b *bill) egress(p SnapshotPrice) error {
	var s share
	s.unsized = true
	for _, seg := range b.segments {
		if seg.EgressBytes == nil {
			continue
		}
		s.unsized = false
		var err error
		if s.quantity, err = add(s.quantity, *seg.EgressBytes); err != nil {
			return err
		}
	}
	s.quantity, _ = deduct(s.quantity, b.included(p))
	return b.line(p, "", p.Price, s)
}

func (b *bill) timed(p SnapshotPrice, component string) error {
	running, paused := share{}, share{}
	var billed int64
	last, lastSegment := &running, Segment{Mode: ModeRunning, Sizes: b.snapshot.Sizes}
	for i, seg := range b.segments {
		of := &running
		if seg.Mode == ModePaused {
			if p.Paused == nil {
				continue
			}
			of = &paused
		}
		if component == ComponentGPU && !b.gpuPrice(p, seg) {
			continue
		}
		if !of.used {
			of.used, of.segment = true, int64(i+1)
		}
		seg.Sizes = seg.Sizes.or(b.snapshot.Sizes)
		if err := b.use(of, component, seg); err != nil {
			return err
		}
		billed += seg.Milliseconds // cannot overflow: the sum of all was checked
		last, lastSegment = of, seg
	}
	if !running.used && !paused.used {
		if component == ComponentGPU || p.Minimum == 0 {
			return nil
		}
		running.used = true // it never ran, but the minimum is owed
	}
	extra, err := roundedUp(billed, p)
	if err != nil {
		return err
	}
	if err := b.allocate(last, component, lastSegment.Sizes, extra); err != nil {
		return err
	}
	left := b.included(p)
	running.quantity, left = deduct(running.quantity, left)
	paused.quantity, _ = deduct(paused.quantity, left)
	if running.used {
		if err := b.line(p, ModeRunning, p.Price, running); err != nil {
			return err
		}
	}
	if paused.used {
		return b.line(p, ModePaused, p.Paused, paused)
	}
	return nil
}

// roundedUp returns the milliseconds added by increment and minimum.
func roundedUp(billed int64, p SnapshotPrice) (int64, error) {
	to := billed
	if p.Increment > 0 && billed%p.Increment != 0 {
		var err error
		if to, err = add(billed, p.Increment-billed%p.Increment); err != nil {
			return 0, err
		}
	}
	return max(to, p.Minimum) - billed, nil
}

// use adds what a segment used: measured if the billing shape requires it, else allocated.
func (b *bill) use(s *share, component string, seg Segment) error {
	measured := (*int64)(nil)
	switch {
	case component == ComponentVCPU && seg.CPUMillis != nil:
		n, err := mul(*seg.CPUMillis, milli)
		if err != nil {
			return err
		}
		measured = &n
	case component == ComponentMemory && seg.MemoryMiBMillis != nil:
		measured = seg.MemoryMiBMillis
	}
	if component == ComponentVCPU && b.snapshot.activeCPU() {
		if measured != nil {
			var err error
			s.quantity, err = add(s.quantity, *measured)
			return err
		}
		s.estimated = true
	}
	before := s.quantity
	if err := b.allocate(s, component, seg.Sizes, seg.Milliseconds); err != nil {
		return err
	}
	if b.snapshot.larger() && measured != nil {
		used, err := add(before, *measured)
		s.quantity = max(s.quantity, used)
		return err
	}
	return nil
}

// allocate adds size x time.
func (b *bill) allocate(s *share, component string, sizes Sizes, ms int64) error {
	size := int64(1)
	switch component {
	case ComponentVCPU:
		size = sizes.VCPUMilli
	case ComponentMemory:
		size = sizes.MemoryMiB
	case ComponentDisk, ComponentSnapshot:
		size = sizes.DiskMiB
	case ComponentGPU:
		size = sizes.GPUs
	}
	s.unsized = s.unsized || size == 0
	n, err := mul(size, ms)
	if err == nil {
		s.quantity, err = add(s.quantity, n)
	}
	return err
}

// included returns the free quantity; check ensured that it fits.
func (b *bill) included(p SnapshotPrice) int64 {
	u, _ := unitNamed(p.Unit)
	return p.Included * u.perUnit
}

func deduct(quantity, free int64) (rest, left int64) {
	n := min(quantity, free)
	return quantity - n, free - n
}

func (b *bill) line(p SnapshotPrice, mode Mode, price *UnitPrice, s share) error {
	l := ChargeLine{Segment: s.segment, Component: p.Component, Mode: mode, Quantity: s.quantity, Unit: p.Unit,
		Currency: b.snapshot.Currency, Memo: b.memo(p), Confidence: p.Confidence, Estimated: s.estimated}
	free := price != nil && *price == 0 // whatever the size
	if price == nil || s.unsized && !free {
		l.Confidence = ConfidenceUnknown
	} else {
		u, _ := unitNamed(p.Unit)
		l.UnitPrice = *price
		var err error
		if l.Amount, err = cost(l.Quantity, l.UnitPrice, u.perUnit, b.rounding); err != nil {
			return err
		}
	}
	b.lines = append(b.lines, l)
	return nil
}

// gpuPrice reports whether p prices the segment's GPUs: a price for their model wins over the one for any
// model.
func (b *bill) gpuPrice(p SnapshotPrice, seg Segment) bool {
	if seg.Sizes.GPUs == 0 {
		return false
	}
	own := gpuComponent(seg.Sizes.GPUModel)
	if p.Component != ComponentGPU || own == ComponentGPU {
		return p.Component == own
	}
	for _, other := range b.snapshot.Prices {
		if other.Component == own {
			return false
		}
	}
	return true
}

// unpricedGPU adds an unknown line for each segment whose GPUs the price book does not cover: an omission
// never makes them free.
func (b *bill) unpricedGPU() error {
	if b.snapshot.Basis != BasisBook {
		return nil // the whole place has one price
	}
	for i, seg := range b.segments {
		covered := seg.Sizes.GPUs == 0 || slices.ContainsFunc(b.snapshot.Prices, func(p SnapshotPrice) bool {
			return base(p.Component) == ComponentGPU && b.gpuPrice(p, seg)
		})
		if covered {
			continue
		}
		n, err := mul(seg.Sizes.GPUs, seg.Milliseconds)
		if err != nil {
			return err
		}
		b.lines = append(b.lines, ChargeLine{Segment: int64(i + 1), Component: gpuComponent(seg.Sizes.GPUModel), Mode: seg.Mode,
			Quantity: n, Unit: "gpu-second", Currency: b.snapshot.Currency, Memo: b.snapshot.Memo, Confidence: ConfidenceUnknown})
	}
	return nil
}

// surcharges adds a share of all charges before it, then the platform's fees on all that the vendor
// charges.
func (b *bill) surcharges() error {
	for _, component := range []string{ComponentSurcharge, ComponentFee} {
		charged, known, err := Total(b.lines)
		if err != nil {
			return err
		}
		for _, p := range b.snapshot.Prices {
			if base(p.Component) != component {
				continue
			}
			s := share{quantity: int64(charged), unsized: !known}
			if p.Unit != unitCharged {
				s = b.flat(p)
			}
			if err := b.line(p, "", p.Price, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// flat returns what a fee other than a share counts: the creation, or running time.
func (b *bill) flat(p SnapshotPrice) share {
	if p.Unit == unitCreation {
		return share{quantity: 1}
	}
	var s share
	for _, seg := range b.segments {
		if seg.Mode == ModeRunning {
			s.quantity += seg.Milliseconds // cannot overflow: the sum of all was checked
		}
	}
	return s
}

// memo reports whether no wallet pays. A wallet always pays a fee, whoever pays the vendor, since it is
// the platform's own.
func (b *bill) memo(p SnapshotPrice) bool {
	return b.snapshot.Memo && base(p.Component) != ComponentFee
}
