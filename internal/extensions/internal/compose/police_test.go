package compose

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// reachable lists every struct type below t.
func reachable(t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		reachable(t.Elem(), seen)
	case reflect.Map:
		reachable(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] || !strings.HasPrefix(t.PkgPath(), "github.com/compose-spec/") {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				reachable(f.Type, seen)
			}
		}
	default:
	}
}

// refusedWhole are the types below fields that are refused or dropped as a
// whole, and the two fields that are left to Load's own reading. Nothing below
// them is ever walked; were one walked all the same, all of it would be refused.
var refusedWhole = []string{"BlkioConfig", "CredentialSpecConfig", "DevelopConfig", "DiscreteGenericResource",
	"EnvFile", "ExtendsConfig", "GenericResource", "IPAMPool", "JobConfig", "ModelConfig", "Placement", "PlacementPreferences", "PreStartHook",
	"SSHKey", "ScheduleConfig", "ServiceModelConfig", "ServiceProviderConfig", "ServiceVolumeImage", "ThrottleDevice", "Trigger",
	"TriggerConfig",
	"UpdateConfig", "WeightDevice"}

func TestEveryFieldOfTheModelIsClassified(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	reachable(reflect.TypeFor[types.Project](), seen)
	refusedFields := []string{"ServiceConfig.Develop", "ServiceConfig.Extends", "WorkloadSpec.Dockerfile"}
	for st := range seen {
		c, ok := fields[st]
		if !ok {
			if !slices.Contains(refusedWhole, st.Name()) {
				t.Errorf("%s is not classified", st)
			}
			continue
		}
		names := map[string]bool{}
		for i := range st.NumField() {
			f := st.Field(i)
			names[f.Name] = true
			if id := st.Name() + "." + f.Name; f.IsExported() && c[f.Name] == nil && !slices.Contains(refusedFields, id) {
				t.Errorf("%s is not classified", id)
			}
		}
		for name := range c {
			if !names[name] {
				t.Errorf("%s has no field %s", st, name)
			}
		}
	}
	for st := range fields {
		if !seen[st] {
			t.Errorf("%s is no part of the model", st)
		}
	}
}

func TestAFieldNobodyKnowsIsRefused(t *testing.T) {
	t.Parallel()
	type future struct {
		Known   string `yaml:"known"`
		RootNow bool   `yaml:"root_now"`
		hidden  string
	}
	for name, v := range map[string]any{
		"set":     future{RootNow: true, hidden: "x"},
		"pointer": &future{RootNow: true},
		"in list": []*future{{}, {RootNow: true}},
		"in map":  map[string]future{"a": {RootNow: true}},
	} {
		p := &policer{loading: &loading{found: newFindings([]string{"unknown-field", "unknown-field:root_now"})}, project: &types.Project{},
			fields: fields}
		p.walk("x", reflect.ValueOf(v))
		if len(p.found.list) != 1 || p.found.list[0].Rule != "unknown-field" || !strings.HasSuffix(p.found.list[0].Where, ".root_now") {
			t.Errorf("%s: %+v", name, p.found.list)
		}
	}
	// A field of the library's own that no file can set today.
	project := &types.Project{Services: types.Services{"a": {WorkloadSpec: types.WorkloadSpec{Dockerfile: "x"}}}}
	p := &policer{loading: &loading{found: newFindings(nil), bundle: &Bundle{}}, project: project, fields: fields}
	p.walk("", reflect.ValueOf(project))
	if len(p.found.list) != 1 || p.found.list[0].Where != "services.a.dockerfile" {
		t.Errorf("%+v", p.found.list)
	}
}

func TestTheRuleTableIsWhole(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	last := ""
	for _, r := range rules {
		if r.ID == "" || r.Summary == "" || r.Reason == "" || ids[r.ID] || r.ID < last {
			t.Errorf("%+v after %s", r, last)
		}
		if r.Argument != "" && !r.Grantable {
			t.Errorf("%s takes an argument for nothing", r.ID)
		}
		last, ids[r.ID] = r.ID, true
	}
	for _, id := range []string{"privileged", "docker-socket", "bind-outside", "host-pid", "host-network", "host-ipc", "host-userns",
		"driver-opts", "external-network"} {
		if !ids[id] || ruleByID(id).Grantable || ruleByID(id).How() != "no profile can allow it" {
			t.Errorf("%s: %+v", id, ruleByID(id))
		}
	}
	if how := ruleByID("cap-add").How(); how != `options.ext.compose-ssh.allow: ["cap-add:CAPABILITY"]` {
		t.Error(how)
	}
}

func TestNoGrantLiftsWhatIsRoot(t *testing.T) {
	t.Parallel()
	var all []string
	for _, r := range rules {
		all = append(all, r.ID, r.ID+":", r.ID+":*", r.ID+":host", r.ID+":ALL", r.ID+":true", r.ID+":/", r.ID+":SYS_ADMIN", r.ID+":/dev/sda")
	}
	for _, body := range []string{"privileged: true", "pid: host", "ipc: host", "network_mode: host", "userns_mode: host", "uts: host",
		"cgroup: host",
		"cap_add: [ALL]", "cap_add: [SYS_ADMIN]", "devices: [/dev/sda]", `volumes: ["/:/host"]`, `volumes: ["/var/run/docker.sock:/s"]`,
		`security_opt: ["seccomp=unconfined"]`, "use_api_socket: true", "cgroup_parent: /", "oom_kill_disable: true",
		"sysctls: {kernel.core_pattern: x}"} {
		in := Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n  a:\n    image: x\n    " + body + "\n"}, nil), Allow: all}
		if _, err := Load(t.Context(), in); err == nil {
			t.Errorf("%s passed with every grant", body)
		}
	}
}

func TestARefusalSaysWhatWhereWhyAndHow(t *testing.T) {
	t.Parallel()
	in := Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n  web:\n    image: x\n    cap_add: [SYS_PTRACE]\n    volumes: " +
		"[\"a:/a\", \"/etc:/b\"]\nvolumes: {a: {}}\n"}, nil)}
	_, err := Load(t.Context(), in)
	if err == nil {
		t.Fatal("it passed")
	}
	for _, want := range []string{
		`cap-add: services.web.cap_add[0]: the capability "SYS_PTRACE": `, `; options.ext.compose-ssh.allow: ["cap-add:SYS_PTRACE"]`,
		`bind-outside: services.web.volumes[1]: "/etc": it leaves the bundle: `, "; no profile can allow it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

// Compose reads one letter before a colon as a drive, also where a volume of that
// name is declared.
func TestAVolumeOfOneLetterIsToldToReadAsADrive(t *testing.T) {
	t.Parallel()
	for _, volume := range []string{"v:/v", "v:/v:ro", `c:\\data:/v`, "D:/data:/v"} {
		_, err := Load(context.Background(), Input{Files: []string{"compose.yaml"},
			Source: files{"compose.yaml": "services: {a: {image: x, volumes: [\"" + volume + "\"]}}\nvolumes: {v: {}}\n"}})
		if err == nil || !strings.Contains(err.Error(), "Windows drive "+volume[:2]) || !strings.Contains(err.Error(), "vol-"+volume[:1]) {
			t.Errorf("%s: %v", volume, err)
		}
	}
	if _, err := Load(context.Background(), Input{Files: []string{"compose.yaml"},
		Source: files{"compose.yaml": "services: {a: {image: x, volumes: [\"vv:/v\", {type: volume, source: v, target: /w}]}}\nvolumes: {v: " +
			"{}, vv: {}}\n"}}); err != nil {
		t.Error(err)
	}
}
