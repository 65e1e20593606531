package sqlstore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// field binds one column to one variable in both directions. A row type lists its fields once; inserts,
// updates, selects and events all use that list.
type field struct {
	name  string
	value func() (any, error) // string, int64, or nil for NULL
	load  func(any) error
	// embedded says that the column holds JSON, which events embed as JSON.
	embedded bool
}

// Scan implements sql.Scanner.
func (f field) Scan(src any) error {
	if b, ok := src.([]byte); ok {
		src = string(b)
	}
	if err := f.load(src); err != nil {
		return fmt.Errorf("column %s: %w", f.name, err)
	}
	return nil
}

func text[T ~string](name string, p *T) field {
	return field{name: name,
		value: func() (any, error) { return string(*p), nil },
		load: func(src any) error {
			s, ok := src.(string)
			if !ok {
				return fmt.Errorf("%T is not text", src)
			}
			*p = T(s)
			return nil
		}}
}

func number[T ~int64](name string, p *T) field {
	return field{name: name,
		value: func() (any, error) { return int64(*p), nil },
		load: func(src any) error {
			n, ok := src.(int64)
			if !ok {
				return fmt.Errorf("%T is not an integer", src)
			}
			*p = T(n)
			return nil
		}}
}

// micros is the field of a duration stored in microseconds.
func micros(name string, p *time.Duration) field {
	var n int64
	f := number(name, &n)
	value, load := f.value, f.load
	f.value = func() (any, error) { n = p.Microseconds(); return value() }
	f.load = func(src any) error {
		err := load(src)
		*p = time.Duration(n) * time.Microsecond
		return err
	}
	return f
}

func stamp(name string, p *time.Time) field {
	var n int64
	f := number(name, &n)
	value, load := f.value, f.load
	f.value = func() (any, error) { n = toMicros(*p); return value() }
	f.load = func(src any) error {
		err := load(src)
		*p = fromMicros(n)
		return err
	}
	return f
}

func flag(name string, p *bool) field {
	var n int64
	f := number(name, &n)
	value, load := f.value, f.load
	f.value = func() (any, error) {
		n = 0
		if *p {
			n = 1
		}
		return value()
	}
	f.load = func(src any) error {
		err := load(src)
		*p = n != 0
		return err
	}
	return f
}

// document is the field of canonical JSON; empty is stored as empty text.
func document(name string, p *json.RawMessage) field {
	f := text(name, new(string))
	f.embedded = true
	f.value = func() (any, error) {
		c, err := chain.Canonical(*p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return string(c), nil
	}
	f.load = func(src any) error {
		s, ok := src.(string)
		if !ok {
			return fmt.Errorf("%T is not text", src)
		}
		*p = nil
		if s != "" {
			*p = json.RawMessage(s)
		}
		return nil
	}
	return f
}

// object is the field of a value stored as JSON; the zero value is stored as empty text.
func object[T any](name string, p *T) field {
	var raw json.RawMessage
	f := document(name, &raw)
	value, load := f.value, f.load
	f.value = func() (any, error) {
		raw = nil
		if v := reflect.ValueOf(*p); !v.IsZero() {
			b, err := json.Marshal(*p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			raw = b
		}
		return value()
	}
	f.load = func(src any) error {
		var zero T
		*p = zero
		if err := load(src); err != nil || raw == nil {
			return err
		}
		return json.Unmarshal(raw, p)
	}
	return f
}

// claim stores value while *claimed, otherwise NULL; reading sets only *claimed.
func claim[T ~string](name string, claimed *bool, value *T) field {
	return field{name: name,
		value: func() (any, error) {
			if !*claimed {
				return nil, nil
			}
			return string(*value), nil
		},
		load: func(src any) error { *claimed = src != nil; return nil }}
}

func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func names(fs []field) string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = f.name
	}
	return strings.Join(out, ", ")
}

func values(fs []field) ([]any, error) {
	out := make([]any, len(fs))
	for i, f := range fs {
		v, err := f.value()
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func targets(fs []field) []any {
	out := make([]any, len(fs))
	for i := range fs {
		out[i] = fs[i]
	}
	return out
}
