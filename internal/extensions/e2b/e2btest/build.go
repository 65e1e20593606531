package e2btest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// build is one of a template. It goes on by itself, one step at a time.
type build struct {
	templateID, id, status string
	want                   wanted
	failure, failedStep    string
	logs                   []map[string]any
	made                   time.Time
	asked                  int // how often its status was asked for
}

// wanted is the body that starts a build.
type wanted struct {
	FromImage    string         `json:"fromImage"`
	FromTemplate string         `json:"fromTemplate"`
	Registry     map[string]any `json:"fromImageRegistry"`
	Steps        []step         `json:"steps"`
	StartCmd     string         `json:"startCmd"`
	ReadyCmd     string         `json:"readyCmd"`
}

type step struct {
	Type      string   `json:"type"`
	Args      []string `json:"args"`
	FilesHash string   `json:"filesHash"`
}

// newTemplate gives a build to the template of a name, and makes that one first if it is missing.
func (v *Vendor) newTemplate(_ *http.Request, body []byte) (answer, error) {
	want := struct {
		Name     string   `json:"name"`
		Alias    string   `json:"alias"`
		Tags     []string `json:"tags"`
		CPU      int      `json:"cpuCount"`
		MemoryMB int      `json:"memoryMB"`
	}{CPU: 2, MemoryMB: 1024, Tags: []string{}}
	if err := read(body, &want); err != nil {
		return answer{}, err
	}
	if want.Name == "" {
		want.Name = want.Alias
	}
	name, tag, _ := strings.Cut(strings.TrimPrefix(want.Name, namespace+"/"), ":")
	if name == "" {
		return answer{}, fail(http.StatusBadRequest, "Template name is required")
	}
	if tag == "" {
		tag = "default"
	}
	t := v.template(name)
	if t == nil {
		t = &template{id: letters(20), name: name, made: v.clock.Now()}
		v.templates[t.id] = t
		v.choose(t.id, "template", len(v.builds)+1)
	}
	t.tag, t.Template = tag, Template{Name: name, CPU: want.CPU, MemoryMB: want.MemoryMB, DiskMB: 1024}
	b := &build{templateID: t.id, id: buildID(), status: "waiting", made: v.clock.Now()}
	t.building = b
	v.builds[b.id] = b
	v.choose(b.id, "build", len(v.builds))
	return answer{status: http.StatusAccepted, body: map[string]any{"templateID": t.id, "buildID": b.id, "public": false,
		"aliases": []string{name},
		"names":   []string{namespace + "/" + name}, "tags": append(want.Tags, tag)}}, nil
}

func buildID() string {
	h := token()
	return h[:8] + "-" + h[8:12] + "-4" + h[12:15] + "-8" + h[15:18] + "-" + h[18:30]
}

// theBuild is that of a request.
func (v *Vendor) theBuild(r *http.Request) (*build, error) {
	b := v.builds[r.PathValue("buildID")]
	if b == nil || b.templateID != r.PathValue("templateID") {
		return nil, fail(http.StatusNotFound, fmt.Sprintf("build '%s' not found", r.PathValue("buildID")))
	}
	return b, nil
}

// fileLink is where the files of a step go to, and whether they are there already.
func (v *Vendor) fileLink(r *http.Request, _ []byte) (answer, error) {
	hash := r.PathValue("hash")
	_, err := os.Stat(v.files(hash))
	signed := v.signature(hash)
	if err != nil && !slices.Contains(v.chosen, hash) { // chosen by the client, and no two choose the same
		v.choose(hash, "files", 1)
		v.choose(signed, "signature", 1)
	}
	return answer{status: http.StatusCreated, body: map[string]any{"present": err == nil,
		"url": v.APIURL + "/uploads/" + hash + "?" + url.Values{"Signature": {signed}}.Encode()}}, nil
}

