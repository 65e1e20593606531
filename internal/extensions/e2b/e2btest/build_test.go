package e2btest

import (
	"archive/tar"
	"bytes"
	"net/http"
	"testing"
)

// build asks for a template and waits for it.
func (c client) build(name string, body map[string]any) (status, why string) {
	c.t.Helper()
	asked := c.do("POST", "/v3/templates", map[string]any{"name": name, "cpuCount": 4, "memoryMB": 2048}, http.StatusAccepted)
	id, build := asked["templateID"].(string), asked["buildID"].(string)
	c.do("POST", "/sandboxes", map[string]any{"templateID": name}, http.StatusNotFound)
	c.do("POST", "/v2/templates/"+id+"/builds/"+build, body, http.StatusAccepted)
	for range 10 {
		out := c.do("GET", "/templates/"+id+"/builds/"+build+"/status?logsOffset=0", nil, http.StatusOK)
		if status = out["status"].(string); status != "building" {
			reason, _ := out["reason"].(map[string]any)
			why, _ = reason["message"].(string)
			return status, why
		}
	}
	return status, why
}

func TestATemplateIsBuiltFromAnImageAndSteps(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.v.SetImages("alpine:3.20")
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_ = w.WriteHeader(&tar.Header{Name: "src/a.txt", Mode: 0o640, Size: 4})
	_, _ = w.Write([]byte("text"))
	_ = w.Close()
	link := c.do("GET", "/templates/x/files/abc", nil, http.StatusCreated)
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, link["url"].(string), &files)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.h.Do(put)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	_ = res.Body.Close()
	if again := c.do("GET", "/templates/x/files/abc", nil, http.StatusCreated); again["present"] != true {
		t.Errorf("%v", again)
	}
	step := func(kind string, args ...string) map[string]any { return map[string]any{"type": kind, "args": args} }
	from := step("COPY", "src", "/opt/it/", "", "")
	from["filesHash"] = "abc"
	if status, why := c.build("mine:v1", map[string]any{"fromImage": "alpine:3.20", "steps": []any{
		step("ENV", "A", "1"), step("WORKDIR", "/opt"), from, step("RUN", "cat it/a.txt >made; echo $A >>made")}}); status != "ready" {
		t.Fatal(status, why)
	}
	id, token := c.made(map[string]any{"templateID": "mine"})
	if out, _, err := c.shell(id, token, "cat /opt/made; echo $A", nil); err != nil || out != "text1\n1\n" {
		t.Errorf("%q, %v", out, err)
	}
	if got := c.do("GET", "/sandboxes/"+id, nil, http.StatusOK); got["cpuCount"] != 4.0 || got["memoryMB"] != 2048.0 {
		t.Errorf("%v", got)
	}
	for image, step := range map[string]map[string]any{"nonesuch:1": step("RUN", "true"), "alpine:3.20": step("RUN", "echo no; exit 3")} {
		if status, why := c.build("bad", map[string]any{"fromImage": image, "steps": []any{step}}); status != "error" || why == "" {
			t.Errorf("%s: %s %s", image, status, why)
		}
	}
	if got := c.do("GET", "/templates/aliases/mine", nil, http.StatusOK); got["templateID"] == "" {
		t.Error(got)
	}
	if text := c.do("GET", "/v2/templates", nil, http.StatusOK)["list"].([]any); len(text) != 3 {
		t.Errorf("%v", text)
	}
}
