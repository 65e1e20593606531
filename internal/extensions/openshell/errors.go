package openshell

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

const maxWords = grpcline.MaxWords // characters of the gateway's text in a message

func failed(op string, id extensions.ID, err error) error { return extensions.Failed(op, id, err, nil) }

// effect reports the calls whose lost answer leaves open whether something was done.
func effect(method string) bool {
	switch method {
	case gateway.OpenShell_CreateSandbox_FullMethodName, gateway.OpenShell_DeleteSandbox_FullMethodName,
		gateway.OpenShell_ExecSandboxInteractive_FullMethodName:
		return true
	}
	return false
}

// maybe reports whether a failed call may have had its effect.
func maybe(err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) || extensions.IsKind(err, extensions.KindTimeout)
}
