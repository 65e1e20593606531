package composessh

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/hostlease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// Provision implements extensions.Backend with one exec, which ends when the stack is ready. The record and
// the timer exist before any container does.
func (b *Backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *Backend) provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	var none extensions.Handle
	var nothing extensions.Observation
	if err := ctx.Err(); err != nil {
		return none, nothing, extensions.Errorf(extensions.KindInterrupted, "nothing was started: %w", err)
	}
	if err := accept(b.settings, spec); err != nil {
		return none, nothing, err
	}
	if spec.FromSandbox != "" {
		if err := b.stackOf(ctx, &spec); err != nil {
			return none, nothing, err
		}
	}
	p, err := b.plan(ctx, spec)
	if err != nil {
		return none, nothing, err
	}
	if err := p.pack(ctx); err != nil {
		return none, nothing, err
	}
	all, err := loginsFor(ctx, spec.Registries, p.rendered)
	if err != nil {
		return none, nothing, err
	}
	from, err := b.originOf(ctx, spec)
	if err != nil {
		return none, nothing, err
	}
	defer from.close()
	h := b.handle(spec.ID)
	yes := newConsent(ctx)
	body := p.payload.open(ctx)
	defer func() { _ = body.Close() }()
	vars := b.createVars(ctx, p)
	maps.Copy(vars, imageVars(p.rendered, p.buildBase(), p.keepsImages(), all))
	maps.Copy(vars, from.vars)
	files := createFiles(p.restores(), len(p.rendered.Builds) > 0, spec.Readiness != nil)
	a, err := b.call(ctx, operation{id: spec.ID, files: files, vars: vars, payload: io.MultiReader(body, from.pieces, yes),
		progress: func(line string) {
			yes.progress(line)
			tellImage(ctx, line)
		}})
	if from.pieces.err != nil { // the host was told, and made nothing
		return none, nothing, from.pieces.err
	}
	switch {
	case err == nil:
		proofOf(b.stateDir, b.host).Keep(a.DenyProof)
		engineOf(b.stateDir, b.host).Keep(a.EngineSeen)
		return h, b.observeOne(h, a), nil
	case a.Failure != nil && !a.Failure.Made, a.Failure == nil && !remote.MayHaveStarted(err):
		return none, nothing, err
	}
	if a.Failure == nil && ctx.Err() == nil && !spec.Deadline.After(time.Now()) { // the host ended the create with it
		err = extensions.Errorf(extensions.KindTimeout, "its deadline %s passed before it was ready, and the host ended it: %w",
			spec.Deadline.UTC().Format(time.RFC3339), err).
			WithRemedy("set a longer ttl, or make it start faster")
	}
	return h, nothing, err
}

// tellImage passes on a line of progress about an image: "image SUBJECT|DETAIL".
func tellImage(ctx context.Context, line string) {
	if text, ok := strings.CutPrefix(line, "image "); ok {
		subject, detail, _ := strings.Cut(text, "|")
		extensions.Progress(ctx, subject, detail)
	}
}

// createFiles returns what makes up the operation create, for a sandbox that starts from another, builds images, and has a
// probe. Those that none or few need are half of it, and each create sends and reads all that it has.
func createFiles(restores, builds, probes bool) []string {
	files := []string{"lease", "look", "await", "timer", "folder", "receive", "remove", "memory", "toolbox", "subnet", "tries",
		"rules", "deny", "firewall", "proxy", "images", "pull", "engine", "hold", "kept", "idlecpu"}
	if restores {
		files = append(files, "take", "parts", "restore")
	}
	if builds {
		files = append(files, "build")
	}
	if probes {
		files = append(files, "readiness")
	}
	return append(files, "create")
}

// reaperFiles make up the timer's loop.
var reaperFiles = []string{"lease", "folder", "remove", "memory", "toolbox", "tries", "rules", "deny", "firewall", "proxy", "images",
	"hold", "kept", "idlecpu", "idle", "loop", "reaper"}

