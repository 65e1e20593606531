package vercel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// owner tells the project that has an object from others: another one's credential finds nothing of it, which proves nothing.
// It is a digest, as both names can be given as credentials, which no handle may show. "" = an earlier version made the handle.
type owner struct {
	Project string `json:"project,omitempty"`
}

func (i identity) owner() owner {
	sum := sha256.Sum256([]byte(i.team + "/" + i.project))
	return owner{hex.EncodeToString(sum[:12])}
}

// handle points to a sandbox. Its name at the vendor is our id, so it is known before the sandbox exists.
func (i identity) handle(id extensions.ID) extensions.Handle {
	data, _ := json.Marshal(i.owner()) // texts
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id), Data: data}
}

// check refuses a handle of another project, by its data.
func (i identity) check(data json.RawMessage, what string) error {
	var of owner
	if len(data) > 0 && json.Unmarshal(data, &of) != nil {
		return extensions.Errorf(extensions.KindInvalid, "the handle does not say which project has it")
	}
	if of == (owner{}) || of == i.owner() {
		return nil
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s is in another project of %s than the credential's: %w", what, vendor,
		extensions.ErrElsewhere).WithRemedy("use the credential that made it; a sandbox ends at its deadline, a snapshot does not")
}
