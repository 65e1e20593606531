package e2b

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
)

// labelWorkDir is the workspace inside; absent where there is none.
const labelWorkDir = "sandboxer.workdir"

// labelTemplate is the template that was built for it; absent where it was not.
const labelTemplate = "sandboxer.template"

// metadata is what a new sandbox carries. The account's value needs no escape in a query: the vendor unescapes
// it more often than once.
func metadata(spec extensions.Spec) api.SandboxMetadata {
	m := api.SandboxMetadata(labels.Of(spec))
	m[extensions.LabelAccount] = labels.Value(spec.Account)
	if d := workDirOf(spec); d != "" {
		m[labelWorkDir] = d
	}
	return m
}

// ours returns the id that metadata carries, if it is one of this account.
func (b *backend) ours(m *api.SandboxMetadata) (extensions.ID, bool) {
	if m == nil {
		return "", false
	}
	return labels.Owner(*m, b.account)
}

func generation(m *api.SandboxMetadata) int64 {
	if m == nil {
		return 0
	}
	return labels.Generation(*m)
}

func workDir(m *api.SandboxMetadata) string {
	if m == nil {
		return ""
	}
	return (*m)[labelWorkDir]
}
