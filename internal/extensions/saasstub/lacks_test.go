package saasstub_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

func TestADownloadCarriesWhatItCanAndNamesTheRest(t *testing.T) {
	t.Parallel()
	b, cfg := opened(t, saasstub.New())
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	trees, err := filepath.Glob(filepath.Join(dirOf(cfg), "*", "*", "root"))
	must(t, err)
	if len(trees) != 1 {
		t.Fatalf("trees: %q", trees)
	}
	src := filepath.Join(trees[0], "tmp", "src")
	must(t, os.MkdirAll(src, 0o700))
	must(t, os.WriteFile(filepath.Join(src, "closed"), []byte("1"), 0))
	must(t, os.WriteFile(filepath.Join(src, "first"), []byte("2"), 0o600))
	must(t, os.Link(filepath.Join(src, "first"), filepath.Join(src, "second")))
	root, err := os.OpenRoot(filepath.Join(trees[0], "tmp"))
	must(t, err)
	defer root.Close()
	deep := strings.Repeat("d/", tarstream.DefaultMaxDepth-1) + "d"
	must(t, root.Mkdir("deep", 0o700))
	top, err := root.OpenRoot("deep")
	must(t, err)
	defer top.Close()
	dir, err := tarstream.MakeFolder(top, deep)
	must(t, err)
	must(t, dir.WriteFile("f", nil, 0o600))
	must(t, dir.Close())

	files := b.(extensions.FileTransfer)
	err = files.Download(t.Context(), h, "/tmp/deep", io.Discard)
	var lacks *extensions.Incomplete
	if !errors.As(err, &lacks) || len(lacks.Paths) != 1 || lacks.Paths[0] != deep+"/f" || lacks.More {
		t.Errorf("the download lacks %+v", lacks)
	}
	var stream bytes.Buffer
	must(t, files.Download(t.Context(), h, "/tmp/src", &stream))
	must(t, files.Upload(t.Context(), h, "/tmp/dst", &stream))
	dst := filepath.Join(trees[0], "tmp", "dst")
	if got, err := os.ReadFile(filepath.Join(dst, "closed")); string(got) != "1" {
		t.Errorf("closed holds %q: %v", got, err)
	}
	one, err := os.Stat(filepath.Join(dst, "first"))
	must(t, err)
	if two, err := os.Stat(filepath.Join(dst, "second")); err != nil || !os.SameFile(one, two) {
		t.Errorf("two names of one file became two files: %v", err)
	}
}
