package docker

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Labels beside those of every sandbox. Labels never change, so what does is in the name of the agent's
// container: "ID.gGENERATION.DEADLINE", and "ID.new" until the sandbox is complete.
const (
	labelHandler = "sandboxer.handler"
	labelService = "sandboxer.service"
	labelBinding = "sandboxer.binding"
	labelShared  = "sandboxer.shared"  // its processes are in the agent's namespace, without our loop
	labelWorkDir = "sandboxer.workdir" // of the agent
	labelAccess  = "sandboxer.access"  // of the agent to its workspace
	labelImage   = "sandboxer.image"   // what the image is configured to run, as JSON
	// labelEntrypoint says that the end of what the agent runs is the sandbox's.
	labelEntrypoint = "sandboxer.entrypoint"

	nameNew     = ".new"
	nameNetwork = ".net"
	nameWire    = ".wire" // of the network below it
	nameKeeper  = ".keep" // of the container that keeps the wire up
	nameTrial   = ".try"  // of the containers that try its network
	nameService = ".s-"
	nameReader  = ".read" // of a container that never runs

	// nameRoom is the name of a container that is there while a create counts the engine's sandboxes.
	nameRoom = "sandboxer.room"
)

// ownDir holds what is ours in a container.
const ownDir = "/.sandboxer"

// ours reports whether an object's name is one that we give to the sandbox's. An image can give any label to a
// container; only its maker names it.
func ours(id extensions.ID, name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "/"), string(id)+".")
}

// standing is what the name of a complete sandbox's agent says.
type standing struct {
	generation int64
	deadline   time.Time
	since      time.Time // of the last pause or resume; zero = none
	hold       hold
}

// hold says for whom a sandbox is being copied.
type hold struct {
	key  string // of the copy; "" = nobody
	thaw bool   // its containers are frozen for that, and run on afterwards
}

const (
	holdThaw  = "k-"
	holdLeave = "l-"
)

func (s standing) name(id extensions.ID) string {
	name := fmt.Sprintf("%s.g%d.%s", id, s.generation, stamp(s.deadline))
	if !s.since.IsZero() {
		name += "." + stamp(s.since)
	}
	switch {
	case s.hold.thaw:
		name += "." + holdThaw + s.hold.key
	case s.hold.key != "":
		name += "." + holdLeave + s.hold.key
	}
	return name
}

// parseStanding reads the name of an agent's container; false if the sandbox is not complete.
func parseStanding(id extensions.ID, name string) (s standing, ok bool) {
	rest, ok := strings.CutPrefix(name, string(id)+".g")
	parts := strings.Split(rest, ".")
	if n := len(parts) - 1; n > 1 {
		key, thaw := strings.CutPrefix(parts[n], holdThaw)
		key, leave := strings.CutPrefix(key, holdLeave)
		if thaw || leave {
			s.hold, parts = hold{key, thaw}, parts[:n]
		}
	}
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return s, false
	}
	var bad, worse error
	s.generation, bad = strconv.ParseInt(parts[0], 10, 64)
	s.deadline, worse = parseTime(parts[1])
	if len(parts) == 3 {
		s.since, _ = parseTime(parts[2])
	}
	return s, bad == nil && worse == nil
}

// unlabeled has all labels of ours without a value: a container would have the values that its image gives them.
func unlabeled() map[string]string {
	all := map[string]string{}
	for _, name := range []string{labelHandler, labelService, labelBinding, labelShared, labelWorkDir, labelAccess, labelImage,
		labelEntrypoint, labelIdle, labelImages, labelBuild, labelLayer, labelCopy, labelName, labelPath} {
		all[name] = ""
	}
	return all
}

// labels returns the labels of one object of the sandbox.
func (b *Backend) labels(spec extensions.Spec, service string) map[string]string {
	all := map[string]string{
		extensions.LabelID: string(spec.ID), extensions.LabelAccount: spec.Account,
		extensions.LabelGeneration: strconv.FormatInt(spec.Generation, 10), extensions.LabelSpecHash: spec.Hash(),
		extensions.LabelInitialExpires: spec.Deadline.UTC().Format(time.RFC3339),
	}
	maps.Copy(all, spec.Labels)
	all[labelHandler], all[labelBinding], all[labelService] = Handler, b.settings.binding, service
	return all
}

// having filters by labels, "name=value" or "name".
func having(labels ...string) client.Filters {
	return make(client.Filters).Add("label", append(labels, labelHandler+"="+Handler)...)
}

func havingID(id extensions.ID) client.Filters { return having(extensions.LabelID + "=" + string(id)) }

// stamp and parseTime carry microseconds: Go's layouts know fractions after a point only.
func stamp(t time.Time) string {
	return strings.Replace(t.UTC().Format("20060102T150405.000000Z"), ".", "-", 1)
}

func parseTime(text string) (time.Time, error) {
	return time.Parse("20060102T150405.000000Z", strings.Replace(text, "-", ".", 1))
}
