package composessh

import (
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failed is extensions.Failed: scripts report their failures themselves.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, nil)
}

// failure is a script's refusal. Kind is one of the contract's or of those below, which say who speaks in
// Detail.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	Detail  string `json:"detail"` // the last output of docker or a service
	Made    bool   `json:"made"`   // something may exist
	Health  string `json:"health"` // see health_of in sh/look.sh
}

const (
	failureDocker  = "docker"         // Detail is what docker printed
	failureService = "service_failed" // a service ended; Detail is the end of its log
	failureLate    = "service_late"   // a service is not ready in time; likewise
	failurePaused  = "paused"         // Message is the sandbox's id
)

// Limits on remote text in a message, in characters.
const (
	maxMessage = 1000
	maxDetail  = 2500
	maxHealth  = 600
)

// scriptKinds are the kinds that a script may name itself.
var scriptKinds = []extensions.Kind{extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindNotFound, extensions.KindConflict,
	extensions.KindIndeterminate, extensions.KindExhausted, extensions.KindUnavailable, extensions.KindTimeout, extensions.KindUnsupported,
	extensions.KindInternal, extensions.KindInterrupted, extensions.KindFailed}

// classify turns a script's report into the contract's error. Only this function reads Docker's text.
func (f failure) classify() error {
	message, detail := extensions.Clean(f.Message, maxMessage), extensions.LastLines(f.Detail, maxDetail)
	text := message
	if detail != "" {
		text += ": " + detail
	}
	remedy := extensions.Clean(f.Remedy, maxMessage)
	switch f.Kind {
	case failurePaused:
		return extensions.Paused(extensions.ID(message))
	case failureDocker:
		kind, todo := ofDocker(f.Detail)
		e := extensions.Errorf(kind, "%s", text).WithRemedy("%s", todo)
		if strings.Contains(f.Detail, noAnswer) {
			e.RetryAfter = hungPause
		}
		return e
	case failureService, failureLate:
		kind := extensions.KindFailed
		if f.Kind == failureLate {
			kind = extensions.KindTimeout
		}
		text = message
		whose := "its last lines"
		for _, said := range parseHealth(f.Health) { // there is at most one
			text, whose = text+said, "the service's last lines"
		}
		if detail != "" {
			text += "; " + whose + ": " + detail
		}
		return extensions.Errorf(kind, "%s", text).WithRemedy("correct the service or its health check, and try again")
	}
	kind := extensions.Kind(f.Kind)
	if !slices.Contains(scriptKinds, kind) {
		kind = extensions.KindInternal
	}
	return extensions.Errorf(kind, "%s", text).WithRemedy("%s", remedy)
}

const loginOnHost = "run `docker login` for the image's registry as this login on the host"

