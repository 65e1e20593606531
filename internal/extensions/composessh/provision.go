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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// Provision implements extensions.Backend: one exec, which ends when the stack
// is ready. The record and the timer are there before a container is.
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
	p, err := b.plan(ctx, spec)
	if err != nil {
		return none, nothing, err
	}
	if err := p.pack(ctx); err != nil {
		return none, nothing, err
	}
	h := b.handle(spec.ID)
	yes := newConsent(ctx)
	body := p.payload.open(ctx)
	defer func() { _ = body.Close() }()
	a, err := b.call(ctx, operation{id: spec.ID, files: createFiles, vars: b.createVars(ctx, p),
		payload: io.MultiReader(body, yes), progress: yes.progress})
	switch {
	case err == nil:
		keepProof(b.stateDir, b.host, a.DenyProof)
		return h, b.observeOne(h, a), nil
	case a.Failure != nil && !a.Failure.Made, a.Failure == nil && !remote.MayHaveStarted(err):
		return none, nothing, err
	}
	if a.Failure == nil && ctx.Err() == nil && !spec.Deadline.After(time.Now()) { // who made it was ended with it
		err = extensions.Errorf(extensions.KindTimeout, "its time was up at %s, before it was ready, and the host has ended it: %w", spec.Deadline.UTC().Format(time.RFC3339), err).
			WithRemedy("give it a longer ttl, or make it ready sooner")
	}
	return h, nothing, err
}

// createFiles are what the operation create is put together from.
var createFiles = []string{"lease", "look", "await", "timer", "remove", "memory", "toolbox", "subnet", "deny", "firewall", "proxy", "images", "pull", "build", "readiness", "engine", "create"}

// reaperFiles are what the timer's loop is put together from.
var reaperFiles = []string{"lease", "remove", "memory", "toolbox", "deny", "firewall", "proxy", "images", "reaper"}

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
		return nil, extensions.Errorf(extensions.KindInvalid, "the stack's files are in the workspace, and there is none").
			WithRemedy("set the input `repo`, or give the profile a bundle")
	}
	p.rendered, err = p.render()
	return p, err
}

// pack puts together what the host gets.
func (p *plan) pack(ctx context.Context) error {
	files := []payloadFile{{"model.json", p.rendered.Model}, {"reaper.sh", []byte(script(reaperFiles...))}}
	services, err := json.Marshal(p.rendered.Services)
	if err != nil {
		return err
	}
	files = append(files, payloadFile{"services.json", services})
	base := "workspace/"
	if p.bundled {
		base = "bundle/"
	}
	trees := []payloadTree{}
	var last []payloadFile
	var except string
	if text := p.spec.Instructions; text != "" {
		name := "instructions.md"
		if p.access != extensions.AccessNone {
			except = extensions.InstructionsPath
			name = "workspace/" + except
		}
		last = append(last, payloadFile{name, []byte(text)})
	}
	if src := p.spec.Workspace.Source; src != nil {
		trees = append(trees, payloadTree{name: "workspace", source: src, except: except})
	}
	if p.bundled {
		trees = append(trees, payloadTree{name: "bundle", source: p.spec.Compose.BundleSource})
	}
	p.payload = payload{files: files, trees: trees, folders: folders(base, p.rendered.Mkdir), last: last}
	return p.payload.measure(ctx)
}

func folders(base string, names []string) []payloadFile {
	list := make([]payloadFile, 0, len(names))
	for _, n := range names {
		list = append(list, payloadFile{name: base + strings.Trim(n, "/") + "/"})
	}
	return list
}

// createVars are the variables of sh/create.sh. The script ends before ctx does,
// so that somebody hears what a service printed last.
func (b *Backend) createVars(ctx context.Context, p *plan) map[string]string {
	now := time.Now()
	limit := b.settings.createTimeout
	if end, ok := ctx.Deadline(); ok {
		left := max(end.Sub(now), 0)
		limit = max(min(limit, left-min(left/4, 2*answerTime)), time.Second)
	}
	spec, s := p.spec, b.settings
	vars := map[string]string{
		"account": spec.Account, "generation": formatInt(spec.Generation), "spec_hash": spec.Hash(), "name": spec.Name, "host": b.host.Name,
		"remaining": centis(spec.Deadline.Sub(now)), "until": spec.Deadline.UTC().Format(time.RFC3339Nano), "now_ms": strconv.FormatInt(now.UnixMilli(), 10),
		"payload_size": formatInt(p.payload.size), "payload_digest": p.payload.digest,
		"networks": strings.Join(p.rendered.Networks, " "), "deny_proved": denyProved(b.stateDir, b.host), "mode": string(p.walls.mode), "service_default": p.rendered.Default, "mount": p.mount(), "access": p.access, "publish": p.publish(),
		"limit": formatInt(int64(limit / time.Second)), "grace": seconds(p.options.stopGrace),
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
	vars["expect"], vars["long"], vars["oneshot"], vars["jobs"] = strconv.Itoa(expect), strings.Join(long, " "), strings.Join(oneshot, " "), strings.Join(jobs, " ")
	vars["joins"] = joins(p.rendered)
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
	maps.Copy(vars, imageVars(p.rendered, p.bundled, p.keepsImages()))
	maps.Copy(vars, p.walls.vars(spec.ID, p.rendered))
	return vars
}

// secretFiles is the text of a shell that writes each secret to a file of its
// name in the folder it is in; "" where they come otherwise.
func secretFiles(spec extensions.Spec) string {
	var b strings.Builder
	if spec.Delivery() == extensions.SecretsFile {
		for _, name := range slices.Sorted(maps.Keys(spec.Secrets)) {
			fmt.Fprintf(&b, "printf %%s %s >%s || exit\n", remote.Quote(spec.Secrets[name].Reveal()), remote.Quote(name))
		}
	}
	return b.String()
}

// keepsImages reports whether the profile wants what is built to stay.
func (p *plan) keepsImages() bool {
	if i := p.spec.Image; i != nil && i.Keep {
		return true
	}
	if c := p.spec.Containers; c != nil {
		for _, service := range c.Services {
			if service.Image.Keep {
				return true
			}
		}
		return c.Agent.Image.Keep
	}
	return false
}

// mount is where the workspace is inside, "" where it is nowhere.
func (p *plan) mount() string {
	if p.access == extensions.AccessNone {
		return ""
	}
	return p.options.workspacePath
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// centis is d in hundredths of a second, the unit of the host's scripts.
func centis(d time.Duration) string { return formatInt(int64(d / (10 * time.Millisecond))) }
