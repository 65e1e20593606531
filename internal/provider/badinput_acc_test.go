package provider

import (
	"os"
	"strings"
	"testing"
)

// Every mistake is told at plan, at the argument where it can be, and nothing
// is left behind: not even a state folder.
func TestBadInputIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct{ body, want string }{
		"unknown profile":          {`profile = "profile.quikstart"`, `profile.quickstart`},
		"not a profile":            {`profile = "quickstart"`, `did you mean "profile.quickstart"`},
		"unknown version":          {`profile = "profile.quickstart@9.9.9"`, `1.0.0`},
		"missing input":            {`profile = "profile.build"`, `repo`},
		"mistyped input":           {`profile = "profile.stub"` + "\n inputs = { count = \"three\" }", `count`},
		"unknown input":            {`profile = "profile.stub"` + "\n inputs = { cuont = 3 }", `count`},
		"inputs not an object":     {`profile = "profile.stub"` + "\n inputs = [1]", `must be an object`},
		"input beyond 64 bits":     {`profile = "profile.stub"` + "\n inputs = { count = 99999999999999999999999 }", `64 bits`},
		"a fraction as version":    {`profile = "profile.stub"` + "\n secrets_wo_version = 1.5", `1.5 is not a whole number`},
		"a version beyond 64 bits": {`profile = "profile.stub"` + "\n secrets_wo_version = 9223372036854775808", `does not fit in 64 bits`},
		"ttl zero":                 {`profile = "profile.stub"` + "\n ttl = \"0s\"", `not positive`},
		"ttl negative":             {`profile = "profile.stub"` + "\n ttl = \"-1h\"", `not positive`},
		"ttl above max":            {`profile = "profile.stub"` + "\n ttl = \"25h\"", `maximum, 1d`},
		"ttl overflowing":          {`profile = "profile.stub"` + "\n ttl = \"999999999999d\"", `overflows`},
		"ttl nonsense":             {`profile = "profile.stub"` + "\n ttl = \"soon\"", `duration`},
		"isolation floor":          {`profile = "profile.strict"`, `isolation`},
		"egress not enforceable":   {`profile = "profile.egress"`, `egress`},
		"no such folder":           {`profile = "profile.stub"` + "\n inputs = { repo = \"/does/not/exist\" }", `/does/not/exist`},
		"name with metas":          {`profile = "profile.stub"` + "\n name = \"a;rm -rf $HOME\"", `is not a name`},
		"name with newline":        {`profile = "profile.stub"` + "\n name = \"a\\nb\"", `line break`},
		"name with NUL":            {`profile = "profile.stub"` + "\n name = \"a\\u0000b\"", `NUL`},
		"name too long":            {`profile = "profile.stub"` + "\n name = \"" + long + "\"", `is not a name`},
		"name and prefix":          {`profile = "profile.stub"` + "\n name = \"a\"\n name_prefix = \"b\"", `cannot be specified when`},
		"prefix with slash":        {`profile = "profile.stub"` + "\n name_prefix = \"../x\"", `is not a name`},
		"input with newline":       {`profile = "profile.stub"` + "\n inputs = { ref = \"a\\nb\" }", `line break`},
		"input with NUL":           {`profile = "profile.stub"` + "\n inputs = { ref = \"a\\u0000b\" }", `NUL`},
		"env name":                 {`profile = "profile.stub"` + "\n env = { \"A B\" = \"1\" }", `environment variable`},
		"env name with equals":     {`profile = "profile.stub"` + "\n env = { \"A=B\" = \"1\" }", `environment variable`},
		"env value with NUL":       {`profile = "profile.stub"` + "\n env = { A = \"a\\u0000b\" }", `NUL`},
		"env value with escape":    {`profile = "profile.stub"` + "\n env = { A = \"a\\u001bb\" }", `U+001B`},
		"secret name":              {`profile = "profile.stub"` + "\n secrets_wo = { \"A B\" = \"1\" }", `environment variable`},
		"secret with NUL":          {`profile = "profile.stub"` + "\n secrets_wo = { A = \"a\\u0000b\" }", `NUL`},
		"trigger with NUL":         {`profile = "profile.stub"` + "\n triggers = { A = \"a\\u0000b\" }", `NUL`},
		"consumer with newline":    {`profile = "profile.stub"` + "\n consumer = { run_id = \"a\\nb\" }", `line break`},
		"unknown actor":            {`profile = "profile.stub"` + "\n consumer = { actor = \"agent\" }", `adm, agt, atm`},
		"unknown on_expiry":        {`profile = "profile.stub"` + "\n on_expiry = \"replce\"", `did you mean "replace"`},
		"unknown scope":            {`profile = "profile.stub"` + "\n scope = \"sesion\"", `did you mean "session"`},
		"unknown mode":             {`profile = "profile.stub"` + "\n desired_mode = \"stopped\"", `running, paused`},
		"pause that nobody ends":   {`profile = "profile.restless"` + "\n desired_mode = \"paused\"", `paus`},
		"fork where there is none": {`profile = "profile.stub"` + "\n from_sandbox = \"sbx-aaaaaaaaaaaaaaaaaaaa\"", `fork`},
		"not a snapshot":           {`profile = "profile.stub"` + "\n from_snapshot = \"x; reboot\"", `not a snapshot`},
		"both origins": {`profile = "profile.stub"` +
			"\n from_snapshot = \"snp-aaaaaaaaaaaaaaaaaaaa\"\n from_sandbox = \"sbx-aaaaaaaaaaaaaaaaaaaa\"", `cannot be specified when`},
		"max_cost without money": {`profile = "profile.stub"` + "\n max_cost = \"1.00\"", `1.00 USD`},
		"max_cost negative":      {`profile = "profile.stub"` + "\n max_cost = \"-1.00 USD\"", `negative`},
		"max_cost too low":       {`profile = "profile.stub"` + "\n ttl = \"24h\"\n max_cost = \"0.01 USD\"", `above max_cost`},
		"max_cost in euros":      {`profile = "profile.stub"` + "\n max_cost = \"1.00 EUR\"", `does not convert currencies`},
		"a host nobody knows":    {`profile = "profile.quickstart"` + "\n hosts = [\"nowhere\"]", `nowhere`},
		"a host twice": {`profile = "profile.quickstart"` +
			"\n hosts = [\"host://h?v=1&d=eyJsb2NhbCI6dHJ1ZX0\", \"host://h?v=1&d=eyJsb2NhbCI6dHJ1ZX0\"]", `twice`},
		"a host ref gone wrong": {`profile = "profile.quickstart"` + "\n hosts = [\"host://h?v=1&d=eyJsb2NhbCI6dHJ1ZX1\"]", `host ref`},
		"host with metas":       {`profile = "profile.quickstart"` + "\n hosts = [\"$(id)\"]", `is not a name`},
		"timeout":               {`profile = "profile.stub"` + "\n timeouts = { create = \"never\" }", `duration`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.profile("profile.strict", "extends: profile.quickstart\nisolation: { level: vm }\n")
			b.profile("profile.restless", "extends: profile.stub\nextension: ext.restless\n")
			b.write("catalog/extensions/ext.restless.yaml", "id: ext.restless\nhandler: saas-stub\nbilling: platform\nconfig: { plan: trial }\n")
			b.profile("profile.egress", "extends: profile.quickstart\nnetwork: { default: deny, egress: [\"pypi.org:443\"] }\n")
			cl := newCLI(t, b)
			cl.write("resource \"sandboxer_sandbox\" \"a\" {\n " + c.body + "\n}\n")
			refused(t, cl, c.want)
		})
	}
}

