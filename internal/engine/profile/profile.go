package profile

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Profile is the content of one catalog file; nil means "not set here". Parse checks single values;
// Set.Flatten checks what depends on ancestors.
type Profile struct {
	ID      string  `yaml:"id"`
	Version string  `yaml:"version"` // semantic version: "1.0.0"
	Extends *string `yaml:"extends"` // "profile.x" or "profile.x@1.0.0"

	Extension    *string       `yaml:"extension"` // pins the route to one binding
	Route        *Route        `yaml:"route"`
	Isolation    *Isolation    `yaml:"isolation"`
	Network      *Network      `yaml:"network"`
	Workspace    *Workspace    `yaml:"workspace"`
	Image        *Image        `yaml:"image" choice:"source"`
	Compose      *Compose      `yaml:"compose" choice:"source"`
	Containers   *Containers   `yaml:"containers" choice:"source"`
	Entrypoint   *Entrypoint   `yaml:"entrypoint"`                      // idle | image | a command
	FromSnapshot *string       `yaml:"from_snapshot" json:",omitempty"` // ID or name of what sandboxes start from
	ScopeDefault *string       `yaml:"scope_default"`                   // session | agent | shared
	TTL          *TTL          `yaml:"ttl"`
	Resources    *Resources    `yaml:"resources"`
	Setup        *Setup        `yaml:"setup"`
	SecretsAs    *string       `yaml:"secrets_as"` // env | file
	Toolchain    *Toolchain    `yaml:"toolchain"`
	Requires     *Requires     `yaml:"requires"`
	Inputs       Inputs        `yaml:"inputs"`
	Readiness    *Readiness    `yaml:"readiness"`
	Placement    *Placement    `yaml:"placement"`
	Reachability *Reachability `yaml:"reachability"`
	Metadata     *Metadata     `yaml:"metadata"`
	// Overrides are the fields that a request may set instead. They are not inherited.
	Overrides []string `yaml:"overrides" json:",omitempty"`
	// Options are per binding id; only those of the chosen binding reach it.
	Options map[string]map[string]any `yaml:"options"`

	file string
	pos  *strictyaml.Positions
	// wrong says that its file has mistakes: what its fields use is known only from their texts.
	wrong bool
}

// Inputs are the declared inputs by name.
type Inputs map[string]Input

// Route says how to choose a place.
type Route struct {
	Strategy    *string      `yaml:"strategy"` // explicit | prefer-self-hosted | lowest-cost | lowest-latency
	Fallback    []string     `yaml:"fallback"` // binding ids, in order
	Constraints *Constraints `yaml:"constraints"`
}

// Constraints rule places out.
type Constraints struct {
	MaxCostPerHour   *string `yaml:"max_cost_per_hour"` // "0.50 USD"
	RequireIsolation *string `yaml:"require_isolation"`
	Region           *string `yaml:"region"`
	AuthMode         *string `yaml:"auth_mode" json:",omitempty"` // local | host-session: only the owner's machines
}

// Isolation is a minimum.
type Isolation struct {
	Level *string `yaml:"level"`
}

// Network is a default and, under deny, the exceptions from it.
type Network struct {
	Default *string  `yaml:"default"` // deny | allow
	Egress  []string `yaml:"egress"`  // see ParseEgress
}

// Workspace is the folder a sandbox works in.
type Workspace struct {
	Mode   *string `yaml:"mode"`   // mirror | remote-canonical
	Access *string `yaml:"access"` // none | ro | rw
}

// Image is one container image.
type Image struct {
	Pull   *string `yaml:"pull" choice:"image"`
	Build  *Stage  `yaml:"build" choice:"image"`
	Stages []Stage `yaml:"stages" choice:"image"`
	Keep   *bool   `yaml:"keep"`
	Bundle *string `yaml:"bundle"` // folder beside the profile with the contexts
}

// Stage is one docker build.
type Stage struct {
	Context    *string           `yaml:"context"`
	Dockerfile *string           `yaml:"dockerfile"`
	Target     *string           `yaml:"target"`
	Args       map[string]string `yaml:"args"`
	Tag        *string           `yaml:"tag"`
	ParentTag  *string           `yaml:"parent_tag"`
	CacheKey   *string           `yaml:"cache_key"`
}