// plan polices and renders the stack.
func (b *Backend) plan(ctx context.Context, spec extensions.Spec) (*plan, error) {
	p, err := newPlan(b.settings, spec)
	if err != nil {
		return nil, err
	}
	if p.walls, err = wallsFor(b.host, spec.Network, p.reachIn()); err != nil {
		return nil, err
	}
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	if p.project == nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the stack's files are in the workspace, but there is no workspace").
			WithRemedy("set the input `repo`, or give the profile a bundle")
	}
	p.rendered, err = p.render()
	return p, err
}

// pack assembles what the host receives.
func (p *plan) pack(ctx context.Context) error {
	files := []payloadFile{{"model.json", p.rendered.Model}, {"reaper.sh", []byte(script(reaperFiles...))}}
	services, err := json.Marshal(p.rendered.Services)
	if err != nil {
		return err
	}
	files = append(files, payloadFile{"services.json", services})
	if stack := p.project.Bundle; stack != nil && !p.bundled { // for forks
		if raw := stack.Index(); raw != nil {
			files = append(files, payloadFile{"stack.json", raw})
		}
	}
	base := "workspace/"
	if p.bundled {
		base = "bundle/"
	}
	trees := []payloadTree{}
	var last []payloadFile
	var except string
	if text := p.spec.Instructions; text != "" {
		name := "instructions.md"
		switch {
		case p.access == extensions.AccessNone:
		case p.restores(): // the host puts it into the workspace that it restores
			name = seedFile
		default:
			except = extensions.InstructionsPath
			name = "workspace/" + except
		}
		last = append(last, payloadFile{name, []byte(text)})
	}
	mkdir := folders(base, p.rendered.Mkdir)
	switch src := p.spec.Workspace.Source; {
	case src == nil:
	case !p.restores():
		trees = append(trees, payloadTree{name: "workspace", source: src, except: except})
	case p.spec.FromSandbox != "": // its images are there
		mkdir = nil
	case !p.bundled: // images are built of what was policed
		trees, mkdir = append(trees, payloadTree{name: "stack", source: src}), nil
	}
	if src := p.bundle(); src != nil {
		trees = append(trees, payloadTree{name: "bundle", source: src})
	}
	p.payload = payload{files: files, trees: trees, folders: mkdir, last: last}
	return p.payload.measure(ctx)
}

// folders returns the entries of folders below base, with those around them: what an archiver makes unasked is open to all.
func folders(base string, names []string) []payloadFile {
	var list []payloadFile
	for _, n := range names {
		at := base
		for part := range strings.SplitSeq(strings.Trim(n, "/"), "/") {
			at += part + "/"
			list = append(list, payloadFile{name: at})
		}
	}
	return list
}

// limit is the time of a script that makes something, in seconds. It ends before ctx does, so that the caller still
// hears what was printed last.
func (b *Backend) limit(ctx context.Context) string {
	limit := b.settings.createTimeout
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), 0)
		limit = max(min(limit, left-min(left/4, 2*answerTime)), time.Second)
	}
	return formatInt(int64(limit / time.Second))
}

