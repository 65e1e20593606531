package provider

import (
	"strings"
	"testing"
)

func TestACommandLineThatDestroysIsKnown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"terraform destroy":                          true,
		"/usr/bin/terraform -chdir=x destroy -auto":  true,
		"tofu plan -out p -destroy":                  true,
		"terraform apply --destroy -auto-approve":    true,
		"terraform apply -destroy=true":              true,
		"terraform apply -destroy=false":             false,
		"terraform plan":                             false,
		"terraform apply destroy":                    false, // a saved plan of that name
		"terraform test":                             false,
		"terraform":                                  false,
		"":                                           false,
		"TF_CLI_ARGS_plan=-destroy terraform plan":   true,
		"TF_CLI_ARGS_plan=-destroy terraform apply":  false,
		"TF_CLI_ARGS=-destroy terraform apply":       true,
		"terraform plan -var=destroy=1 -target=a[0]": false,
	} {
		args, getenv := typed(line)
		if got := runOf(args, getenv).destroys; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestACommandLineThatReplacesByAddressIsKnown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"terraform apply -replace=a.b":                  true,
		"tofu plan -out p --replace a.b":                true,
		"TF_CLI_ARGS_plan=-replace=a.b terraform plan":  true,
		"terraform apply":                               false,
		"terraform apply -var=replace=1":                false,
		"terraform destroy -replace=a.b":                false,
		"TF_CLI_ARGS_apply=-replace=a.b terraform plan": false,
		"": false,
	} {
		args, getenv := typed(line)
		if got := runOf(args, getenv).replaces; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestACommandLineThatAppliesUnaskedIsKnown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"terraform apply p":                             true,
		"terraform apply -no-color p":                   true,
		"terraform apply -var=a=b p":                    true,
		"terraform apply -auto-approve":                 true,
		"TF_CLI_ARGS_apply=-auto-approve tofu apply":    true,
		"terraform apply":                               false,
		"terraform apply -no-color":                     false,
		"terraform apply -var a=b":                      false,
		"terraform apply -target sandboxer_sandbox.a":   false,
		"terraform apply -auto-approve=false":           false,
		"TF_CLI_ARGS_apply=-no-color terraform apply p": true,
		"terraform plan -out p":                         false,
	} {
		args, getenv := typed(line)
		if got := runOf(args, getenv).applies; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// typed reads a line as a shell does, with variables in front.
func typed(line string) (args []string, getenv func(string) string) {
	env := map[string]string{}
	args = strings.Fields(line)
	for len(args) > 0 && strings.HasPrefix(args[0], "TF_") {
		k, v, _ := strings.Cut(args[0], "=")
		env[k], args = v, args[1:]
	}
	return args, func(k string) string { return env[k] }
}
