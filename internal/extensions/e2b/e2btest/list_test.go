package e2btest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

func ids(out map[string]any) (all []string) {
	for _, one := range out["list"].([]any) {
		all = append(all, one.(map[string]any)["sandboxID"].(string))
	}
	return all
}

func TestAListHasPagesFiltersAndADelay(t *testing.T) {
	t.Parallel()
	c := connected(t)
	var made []string
	for i := range 5 {
		id, _ := c.made(map[string]any{"metadata": map[string]string{"n": fmt.Sprint(i), "all": "a b&c=d"}})
		made = append([]string{id}, made...)
	}
	filter := "/v2/sandboxes?metadata=" + url.QueryEscape(url.Values{"all": {"a b&c=d"}}.Encode())
	first := c.do("GET", filter+"&limit=2", nil, http.StatusOK)
	header := first["header"].(http.Header)
	if got := ids(first); !slices.Equal(got, made[:2]) || header.Get("X-Total-Running") != "5" {
		t.Errorf("%v %v", got, header)
	}
	c.do("DELETE", "/sandboxes/"+made[1], nil, http.StatusNoContent) // the last of that page
	next := c.do("GET", filter+"&limit=2&nextToken="+url.QueryEscape(header.Get("X-Next-Token")), nil, http.StatusOK)
	if got := ids(next); !slices.Equal(got, made[2:4]) {
		t.Errorf("after one had gone: %v, not %v", got, made[2:4])
	}
	if got := ids(c.do("GET", "/v2/sandboxes?metadata="+url.QueryEscape("n=0"), nil, http.StatusOK)); !slices.Equal(got, made[4:]) {
		t.Errorf("%v", got)
	}
	c.do("POST", "/sandboxes/"+made[0]+"/pause", nil, http.StatusNoContent)
	if got := ids(c.do("GET", "/v2/sandboxes?state=paused", nil, http.StatusOK)); !slices.Equal(got, made[:1]) {
		t.Errorf("paused: %v", got)
	}
	c.v.SetListDelay(10 * time.Second)
	id, _ := c.made(map[string]any{"metadata": map[string]string{"late": "1"}})
	late := "/v2/sandboxes?metadata=late%3D1"
	if got := ids(c.do("GET", late, nil, http.StatusOK)); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	c.do("GET", "/sandboxes/"+id, nil, http.StatusOK)
	c.v.Clock().Advance(10 * time.Second)
	if got := ids(c.do("GET", late, nil, http.StatusOK)); !slices.Equal(got, []string{id}) {
		t.Errorf("later: %v", got)
	}
}