// dockerWords are messages of Docker and Compose, in the order to look for them, with their meaning.
var dockerWords = []struct {
	words  []string // any of them, lower case
	kind   extensions.Kind
	remedy string
}{
	{[]string{"permission denied while trying to connect", "dial unix /var/run/docker.sock: connect: permission denied",
		"got permission denied"}, extensions.KindUnauthorized,
		"let the login use Docker: `sudo usermod -aG docker USER` and log in again (that is as good as root on the host), or set up rootless " +
			"Docker"},
	{[]string{"cannot connect to the docker daemon", "is the docker daemon running", "error during connect", "connection refused"},
		extensions.KindUnavailable,
		"start Docker on the host: `sudo systemctl start docker`"},
	{[]string{noAnswer}, extensions.KindUnavailable,
		"find what delays Docker on the host: `systemctl status docker`, its log (journalctl -u docker), a full disk, too little memory"},
	{[]string{"has active endpoints"}, extensions.KindUnavailable,
		"disconnect what others connected to the network (docker network inspect); if there is nothing, Docker counts a container that is " +
			"gone: restart Docker on the host, then destroy the sandbox again"},
	{[]string{"no space left on device", "disk quota exceeded"}, extensions.KindExhausted,
		"free some disk space on the host: `docker system df` shows what Docker holds"},
	{[]string{"pool overlaps with other one", "could not find an available, non-overlapping ipv4 address pool",
		"address pools have been fully subnetted", "networks have overlapping"}, extensions.KindExhausted,
		"give the binding a range that nothing else on the host uses: config.subnets"},
	{[]string{"port is already allocated", "address already in use", "ports are not available"}, extensions.KindConflict,
		"publish another port, or omit the host's port so that Docker chooses one"},
	{[]string{"no matching manifest for", "exec format error", "does not match the specified platform",
		"does not provide the specified platform"}, extensions.KindUnsupported,
		"use an image for the host's architecture and set no other platform; a script needs a first line such as #!/bin/sh"},
	{[]string{"unknown runtime specified", "invalid runtime name"}, extensions.KindUnsupported,
		"install the runtime on the host, or drop the service's runtime"},
	{[]string{"requires docker engine", "require docker engine", "requires api version"}, extensions.KindUnsupported,
		"remove the feature that needs a newer Docker from the service, or update Docker on the host"},
	{[]string{"hook exited with status"}, extensions.KindFailed, "correct the service's post_start"},
	// Faults of the stack and its images.
	{[]string{": exec: \"", "executable file not found", "no command specified"}, extensions.KindInvalid,
		"check the service's command and entrypoint: the image lacks this program, or cannot run it"},
	{[]string{"unable to find group", "unable to find user", "no matching entries in", "uids and gids must be in range"},
		extensions.KindInvalid,
		"set user and group_add to users and groups of the image, or to numbers"},
	{[]string{"cannot be mounted because it is", "error mounting \"/", "error mounting \"tmpfs\" to rootfs at \"/proc",
		"error mounting \"tmpfs\" to rootfs at \"/sys", "trying to mount a directory onto a file",
		"destination can't be '/'", "invalid mount config", "invalid mount path", "invalid volume specification", "duplicate mount point",
		"is not directory", "is not a directory", ": not a directory",
		"cannot mkdir:", "chdir to cwd", "read-only file system"}, extensions.KindInvalid,
		"check the service's working_dir and what it mounts where: nothing on / or below /proc and /sys, folders on folders, files on files"},
	{[]string{"error gathering device information"}, extensions.KindInvalid, "remove the device from the service: the host does not have it"},
	{[]string{"/proc/sys/", "sysctl"}, extensions.KindInvalid, "check the service's sysctls, and that it mounts nothing on /proc"},
	{[]string{"error setting rlimit"}, extensions.KindInvalid,
		"check the service's ulimits: soft is at most hard, and hard at most what the host allows"},
	{[]string{"minimum memory", "maximum memory", "memory swappiness", "range of cpus", "requested cpus", "requested memory nodes",
		"for cpuset", "allowed cpu-shares", "shm size", "pids limit"}, extensions.KindInvalid,
		"correct the service's limits as Docker reports"},
	{[]string{"has no healthcheck configured"}, extensions.KindInvalid,
		"add a healthcheck to the service that others wait for, or let them depend on service_started"},
	{[]string{"in healthcheck cannot", "healthcheck.start_interval"}, extensions.KindInvalid, "correct the service's healthcheck"},
	{[]string{"invalid signal", "unknown capability", "invalid capadd", "invalid capdrop", "sethostname:", "invalid hostname", "invalid value",
		"invalid argument: unknown"}, extensions.KindInvalid,
		"correct the service's field that Docker reports"},
	{[]string{"invalid reference format"}, extensions.KindInvalid, "correct the image's name and tag"},
	// Before "access denied", which engines with containerd's image store say of both.
	{[]string{"no basic auth credentials", "401 unauthorized"}, extensions.KindUnauthorized, loginOnHost},
	// Another place may have the image.
	{[]string{"pull access denied", "manifest unknown", "manifest for", "no such image", "repository does not exist"},
		extensions.KindUnsupported,
		"check the image's name and tag; for a private registry run `docker login` as this login on the host"},
	{[]string{"unauthorized: ", "authentication required", "denied: "}, extensions.KindUnauthorized, loginOnHost},
	{[]string{"toomanyrequests", "too many requests"}, extensions.KindUnavailable,
		"the registry limits pulls: log in to it on the host, or try later"},
	{[]string{"tls handshake timeout", "no such host", "i/o timeout", "client.timeout exceeded", "temporary failure in name resolution",
		"network is unreachable"}, extensions.KindUnavailable,
		"check that the host can reach the image's registry"},
	{[]string{"cannot allocate memory", "out of memory", "not enough memory"}, extensions.KindExhausted,
		"free some memory on the host, or request less"},
	{[]string{"could not select device driver", "nvidia-container"}, extensions.KindUnsupported,
		"install the GPU's container toolkit on the host"},
	{[]string{"no such file or directory: unknown"}, extensions.KindInvalid, "check the service's command: the image lacks this program"},
}

// noAnswer is what docker_soon of sh/list.sh says. A hanging Docker costs its full timeout each time, so it
// is not asked again for hungPause.
const (
	noAnswer  = "gave no answer within"
	hungPause = time.Minute
)

func ofDocker(text string) (extensions.Kind, string) {
	text = strings.ToLower(text)
	for _, d := range dockerWords {
		for _, w := range d.words {
			if strings.Contains(text, w) {
				return d.kind, d.remedy
			}
		}
	}
	return extensions.KindInternal, "see Docker's message; `docker info` and its log on the host (journalctl -u docker) show more"
}
