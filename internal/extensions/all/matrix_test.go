package all_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	yes     = "yes"
	no      = "–"
	unknown = "unknown"
)

type row struct {
	name  string
	value func(d extensions.Descriptor) string
}

func capability(name string, value func(c extensions.Capabilities) string) row {
	return row{name, func(d extensions.Descriptor) string { return value(d.Capabilities) }}
}

// snapshots is a row that only places with snapshots fill.
func snapshots(name string, value func(s extensions.Snapshots) string) row {
	return row{name, func(d extensions.Descriptor) string {
		if len(d.Snapshots.Kinds) == 0 {
			return no
		}
		return value(d.Snapshots)
	}}
}

// forks is a row that only places with forks fill.
func forks(name string, value func(f extensions.Forks) bool) row {
	return row{name, func(d extensions.Descriptor) string {
		if !d.Has(extensions.PowerFork) {
			return no
		}
		return ticked(value(d.Forks))
	}}
}

// published are the flags that sandbox platforms publish, by their names there.
var published = []row{
	capability("transportModel", func(c extensions.Capabilities) string { return c.TransportModel }),
	capability("supportsFsSnapshot", func(c extensions.Capabilities) string { return ticked(c.FsSnapshot) }),
	capability("supportsPauseResume", func(c extensions.Capabilities) string { return ticked(c.PauseResume) }),
	capability("supportsCapacityQuery", func(c extensions.Capabilities) string { return ticked(c.CapacityQuery) }),
	capability("maxConcurrent", func(c extensions.Capabilities) string { return number(c.MaxConcurrent) }),
	capability("maxSessionDurationSeconds", func(c extensions.Capabilities) string { return limit(c.MaxSessionDuration) }),
	capability("regions", func(c extensions.Capabilities) string { return list(c.Regions) }),
	capability("os", func(c extensions.Capabilities) string { return list(c.OS) }),
	capability("arch", func(c extensions.Capabilities) string { return list(c.Arch) }),
	capability("idleCostModel", func(c extensions.Capabilities) string { return c.IdleCostModel }),
	capability("billingModel", func(c extensions.Capabilities) string { return c.BillingModel }),
	capability("maxVCpu", func(c extensions.Capabilities) string { return number(c.MaxVCPU) }),
	capability("maxMemoryMb", func(c extensions.Capabilities) string { return number(c.MaxMemoryMB) }),
	capability("supportsGpu", func(c extensions.Capabilities) string { return ticked(c.GPU) }),
	capability("supportsCustomNetworkPolicy", func(c extensions.Capabilities) string { return ticked(c.CustomNetworkPolicy) }),
	capability("egressDefault", func(c extensions.Capabilities) string { return c.EgressDefault }),
	capability("isA2ARemote", func(c extensions.Capabilities) string { return ticked(c.A2ARemote) }),
}

// ours are the facts that routing, quotes and expiry need beyond those.
var ours = []row{
	{"places", func(d extensions.Descriptor) string { return list(d.Places) }},
	capability("isolation levels", func(c extensions.Capabilities) string { return list(c.IsolationLevels) }),
	capability("pricing model", func(c extensions.Capabilities) string { return c.PricingModel }),
	capability("egress enforcement", func(c extensions.Capabilities) string { return string(c.Egress) }),
	capability("ports of allowed networks", func(c extensions.Capabilities) string { return ports(c.CIDRPorts) }),
	capability("ports of allowed names", func(c extensions.Capabilities) string { return ports(c.DomainPorts) }),
	capability("DNS under deny", func(c extensions.Capabilities) string { return string(c.DNS) }),
	capability("ingress under deny", func(c extensions.Capabilities) string { return string(c.Ingress) }),
	capability("expiry enforcement", func(c extensions.Capabilities) string { return string(c.Expiry) }),
	{"a pause ends what runs", func(d extensions.Descriptor) string { return ticked(d.Pauses.EndsWhatRuns) }},
	capability("expiry while paused", func(c extensions.Capabilities) string { return cmp.Or(string(c.PausedExpiry), no) }),
	{"recoverable", func(d extensions.Descriptor) string { return ticked(d.Find.Recoverable()) }},
	{"find", func(d extensions.Descriptor) string { return found(d.Find) }},
	snapshots("snapshots hold", func(s extensions.Snapshots) string { return list(s.Kinds) }),
	snapshots("snapshots restore at another place", func(s extensions.Snapshots) string { return list(s.Portable) }),
	snapshots("find of snapshots", func(s extensions.Snapshots) string { return found(s.Find) }),
	snapshots("a paused sandbox has no snapshots", func(s extensions.Snapshots) string { return ticked(s.RunningOnly) }),
	snapshots("a snapshot pauses its source", func(s extensions.Snapshots) string { return ticked(s.StopsSource) }),
	snapshots("a snapshot ends its source", func(s extensions.Snapshots) string { return ticked(s.EndsSource) }),
	snapshots("snapshots are kept", func(s extensions.Snapshots) string {
		if s.Expires == 0 {
			return "until deleted"
		}
		return s.Expires.String()
	}),
	snapshots("snapshots may hold secrets", func(s extensions.Snapshots) string { return ticked(s.HoldsSecrets) }),
	forks("a paused sandbox has no forks", func(f extensions.Forks) bool { return f.RunningOnly }),
	forks("forks may hold secrets", func(f extensions.Forks) bool { return f.HoldsSecrets }),
	{"list", func(d extensions.Descriptor) string {
		if d.List.Freshness == extensions.ListEventual {
			return fmt.Sprintf("eventual, within %s", d.List.Lag)
		}
		return string(d.List.Freshness)
	}},
	capability("longest ttl", func(c extensions.Capabilities) string { return limit(c.MaxTTL) }),
	capability("deadline rounded up to", func(c extensions.Capabilities) string {
		if c.DeadlineGrain == 0 {
			return "exact"
		}
		return c.DeadlineGrain.String()
	}),
	capability("ends idle ones (`ttl.idle_reap`)", func(c extensions.Capabilities) string { return string(c.IdleReap) }),
	capability("ttl can be moved", func(c extensions.Capabilities) string { return string(c.ExtendTTL) }),
	capability("read-only workspace", func(c extensions.Capabilities) string { return ticked(c.ReadOnlyWorkspace) }),
	capability("CPU sizes", func(c extensions.Capabilities) string { return steps(int64(c.CPUStep), "milli-vCPU") }),
	capability("memory sizes", func(c extensions.Capabilities) string { return steps(c.MemoryStepMB, "MiB") }),
	capability("memory with each vCPU", func(c extensions.Capabilities) string {
		if c.MemoryPerCPUMB == 0 {
			return no
		}
		return fmt.Sprintf("%d MiB", c.MemoryPerCPUMB)
	}),
	capability("disk sizes", func(c extensions.Capabilities) string { return steps(c.DiskStepMB, "MiB") }),
	capability("GPU models", func(c extensions.Capabilities) string { return list(c.GPUModels) }),
	capability("enforced limits", func(c extensions.Capabilities) string { return list(c.Limits) }),
	capability("delivery of secrets", func(c extensions.Capabilities) string { return list(c.SecretsAs) }),
	capability("entrypoints", func(c extensions.Capabilities) string { return list(c.Entrypoints) }),
	capability("runtime kinds", func(c extensions.Capabilities) string { return list(c.Provides.RuntimeKinds) }),
	capability("requirement kinds", func(c extensions.Capabilities) string { return list(c.Provides.RequirementKinds) }),
}

