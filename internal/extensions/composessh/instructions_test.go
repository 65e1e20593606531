package composessh

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func TestARepositoryDoesNotReplaceTheInstructions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"a": "b"}))
	spec.Instructions = "what the operator says"
	spec.Workspace.Source = newFolder(t, map[string]string{extensions.InstructionsPath: "what the repository says", ".sandboxer/other": "kept",
		"x": "y"})
	h := s.provision(t, b, spec)
	r := run(t, b, h, extensions.ExecRequest{Shell: "cat /workspace/" + extensions.InstructionsPath +
		" /workspace/.sandboxer/other /workspace/x"})
	if string(r.Stdout) != "what the operator sayskepty" {
		t.Errorf("inside it is %q", r.Stdout)
	}
}

// rawTree is a source of these very headers.
func rawTree(t testing.TB, headers ...tar.Header) folder {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		must(t, w.WriteHeader(&h))
		_, err := w.Write(make([]byte, h.Size))
		must(t, err)
	}
	must(t, w.Close())
	return folder{data: out.Bytes()}
}

func TestInstructionsGoThroughNoLink(t *testing.T) {
	t.Parallel()
	pack := func(except string, headers ...tar.Header) (string, error) {
		p := payload{trees: []payloadTree{{name: "workspace", source: rawTree(t, headers...), except: except}},
			last: []payloadFile{{"workspace/" + extensions.InstructionsPath, []byte("ours")}}}
		if err := p.measure(t.Context()); err != nil {
			return "", err
		}
		var names []string
		r := tar.NewReader(bytes.NewReader(p.whole))
		for {
			h, err := r.Next()
			if err != nil {
				return strings.Join(names, " "), nil
			}
			names = append(names, h.Name)
		}
	}
	for what, h := range map[string]tar.Header{
		"a file": {Typeflag: tar.TypeReg, Name: ".sandboxer", Mode: 0o644},
		"a link": {Typeflag: tar.TypeSymlink, Name: "./.sandboxer", Linkname: "../.."},
	} {
		_, err := pack(extensions.InstructionsPath, h)
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "not a folder") {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := pack("", h); err != nil { // without instructions it is the repository's own affair
			t.Errorf("%s, without instructions: %v", what, err)
		}
	}
	names, err := pack(extensions.InstructionsPath, tar.Header{Typeflag: tar.TypeDir, Name: ".sandboxer/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./.sandboxer/instructions.md", Linkname: "/etc/passwd"},
		tar.Header{Typeflag: tar.TypeReg, Name: ".sandboxer/instructions.md/below", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeReg, Name: ".sandboxer/instructions.md2", Mode: 0o644})
	if want := "workspace/ workspace/.sandboxer/ workspace/.sandboxer/instructions.md2 workspace/.sandboxer/instructions.md"; err != nil ||
		names != want {
		t.Errorf("packed %q, %v; want %q", names, err, want)
	}
}
