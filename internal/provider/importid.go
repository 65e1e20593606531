package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The parts an import id may have. Terraform passes on whatever the user typed, even empty text.
const (
	importsSandbox  = "import by ID (`sbx-…`, shown by `sandboxer sandbox list`) or by `org/workspace/name`"
	importsHost     = "import by the host's name in the ledger"
	importsSnapshot = "import by ID (`snp-…`), the `id` of the snapshot's resource in its state"
)

// notImportable reports a bad import id and what would be valid. about is the kind of resource.
func notImportable(diags *diag.Diagnostics, about, id, wrong, remedy string) {
	if strings.TrimSpace(id) == "" {
		wrong = "the ID to import is empty"
	}
	diags.AddError("This is not a "+about, sentence(wrong)+"\n\nWhat to do: "+sentence(remedy))
}

// importKey reads what identifies the sandbox: its id, or account and name.
func importKey(ctx context.Context, req resource.ImportStateRequest) (id engine.ID, account, name string, diags diag.Diagnostics) {
	given := req.ID
	switch i := strings.LastIndex(given, "/"); {
	case given == "" && req.Identity != nil && !req.Identity.Raw.IsNull():
		var im identityModel
		diags = req.Identity.Get(ctx, &im)
		account, name = im.Account.ValueString(), im.Name.ValueString()
		given = account + "/" + name
	case i >= 0:
		account, name = given[:i], given[i+1:]
	default:
		id, err := extensions.ParseID(given)
		if err != nil {
			notImportable(&diags, "sandbox", given, err.Error(), importsSandbox)
		}
		return id, "", "", diags
	}
	for _, err := range []error{engine.CheckAccount(account), engine.CheckName(name)} {
		if err != nil {
			notImportable(&diags, "sandbox", given, fmt.Sprintf("%q is not an org/workspace/name: %s", extensions.Clean(given, 200), err),
				importsSandbox)
			break
		}
	}
	return "", account, name, diags
}
