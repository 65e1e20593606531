package compose

import (
	"maps"
	"reflect"

	"github.com/compose-spec/compose-go/v2/types"
)

// What a field may be: harmless whatever it says, judged by what is below it, refused by a rule, or judged by
// its own check.
var (
	fine   check = func(*policer, string, reflect.Value) {}
	walked check = (*policer).walk
)

func never(rule string) check {
	return func(p *policer, where string, v reflect.Value) {
		p.found.refuse(rule, where, "it is set to "+quoted(brief(v)))
	}
}

// grantable refuses unless the profile grants the bare rule. It judges what is below in either case.
func grantable(rule string) check {
	return func(p *policer, where string, v reflect.Value) {
		p.found.refuseUnless(rule, "", where, "it is set to "+quoted(brief(v)))
		p.walk(where, v)
	}
}

type class = map[string]check

// fields classifies every field of every type of the model. It is the allowlist.
var fields = joined(projectFields(), serviceFields(), deployFields(), buildFields(),
	map[reflect.Type]class{reflect.TypeFor[types.ContainerSpec](): containerFields()})

func joined(parts ...map[reflect.Type]class) map[reflect.Type]class {
	out := map[reflect.Type]class{}
	for _, part := range parts {
		maps.Copy(out, part)
	}
	return out
}

func projectFields() map[reflect.Type]class {
	file := func(kind string) class {
		return class{
			"Name": fine, "Environment": fine, "Content": fine, "Labels": labels, "Extensions": fine,
			"File": bundleFile(kind + "-outside"), "External": never("external-" + kind),
			"Driver": never("driver-opts"), "DriverOpts": never("driver-opts"), "TemplateDriver": never("driver-opts"),
		}
	}
	return map[reflect.Type]class{
		reflect.TypeFor[types.Project](): {
			"Name": fine, "WorkingDir": fine, "ComposeFiles": fine, "Environment": fine, "Profiles": fine, "Extensions": fine,
			"Services": keyed, "DisabledServices": disabled, "Networks": keyed, "Volumes": keyed, "Secrets": keyed, "Configs": keyed,
			"Jobs": never("jobs"), "DisabledJobs": never("jobs"), "Models": never("models"),
		},
		reflect.TypeFor[types.NetworkConfig](): {
			"Name": fine, "Internal": fine, "Attachable": fine, "EnableIPv4": fine, "EnableIPv6": fine, "Extensions": fine,
			"Labels": labels, "CustomLabels": labels, "Driver": oneOf("network-driver", "bridge"), "DriverOpts": never("driver-opts"),
			"Ipam": walked, "External": never("external-network"),
		},
		reflect.TypeFor[types.IPAMConfig](): {
			"Driver": oneOf("ipam", "default"), "Config": never("ipam"), "Options": never("ipam"), "Extensions": fine,
		},
		reflect.TypeFor[types.VolumeConfig](): {
			"Name": fine, "Extensions": fine, "Labels": labels, "CustomLabels": labels,
			"Driver": oneOf("volume-driver", "local"), "DriverOpts": never("driver-opts"), "External": never("external-volume"),
		},
		reflect.TypeFor[types.SecretConfig]():    file("secret"),
		reflect.TypeFor[types.ConfigObjConfig](): file("config"),
	}
}

