package local

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// wallSteps are the steps whose refusal means that the kernel or its policy denies this user walls, not that
// something is broken.
var wallSteps = []string{"private mounts", "root", "views", "dev", "writable folders", "proc", "pivot", "host name", "loopback",
	"cgroup namespace", "capabilities", "no new privileges", "system call filter", "namespaces"}

// closed reports whether err means that this way of building walls is unavailable here.
func closed(err error) bool {
	var e *extensions.Error
	if errors.As(err, &e) {
		return false
	}
	var f *stage.Failure
	if errors.As(err, &f) {
		return slices.Contains(wallSteps, f.Step) && slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSYS, unix.ENODEV},
			func(target error) bool { return errors.Is(err, target) })
	}
	// The kernel refuses clone(2) and the id maps before any of our stages runs.
	var path *fs.PathError
	return errors.As(err, &path) && slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.ENOSYS},
		func(target error) bool { return errors.Is(err, target) })
}

func namespacesClosed(err error) error {
	var f *stage.Failure
	if errors.As(err, &f) && f.Step == "proc" {
		return extensions.Errorf(extensions.KindUnsupported,
			"a private /proc cannot be mounted: this looks like a container with a masked /proc (%w)", err).
			WithRemedy("run the container with --security-opt systempaths=unconfined, or use isolation: {level: none} for code you trust")
	}
	return extensions.Errorf(extensions.KindUnsupported, "this user may not create user namespaces: %w", err).
		WithRemedy("allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, " +
			"kernel.apparmor_restrict_unprivileged_userns), " +
			"install bubblewrap, run as root, or use isolation: {level: none} for code you trust")
}

func bubblewrapClosed(path string, err error) error {
	return extensions.Errorf(extensions.KindUnsupported, "%s cannot build walls here: %w", path, err).
		WithRemedy("allow user namespaces for bubblewrap or for all users, run as root, or use isolation: {level: none} for code you trust")
}
