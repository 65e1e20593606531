package compose

import (
	"fmt"
	"slices"
	"strings"
)

// Rules is every reason for which a stack can be refused, sorted by id.
func Rules() []Rule { return slices.Clone(rules) }

// RuleTable is Rules as a Markdown table, for the documentation.
func RuleTable() string {
	var b strings.Builder
	b.WriteString("| Rule | Refuses | Why | A profile may allow it by |\n|---|---|---|---|\n")
	for _, r := range rules {
		how := "—"
		if r.Grantable {
			how = "`" + strings.Trim(strings.TrimPrefix(r.How(), "options.ext.compose-ssh.allow: "), `[]"`) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, r.Summary, r.Reason, how)
	}
	return b.String()
}

// ruleByID finds a rule; a defect in the table shows as a rule nobody can grant.
func ruleByID(id string) Rule {
	for _, r := range rules {
		if r.ID == id {
			return r
		}
	}
	return Rule{ID: id}
}

var rules = []Rule{
	{ID: "annotations", Summary: "annotations of containers", Reason: "some runtimes take orders from them"},
	{ID: "bind-outside", Summary: "binds of anything outside the bundle", Reason: "they open the owner's files to the stack"},
	{ID: "bind-propagation", Summary: "mount propagation other than private", Reason: "mounts of the host and the container would reach each other"},
	{ID: "blkio", Summary: "block device limits", Reason: "they name devices of the host"},
	{ID: "build-cache", Summary: "build cache imported from or exported to elsewhere", Reason: "it reads and writes outside the bundle"},
	{ID: "build-context", Summary: "additional build contexts", Reason: "builds see one folder of the bundle only"},
	{ID: "build-fetch", Summary: "ADD of URLs and repositories, and images taken by --from, where builds have no network", Reason: "the engine would fetch them, from the host's own services too; the option build_network: default lifts it"},
	{ID: "build-frontend", Summary: "syntax and check directives of Dockerfiles; the official syntax passes where builds have a network", Reason: "they make an image of somebody else's the builder"},
	{ID: "build-label", Summary: "labels of Dockerfiles beginning with sandboxer. or com.docker., and variables in a label's name", Reason: "they decide what belongs to whom and what is deleted"},
	{ID: "build-mount", Summary: "options of RUN: mounts, networks, security", Reason: "only BuildKit has them, whose steps nothing bounds; images are built by the classic builder"},
	{ID: "build-network", Summary: "builds on another network than the default or none", Reason: "they reach the host's own services"},
	{ID: "build-outside", Summary: "build contexts and Dockerfiles outside the bundle", Reason: "they read the owner's files"},
	{ID: "build-privileged", Summary: "privileged builds and entitlements", Reason: "they are root on the host"},
	{ID: "build-remote", Summary: "build contexts fetched from elsewhere", Reason: "what is built must be in the bundle"},
	{ID: "build-secret", Summary: "secrets of builds", Reason: "the classic builder has none and would build without them"},
	{ID: "build-ssh", Summary: "SSH agents and keys for builds", Reason: "they lend the owner's identity"},
	{ID: "build-tags", Summary: "extra image tags", Reason: "they could replace the owner's images"},
	{ID: "build-target", Summary: "build targets that are no names", Reason: "they are an argument of a command on the host"},
	{ID: "cap-add", Summary: "capabilities beyond Docker's defaults", Grantable: true, Argument: "CAPABILITY",
		Reason: "each widens what the container may do to the kernel it shares; those that amount to root on the host cannot be granted, and NET_ADMIN and NET_RAW not under network default deny"},
	{ID: "cgroup-parent", Summary: "a parent cgroup", Reason: "the stack would leave the limits it is under"},
	{ID: "config-outside", Summary: "configs from files outside the bundle", Reason: "they read the owner's files"},
	{ID: "consistency", Summary: "a stack that contradicts itself", Reason: "Compose would refuse it"},
	{ID: "container-name", Summary: "container names that are no names", Reason: "names are labels and host names too"},
	{ID: "cpu-realtime", Summary: "real-time scheduling", Reason: "it can starve the host"},
	{ID: "credential-spec", Summary: "credential specs", Reason: "they read the host's credentials"},
	{ID: "deploy-swarm", Summary: "deploy modes, placement and resources of Swarm", Reason: "there is no Swarm here, and ignoring them would be something else than asked"},
	{ID: "devices", Summary: "devices and device cgroup rules", Grantable: true, Argument: "/dev/PATH",
		Reason: "they reach the host's hardware; only /dev/fuse, /dev/kvm, /dev/net/tun and /dev/dri can be granted"},
	{ID: "dns", Summary: "name servers, search domains and resolver options", Grantable: true,
		Reason: "names are resolved as the network policy says; under network default deny it cannot be granted"},
	{ID: "docker-socket", Summary: "the Docker socket or API", Reason: "it is root on the host"},
	{ID: "dockerfile", Summary: "Dockerfiles that can be read in two ways", Reason: "unknown instructions and options, here-documents, another escape character and bases that only the build would know hide what it does"},
	{ID: "driver-opts", Summary: "options of volume, network, secret and template drivers", Reason: "they bind folders of the host and change its network"},
	{ID: "env-file-outside", Summary: "env files outside the bundle", Reason: "they read the owner's files"},
	{ID: "extends-outside", Summary: "extends from a file outside the bundle", Reason: "it reads the owner's files"},
	{ID: "extends-remote", Summary: "extends from a file fetched from elsewhere", Reason: "the stack must be in the bundle"},
	{ID: "external-config", Summary: "configs that exist already", Reason: "they belong to somebody else"},
	{ID: "external-links", Summary: "links to containers of other projects", Reason: "they belong to somebody else"},
	{ID: "external-network", Summary: "networks that exist already", Reason: "they belong to somebody else, and no default deny holds on them"},
	{ID: "external-secret", Summary: "secrets that exist already", Reason: "they belong to somebody else"},
	{ID: "external-volume", Summary: "volumes that exist already", Reason: "they belong to somebody else"},
	{ID: "extra-hosts", Summary: "host entries that are no IP address", Reason: "the engine reads them as addresses of the host"},
	{ID: "file-missing", Summary: "files the stack names and the bundle lacks", Reason: "nothing else is read"},
	{ID: "gpus", Summary: "accelerators and other reserved devices", Grantable: true, Reason: "they reach the host's hardware"},
	{ID: "hook-privileged", Summary: "privileged lifecycle hooks", Reason: "they are root on the host"},
	{ID: "host-cgroup", Summary: "the host's cgroup namespace", Reason: "it shows the host's cgroups"},
	{ID: "host-gateway", Summary: "the host's own address as an extra host", Grantable: true,
		Reason: "it leads to every service of the host; under network default deny it cannot be granted"},
	{ID: "host-ipc", Summary: "an IPC namespace other than the container's own", Reason: "it reaches shared memory of the host"},
	{ID: "host-network", Summary: "the host's network", Reason: "it is every interface and every local service of the host"},
	{ID: "host-pid", Summary: "a PID namespace other than the container's own", Reason: "it shows and signals processes of the host"},
	{ID: "host-userns", Summary: "a user namespace of one's own choice", Reason: "it undoes the mapping of root"},
	{ID: "host-uts", Summary: "the host's UTS namespace", Reason: "it renames the host"},
	{ID: "image-name", Summary: "image references that are none", Reason: "they are an argument of a command on the host"},
	{ID: "include-outside", Summary: "includes outside the bundle", Reason: "they read the owner's files"},
	{ID: "include-remote", Summary: "includes fetched from elsewhere", Reason: "the stack must be in the bundle"},
	{ID: "interpolate-environment", Summary: "variables that neither the bundle nor the profile sets", Grantable: true, Argument: "VARIABLE",
		Reason: "the environment of whoever applies is never read; granted, the variable is empty"},
	{ID: "interpolate-secret", Summary: "secrets in the text of a stack", Reason: "they would be written to files and labels; list the name under environment without a value instead"},
	{ID: "ip-address", Summary: "addresses of one's own choice", Reason: "subnets are chosen per sandbox; use service names"},
	{ID: "ipam", Summary: "subnets and IPAM of one's own choice", Reason: "subnets are chosen per sandbox, so that two never collide"},
	{ID: "jobs", Summary: "jobs", Reason: "nothing here would bound the containers they start"},
	{ID: "label-file-outside", Summary: "label files outside the bundle", Reason: "they read the owner's files"},
	{ID: "label-reserved", Summary: "labels beginning with sandboxer. or com.docker.", Reason: "they decide what belongs to whom and what is deleted"},
	{ID: "links", Summary: "links to what is no service of the stack", Reason: "they reach containers of somebody else"},
	{ID: "logging", Summary: "log drivers and options other than bounded local files", Reason: "logs would leave the sandbox or fill the disk"},
	{ID: "mac-address", Summary: "MAC addresses", Reason: "they can be somebody else's"},
	{ID: "models", Summary: "models", Reason: "they are run by the host, outside the sandbox"},
	{ID: "mount-path", Summary: "mounts whose source or target is no plain path", Reason: "Docker reads a colon as the end of a path and what follows as options"},
	{ID: "namespace-container", Summary: "namespaces of other containers", Reason: "the container may belong to anybody"},
	{ID: "namespace-service", Summary: "PID and IPC namespaces shared between services", Grantable: true, Reason: "one service then sees and stops the other"},
	{ID: "network-driver", Summary: "network drivers other than bridge", Reason: "default deny is proved for bridges only"},
	{ID: "network-mode", Summary: "network modes other than none", Reason: "the container would be outside the sandbox's networks"},
	{ID: "oom", Summary: "switching off or lowering the OOM killer", Reason: "the host would pay for the sandbox's memory"},
	{ID: "path-interpolated", Summary: "variables in the paths of include and extends", Reason: "which files are read must be plain from the text"},
	{ID: "path-outside", Summary: "compose and env files named outside the bundle", Reason: "they read the owner's files"},
	{ID: "platform", Summary: "platforms that are none", Reason: "they are an argument of a command on the host"},
	{ID: "port-public", Summary: "ports published on other addresses than loopback", Grantable: true, Argument: "PORT",
		Reason: "they are open to everybody who reaches the host; under network default deny it cannot be granted"},
	{ID: "port-range", Summary: "ports that are none, or more than 100 in one service", Reason: "each takes a process and a port of the host"},
	{ID: "ports-under-deny", Summary: "published ports under network default deny", Reason: "such a network publishes nothing; forward the port instead, set publish to none, or let the host allow its firewall (allow_firewall)"},
	{ID: "pre-start", Summary: "pre_start containers", Reason: "nothing here would bound them; use a service that others depend on"},
	{ID: "privileged", Summary: "privileged containers", Reason: "they are root on the host"},
	{ID: "provider", Summary: "services run by a provider", Reason: "they are programs of the host, outside the sandbox"},
	{ID: "reserved-image", Summary: "images named sandboxer/… or sandboxer.invalid/…", Reason: "images that are made on the host have these names"},
	{ID: "reserved-name", Summary: "names beginning with sandboxer- or sandboxer.", Reason: "what is added to a stack has these names; a proxy is among it, and the network it leads out by"},
	{ID: "restart", Summary: "restart policies nobody knows", Reason: "they are read differently by versions of Compose; of those that are known none is kept, since nothing may start again after its time"},
	{ID: "runtime", Summary: "container runtimes of one's own choice", Grantable: true, Argument: "NAME", Reason: "a runtime is a program that the host runs as root"},
	{ID: "scale", Summary: "more than 20 replicas of one service", Reason: "the host is shared"},
	{ID: "schema", Summary: "what Compose's own schema refuses", Reason: "the file is no valid Compose file"},
	{ID: "secret-outside", Summary: "secrets from files outside the bundle", Reason: "they read the owner's files"},
	{ID: "security-opt", Summary: "security options other than no-new-privileges", Reason: "they take away the walls of the container"},
	{ID: "shm-size", Summary: "shared memory above 8 GiB", Reason: "the host is shared"},
	{ID: "stop-grace", Summary: "stop grace periods above 10 minutes", Reason: "a sandbox must end when its time is up"},
	{ID: "storage-opt", Summary: "options of the storage driver", Reason: "they are orders to the host's engine"},
	{ID: "sysctls", Summary: "kernel parameters beyond a short list", Grantable: true, Argument: "NAME",
		Reason: "they change the kernel the container shares; those of the network cannot be granted under network default deny"},
	{ID: "tmpfs", Summary: "tmpfs options beyond size, mode, owner and the restricting flags", Reason: "others open devices"},
	{ID: "too-large", Summary: "files above 1 MiB and stacks that expand beyond bounds", Reason: "reading a stack must end"},
	{ID: "ulimits", Summary: "limits beyond bounds, and those of scheduling", Grantable: true, Argument: "NAME", Reason: "the host is shared; rtprio, rttime and nice cannot be granted"},
	{ID: "unknown-field", Summary: "anything in the model that is not known to be harmless", Reason: "what is not known is refused"},
	{ID: "user", Summary: "users and groups that are no names", Reason: "they are read differently by versions of Docker"},
	{ID: "volume-driver", Summary: "volume drivers other than local", Reason: "they are programs of the host"},
	{ID: "volume-type", Summary: "mounts other than binds, volumes and tmpfs", Reason: "they reach what the sandbox does not own"},
	{ID: "volumes-from", Summary: "volumes of containers that are no service of the stack", Reason: "the container may belong to anybody"},
	{ID: "windows-only", Summary: "settings of Windows containers", Reason: "there are none here"},
	{ID: "yaml", Summary: "YAML that can be read in two ways", Reason: "duplicate keys, several documents, unknown tags and keys that are no text hide what a file says"},
}