// createVars are the variables of sh/create.sh.
func (b *Backend) createVars(ctx context.Context, p *plan) map[string]string {
	now := time.Now()
	spec, s := p.spec, b.settings
	remaining, until := hostlease.Terms(now, spec.Deadline)
	vars := map[string]string{
		"account": spec.Account, "generation": formatInt(spec.Generation), "spec_hash": spec.Hash(), "name": spec.Name, "host": b.host.Name,
		"remaining": remaining, "until": until,
		"now_ms":       strconv.FormatInt(now.UnixMilli(), 10),
		"payload_size": formatInt(p.payload.size), "payload_digest": p.payload.digest,
		"networks": strings.Join(p.rendered.Networks, " "), "deny_proved": proofOf(b.stateDir, b.host).Read(), "mode": string(p.walls.mode),
		"engine_seen":     engineOf(b.stateDir, b.host).Read(),
		"service_default": p.rendered.Default, "mount": p.mount(), "access": p.access, "publish": p.publish(),
		"limit": b.limit(ctx), "grace": seconds(p.options.stopGrace),
		"lock_wait": lockWaitLong, "max": "0",
	}
	if port := b.host.SSH.Port; port != 0 {
		vars["sshd_ports"] = "22 " + formatInt(port)
	}
	if c := b.host.Capacity; c != nil && c.MaxSandboxes > 0 {
		vars["max"] = formatInt(c.MaxSandboxes)
	}
	expect := 0
	var long, oneshot, jobs []string
	for _, service := range p.rendered.Services {
		expect += service.Scale
		if service.OneShot {
			oneshot = append(oneshot, service.Name)
		} else if service.LongRunning || service.Name == p.rendered.Default {
			long = append(long, service.Name)
		} else if service.Job {
			jobs = append(jobs, service.Name)
		}
	}
	vars["expect"], vars["long"], vars["oneshot"], vars["jobs"] = strconv.Itoa(expect), strings.Join(long, " "), strings.Join(oneshot,
		" "), strings.Join(jobs, " ")
	vars["joins"], vars["entrypoint"] = joins(p.rendered), ""
	if !spec.Entrypoint.Idle() {
		vars["entrypoint"] = "1"
	}
	vars["idle"] = ""
	if spec.IdleReap > 0 {
		vars["idle"] = centis(time.Duration(spec.IdleReap))
	}
	names := slices.Sorted(maps.Keys(p.rendered.SecretVars))
	for _, variable := range names {
		vars[variable] = spec.Secrets[p.rendered.SecretVars[variable]].Reveal()
	}
	vars["secret_vars"], vars["secret_files"] = strings.Join(names, " "), secretFiles(spec)
	probe, settle := spec.Readiness, settleTime(spec)
	if spec.ProbeLater {
		probe, settle = nil, 0
	}
	vars["settle"] = centis(settle)
	maps.Copy(vars, probeVars(probe))
	maps.Copy(vars, subnetVars(s.subnets, s.subnetSize, containersPerNetwork(p.rendered)))
	maps.Copy(vars, p.originVars())
	maps.Copy(vars, p.walls.vars(spec.ID, p.rendered))
	return vars
}

// secretFiles returns a shell script that writes each secret to a file of its name in the current folder; ""
// if secrets are delivered otherwise.
func secretFiles(spec extensions.Spec) string {
	var b strings.Builder
	if spec.Delivery() == extensions.SecretsFile {
		for _, name := range slices.Sorted(maps.Keys(spec.Secrets)) {
			fmt.Fprintf(&b, "printf %%s %s >%s || exit\n", shtext.Quote(spec.Secrets[name].Reveal()), shtext.Quote(name))
		}
	}
	return b.String()
}

// bundle returns the profile's bundle if the stack, or an image of it, comes from there.
func (p *plan) bundle() (src extensions.WorkspaceSource) {
	if p.bundled {
		return p.spec.Compose.BundleSource
	}
	p.spec.WithImages(func(i extensions.Image) extensions.Image {
		if i.BundleSource != nil {
			src = i.BundleSource
		}
		return i
	})
	return src
}

// keepsImages reports whether the profile keeps built images.
func (p *plan) keepsImages() (keep bool) {
	p.spec.WithImages(func(i extensions.Image) extensions.Image {
		keep = keep || i.Keep
		return i
	})
	return keep
}

// mount returns the workspace's path inside, "" if it is not mounted.
func (p *plan) mount() string {
	if p.access == extensions.AccessNone {
		return ""
	}
	return p.options.workspacePath
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// centis returns d in hundredths of a second, the unit of the host's scripts.
func centis(d time.Duration) string { return formatInt(deadline.Up(d, 10*time.Millisecond)) }
