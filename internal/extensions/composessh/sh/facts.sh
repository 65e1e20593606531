# Operation: what the host is and can do, whether default deny holds there, and what status would report with all=1,
# which saves a round trip. It reverts all of its changes. Additional variables: allow_firewall (1 if the owner allows
# rules), deny_proved, subnet_ranges.

# now_ns sets now to the host's clock in nanoseconds, as precise as the host has it.
now_ns() {
	now=$(date +%s%N)
	case $now in *[!0-9]* | '') now=$(date +%s)000000000 ;; esac
	[ "${#now}" -gt 12 ] || now=${now}000000000
}

# kept_logins sets kills to yes or no if logind says whether it ends a login's processes with it, and linger likewise
# for this login.
kept_logins() {
	kills='' linger=''
	command -v loginctl >/dev/null 2>&1 && [ -d /run/systemd/system ] || return 0
	case $(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null </dev/null) in
	'b true') kills=yes ;;
	'b false') kills=no ;;
	esac
	linger=$(loginctl show-user "$(id -un)" -p Linger --value 2>/dev/null </dev/null)
}

# rung sets timer to the step of the ladder that would end a sandbox.
rung() {
	timer=session
	[ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1 || return 0
	if [ "$(id -u)" = 0 ]; then
		timer=systemd
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null </dev/null; then
		timer=systemd
	elif [ "$linger" = yes ]; then
		timer=systemd-user
	fi
}

# proved prints the facts of the proof: the proof itself, or the error that it would have failed with.
proved() (
	fail() {
		fact against_kind "$1"
		fact against "$2"
		fact cure "${3-}"
		fact against_said "${4-}"
		printf '%s' "$facts"
		exit 0
	}
	facts=
	deny_prove
	fact proof "$deny_proof"
	printf '%s' "$facts"
)

# fact NAME VALUE adds to facts.
facts=
fact() { facts="$facts,$(json_string "$1"):$(json_string "$2")"; }

use_root
progress ready
IFS= read -r _ || :
now_ns
progress "clock $now"

missing=
for tool in flock setsid tar head sed; do
	command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
fact missing "${missing# }"
fact os "$(uname -s)"
fact machine "$(uname -m)"
fact login "$(id -un 2>/dev/null || id -u)"
cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc 2>/dev/null || grep -c '^processor' /proc/cpuinfo)
fact cpus "$cpus"
memory=
while IFS=': 	' read -r name size _; do
	[ "$name" != MemTotal ] || memory=$size
done 2>/dev/null </proc/meminfo
fact memory_kib "$memory"
kvm=
[ ! -c /dev/kvm ] || kvm=1
fact kvm "$kvm"
kept_logins
rung
fact kills "$kills"
fact linger "$linger"
fact timer "$timer"
memory_found && fact memory 1
docker='' said='' compose='' compose_said='' docker_root='' gpu='' rules='' looked=''
if command -v docker >/dev/null 2>&1; then
	if said=$(docker_soon info --format "$engine_format"'{{.DockerRootDir}}|{{json .Runtimes}}' 2>&1); then
		said=$(printf '%s\n' "$said" | sed -n -e '/|.*|/p')
		engine_split
		docker=$engine docker_root=${said%%|*}
		case $said in *'"nvidia"'*) for entry in /dev/nvidia[0-9]*; do [ ! -e "$entry" ] || gpu=1; done ;; esac
		said=
		[ -n "$compose_version" ] || compose_version=$(docker_soon compose version --short 2>&1) || compose_said=$compose_version compose_version=''
		compose=${compose_version#v}
		[ -z "$compose" ] || fact engine "$(
			fail() { exit 1; }
			engine_started
			read_clock
			judge_engine
			engine_note
		)"
	fi
else
	said=absent
fi
fact docker "$docker"
fact docker_said "$(printf '%s\n' "$said" | sed -e '/|.*|/d' | tail -n 3)"
fact compose "$compose"
fact compose_said "$(printf '%s' "$compose_said" | tail -n 3)"
fact gpu "$gpu"
place=$docker_root
[ -d "$place" ] || place=$HOME
free=
while read -r _ _ _ size _; do free=$size; done <<-END
	$(df -kP "$place" 2>/dev/null | tail -n 1)
END
fact free_kib "$free"
if [ -n "$docker" ] && [ -z "$missing" ]; then
	facts=$facts$(proved)
	if [ -n "${allow_firewall-}" ]; then
		rules=$(as_root sh -c "$firewall_job" sh show 2>&1 </dev/null) && rules=works
	fi
	looked=$(
		fail() { exit 1; }
		survey
		looked
		printf '%s"elsewhere":[%s],' "$looked" "$elsewhere"
	) || looked=
	if [ -d "$root" ]; then
		lock_host
		leave_root
		unlock_host
	fi
fi
fact rules "$(printf '%s' "$rules" | tail -n 2)"
answer "{$looked\"facts\":{${facts#,}}}"