// refused plans and expects an error that contains want, and nothing behind it.
func refused(t *testing.T, c *cli, want string) {
	t.Helper()
	out, code := c.try(nil, "plan", "-no-color", "-input=false")
	flat := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(out)), " ")
	if code == 0 || !strings.Contains(flat, want) {
		t.Errorf("exit %d, want an error with %q:\n%s", code, want, out)
	}
	if strings.Contains(out, "panic") || strings.Contains(out, "inconsistent") {
		t.Errorf("not a clear error:\n%s", out)
	}
	if _, err := os.Stat(c.b.state); !os.IsNotExist(err) {
		t.Errorf("something was left behind in the state folder: %v", err)
	}
}

// A repository can only be asked for at apply; nothing is left of the attempt.
func TestARepositoryThatDoesNotExistIsRefusedAtApply(t *testing.T) {
	t.Parallel()
	for name, repo := range map[string]string{"no server": "https://127.0.0.1:1/none.git", "no repository": "file:///does/not/exist.git"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			c.write("resource \"sandboxer_sandbox\" \"a\" {\n profile = \"profile.stub\"\n inputs = { repo = \"" + repo + "\" }\n}\n")
			out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
			if code == 0 || !strings.Contains(out, strings.TrimSuffix(repo, ".git")) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			if c.stateOf(addr, "id") != nil {
				t.Error("it is in the state")
			}
			c.nothingLeft()
		})
	}
}

func TestABrokenCatalogIsToldAtItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, want string }{
		"bad yaml":      {"id: profile.bad\nversion: \"1.0.0\"\nttl: {default: 1h\n", `bad.yaml:`},
		"unknown key":   {"id: profile.bad\nversion: \"1.0.0\"\nttll: {}\n", `bad.yaml:3:1`},
		"duplicate key": {"id: profile.bad\nversion: \"1.0.0\"\nid: profile.bad\n", `bad.yaml:3:1`},
		"alias bomb":    {"id: profile.bad\nversion: \"1.0.0\"\nsetup: &a { instructions: x }\ntoolchain: *a\n", `bad.yaml:`},
		"cycle":         {"id: profile.bad\nversion: \"1.0.0\"\nextends: profile.bad\n", `profile.bad`},
		"wrong type":    {"id: profile.bad\nversion: \"1.0.0\"\nttl: 3\n", `bad.yaml:3:`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.write("catalog/profiles/bad.yaml", c.yaml)
			cl := newCLI(t, b)
			cl.write("resource \"sandboxer_sandbox\" \"a\" {\n profile = \"profile.bad\"\n}\n")
			refused(t, cl, c.want)
		})
	}
}

func TestABadProviderBlockIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"account":            {`"acme/web"`, `"acme"`, `org/workspace`},
		"ledger":             {`account`, "ledger = \"mysql://x\"\n account", `sqlite`},
		"ledger over https":  {`account`, "ledger = \"https://h?token=hunter2\"\n account", `postgres://user@host/database`},
		"postgres":           {`account`, "ledger = \"postgres://u:hunter2@h/db?sslmode=disable\"\n account", `verify-full`},
		"postgres database":  {`account`, "ledger = \"postgres://u:hunter2@h\"\n account", `names no database`},
		"catalog folder":     {`catalog   = [`, `catalog = ["/does/not/exist", `, `/does/not/exist`},
		"credential binding": {`account`, "credentials = { \"ext.nobody\" = { api_key = \"x\" } }\n account", `ext.nobody`},
		"credential field":   {`account`, "credentials = { \"ext.saas-stub\" = { apikey = \"hunter2\" } }\n account", `takes no credential`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			cl := newCLI(t, b)
			cl.write(sandboxHCL(""))
			raw, err := os.ReadFile(cl.dir + "/main.tf")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cl.dir+"/main.tf", []byte(strings.Replace(string(raw), c.from, c.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, cl, c.want)
			if out, _ := cl.try(nil, "plan", "-no-color"); strings.Contains(out, "hunter2") {
				t.Errorf("a secret was printed:\n%s", out)
			}
		})
	}
}