func serviceFields() map[reflect.Type]class {
	hook := class{"Command": fine, "User": matching("user", userPattern), "Privileged": never("hook-privileged"), "WorkingDir": fine,
		"Environment": fine, "Extensions": fine}
	mounted := class{"Source": fine, "Target": fine, "UID": fine, "GID": fine, "Mode": fine, "Extensions": fine}
	return map[reflect.Type]class{
		reflect.TypeFor[types.ServiceConfig](): {
			"Name": fine, "Profiles": fine, "Attach": fine, "Extensions": fine, "Deploy": walked, "Scale": replicas,
			"Restart": matching("restart", restartPattern), "ContainerName": own(matching("container-name", namePattern)), "Links": links,
			"ContainerSpec": walked, "WorkloadSpec": walked,
			"PostStart": walked, "PreStop": walked, "PreStart": never("pre-start"), "Provider": never("provider"),
			"ExternalLinks": never("external-links"), "Net": never("network-mode"),
		},
		reflect.TypeFor[types.WorkloadSpec](): {
			"Build": build, "DependsOn": walked, "Expose": portCount, "HealthCheck": walked, "Ports": ports, "StdinOpen": fine, "Tty": fine,
		},
		reflect.TypeFor[types.ServiceHook]():       hook,
		reflect.TypeFor[types.ServiceDependency](): {"Condition": fine, "Restart": fine, "Required": fine, "Extensions": fine},
		reflect.TypeFor[types.HealthCheckConfig](): {
			"Test": fine, "Timeout": fine, "Interval": fine, "Retries": fine, "StartPeriod": fine, "StartInterval": fine, "Disable": fine,
			"Extensions": fine,
		},
		reflect.TypeFor[types.ServiceConfigObjConfig](): mounted,
		reflect.TypeFor[types.ServiceSecretConfig]():    mounted,
		reflect.TypeFor[types.ServiceNetworkConfig](): {
			"Aliases": ownAll, "GatewayPriority": fine, "InterfaceName": matching("schema", interfacePattern), "Priority": fine,
			"UseServiceNameAlias": fine, "Extensions": fine,
			"DriverOpts": never("driver-opts"), "Ipv4Address": never("ip-address"), "Ipv6Address": never("ip-address"),
			"LinkLocalIPs": never("ip-address"), "MacAddress": never("mac-address"),
		},
		reflect.TypeFor[types.LoggingConfig](): {"Driver": fine, "Options": fine, "Extensions": fine},
		reflect.TypeFor[types.ServicePortConfig](): {
			"Name": fine, "Mode": fine, "HostIP": fine, "Target": fine, "Published": fine, "Protocol": fine, "AppProtocol": fine, "Extensions": fine,
		},
		reflect.TypeFor[types.UlimitsConfig](): {"Single": fine, "Soft": fine, "Hard": fine, "Extensions": fine},
		reflect.TypeFor[types.DeviceMapping](): {"Source": fine, "Target": fine, "Permissions": fine, "Extensions": fine},
		reflect.TypeFor[types.DeviceRequest](): {"Capabilities": fine, "Driver": noCDI, "Count": fine, "IDs": fine, "Options": never("gpus")},
		reflect.TypeFor[types.ServiceVolumeConfig](): {
			"Type": fine, "Source": fine, "Target": fine, "ReadOnly": fine, "Consistency": fine, "Extensions": fine,
			"Bind": walked, "Volume": walked, "Tmpfs": walked, "Image": never("volume-type"),
		},
		reflect.TypeFor[types.ServiceVolumeBind](): {
			"SELinux": oneOf("bind-propagation", "z", "Z"), "CreateHostPath": fine, "Extensions": fine,
			"Propagation": oneOf("bind-propagation", "private", "rprivate"), "Recursive": oneOf("bind-propagation", "disabled", "enabled"),
		},
		reflect.TypeFor[types.ServiceVolumeVolume](): {"Labels": labels, "NoCopy": fine, "Subpath": subpath, "Extensions": fine},
		reflect.TypeFor[types.ServiceVolumeTmpfs]():  {"Size": fine, "Mode": fine, "Extensions": fine},
	}
}

