package meter

// Mode is what a sandbox did during a segment.
type Mode string

const (
	ModeRunning Mode = "running"
	ModePaused  Mode = "paused"
)

// Sizes are what a sandbox is given. Zero CPU, memory or disk is not known.
type Sizes struct {
	VCPUMilli int64  `json:"vcpu_milli,omitempty"`
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	DiskMiB   int64  `json:"disk_mib,omitempty"`
	GPUs      int64  `json:"gpus,omitempty"`
	GPUModel  string `json:"gpu_model,omitempty"`
}

// Segment is a stretch of a sandbox's life in one mode with one set of sizes.
// Segments are contiguous. Count Milliseconds as the difference of Unix
// milliseconds of both ends, so that a life's segments add up to it exactly.
type Segment struct {
	Mode         Mode  `json:"mode"`
	Milliseconds int64 `json:"ms"`
	Sizes        Sizes `json:"sizes"`
	// What the backend measured; nil was not measured.
	CPUMillis       *int64 `json:"cpu_ms,omitempty"` // ms of one vCPU, active
	MemoryMiBMillis *int64 `json:"mib_ms,omitempty"` // MiB x ms used
	EgressBytes     *int64 `json:"egress,omitempty"` // bytes out
}

// ChargeLine is one component of a settlement or a quote.
type ChargeLine struct {
	// Segment is the first segment the line covers, counted from 1; 0 is the
	// whole life (a creation fee, a surcharge). Segment and Component together
	// are unique in a settlement.
	Segment   int64  `json:"segment"`
	Component string `json:"component"`      // "vcpu", "gpu:H100", "surcharge:region"
	Mode      Mode   `json:"mode,omitempty"` // empty for the whole life
	// Quantity counts quanta of the unit (see QuantaPerUnit): with the
	// increment and the minimum where the price has them, less what is
	// included.
	Quantity  int64     `json:"quantity"`
	Unit      string    `json:"unit"`
	UnitPrice UnitPrice `json:"unit_price"` // for one whole unit
	Amount    Amount    `json:"amount"`
	Currency  Currency  `json:"currency,omitempty"`
	Memo      bool      `json:"memo"`
	// Confidence is that of the price. Under ConfidenceUnknown something is
	// charged but not known how much: UnitPrice and Amount are meaningless
	// and must not be shown as 0.
	Confidence Confidence `json:"confidence"`
	// Estimated: the quantity was not measured but bounded from above.
	Estimated bool `json:"estimated,omitempty"`
}
