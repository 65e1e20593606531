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

// What an import may be given. Terraform passes on whatever was typed, an empty
// text included.
const (
	importsSandbox  = "import by id (`sbx-…`), as `sandboxer sandbox list` shows it, or by `org/workspace/name`"
	importsHost     = "import by the name that the host is registered by in the ledger"
	importsSnapshot = "import by id (`snp-…`), the `id` that the resource of the snapshot has in its state"
)

// notImportable tells what an id would have to be. about is the kind of resource.
func notImportable(diags *diag.Diagnostics, about, id, wrong, remedy string) {
	if strings.TrimSpace(id) == "" {
		wrong = "the id to import is empty"
	}
	diags.AddError("This is not a "+about, sentence(wrong)+"\n\nWhat to do: "+sentence(remedy))
}

// importKey reads what a sandbox is to be found by: its id, or account and name.
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
			notImportable(&diags, "sandbox", given, fmt.Sprintf("%q is no org/workspace/name: %s", extensions.Clean(given, 200), err), importsSandbox)
			break
		}
	}
	return "", account, name, diags
}
