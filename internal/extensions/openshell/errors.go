package openshell

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

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

// throttled reports a gateway that has no time. Only a sandbox that starts takes room.
func throttled(method string, st *status.Status) (time.Duration, bool) {
	starts := method == gateway.OpenShell_CreateSandbox_FullMethodName || method == gateway.OpenShell_StartSandbox_FullMethodName
	return 0, st.Code() == codes.ResourceExhausted && !starts
}
