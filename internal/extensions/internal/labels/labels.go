// Package labels fits the contract's labels into places that take short values of few letters (Kubernetes: at
// most 63 of A-Z, a-z, 0-9, '-', '_' and '.', letters or digits at both ends) or few labels (Vercel: five).
//
// A place is asked for objects by id and by account only, so each of these has a label whose value depends on
// nothing else (Value). The rest is read with the object: it is packed into as few further labels as hold it.
package labels

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// MaxValue is the longest label value, in bytes.
const MaxValue = 63

// escape begins an escaped byte: two upper-case hexadecimal digits follow. It is a letter, so that it may stand at
// both ends, and one that hardly occurs.
const escape = 'Z'

// digested begins a value that is a digest: no escaped byte begins like it.
const digested = "Z-"

var digestText = base32.StdEncoding.WithPadding(base32.NoPadding)

// Value returns text as a label value: itself where that is possible, else with escapes, else a digest. Equal
// texts have equal values, and different ones have different ones.
func Value(text string) string {
	if v := escaped(text); len(v) <= MaxValue {
		return v
	}
	sum := sha256.Sum256([]byte(text))
	return digested + digestText.EncodeToString(sum[:])
}

// Text returns the text of a value. known is false for a digest. A value that Value does not return is
// KindInvalid.
func Text(value string) (text string, known bool, err error) {
	if strings.HasPrefix(value, digested) {
		sum, err := digestText.DecodeString(value[len(digested):])
		if err != nil || len(sum) != sha256.Size || digestText.EncodeToString(sum) != value[len(digested):] {
			return "", false, invalid(value)
		}
		return "", false, nil
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != escape {
			b.WriteByte(value[i])
			continue
		}
		if i+2 >= len(value) {
			return "", false, invalid(value)
		}
		high, low := strings.IndexByte(hexDigits, value[i+1]), strings.IndexByte(hexDigits, value[i+2])
		if high < 0 || low < 0 {
			return "", false, invalid(value)
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	if text = b.String(); len(value) > MaxValue || escaped(text) != value {
		return "", false, invalid(value)
	}
	return text, true, nil
}

func invalid(value string) error {
	return extensions.Errorf(extensions.KindInvalid, "%q is no label value of sandboxer's", extensions.Clean(value, 80))
}

const hexDigits = "0123456789ABCDEF"

func escaped(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		alone := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' && c != escape || c >= '0' && c <= '9'
		if alone || strings.IndexByte("._-", c) >= 0 && i > 0 && i < len(text)-1 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte(escape)
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}

// restKey is the name of the n-th label of what nobody asks for.
func restKey(n int) string { return fmt.Sprintf("sandboxer.rest-%d", n) }

// common are the labels that every object has besides id and account. Their position is stored: append only.
var common = []string{extensions.LabelGeneration, extensions.LabelSpecHash, extensions.LabelInitialExpires, extensions.LabelAccount}

// Room is what a place takes.
type Room struct {
	Labels int // 0 = any number
	Value  int // longest value of a label that nobody asks for, in bytes; 0 = MaxValue, which is also the least
}

// chunk is how much of the rest one value holds, besides one letter at each end.
func (r Room) chunk() int { return max(r.Value, MaxValue) - 2 }

// Pack returns the labels as the place takes them. An object without an ID, and labels that need more room, are
// KindInvalid.
func Pack(labels map[string]string, room Room) (map[string]string, error) {
	id, account := labels[extensions.LabelID], labels[extensions.LabelAccount]
	if _, err := extensions.ParseID(id); err != nil {
		return nil, err
	}
	out := map[string]string{extensions.LabelID: Value(id)}
	rest := maps.Clone(labels)
	delete(rest, extensions.LabelID)
	if _, ok := labels[extensions.LabelAccount]; ok {
		out[extensions.LabelAccount] = Value(account)
		if _, whole, _ := Text(Value(account)); whole {
			delete(rest, extensions.LabelAccount)
		}
	}
	text := base64.RawURLEncoding.EncodeToString(write(rest))
	for n := 0; len(text) > 0; n++ {
		part := text[:min(room.chunk(), len(text))]
		out[restKey(n)], text = "r"+part+"r", text[len(part):]
	}
	if room.Labels > 0 && len(out) > room.Labels {
		return nil, extensions.Errorf(extensions.KindInvalid, "the labels need %d labels, and the place takes %d", len(out), room.Labels).
			WithRemedy("use a shorter name of the account")
	}
	return out, nil
}

// Unpack returns what Pack was given, for the same room. Labels of others are left out; what Pack cannot have written is
// KindInvalid.
func Unpack(packed map[string]string, room Room) (map[string]string, error) {
	var text strings.Builder
	n := 0
	for ; ; n++ {
		part, ok := packed[restKey(n)]
		if !ok {
			break
		}
		if len(part) < 3 || len(part) > room.chunk()+2 || part[0] != 'r' || part[len(part)-1] != 'r' {
			return nil, invalid(part)
		}
		text.WriteString(part[1 : len(part)-1])
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text.String())
	if err != nil {
		return nil, invalid(text.String())
	}
	out, err := read(raw)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{extensions.LabelID, extensions.LabelAccount} {
		value, ok := packed[key]
		if !ok {
			continue
		}
		text, known, err := Text(value)
		switch {
		case err != nil:
			return nil, err
		case known:
			out[key] = text
		case Value(out[key]) != value: // the digest of another text
			return nil, invalid(value)
		}
	}
	again, err := Pack(out, Room{Value: room.Value})
	if err != nil {
		return nil, err
	}
	for key, value := range again {
		if packed[key] != value {
			return nil, invalid(value)
		}
	}
	return out, nil
}

// Of returns the labels of a new sandbox, with its id and account.
func Of(spec extensions.Spec) map[string]string {
	all := map[string]string{}
	maps.Copy(all, spec.Labels)
	all[extensions.LabelID], all[extensions.LabelAccount] = string(spec.ID), spec.Account
	return all
}

// Owner is the id of an object, by its labels, if it is one of the account.
func Owner(has map[string]string, account string) (extensions.ID, bool) {
	if has[extensions.LabelAccount] != Value(account) {
		return "", false
	}
	id, err := extensions.ParseID(has[extensions.LabelID]) // an id is its own label
	return id, err == nil
}

// Generation is what an object's labels say of it; 0 = nothing, or no number.
func Generation(labels map[string]string) int64 {
	n, err := strconv.ParseInt(labels[extensions.LabelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// write puts labels into few bytes: each is its position in common plus one, or zero and its name, and then its
// value; texts follow their length. They are sorted.
func write(labels map[string]string) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if i := slices.Index(common, key); i >= 0 {
			b = append(b, byte(i+1))
		} else {
			b = append(b, 0)
			b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
		}
		b = append(binary.AppendUvarint(b, uint64(len(labels[key]))), labels[key]...)
	}
	return b
}

func read(b []byte) (map[string]string, error) {
	out := map[string]string{}
	text := func() (string, bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return "", false
		}
		s := string(b[size : size+int(n)])
		b = b[size+int(n):]
		return s, true
	}
	for len(b) > 0 {
		at := int(b[0])
		b = b[1:]
		var key string
		ok := at <= len(common)
		switch {
		case !ok:
		case at > 0:
			key = common[at-1]
		default:
			key, ok = text()
		}
		value, whole := text()
		if _, twice := out[key]; !ok || !whole || twice {
			return nil, extensions.Errorf(extensions.KindInvalid, "the packed labels are damaged")
		}
		out[key] = value
	}
	return out, nil
}
