package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// newerServer is what only Terraform 1.14 and newer call. It is no part of the ProviderServer that quickServer
// embeds, which would hide it.
type newerServer interface {
	tfprotov6.ActionServer
	tfprotov6.ListResourceServer
}

var _ newerServer = quickServer{}

func (s quickServer) newer() newerServer {
	return s.ProviderServer.(newerServer) // the framework's server is one
}

// ValidateActionConfig implements tfprotov6.ActionServer.
func (s quickServer) ValidateActionConfig(ctx context.Context,
	req *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	return s.newer().ValidateActionConfig(ctx, req)
}

// PlanAction implements tfprotov6.ActionServer.
func (s quickServer) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return s.newer().PlanAction(ctx, req)
}

// InvokeAction implements tfprotov6.ActionServer.
func (s quickServer) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	return s.newer().InvokeAction(ctx, req)
}

// ValidateListResourceConfig implements tfprotov6.ListResourceServer.
func (s quickServer) ValidateListResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return s.newer().ValidateListResourceConfig(ctx, req)
}

// ListResource implements tfprotov6.ListResourceServer.
func (s quickServer) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	return s.newer().ListResource(ctx, req)
}
