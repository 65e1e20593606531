# The CPU time of a sandbox, as the kernel counts it for the cgroups of its containers.

# idle_cpu adds up the cgroups of the sandbox's containers.
idle_cpu() {
	services_by running
	cpu=0
	[ -n "$found" ] || return 0
	# shellcheck disable=SC2086
	pids=$(docker_soon container inspect -f '{{.State.Pid}}' $found 2>/dev/null) || return 1
	for pid in $pids; do
		cgroup_cpu "$pid" || return 1
	done
}

# cgroup_cpu PID adds to cpu what the cgroup of a process has used (us): of version 1 in ns, of version 2 in us.
cgroup_cpu() {
	[ -r "/proc/$1/cgroup" ] || return 1
	while IFS=: read -r _ controllers path; do
		case ,$controllers, in
		*,cpuacct,*)
			for file in "/sys/fs/cgroup/cpuacct$path/cpuacct.usage" "/sys/fs/cgroup/cpu,cpuacct$path/cpuacct.usage"; do
				{ IFS= read -r used <"$file"; } 2>/dev/null || continue
				cpu=$((cpu + used / 1000))
				return 0
			done
			;;
		,,)
			while IFS=' ' read -r key used; do
				[ "$key" = usage_usec ] || continue
				cpu=$((cpu + used))
				return 0
			done 2>/dev/null <"/sys/fs/cgroup$path/cpu.stat"
			;;
		esac
	done <"/proc/$1/cgroup"
	return 1
}
