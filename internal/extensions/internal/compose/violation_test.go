package compose

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What is wrong in a Dockerfile is mended there.
func TestTheRemedyNamesTheFileToChange(t *testing.T) {
	t.Parallel()
	const bad = "FROM a\nRUN --network=host id\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"compose": {map[string]string{"compose.yaml": "services: {a: {image: x, privileged: true}}"}, "Change the compose file."},
		"grantable": {map[string]string{"compose.yaml": "services: {a: {image: x, cap_add: [SYS_PTRACE]}}"},
			"Change the compose file, or allow it in the profile as shown, under options.ext.compose-ssh."},
		"Dockerfile": {map[string]string{"compose.yaml": "services: {a: {build: web}}", "web/Dockerfile": bad},
			"Change the Dockerfile web/Dockerfile."},
		"inline": {map[string]string{"compose.yaml": "services: {a: {build: {context: ., dockerfile_inline: \"FROM a\\nRUN --network=host " +
			"id\"}}}"}, "Change the compose file."},
		"fetching": {map[string]string{"compose.yaml": "services: {a: {build: web}}", "web/Dockerfile": "FROM a\nADD http://x/ /x\n"},
			"Change the Dockerfile web/Dockerfile, or allow it in the profile"},
		"two": {map[string]string{"compose.yaml": "services: {a: {build: web}, b: {build: db}}", "web/Dockerfile": bad, "db/Dockerfile": bad},
			"Change the Dockerfiles db/Dockerfile, web/Dockerfile."},
		"both": {map[string]string{"compose.yaml": "services: {a: {build: web}, b: {build: {context: ., dockerfile_inline: nonsense}}}",
			"web/Dockerfile": bad},
			"Change the compose file and the Dockerfile web/Dockerfile."},
	} {
		p, err := Load(t.Context(), Input{Source: pack(t, c.files, nil), Deny: true})
		if err == nil {
			_, err = p.Render(withDefaults(RenderOptions{Network: NetworkDeny}))
		}
		if remedy := extensions.RemedyOf(err); !strings.HasPrefix(remedy, c.want) {
			t.Errorf("%s: %q, want %q; %v", name, remedy, c.want, err)
		}
	}
}

func TestAnUnsetVariableSaysHowItIsSet(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"interpolated":  "{image: x, command: '$TAG'}",
		"named":         "{image: x, environment: [TAG]}",
		"of a hook":     "{image: x, post_start: [{command: x, environment: {TAG: }}]}",
		"in the config": "{image: x}\nconfigs: {c: {environment: TAG}}",
	} {
		_, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n  a: " + body + "\n"}, nil)})
		if err == nil {
			t.Errorf("%s passed", name)
			continue
		}
		for _, want := range []string{"interpolate-environment: ", "the sandbox's `env`", "an env file of the bundle", "${TAG:-…}",
			`allow: ["interpolate-environment:TAG"]`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
	}
}

func TestAFieldThatIsNoneIsNamed(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"services: {a: {image: x, comand: y}}\n":                      `services.a: Compose knows no field "comand" here`,
		"servises: {a: {image: x}}\n":                                 "servises",
		"services: {a: {image: x, healthcheck: {intervall: 1s}}}\n":   "intervall",
		"services: {a: {image: x, deploy: {resources: {limit: {}}}}}": "limit",
	} {
		_, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": file}, nil), Deny: true})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "false schema") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
