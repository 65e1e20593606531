package local

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"sync"
)

// machineID names this machine in handles: a digest of the system's own id,
// which is not to be shown, or of the host name where there is none.
var machineID = sync.OnceValue(func() string {
	name, err := os.ReadFile("/etc/machine-id")
	if err != nil || strings.TrimSpace(string(name)) == "" {
		host, _ := os.Hostname()
		name = []byte("host " + host)
	}
	sum := sha256.Sum256(append([]byte("sandboxer local "), name...))
	return hex.EncodeToString(sum[:8])
})
