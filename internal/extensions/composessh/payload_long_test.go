package composessh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// What the host could not unpack is refused here, with all its names.
func TestPathsThatAreTooLongForTheHostAreRefusedByName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d/", tarstream.MaxPathBytes/2)
	files := map[string]string{"short": "x", long[:4000] + "fits": "x"}
	for i := range maxListed + 3 {
		files[fmt.Sprintf("%02d/%sf", i, long)] = "x"
	}
	p := &payload{trees: []payloadTree{{name: "workspace", source: newFolder(t, files), except: "00/" + long + "f"}}}
	err := p.measure(t.Context())
	wantKind(t, "paths that are too long", err, extensions.KindInvalid, `"01/d/`, `"20/d/`, "22 paths", "and 2 more")
	if strings.Contains(err.Error(), "free some disk") || strings.Contains(err.Error(), `"00/`) {
		t.Error(err)
	}
	delete(files, "short")
	for name := range files {
		if len(name) > tarstream.MaxPathBytes-20 {
			delete(files, name)
		}
	}
	p = &payload{trees: []payloadTree{{name: "workspace", source: newFolder(t, files)}}}
	must(t, p.measure(t.Context()))
}

// Users of the containers get the rights to what is as deep as it may be.
func TestTheDeepestFileIsOpenToTheContainers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	parts := strings.Repeat(strings.Repeat("n", 199)+"/", 20)
	deep := parts
	for tarbox.Fits("workspace/", deep+"f") {
		deep += "f"
	}
	h := s.provision(t, b, s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{deep: "x"})))
	root, err := os.OpenRoot(filepath.Join(s.root, string(h.ID), "workspace"))
	must(t, err)
	defer root.Close()
	info, err := root.Stat(deep)
	must(t, err)
	if info.Mode().Perm() != 0o666 {
		t.Errorf("the mode is %s", info.Mode())
	}
}
