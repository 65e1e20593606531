package sqlstore_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, kind := range map[string]extensions.Kind{
		"sqlite:///var/lib/sandboxer/ledger.db":         "",
		"sqlite:///with%20blank/ledger.db":              "",
		"postgres://db/ledger":                          "",
		"postgresql://db/ledger":                        "",
		"postgres:///ledger?host=/run/pg":               "",
		"POSTGRES://db/ledger":                          "",
		"SQLite:///var/lib/sandboxer/ledger.db":         "",
		"MYSQL://x":                                     extensions.KindInvalid,
		"postgres://a,b:5433/ledger":                    "",
		"postgres://[2001:db8::1]:5433/ledger":          "",
		"postgres://localhost/l?sslmode=prefer":         "",
		"postgres://db/ledger?sslmode=require":          "",
		"postgres://db/ledger?sslmode=prefer":           extensions.KindInvalid,
		"postgres://db/ledger?sslmode=disable":          extensions.KindInvalid,
		"postgres://db/ledger?sslmode=verify":           extensions.KindInvalid,
		"postgres://db/l?sslrootcert=/no/such":          extensions.KindInvalid,
		"postgres://a,127.0.0.1/l?sslmode=allow":        extensions.KindInvalid,
		"postgres://db:port/ledger":                     extensions.KindInvalid,
		"postgres://db":                                 extensions.KindInvalid,
		"postgres:ledger":                               extensions.KindInvalid,
		"":                                              extensions.KindInvalid,
		"ledger.db":                                     extensions.KindInvalid,
		"/var/lib/ledger.db":                            extensions.KindInvalid,
		"sqlite:ledger.db":                              extensions.KindInvalid,
		"sqlite://ledger.db":                            extensions.KindInvalid,
		"sqlite://host/ledger.db":                       extensions.KindInvalid,
		"sqlite:///ledger.db?_pragma=journal_mode(off)": extensions.KindInvalid,
		"sqlite:///folder/":                             extensions.KindInvalid,
		"sqlite:///":                                    extensions.KindInvalid,
		"sqlite:///a%00b":                               extensions.KindInvalid,
		"sqlite:///a%zz":                                extensions.KindInvalid,
		"mysql://x":                                     extensions.KindInvalid,
		"postgres://user:hunter2@db/%zz":                extensions.KindInvalid,
		"https://db.example":                            extensions.KindInvalid,
		"https://:hunter2@db.example?token=hunter2":     extensions.KindInvalid,
		"HTTP://127.0.0.1:7777":                         extensions.KindInvalid,
	} {
		err := sqlstore.CheckURL(address)
		if extensions.KindOf(err) != kind || err != nil && (extensions.RemedyOf(err) == "" || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := sqlstore.CheckURL("https://db.example"); !strings.Contains(err.Error(), "https") ||
		!strings.Contains(extensions.RemedyOf(err), "postgres://") {
		t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if err := sqlstore.CheckURL(sqlstore.DefaultURL(filepath.Join(t.TempDir(), "a b#c?d%e"))); err != nil {
		t.Error(err)
	}
}

func TestAFolderIsNoLedger(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	folder := filepath.Join(parent, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		if _, err := sqlstore.Open(ctx, "sqlite://"+folder, sqlstore.Options{ReadOnly: readOnly}); !extensions.IsKind(err,
			extensions.KindInvalid) {
			t.Errorf("read only %t: %v", readOnly, err)
		}
	}
	after, err := os.Stat(folder)
	left, globErr := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil || globErr != nil || after.Mode() != before.Mode() || len(left) != 1 {
		t.Errorf("the folder was %s and is %v, beside it: %q", before.Mode(), after.Mode(), left)
	}
}

// Nothing that is written may be able to hold a secret.
func TestNoTypeOfTheLedgerCanHoldASecret(t *testing.T) {
	t.Parallel()
	secret := reflect.TypeFor[extensions.Secret]()
	seen := map[reflect.Type]bool{}
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch {
		case typ == secret:
			t.Errorf("%s is a secret", path)
		case typ.Kind() == reflect.Interface && typ != reflect.TypeFor[error]():
			t.Errorf("%s can hold anything", path)
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(path+"[]", typ.Elem())
		case reflect.Map:
			walk(path+"{key}", typ.Key())
			walk(path+"{}", typ.Elem())
		case reflect.Struct:
			if typ.PkgPath() == "time" {
				return
			}
			for i := range typ.NumField() {
				walk(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[ledger.Begin](), reflect.TypeFor[ledger.Change](), reflect.TypeFor[ledger.Sandbox](),
		reflect.TypeFor[ledger.BeginSnapshot](), reflect.TypeFor[ledger.SnapshotChange](), reflect.TypeFor[ledger.Snapshot](),
		reflect.TypeFor[ledger.Host](), reflect.TypeFor[ledger.Intent](), reflect.TypeFor[ledger.Event](), reflect.TypeFor[ledger.Charge]()} {
		walk(typ.Name(), typ)
	}
}