// signature lets whoever has it upload these files, in the alphabet of the vendor's store.
func (v *Vendor) signature(hash string) string {
	sum := sha256.Sum256([]byte(v.Key + hash))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (v *Vendor) files(hash string) string { return v.shelf.Path("files-" + path.Base(hash)) }

// upload takes the files of a step, at the store that fileLink names.
func (v *Vendor) upload(w http.ResponseWriter, r *http.Request) {
	const on = "PUT /uploads/{hash}"
	v.Record(r, on)
	if v.Fault(on).Strikes(w, r, Before) {
		return
	}
	if r.URL.Query().Get("Signature") != v.signature(r.PathValue("hash")) {
		http.Error(w, "SignatureDoesNotMatch", http.StatusForbidden)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = os.WriteFile(v.files(r.PathValue("hash")), text, 0o600)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (v *Vendor) startBuild(r *http.Request, body []byte) (answer, error) {
	b, err := v.theBuild(r)
	if err == nil {
		err = read(body, &b.want)
	}
	if err != nil {
		return answer{}, err
	}
	if b.status != "waiting" {
		return answer{}, fail(http.StatusConflict, "build is already in progress")
	}
	if (b.want.FromImage == "") == (b.want.FromTemplate == "") {
		return answer{}, fail(http.StatusBadRequest, "exactly one of fromImage and fromTemplate must be set")
	}
	b.status = "building"
	return answer{status: http.StatusAccepted}, nil
}

// buildStatus also carries the build out, once it was seen building.
func (v *Vendor) buildStatus(r *http.Request, _ []byte) (answer, error) {
	b, err := v.theBuild(r)
	if err != nil {
		return answer{}, err
	}
	if b.asked++; b.status == "building" && b.asked > 1 {
		if err := v.carryOut(b); err != nil {
			return answer{}, err
		}
	}
	logs := b.logs[min(len(b.logs), int(number(r.URL.Query().Get("logsOffset")))):]
	lines := []string{}
	for _, l := range logs {
		lines = append(lines, l["message"].(string))
	}
	out := map[string]any{"templateID": b.templateID, "buildID": b.id, "status": b.status, "logs": lines,
		"logEntries": append([]map[string]any{}, logs...)}
	if b.failure != "" {
		out["reason"] = map[string]any{"message": b.failure, "step": b.failedStep, "logEntries": []any{}}
	}
	return answer{status: http.StatusOK, body: out}, nil
}

func (b *build) log(v *Vendor, level, message string) {
	b.logs = append(b.logs, map[string]any{"timestamp": stamp(v.clock.Now()), "level": level, "message": message})
}

// carryOut does all steps of a build in a room, and keeps that as the template's.
func (v *Vendor) carryOut(b *build) (err error) {
	from := ""
	if b.want.FromTemplate != "" {
		base := v.template(b.want.FromTemplate)
		if base == nil {
			return b.stop("base", fmt.Sprintf("template '%s' not found", b.want.FromTemplate))
		}
		from = base.folder
	}
	if v.images != nil && b.want.FromImage != "" && !v.images[b.want.FromImage] {
		return b.stop("base", fmt.Sprintf("error pulling image: image '%s' not found", b.want.FromImage))
	}
	b.log(v, "info", "FROM "+b.want.FromImage+b.want.FromTemplate)
	r, err := v.room("template", from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Kill()) }()
	at := place{dir: "/home/user", user: "user", env: map[string]string{}}
	for i, s := range b.want.Steps {
		b.log(v, "info", s.Type+" "+strings.Join(s.Args, " "))
		out, err := v.take(r, &at, s)
		if out != "" {
			b.log(v, "info", out)
		}
		if err != nil {
			return b.stop(fmt.Sprint(i+1), err.Error())
		}
	}
	t := v.templates[b.templateID]
	if t == nil {
		return b.stop("finalize", "template was deleted")
	}
	t.folder, t.env, b.status = r.Root, at.env, "ready"
	return nil
}

func (b *build) stop(step, why string) error {
	b.status, b.failedStep, b.failure = "error", step, why
	return nil
}

// place is what steps change for those after them.
type place struct {
	dir, user string
	env       map[string]string
}

// take does one step.
func (v *Vendor) take(r *box.Box, at *place, s step) (string, error) {
	arg := func(i int) string {
		if i < len(s.Args) {
			return s.Args[i]
		}
		return ""
	}
	switch s.Type {
	case "ENV":
		for i := 0; i+1 < len(s.Args); i += 2 {
			value, err := run(r, `printf "`+s.Args[i+1]+`"`, &place{dir: "/", user: "root"}) // as the vendor's server does
			if err != nil {
				return value, err
			}
			at.env[s.Args[i]] = value
		}
	case "WORKDIR":
		if !path.IsAbs(arg(0)) {
			return "", fmt.Errorf("WORKDIR %q is not absolute", arg(0)) // the server makes it wherever it is
		}
		at.dir = path.Clean(arg(0))
		return run(r, `mkdir -p "`+at.dir+`"`, &place{dir: "/", user: at.user})
	case "USER":
		at.user = arg(0)
	case "COPY":
		to := arg(1)
		if !path.IsAbs(to) {
			to = path.Join(at.dir, to) + to[len(strings.TrimRight(to, "/")):]
		}
		return v.unpack(r, s.FilesHash, arg(0), to)
	case "RUN":
		who := *at
		if as := arg(1); as != "" {
			who.user = as
		}
		return run(r, arg(0), &who)
	default:
		return "", fmt.Errorf("step type %s is not supported", s.Type)
	}
	return "", nil
}

// unpack puts a step's files where a Dockerfile's COPY would.
func (v *Vendor) unpack(r *box.Box, hash, from, to string) (string, error) {
	temp := r.Root + "/tmp/.copy"
	if err := os.Mkdir(temp, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)

	if out, err := exec.Command("tar", "-xf", v.files(hash), "-C", temp).CombinedOutput(); err != nil { //nolint:noctx // bounded
		return string(out), err
	}
	if err := r.Own(); err != nil {
		return "", err
	}
	return run(r, `case "$TO" in */) mkdir -p "$TO" ;; *) mkdir -p "$(dirname "$TO")" ;; esac
for one in /tmp/.copy/$FROM; do if [ -d "$one" ]; then mkdir -p "$TO" && cp -a "$one/." "$TO"; else cp -a "$one" "$TO"; fi || exit; done`,
		&place{dir: "/", user: "root", env: map[string]string{"FROM": from, "TO": to}})
}

func run(r *box.Box, script string, at *place) (string, error) {
	c := exec.Command("/bin/sh", "-c", script) //nolint:noctx // bounded by what a test wrote
	c.Dir, c.Env = at.dir, []string{"PATH=" + box.SearchPath, "HOME=" + homes[at.user], "USER=" + at.user}
	for _, name := range slices.Sorted(maps.Keys(at.env)) {
		c.Env = append(c.Env, name+"="+at.env[name])
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := r.Start(c)
	if err == nil {
		err = c.Wait()
	}
	return out.String(), err
}