// ports says what a rule can name, or that there are no such rules.
func ports(p extensions.EgressPorts) string { return cmp.Or(string(p), "–") }

func steps(step int64, unit string) string {
	if step == 0 {
		return "any"
	}
	return fmt.Sprintf("steps of %d %s", step, unit)
}

// rows counts the rows of the page's tables, powers included.
func rows() int { return len(published) + len(ours) + len(extensions.Powers) }

// matrix writes the page in Markdown, columns in the order of ds.
func matrix(ds []extensions.Descriptor) string {
	var b strings.Builder
	b.WriteString(`# Capabilities

What each extension declares. A binding's config, a catalog and the probed facts at apply can only narrow it.
The conformance suite fails if an extension implements more or fewer powers than it declares. "unknown" never means
"unlimited". A test generates this page from the descriptors and compares the two.

`)
	section(&b, "The published matrix", published, ds)
	section(&b, "What sandboxer adds", ours, ds)
	var powers []row
	for _, p := range extensions.Powers {
		powers = append(powers, row{string(p), func(d extensions.Descriptor) string { return ticked(d.Has(p)) }})
	}
	section(&b, "Powers", powers, ds)
	b.WriteString("## The extensions\n")
	for _, d := range ds {
		fmt.Fprintf(&b, "\n### %s (`%s`)\n\n%s\n", d.Title, d.Handler, strings.TrimSpace(d.Doc))
		fields(&b, "Configuration of the binding", d.Config)
		fields(&b, "Options of a profile", d.Options)
		credentials(&b, d.Credentials)
	}
	return b.String()
}

func section(b *strings.Builder, title string, rows []row, ds []extensions.Descriptor) {
	fmt.Fprintf(b, "## %s\n\n| |", title)
	for _, d := range ds {
		fmt.Fprintf(b, " %s |", d.Handler)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(ds)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |", r.name)
		for _, d := range ds {
			fmt.Fprintf(b, " %s |", cell(r.value(d)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func fields(b *strings.Builder, title string, fs []extensions.Field) {
	if len(fs) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	for _, f := range fs {
		kind := string(f.Type)
		if len(f.Enum) > 0 {
			kind += ": " + strings.Join(f.Enum, ", ")
		}
		if f.Required {
			kind += ", required"
		}
		bullet(b, fmt.Sprintf("`%s` (%s): %s", f.Name, kind, f.Doc))
	}
}

func credentials(b *strings.Builder, cs []extensions.CredentialField) {
	if len(cs) == 0 {
		return
	}
	b.WriteString("\nCredentials:\n\n")
	for _, c := range cs {
		from := ""
		if c.Env != "" {
			from = ", or the environment variable `" + c.Env + "`"
		}
		bullet(b, fmt.Sprintf("`%s`%s: %s", c.Name, from, c.Doc))
	}
}

// bullet writes a list item in lines of at most 110 columns.
func bullet(b *strings.Builder, text string) {
	column := len("-")
	b.WriteString("-")
	for _, word := range strings.Fields(text) {
		if column+1+len(word) > 110 {
			b.WriteString("\n ")
			column = len(" ")
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n")
}

// cell keeps a value from breaking the table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`).Replace(s)
}

func ticked(set bool) string {
	if set {
		return yes
	}
	return no
}

func number(n *int64) string {
	if n == nil {
		return unknown
	}
	return strconv.FormatInt(*n, 10)
}

// limit shows a duration in seconds, as the published matrix does.
func limit(d time.Duration) string {
	if d == 0 {
		return "no limit of the place"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + " s"
}

func list[S ~string](values []S) string {
	if len(values) == 0 {
		return no
	}
	var words []string
	for _, v := range values {
		words = append(words, string(v))
	}
	return strings.Join(words, ", ")
}

func found(f extensions.Find) string {
	if f.Strength == extensions.FindEventual {
		return fmt.Sprintf("eventual, within %s", f.Settle)
	}
	return string(f.Strength)
}