// Compose names a stack.
type Compose struct {
	File     Strings  `yaml:"file"` // one name or a list
	Service  *string  `yaml:"service"`
	Profiles []string `yaml:"profiles"`
	EnvFiles []string `yaml:"env_files"`
	// Variables interpolate the files, with precedence over EnvFiles. Nothing inside sees them.
	Variables map[string]string `yaml:"variables"`
	Bundle    *string           `yaml:"bundle"` // folder beside the profile
}

// Containers is an agent container with its services.
type Containers struct {
	Agent    *Container           `yaml:"agent"`
	Services map[string]Container `yaml:"services"`
}

// Container is one container.
type Container struct {
	Image       *Image            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Hostname    *string           `yaml:"hostname"`
	Environment map[string]string `yaml:"environment"`
}

// TTL limits a sandbox's life.
type TTL struct {
	Default  *Duration `yaml:"default"`
	Max      *Duration `yaml:"max"`
	IdleReap *Duration `yaml:"idle_reap"`
}

// Resources are limits.
type Resources struct {
	CPU        *CPU   `yaml:"cpu"`
	MemoryMB   *int64 `yaml:"memory_mb"`
	DiskMB     *int64 `yaml:"disk_mb"`
	GPU        *GPU   `yaml:"gpu"`
	Pids       *int64 `yaml:"pids"`
	BestEffort *bool  `yaml:"best_effort"`
}

// Setup is what a sandbox is told and given.
type Setup struct {
	Instructions *string     `yaml:"instructions"`
	SecretRefs   []SecretRef `yaml:"secret_refs"`
}

// Toolchain is what runs inside once the workspace is there. Its lists extend those of the ancestors.
type Toolchain struct {
	Kits        []string          `yaml:"kits" merge:"add"` // "kit.x" or "kit.x@1.0.0"
	Install     []Step            `yaml:"install" merge:"add"`
	PostAcquire []Step            `yaml:"post_acquire" merge:"add"`
	PreRelease  []Step            `yaml:"pre_release" merge:"add"`
	Env         map[string]string `yaml:"env" merge:"env"` // ${NAME} is the value so far
}

// Requires is what a place must satisfy.
type Requires struct {
	Runtime      []string `yaml:"runtime"`
	Capabilities []string `yaml:"capabilities"`
	OS           Strings  `yaml:"os" json:",omitempty"`   // one, or a list of alternatives
	Arch         Strings  `yaml:"arch" json:",omitempty"` // as Go or uname names it
}

// Input declares one input. String inputs named `repo` and `ref` are the workspace's source.
type Input struct {
	Type     *string `yaml:"type"` // string | number | bool | list | map
	Required *bool   `yaml:"required"`
	Default  any     `yaml:"default"`
	Doc      *string `yaml:"doc"`
	Enum     []any   `yaml:"enum"`
	Pattern  *string `yaml:"pattern"` // for strings: an RE2 expression that the whole value must match
}

// Readiness decides when a sandbox is ready: the probe, and how long services must have run.
type Readiness struct {
	Command  []string  `yaml:"command" choice:"probe"`
	HTTP     *string   `yaml:"http" choice:"probe"`
	TCP      *string   `yaml:"tcp" choice:"probe"`
	Service  *string   `yaml:"service"`
	Interval *Duration `yaml:"interval"`
	Timeout  *Duration `yaml:"timeout"`
	Settle   *Duration `yaml:"settle"`
}

// Placement names hosts.
type Placement struct {
	Prefer   []string `yaml:"prefer"`
	Fallback []string `yaml:"fallback"`
}

// Reachability names how hosts are reached.
type Reachability struct {
	Tunnel   *string `yaml:"tunnel"`   // named jump route
	Identity *string `yaml:"identity"` // named identity of the host
}

// Metadata labels a profile for people. It is shown; it chooses and prices nothing.
type Metadata struct {
	CostClass    *string `yaml:"cost_class"`    // self-hosted | saas-metered
	LatencyClass *string `yaml:"latency_class"` // such as standard
}

func (p *Profile) identity() (id, version string) { return p.ID, p.Version }

// Ref returns "id@version".
func (p *Profile) Ref() string { return p.ID + "@" + p.Version }

// File returns the name given to Parse.
func (p *Profile) File() string { return p.file }

// Errorf returns a mistake at the position of path in p's file; see strictyaml.Positions.At.
func (p *Profile) Errorf(path []string, format string, args ...any) *strictyaml.Error {
	return p.pos.Errorf(path, format, args...)
}
