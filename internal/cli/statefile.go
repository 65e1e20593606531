package cli

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// stateVersion is the state file format that Terraform 0.12 and later, and OpenTofu, write.
const stateVersion = 4

// stateFile is the part of a state file that holds receipts.
type stateFile struct {
	Version   int `json:"version"`
	Resources []struct {
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Instances []struct {
			Attributes json.RawMessage `json:"attributes"`
			Private    []byte          `json:"private"` // base64 of JSON
		} `json:"instances"`
	} `json:"resources"`
}

// receiptsIn reads the receipts of the sandboxes in a Terraform state file.
func receiptsIn(name string) ([]engine.Receipt, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "reading receipts: %w",
			err).WithRemedy("give a Terraform state file, written with `terraform state pull > FILE`")
	}
	var s stateFile
	if err := json.Unmarshal(raw, &s); err != nil || s.Version != stateVersion {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s is not a Terraform state of version %d", name, stateVersion).
			WithRemedy("write it with `terraform state pull > FILE`; sandboxer cannot read an encrypted state")
	}
	var out []engine.Receipt
	for _, r := range s.Resources {
		if r.Mode != "managed" || r.Type != "sandboxer_sandbox" {
			continue
		}
		for _, i := range r.Instances {
			rec, err1 := receiptOf(i.Private)
			var known struct {
				ID engine.ID `json:"id"`
			}
			if err := errors.Join(err1, json.Unmarshal(i.Attributes, &known)); err != nil {
				return nil, extensions.Errorf(extensions.KindInvalid, "the private state of a sandbox in %s is damaged", name).
					WithRemedy("use an earlier version of the state")
			}
			rec.ID = known.ID
			out = append(out, rec)
		}
	}
	return out, nil
}

// receiptOf reads private state as Terraform's plugin framework writes it. Private state without a receipt
// yields one that pins nothing.
func receiptOf(raw []byte) (rec engine.Receipt, err error) {
	var private map[string][]byte
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &private)
	}
	if kept := private[engine.ReceiptKey]; err == nil && len(kept) > 0 {
		err = json.Unmarshal(kept, &rec)
	}
	return rec, err
}
