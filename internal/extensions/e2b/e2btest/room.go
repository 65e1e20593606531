package e2btest

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// homes are the users of a sandbox.
var homes = map[string]string{"user": "/home/user", "root": "/root"}

// room makes the inside of one more sandbox: as a copy of the folder from, or fresh if that is "".
func (v *Vendor) room(kind, from string) (*box.Box, error) {
	v.serial++
	name := fmt.Sprintf("%s%d", kind, v.serial)
	if from != "" {
		return v.shelf.Copy(name, from, homes)
	}
	b, err := v.shelf.New(name, homes)
	if err == nil { // what the vendor's own SDK calls for every command
		bash := b.Root + "/bin/bash"
		err = errors.Join(os.WriteFile(bash, []byte("#!/bin/sh\nexec /bin/sh \"$@\"\n"), 0o755), os.Chown(bash, b.UID, b.UID))
	}
	return b, err
}

// called is the id that a process has inside.
func called(pid int) uint32 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, ids, _ := strings.Cut(string(status), "\nNSpid:")
	ids, _, _ = strings.Cut(ids, "\n")
	all := strings.Fields(ids)
	if len(all) == 0 {
		return uint32(pid)
	}
	return uint32(number(all[len(all)-1]))
}
