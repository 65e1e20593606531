package compose

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/template"
)

func testExpander(vars map[string]string, unset *[]string) *expander {
	left := maxExpanded
	return &expander{left: &left,
		lookup: func(n string) (string, bool) { v, ok := vars[n]; return v, ok },
		unset:  func(n string) { *unset = append(*unset, n) }}
}

var interpolated = []struct {
	text, want string
	unset      string
	err        string
}{
	{text: "", want: ""}, {text: "plain", want: "plain"}, {text: "$", want: "$"}, {text: "a$", want: "a$"}, {text: "$$", want: "$"},
	{text: "$$A", want: "$A"}, {text: "$$${A}", want: "$1"}, {text: "$A", want: "1"}, {text: "${A}", want: "1"}, {text: "x$A.y", want: "x1.y"},
	{text: "$1", want: "$1"}, {text: "$ A", want: "$ A"}, {text: "${E}", want: ""}, {text: "${A}${A}", want: "11"},
	{text: "$U", unset: "U"}, {text: "${U}", unset: "U"}, {text: "${U:-}", want: ""}, {text: "${U-d}", want: "d"},
	{text: "${U:-d}", want: "d"},
	{text: "${E-d}", want: ""}, {text: "${E:-d}", want: "d"}, {text: "${A:-d}", want: "1"}, {text: "${A-d}", want: "1"},
	{text: "${A:+d}", want: "d"}, {text: "${A+d}", want: "d"}, {text: "${E:+d}", want: ""}, {text: "${E+d}", want: "d"},
	{text: "${U+d}", want: ""},
	{text: "${U:-${A}}", want: "1"}, {text: "${U:-${V:-x}}", want: "x"}, {text: "${U:-a${A}b}c", want: "a1bc"}, {text: "${U:-$V}", unset: "V"},
	{text: "${A:-$V}", want: "1"}, {text: "${A:?no}", want: "1"}, {text: "${U:?not $A}", err: "not 1"}, {text: "${U?gone}", err: "gone"},
	{text: "${E:?empty}", err: "empty"},
	{text: "${E?empty}", want: ""}, {text: "${U:-x:y}", want: "x:y"}, {text: "${U:-a-b+c?d}", want: "a-b+c?d"},
	{text: "${U:-http://h:1/p}", want: "http://h:1/p"},
	{text: "${}", err: "no variable name"}, {text: "${A", err: "not closed"}, {text: "${1}", err: "no variable name"},
	{text: "${A!}", err: "is not an interpolation"}, {text: "${A:}", err: "is not an interpolation"},
}

func TestInterpolationIsComposes(t *testing.T) {
	t.Parallel()
	quiet()
	vars := map[string]string{"A": "1", "E": ""}
	for _, c := range interpolated {
		var unset []string
		got, err := testExpander(vars, &unset).substitute(c.text, 0)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %q, %v", c.text, got, err)
			}
		} else if err != nil || got != c.want || strings.Join(unset, ",") != c.unset {
			t.Errorf("%q: %q, %v, unset %q", c.text, got, err, unset)
		}
		theirs, terr := template.Substitute(c.text, func(n string) (string, bool) { v, ok := vars[n]; return v, ok })
		if (terr == nil) != (err == nil) || err == nil && theirs != got {
			t.Errorf("%q: the library says %q, %v; we say %q, %v", c.text, theirs, terr, got, err)
		}
	}
}

func TestInterpolationIsBounded(t *testing.T) {
	t.Parallel()
	var unset []string
	x := testExpander(map[string]string{"A": strings.Repeat("x", 1<<20)}, &unset)
	if _, err := x.substitute(strings.Repeat("$A", 100), 0); err == nil {
		t.Error("100 MiB were made")
	}
	deep := strings.Repeat("${U:-", 100_000) + strings.Repeat("}", 100_000)
	if _, err := x.substitute(deep, 0); err == nil {
		t.Error("a nesting of 100000 passed")
	}
}

