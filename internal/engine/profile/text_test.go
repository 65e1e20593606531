package profile

import (
	"encoding/json"
	"testing"
)

const everything = `id: profile.all
version: "1.2.3"
extension: ext.docker
route: { strategy: lowest-cost, fallback: [ext.docker], constraints: { max_cost_per_hour: "0.50 USD", region: eu } }
isolation: { level: container }
network: { default: deny, egress: ["pypi.org:443"] }
workspace: { mode: mirror, access: rw }
image: { pull: "python:{{input.tag}}" }
entrypoint: [agent, run]
ttl: { default: 4h, max: 1d }
resources: { cpu: 0.5, memory_mb: 2048, gpu: { model: a100, count: 2 } }
setup: { instructions: "no: yes\n", secret_refs: ["TOKEN=env://GH_TOKEN", file:///run/secrets/db] }
toolchain: { post_acquire: [make, { run: make test, timeout: 5m }], env: { A: "1" } }
requires: { capabilities: [git] }
inputs: { repo: { type: string, required: true }, tag: { type: string, default: "3.12" } }
readiness: { command: [test, -f, ready], interval: 2s }
placement: { prefer: [one] }
options: { ext.docker: { x: true } }
`

func TestTheTextOfAProfileIsTheProfile(t *testing.T) {
	t.Parallel()
	p, err := Parse("all.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("text.yaml", text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	one, err1 := json.Marshal(p)
	other, err2 := json.Marshal(back)
	if err1 != nil || err2 != nil || string(one) != string(other) {
		t.Errorf("%s\nbecame\n%s\nby\n%s", one, other, text)
	}
}
