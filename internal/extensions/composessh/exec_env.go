package composessh

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxEnvLine is the longest line that docker reads from an environment file, in bytes.
const maxEnvLine = 60 << 10

var (
	shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// ruling are names that would affect the docker command, its libraries or the host's shell: their values
	// never enter its own environment.
	ruling = regexp.MustCompile(`^(LD_.*|DYLD_.*|GLIBC_.*|MALLOC_.*|GCONV_PATH|LOCPATH|NLSPATH|RES_OPTIONS|HOSTALIASES|LOCALDOMAIN|` +
		`GO[A-Z0-9]+|DOCKER_.*|BUILDKIT_.*|COMPOSE_.*|OTEL_.*|SSL_.*|SSH_.*|.*_PROXY|.*_proxy|` +
		`PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|TERM|TZ.*|TMPDIR|XDG_.*|NOTIFY_SOCKET|LISTEN_.*|` +
		`IFS|ENV|BASH.*|SHELLOPTS|POSIXLY_CORRECT|PS[0-9]|PPID|E?UID|GROUPS|OPT.*|` +
		`RANDOM|SECONDS|LINENO|HIST.*|FUNC.*|DIRSTACK|EPOCH.*|_|sbx_.*)$`)
)

// envFor splits a command's variables by how docker gets them, never as an argument. file is an environment
// file for a pipe. exported are words NAME:n, with the values as sbx_env_n in vars, for what such a file
// cannot hold.
func envFor(env map[string]string, vars map[string]string) (file, exported string, err error) {
	var lines, words strings.Builder
	n := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if oneLine(name, value) {
			fmt.Fprintf(&lines, "%s=%s\n", name, value)
			continue
		}
		if !shellName.MatchString(name) || ruling.MatchString(name) {
			return "", "", extensions.Errorf(extensions.KindUnsupported,
				"the variable %s cannot have a value with several lines or more than %d bytes", extensions.Clean(name, 80), maxEnvLine).
				At("env").WithRemedy("set it inside the command, or use another name")
		}
		vars["sbx_env_"+strconv.Itoa(n)] = value
		fmt.Fprintf(&words, "%s:%d ", name, n)
		n++
	}
	return lines.String(), words.String(), nil
}

// oneLine reports whether an environment file can hold the variable unchanged.
func oneLine(name, value string) bool {
	return len(name)+len(value) < maxEnvLine && !strings.ContainsAny(name+value, "\n\r") && name[0] != '#' &&
		!strings.HasPrefix(name, "\ufeff")
}

// speakable refuses what docker's API, which is JSON, would alter.
func speakable(req extensions.ExecRequest) error {
	words := append([]string{req.Shell, req.ShellPath, req.Dir, req.User}, req.Command...)
	for name, value := range req.Env {
		words = append(words, name, value)
	}
	for _, w := range words {
		if !utf8.ValidString(w) {
			return extensions.Errorf(extensions.KindUnsupported,
				"the command, its folder or its environment has bytes that are not UTF-8, which Docker cannot pass").
				WithRemedy("pass them on stdin or in a file")
		}
	}
	return nil
}
