package profile_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

func TestSecretRefsNameThemselves(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]profile.SecretRef{
		"env://GH_TOKEN":                      {Name: "GH_TOKEN", Ref: "env://GH_TOKEN"},
		"TOKEN=env://GH_TOKEN":                {Name: "TOKEN", Ref: "env://GH_TOKEN"},
		"file:///run/secrets/db-password.txt": {Name: "DB_PASSWORD", Ref: "file:///run/secrets/db-password.txt"},
		"file:///run/secrets/2fa":             {Name: "_2FA", Ref: "file:///run/secrets/2fa"},
		"file:///run/.netrc":                  {Name: "_NETRC", Ref: "file:///run/.netrc"},
		"T=file:///a=b":                       {Name: "T", Ref: "file:///a=b"},
		"T=exec://pass?arg=show&arg=a%3Db":    {Name: "T", Ref: "exec://pass?arg=show&arg=a%3Db"},
	} {
		got, err := profile.ParseSecretRef(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestSecretRefsThatAreRefusedAreNotRepeated(t *testing.T) {
	t.Parallel()
	const canary = "hunter2-canary"
	for _, text := range []string{
		canary, "TOKEN=" + canary, "", "=env://A", "env://", "env://1A", "env://A B", "A B=env://C", "A;B=env://C", "A\n=env://C",
		"file://relative", "file:///", "exec://", "exec://pass?arg=show", "vault://" + canary, "T=exec://pass?x=" + "1", "T=file:///a\x00b",
	} {
		got, err := profile.ParseSecretRef(text)
		if err == nil {
			t.Errorf("%q is accepted as %+v", text, got)
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("%q is repeated: %v", text, err)
		}
	}
}
