package e2btest

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// meaningful are the headers that mean something to the vendor.
var meaningful = []string{"Authorization", "Connect-Protocol-Version", "Content-Type", "E2b-Sandbox-Id", "E2b-Sandbox-Port",
	"E2b-Traffic-Access-Token", "Keepalive-Ping-Interval", "X-Access-Token", "X-Api-Key"}

// choose names something that the vendor made up.
func (v *Vendor) choose(what, kind string, n int) {
	v.chosen = append(v.chosen, what, fmt.Sprintf("<%s %d>", kind, n))
}

// Calls are the vendor's requests so far, in a form that two clients' can be compared in: what the vendor chose has a name
// for it.
func (v *Vendor) Calls() ([]vendortest.Call, error) {
	v.mu.Lock()
	names := strings.NewReplacer(append(slices.Clone(v.chosen), v.Key, "<key>")...)
	v.mu.Unlock()
	var out []vendortest.Call
	for _, r := range v.Requests() {
		method, _, _ := strings.Cut(r.On, " ")
		path, err := url.PathUnescape(r.Path)
		if err != nil {
			return nil, err
		}
		query, err := url.ParseQuery(r.Query)
		if err != nil {
			return nil, err
		}
		body, err := text(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.On, err)
		}
		c := vendortest.Call{On: names.Replace(method + " " + path), Body: names.Replace(body)}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			c.Query += names.Replace(fmt.Sprintf("?%s=%s", name, strings.Join(query[name], ",")))
		}
		for _, name := range meaningful {
			if value := r.Header.Get(name); value != "" {
				value, _, _ = strings.Cut(value, "; boundary=")
				c.Headers = append(c.Headers, name+": "+names.Replace(plain(value)))
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// plain reads the name out of basic authentication.
func plain(value string) string {
	if encoded, basic := strings.CutPrefix(value, "Basic "); basic {
		if name, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return "Basic " + string(name)
		}
	}
	return value
}

// text is a request's body, whatever it was encoded in.
func text(r vendortest.Request) (string, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if procedure := method(r.On); procedure != nil && len(r.Body) > 0 {
		return messages(r, kind, procedure)
	}
	return r.Text()
}

// method is the daemon's procedure that a request calls.
func method(on string) protoreflect.MethodDescriptor {
	_, path, _ := strings.Cut(on, " ")
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if s, ok := d.(protoreflect.ServiceDescriptor); ok && err == nil {
		return s.Methods().ByName(protoreflect.Name(name))
	}
	return nil
}

// messages reads a call's messages, alone or one after another in a stream.
func messages(r vendortest.Request, kind string, procedure protoreflect.MethodDescriptor) (string, error) {
	of, err := protoregistry.GlobalTypes.FindMessageByName(procedure.Input().FullName())
	if err != nil {
		return "", err
	}
	raw := [][]byte{r.Body}
	if strings.HasPrefix(kind, "application/connect+") {
		raw = nil
		for rest := r.Body; len(rest) >= 5; {
			n := int(binary.BigEndian.Uint32(rest[1:5]))
			if len(rest) < 5+n {
				return "", errors.New("half a message")
			}
			raw, rest = append(raw, rest[5:5+n]), rest[5+n:]
		}
	}
	var out []string
	for _, one := range raw {
		m := of.New().Interface()
		read := protojson.Unmarshal
		if strings.HasSuffix(kind, "proto") {
			read = proto.Unmarshal
		}
		if err := read(one, m); err != nil {
			return "", err
		}
		text, err := protojson.Marshal(m)
		if err != nil {
			return "", err
		}
		same, err := vendortest.Canonical(text)
		if err != nil {
			return "", err
		}
		out = append(out, same)
	}
	return strings.Join(out, "\n"), nil
}
