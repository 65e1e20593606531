# Reads the folders of hosts until the tests' process has ended, and ends what runs on those that still are there: a process
# of a host has its HOME, a sandbox's objects in Docker are a Compose project of its name, and its devices begin with its id.

of_host() {
	grep -lzxF "HOME=$1/home" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

end_processes() {
	for _ in 1 2 3 4 5; do
		left=$(of_host "$1")
		[ -n "$left" ] || return
		# shellcheck disable=SC2086
		kill -KILL $left 2>/dev/null
		sleep 0.2
	done
}

end_sandbox() {
	label=label=com.docker.compose.project=$1
	docker ps -aq --filter "$label" | xargs -r docker rm -f -v
	docker network ls -q --filter "$label" | xargs -r docker network rm
	docker volume ls -q --filter "$label" | xargs -r docker volume rm -f
	begin=${1#sbx-}
	for device in /sys/class/net/"sp${begin%"${begin#???????????}"}"*; do
		[ ! -e "$device" ] || ip link del "${device##*/}"
	done
}

hosts=
while read -r host; do
	hosts="$hosts $host"
done
exec >/dev/null 2>&1
for host in $hosts; do
	[ -d "$host" ] || continue
	end_processes "$host"
	for _ in 1 2; do # Docker may still be making what a killed script asked for
		for box in "$host"/home/*/sbx-* "$host"/home/.*/*/sbx-*; do
			[ ! -d "$box" ] || end_sandbox "${box##*/}"
		done
		sleep 1
	done
	umount -l "$host/home"
	rm -rf "$host"
done
