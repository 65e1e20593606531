package openshell

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"

// effect reports the calls whose lost answer leaves open whether something was done. What the gateway's codes mean is decided
// by package grpcline.
func effect(method string) bool {
	switch method {
	case gateway.OpenShell_CreateSandbox_FullMethodName, gateway.OpenShell_DeleteSandbox_FullMethodName,
		gateway.OpenShell_ExecSandboxInteractive_FullMethodName:
		return true
	}
	return false
}