const envSamples = `# comment
A=1
B = two words # comment
C="quoted # not comment"
D='single $A'
E="line
two"
F="esc \" \$A \n ${A}"
export G=g
H: yaml style
I=
J="a"
K=$A$$B
L="it's"
M='it\'s'
N=a#b
O="${A:-x}-${U:-y}"
P="\\"
Q=a=b=c
R="tab\there"
` + "S=crlf\r\nT=\ttabbed\t\n  U2  =  spaced  \n"

func TestEnvFilesAreReadLikeCompose(t *testing.T) {
	t.Parallel()
	quiet()
	samples := append(strings.Split(envSamples, "\n"), envSamples, "\ufeffA=1\n", "A", "A B=1", "A='open", "Ä=1", "a.b-c[0]=1", "X\n", "A=${",
		"A=1;B=2", "A='x'y", "A=\"x\" # c\nB=1")
	for _, text := range samples {
		var unset []string
		got := map[string]string{}
		x := testExpander(nil, &unset)
		x.lookup = func(n string) (string, bool) { v, ok := got[n]; return v, ok }
		err := parseEnvFile(text, got, x)
		theirs, terr := dotenv.ParseWithLookup(strings.NewReader(text), func(string) (string, bool) { return "", false })
		delete(theirs, "") // what the library makes of a last line without a value
		if (err == nil) != (terr == nil) {
			t.Errorf("%q: we say %v, the library %v", text, err, terr)
		}
		if err == nil && !maps.Equal(got, theirs) {
			t.Errorf("%q:\n we say %q\nlibrary %q", text, got, theirs)
		}
	}
}

func TestRawEnvFilesAreNotExpanded(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	if err := parseRawEnvFile("# c\nA=$HOME \"x\"\n\nB=\nC\n", got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"A": `$HOME "x"`, "B": ""}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if err := parseRawEnvFile("A B=1\n", got); err == nil {
		t.Error("a name with a space passed")
	}
}

func TestInterpolationInAStack(t *testing.T) {
	t.Parallel()
	s := readStack(t, "testdata/good/interpolation.txtar")
	p, err := Load(t.Context(), s.in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"$HOME", "1", "1", "1", "x", "x", "y", "", "1", "a1b$", "1"}
	if got := p.Compose.Services["app"].Command; !slices.Equal([]string(got), want) {
		t.Errorf("%q", got)
	}
}

func TestAVariableTheStackRequires(t *testing.T) {
	t.Parallel()
	_, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": "services: {a: {image: '${IMAGE:?set the image}'}}"},
		nil)})
	if err == nil || !strings.Contains(err.Error(), "requires the variable IMAGE: set the image") {
		t.Errorf("%v", err)
	}
}

func TestPrecedenceOfVariables(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"s/compose.yaml": "services: {a: {image: 'x:$A-$B-$C-$D', env_file: [one.env, two.env], environment: [A, \"V=own\", TOKEN]}}",
		"s/.env":         "A=dot\nB=dot\nC=dot\nD=dot\nTOKEN=dot\n", "x.env": "B=x\nC=x\n", "y.env": "C=y\nD=y$B\n",
		"s/one.env": "V=one\nW=one\nX=one\n", "s/two.env": "X=two\nY=${X}$A\n",
	}
	in := Input{Source: pack(t, files, nil), Files: []string{"s/compose.yaml"}, Env: map[string]string{"A": "spec"},
		SecretNames: []string{"TOKEN"}}
	for _, c := range []struct {
		envFiles []string
		image    string
	}{{nil, "x:spec-dot-dot-dot"}, {[]string{"s/.env", "x.env", "y.env"}, "x:spec-x-y-yx"}} {
		in.EnvFiles = c.envFiles
		p, err := Load(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		a := p.Compose.Services["a"]
		if a.Image != c.image {
			t.Errorf("%v: %s", c.envFiles, a.Image)
		}
		for name, want := range map[string]string{"A": "spec", "V": "own", "W": "one", "X": "two", "Y": "twospec"} {
			if v := a.Environment[name]; v == nil || *v != want {
				t.Errorf("%s is %v", name, v)
			}
		}
		if v, ok := a.Environment["TOKEN"]; !ok || v != nil {
			t.Errorf("the secret is %v, %v", v, ok)
		}
	}
}
