package docker

import (
	"archive/tar"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Idleness is seen by our loop in the agent's container (sh/watch.sh). Whatever comes from outside is a program there
// whose parent is outside, and writes to ownDir/use at its beginning. The loop tells in ownDir/idle since when nobody has
// used the sandbox, in 1/100 s since 1970, and writes to ownDir/ending just before it ends: what begins then never runs.

// labelIdle is how long a sandbox may be idle, in 1/100 s; "" = for ever.
const labelIdle = "sandboxer.idle"

// Exit codes of our loop.
const (
	expiredCode = 124 // at the deadline
	idleCode    = 120 // nobody used the sandbox for too long
	blindCode   = 121 // what CPU time the programs use is not told, so idleness cannot be seen
)

// markUse precedes every program from outside.
const markUse = `{ read -r sbx_use _ </proc/uptime; echo "$$ $sbx_use" >` + ownDir + `/use; unset sbx_use; ` +
	`while [ -s ` + ownDir + `/ending ]; do sleep 0.1 || sleep 1; done; kill -s USR1 1; } 2>/dev/null; `

// marking returns what precedes a program from outside in a container.
func marking(c container.Summary) string {
	if c.Labels[labelIdle] == "" {
		return ""
	}
	return markUse
}

func centis(d extensions.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(time.Duration(d).Milliseconds()/10, 10)
}

func fromCentis(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * 10 * time.Millisecond
}

// idleFiles are what the loop and programs of any user write.
func idleFiles(names ...string) (all []tar.Header) {
	for _, name := range names {
		all = append(all, tar.Header{Name: strings.TrimPrefix(ownDir, "/") + "/" + name, Mode: 0o666})
	}
	return all
}

// checkIdle refuses an end by idleness where our loop sees only a part of the sandbox.
func checkIdle(spec extensions.Spec) error {
	if spec.IdleReap == 0 || spec.Containers == nil || len(spec.Containers.Services) == 0 {
		return nil
	}
	return extensions.Errorf(extensions.KindUnsupported,
		"the CPU time of a Docker sandbox's services cannot be seen, so idleness cannot be detected").
		At("ttl.idle_reap").WithRemedy("remove ttl.idle_reap, or use ext.compose-ssh")
}

// checkIdleAt is checkIdle for one engine.
func (m *making) checkIdleAt(info system.Info) error {
	if m.plan.spec.IdleReap == 0 || hasCgroups(info) && m.runtime == "" {
		return nil
	}
	return extensions.Errorf(extensions.KindUnsupported,
		"containers there cannot see their CPU time, so idleness cannot be detected").At("ttl.idle_reap").
		WithRemedy("remove ttl.idle_reap, or use an engine with cgroups and runc")
}

// into says how our loop ended a sandbox, if it did.
func (e ended) into(o *extensions.Observation, at standing, labels map[string]string) {
	idle := labels[labelIdle]
	switch {
	case e.code == expiredCode && !e.at.Before(at.deadline.Add(-2*time.Second)):
		o.Phase, o.Reason = extensions.PhaseExpired, "its deadline passed"
	case e.code == idleCode && idle != "" && e.idle:
		o.Phase, o.Idle = extensions.PhaseExpired, true
		o.Reason = "it was idle since " + e.at.Add(-fromCentis(idle)).UTC().Format(time.RFC3339)
	case e.code == blindCode && idle != "":
		o.Reason = "its container cannot see the CPU time of its programs, so idleness cannot be detected"
	case labels[labelEntrypoint] != "":
		if o.Reason = "its entrypoint " + e.why; e.code == 0 {
			o.Phase = extensions.PhaseTerminated
		}
	}
}

// idleSince returns since when a sandbox that runs is idle; zero while it is used, or if no idleness ends it.
func (b *Backend) idleSince(ctx context.Context, agent container.Summary) time.Time {
	if agent.Labels[labelIdle] == "" {
		return time.Time{}
	}
	since := fromCentis(b.ownFile(ctx, agent.ID, "idle"))
	if since <= 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(since)).UTC()
}

// ownFile returns the beginning of a file of our loop, without spaces around it; "" if it cannot be read.
func (b *Backend) ownFile(ctx context.Context, container, name string) string {
	r, err := b.engine.CopyFromContainer(ctx, container, client.CopyFromContainerOptions{SourcePath: ownDir + "/" + name})
	if err != nil {
		return ""
	}
	defer func() { _ = r.Content.Close() }()
	in := tar.NewReader(r.Content)
	if _, err := in.Next(); err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(in, 40))
	return strings.TrimSpace(string(text))
}

// use marks a sandbox as used just now, where no program of it can.
func (b *Backend) use(ctx context.Context, c container.Summary) error {
	if c.Labels[labelIdle] == "" {
		return nil
	}
	return b.put(ctx, c.ID, execwire.NewNonce()+"\n", idleFiles("idle", "use")...)
}

// using keeps a sandbox from being idle until done is called.
func (b *Backend) using(ctx context.Context, c container.Summary) (done func()) {
	if c.Labels[labelIdle] == "" {
		return func() {}
	}
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.transport(c, "")(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", "read -r _"}, Stdin: r, Stdout: io.Discard,
			Stderr: io.Discard})
		_ = r.Close()
	}()
	return func() {
		_ = w.Close()
		<-ended
	}
}
