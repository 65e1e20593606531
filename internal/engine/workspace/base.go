package workspace

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// MaxBaseBytes limits a recorded base: some 100 000 files.
const MaxBaseBytes = 16 << 20

// EncodeBase records what a mirrored workspace started from, for the SyncBack of a later process. A base
// above MaxBaseBytes is KindInvalid.
func EncodeBase(m tarstream.Manifest) ([]byte, error) {
	m.Skipped = nil // left out there, so never compared
	b, err := json.Marshal(m)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInternal, "encode the workspace's base: %w", err)
	}
	if len(b) > MaxBaseBytes {
		return nil, extensions.Errorf(extensions.KindInvalid, "the workspace has too many files to be mirrored: %d", len(m.Entries)).
			WithRemedy("Exclude files with a .sandboxerignore, or use mode remote-canonical.")
	}
	return b, nil
}

// DecodeBase reads what EncodeBase wrote.
func DecodeBase(b []byte) (tarstream.Manifest, error) {
	var m tarstream.Manifest
	if len(b) > MaxBaseBytes {
		return m, extensions.Errorf(extensions.KindInvalid, "the workspace's base is larger than %d bytes", MaxBaseBytes)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, extensions.Errorf(extensions.KindInvalid, "the workspace's base is damaged: %w", err).
			WithRemedy("Bring the workspace back without a base: only new files are created then.")
	}
	return m, nil
}
