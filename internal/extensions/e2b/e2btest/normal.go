package e2btest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Call is a request in a form that two clients' can be compared in: what the vendor or chance chose has a name
// for it, queries and bodies have one spelling.
type Call struct {
	On      string // method and path
	Query   string
	Headers []string // those that the vendor reads
	Body    string
}

// meaningful are the headers that mean something to the vendor.
var meaningful = []string{"Authorization", "Connect-Protocol-Version", "Content-Type", "E2b-Sandbox-Id", "E2b-Sandbox-Port",
	"E2b-Traffic-Access-Token", "Keepalive-Ping-Interval", "X-Access-Token", "X-Api-Key"}

// choose names something that the vendor made up.
func (v *Vendor) choose(what, kind string, n int) {
	v.chosen = append(v.chosen, what, fmt.Sprintf("<%s %d>", kind, n))
}

// Calls are the vendor's requests so far, in that form.
func (v *Vendor) Calls() ([]Call, error) {
	v.mu.Lock()
	names := strings.NewReplacer(append(slices.Clone(v.chosen), v.Key, "<key>")...)
	v.mu.Unlock()
	var out []Call
	for _, r := range v.Requests() {
		method, _, _ := cutPattern(r.On)
		path, err := url.PathUnescape(r.Path)
		if err != nil {
			return nil, err
		}
		query, err := url.ParseQuery(r.Query)
		if err != nil {
			return nil, err
		}
		body, err := r.text()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.On, err)
		}
		c := Call{On: names.Replace(method + " " + path), Body: names.Replace(body)}
		for _, name := range sortedKeys(query) {
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
func (r Request) text() (string, error) {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(r.Body) == 0:
		return "", nil
	case kind == "multipart/form-data":
		return form(multipart.NewReader(bytes.NewReader(r.Body), params["boundary"]))
	case bytes.HasPrefix(r.Body, []byte{0x1f, 0x8b}):
		return archived(r.Body)
	case kind == "application/octet-stream":
		return string(r.Body), nil
	case strings.HasPrefix(kind, "application/connect+") || kind == "application/proto":
		return r.messages(kind)
	}
	if procedure := method(r.On); procedure != nil {
		return r.messages(kind)
	}
	return canonical(r.Body)
}

// archived names what a packed archive holds.
func archived(body []byte) (string, error) {
	from, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	names := "an archive of"
	for all := tar.NewReader(from); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return "", err
		}
		names += " " + h.Name
	}
}

func form(parts *multipart.Reader) (string, error) {
	var out strings.Builder
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(out.String()), nil
		}
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return "", err
		}
		_, disposition, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		fmt.Fprintf(&out, "%s filename=%s: %s\n", part.FormName(), disposition["filename"], text)
	}
}

// method is the daemon's procedure that a request calls.
func method(on string) protoreflect.MethodDescriptor {
	_, path, _ := cutPattern(on)
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if s, ok := d.(protoreflect.ServiceDescriptor); ok && err == nil {
		return s.Methods().ByName(protoreflect.Name(name))
	}
	return nil
}

// messages reads a call's messages, alone or one after another in a stream.
func (r Request) messages(kind string) (string, error) {
	procedure := method(r.On)
	if procedure == nil {
		return "", fmt.Errorf("no procedure %s", r.On)
	}
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
		same, err := canonical(text)
		if err != nil {
			return "", err
		}
		out = append(out, same)
	}
	return strings.Join(out, "\n"), nil
}

// canonical spells JSON in one way. Process ids are the system's choice.
func canonical(text []byte) (string, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	anonymous(v)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSpace(out.String()), err
}

func anonymous(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if _, number := value.(float64); number && name == "pid" {
				v[name] = "<pid>"
			}
			anonymous(value)
		}
	case []any:
		for _, value := range v {
			anonymous(value)
		}
	}
}
