package e2btest

import (
	"net/http"
	"testing"
)

func TestASnapshotHasTheFilesAndAForkAlsoTheMetadata(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(map[string]any{"metadata": map[string]string{"k": "v"}})
	if out, _, err := c.shell(id, token, "echo kept >work; ln -s /home/user/work /tmp/link; chmod 700 work", nil); err != nil || out != "" {
		t.Fatal(out, err)
	}
	snapshot := c.do("POST", "/sandboxes/"+id+"/snapshots", map[string]any{}, http.StatusCreated)["snapshotID"].(string)
	named := c.do("POST", "/sandboxes/"+id+"/snapshots", map[string]any{"name": "mine"}, http.StatusCreated)["snapshotID"].(string)
	if named != "acme/mine:default" {
		t.Error(named)
	}
	if out, _, err := c.shell(id, token, "echo changed >work", nil); err != nil || out != "" {
		t.Fatal(out, err)
	}
	fork := c.do("POST", "/sandboxes/"+id+"/fork", map[string]any{"timeout": 60}, http.StatusCreated)["list"].([]any)[0].(map[string]any)["sandbox"].(map[string]any)
	c.do("DELETE", "/sandboxes/"+id, nil, http.StatusNoContent)
	for _, from := range []string{snapshot, named} {
		child, token := c.made(map[string]any{"templateID": from})
		if out, _, err := c.shell(child, token, "cat /tmp/link; ls -l work | cut -c1-10; echo more >work", nil); err != nil || out != "kept\n-rwx------\n" {
			t.Errorf("%s: %q, %v", from, out, err)
		}
	}
	if out, _, err := c.shell(fork["sandboxID"].(string), fork["envdAccessToken"].(string), "cat work", nil); err != nil || out != "changed\n" {
		t.Errorf("the fork: %q, %v", out, err)
	}
	for _, s := range c.v.Sandboxes() {
		if s.ID == fork["sandboxID"] && s.Metadata["k"] != "v" {
			t.Errorf("the fork's metadata: %v", s.Metadata)
		}
	}
	if got := c.do("GET", "/snapshots?sandboxID="+id, nil, http.StatusOK)["list"].([]any); len(got) != 2 {
		t.Errorf("%v", got)
	}
	c.do("DELETE", "/templates/"+snapshot, nil, http.StatusBadRequest)
	for _, s := range c.v.Sandboxes() {
		c.do("DELETE", "/sandboxes/"+s.ID, nil, http.StatusNoContent)
	}
	c.do("DELETE", "/templates/"+snapshot, nil, http.StatusNoContent)
	c.do("POST", "/sandboxes", map[string]any{"templateID": snapshot}, http.StatusNotFound)
}
