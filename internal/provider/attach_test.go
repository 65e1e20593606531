package provider

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// attach has a command of terraform use a provider of this process, which knows what the command is for. detach ends it.
func (c *cli) attach(cmd *exec.Cmd) (detach func()) {
	c.t.Helper()
	p := New("test", testExtensions())
	p.run = func() run { return runOf(cmd.Args, func(name string) string { return last(cmd.Env, name) }) }
	ctx, cancel := context.WithCancel(context.Background())
	attached, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(Address, p.server, tf6server.WithDebug(ctx, attached, closed),
			tf6server.WithGoPluginLogger(hclog.NewNullLogger()), tf6server.WithoutLogStderrOverride())
	}()
	select {
	case at := <-attached:
		cmd.Env = append(cmd.Env, "TF_REATTACH_PROVIDERS="+reattach(at))
	case err := <-failed:
		c.t.Fatalf("serving the provider: %v", err)
	}
	return func() {
		cancel()
		<-closed
		if err := p.Close(); err != nil {
			c.t.Errorf("closing the provider: %v", err)
		}
	}
}

// last is the value of a variable in an environment: a later entry wins.
func last(env []string, name string) (value string) {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// reattach is what TF_REATTACH_PROVIDERS says of a server, for Terraform and for OpenTofu.
func reattach(at *plugin.ReattachConfig) string {
	server := map[string]any{"Protocol": string(at.Protocol), "ProtocolVersion": at.ProtocolVersion, "Pid": at.Pid, "Test": at.Test,
		"Addr": map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()}}
	b, _ := json.Marshal(map[string]any{Address: server, strings.Replace(Address, "terraform.io", "opentofu.org", 1): server}) // strings and numbers
	return string(b)
}
