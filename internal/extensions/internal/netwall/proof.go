package netwall

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// Proof is the last proof that default deny holds at one place: a line that the place's scripts wrote and only
// they understand. They compare it with what it depends on, such as engine, kernel and boot.
type Proof struct {
	File string // "" = nothing is kept
}

// ProofAt returns the proof of the place of that name, in a state folder; "" keeps nothing.
func ProofAt(stateDir, place string) Proof {
	if stateDir == "" {
		return Proof{}
	}
	sum := sha256.Sum256([]byte(place))
	return Proof{filepath.Join(stateDir, "deny", hex.EncodeToString(sum[:8]))}
}

// maxProof bounds a proof in bytes.
const maxProof = 512

// Read returns the last proof, "" if there is none.
func (p Proof) Read() string {
	text, err := os.ReadFile(p.File)
	if err != nil || !validProof(string(text)) {
		return ""
	}
	return string(text)
}

// Keep stores a place's answer. If it cannot be stored, or is read while being written, the place proves deny
// again.
func (p Proof) Keep(line string) {
	if p.File == "" || !validProof(line) || line == p.Read() {
		return
	}
	if os.MkdirAll(filepath.Dir(p.File), 0o700) != nil {
		return
	}
	_ = os.WriteFile(p.File, []byte(line), 0o600)
}

func validProof(s string) bool {
	return s != "" && len(s) <= maxProof && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