func containerFields() class {
	return class{
		"Command": fine, "Entrypoint": fine, "Environment": fine, "Hostname": own(fine), "DomainName": fine, "Image": imageName, "Init": fine,
		"ReadOnly": fine, "WorkingDir": fine, "StopSignal": fine, "Umask": fine, "Platform": matching("platform", platformPattern),
		"CapDrop": fine, "GroupAdd": fine,
		"CPUPeriod": fine, "CPUQuota": fine, "CPUS": fine, "CPUSet": fine, "CPUShares": fine, "PullRefreshAfter": fine,
		"MemLimit": fine, "MemReservation": fine, "MemSwapLimit": fine, "MemSwappiness": fine, "PidsLimit": fine,
		"Configs": walked, "Secrets": walked, "Networks": walked,

		"Labels": labels, "CustomLabels": labels, "Volumes": volumes, "CapAdd": capAdd, "Devices": devices, "ExtraHosts": extraHosts,
		"Ipc": namespace("host-ipc", true, "private", "none", "shareable"), "Pid": namespace("host-pid", true),
		"Uts": namespace("host-uts", false), "UserNSMode": namespace("host-userns", false),
		"Cgroup": namespace("host-cgroup", false, "private"), "NetworkMode": networkMode,
		"Isolation": oneOf("windows-only", "default"), "Logging": logging, "OomScoreAdj": oomScore, "PullPolicy": matching("schema", pullPattern),
		"SecurityOpt": securityOpt, "ShmSize": shmSize, "StopGracePeriod": stopGrace, "Sysctls": sysctls, "Tmpfs": tmpfs,
		"Ulimits": ulimits, "User": matching("user", userPattern), "VolumesFrom": volumesFrom, "Runtime": runtimeName,

		"Annotations": never("annotations"), "BlkioConfig": never("blkio"), "CgroupParent": never("cgroup-parent"),
		"CPUCount": never("windows-only"), "CPUPercent": never("windows-only"), "CredentialSpec": never("credential-spec"),
		"CPURTPeriod": never("cpu-realtime"), "CPURTRuntime": never("cpu-realtime"), "DeviceCgroupRules": never("devices"),
		"DNS": dns, "DNSOpts": dns, "DNSSearch": dns, "EnvFiles": never("env-file-outside"), "LabelFiles": never("label-file-outside"),
		"Gpus": grantable("gpus"), "LogDriver": never("logging"), "LogOpt": never("logging"), "MacAddress": never("mac-address"),
		"Models": never("models"), "OomKillDisable": never("oom"), "Privileged": never("privileged"), "StorageOpt": never("storage-opt"),
		"UseAPISocket": never("docker-socket"), "VolumeDriver": never("volume-driver"),
	}
}

func deployFields() map[reflect.Type]class {
	return map[reflect.Type]class{
		reflect.TypeFor[types.DeployConfig](): {
			"Mode": oneOf("deploy-swarm", "replicated"), "Replicas": replicas, "Labels": labels, "UpdateConfig": fine, "RollbackConfig": fine,
			"Resources": walked, "RestartPolicy": walked, "Placement": never("deploy-swarm"), "EndpointMode": never("deploy-swarm"),
			"Extensions": fine,
		},
		reflect.TypeFor[types.Resources](): {"Limits": walked, "Reservations": walked, "Extensions": fine},
		reflect.TypeFor[types.Resource](): {
			"NanoCPUs": fine, "MemoryBytes": fine, "Pids": fine, "Extensions": fine,
			"Devices": grantable("gpus"), "GenericResources": never("deploy-swarm"),
		},
		reflect.TypeFor[types.RestartPolicy](): {
			"Condition": oneOf("restart", "none", "on-failure", "any"), "Delay": fine, "MaxAttempts": fine, "Window": fine, "Extensions": fine,
		},
	}
}

func buildFields() map[reflect.Type]class {
	return map[reflect.Type]class{
		reflect.TypeFor[types.BuildConfig](): {
			"Context": fine, "Dockerfile": fine, // judged by build, together
			"DockerfileInline": fine, "Args": fine, "NoCache": fine, "NoCacheFilter": fine, "Pull": fine,
			"Target": matching("build-target", namePattern), "Platforms": platforms,
			"Provenance": fine, "SBOM": fine, "Extensions": fine, "Labels": labels, "ShmSize": shmSize, "Ulimits": ulimits,
			"ExtraHosts": extraHosts, "Isolation": oneOf("windows-only", "default"), "Network": oneOf("build-network", "default", "none"),
			"AdditionalContexts": buildContexts, "Entitlements": never("build-privileged"), "Privileged": never("build-privileged"),
			"SSH": never("build-ssh"), "CacheFrom": never("build-cache"), "CacheTo": never("build-cache"),
			"Secrets": never("build-secret"), "Tags": never("build-tags"),
		},
	}
}
