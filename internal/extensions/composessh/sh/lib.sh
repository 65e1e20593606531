# What every script asks of docker.

# The loop must find the same engine as the script that starts it.
timer_env='DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH'

# Docker's command and Compose are Go programs that live for a moment: with less collection of garbage they take a fifth
# less of the processor.
export GOGC="${GOGC:-400}"

# fail_docker WHAT TEXT fails with a docker command's output, which the caller's side classifies: kind "docker".
fail_docker() { fail docker "$1" '' "$2"; }

# need_tools fails unless the scripts' programs exist.
need_tools() {
	[ -d /proc/self ] || fail unsupported "the host runs $(uname -s), not Linux" 'choose a Linux host'
	for tool in docker flock setsid tar; do
		command -v "$tool" >/dev/null 2>&1 && continue
		case $tool in
		docker) fail unsupported 'the host has no docker command' 'install Docker Engine on the host (https://docs.docker.com/engine/install/) and let the login use it' ;;
		flock | setsid) fail unsupported "the host has no $tool command" 'install util-linux on the host' ;;
		*) fail unsupported "the host has no $tool command" "install $tool on the host" ;;
		esac
	done
}
