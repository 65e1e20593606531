package composessh

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// denyNetwork makes a rendered network one that the host is no part of. What
// stands for it here is settled on the host, where deny was proved with these
// very options: those of bridges mean nothing to the other driver.
func denyNetwork(network map[string]any, index int) {
	network["driver"] = "${SBX_NET_DRIVER}"
	network["internal"] = true
	network["enable_ipv6"] = false
	network["driver_opts"] = map[string]any{
		"com.docker.network.bridge.inhibit_ipv4": "true",
		"parent":                                 "${SBX_NET_PARENT_" + strconv.Itoa(index) + "}",
	}
}

// A proof that deny holds on a host is a line that its scripts made and alone
// understand. It is kept here because nothing of ours stays on a host without
// sandboxes; the host compares it with its engine, kernel and boot.

// maxProof bounds a proof in bytes.
const maxProof = 512

// A Backend's folder for it is Config.StateDir; "" keeps nothing.

func proofFile(stateDir string, h extensions.Host) string {
	sum := sha256.Sum256([]byte(h.Ref()))
	return filepath.Join(stateDir, "deny", hex.EncodeToString(sum[:8]))
}

// denyProved is the proof of the last time on h, "" where there is none. It is
// the variable deny_proved of sh/deny.sh.
func denyProved(stateDir string, h extensions.Host) string {
	if stateDir == "" {
		return ""
	}
	text, err := os.ReadFile(proofFile(stateDir, h))
	if err != nil || !validProof(string(text)) {
		return ""
	}
	return string(text)
}

// keepProof keeps what h answered as deny_proof. A proof that cannot be kept, or
// is read while it is written, is made anew.
func keepProof(stateDir string, h extensions.Host, proof string) {
	if stateDir == "" || !validProof(proof) || proof == denyProved(stateDir, h) {
		return
	}
	file := proofFile(stateDir, h)
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = os.WriteFile(file, []byte(proof), 0o600)
}

func validProof(s string) bool {
	return s != "" && len(s) <= maxProof && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
