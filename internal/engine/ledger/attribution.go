package ledger

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxConsumer is the number of characters kept of each consumer field; the fields are indexed.
const maxConsumer = 256

// Attribution returns who and where a meter of the sandbox runs for, according to its current row.
func (s Sandbox) Attribution() bank.Attribution {
	var request struct {
		Consumer struct {
			Actor   string `json:"actor"`
			Harness string `json:"harness"`
			RunID   string `json:"run_id"`
		} `json:"consumer"`
	}
	_ = json.Unmarshal(s.Request, &request) // the form is free: missing fields stay empty
	c := request.Consumer
	for _, text := range []*string{&c.Actor, &c.Harness, &c.RunID} {
		*text = extensions.Clean(*text, maxConsumer)
	}
	return bank.Attribution{Account: s.Account, Name: s.Name, Profile: s.Profile, ProfileVersion: s.ProfileVersion,
		Extension: s.Extension, Host: s.Host, Actor: c.Actor, Harness: c.Harness, RunID: c.RunID}
}
