package e2b

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

const (
	buildLook  = time.Second      // how often a build is looked at
	uploadTime = 30 * time.Minute // of a build's files
)

// make builds a template to its end. A build that fails leaves no template.
func (b *backend) make(ctx context.Context, spec extensions.Spec, t *built) error {
	in := t.size
	in.Name = &t.name
	var asked api.TemplateRequestResponseV3
	if _, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"v3", "templates"}, In: in, Out: &asked,
		Is: func() bool { return refName.MatchString(asked.TemplateID) && refName.MatchString(asked.BuildID) }}); err != nil {
		return compose.CutOff(err)
	}
	start, err := b.startOf(ctx, spec, t, asked.TemplateID)
	if err != nil {
		return compose.CutOff(err)
	}
	extensions.Progress(ctx, "Building a template of "+t.what, "")
	path := []string{"v2", "templates", asked.TemplateID, "builds", asked.BuildID}
	if _, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: path, In: start}); err != nil {
		return compose.CutOff(err)
	}
	return b.watch(ctx, asked.TemplateID, asked.BuildID, t)
}

// startOf is the body that starts a build. Its files are uploaded first.
func (b *backend) startOf(ctx context.Context, spec extensions.Spec, t *built, id string) (start api.TemplateBuildStartV2, err error) {
	if t.parent != nil {
		start.FromTemplate = &t.parent.name
	} else {
		start.FromImage = &t.image
		user, password, err := ociimage.Login(ctx, spec.Registries, t.image)
		if err != nil {
			return start, err
		}
		if user != "" {
			start.FromImageRegistry = &api.FromImageRegistry{Type: api.Registry, Username: user, Password: password}
		}
	}
	all := append([]api.TemplateStep{}, t.steps...)
	if t.files {
		hash, err := b.upload(ctx, t, id)
		if err != nil {
			return start, err
		}
		for i := range all {
			if all[i].Type == "COPY" {
				all[i].FilesHash = &hash
			}
		}
	}
	start.Steps = &all
	return start, nil
}

// upload brings the context of a build to the vendor's store, unless it has it, and returns its hash.
func (b *backend) upload(ctx context.Context, t *built, id string) (hash string, err error) {
	var packed spool.Spool
	defer func() { _ = packed.Close() }()
	text, err := t.in.Dockerfile(*t.build)
	if err != nil {
		return "", err
	}
	sum, zip := sha256.New(), gzip.NewWriter(&packed)
	if err := errors.Join(t.in.WriteContext(ctx, *t.build, text, io.MultiWriter(zip, sum)), zip.Close()); err != nil {
		return "", err
	}
	hash = hex.EncodeToString(sum.Sum(nil))
	var link api.TemplateBuildFileUpload
	if _, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"templates", id, "files", hash}, Out: &link}); err != nil {
		return "", err
	}
	if link.Present {
		return hash, nil
	}
	r, err := packed.Reader()
	if err != nil {
		return "", err
	}
	extensions.Progress(ctx, "Sending the files of "+t.what, strconv.FormatInt(packed.Size>>10, 10)+" KiB")
	return hash, b.put(ctx, rest.Value(link.Url), r, packed.Size)
}

// put sends a file to an address that the vendor gave, without the key: its signature lets the file in, so the address is
// in no message.
func (b *backend) put(ctx context.Context, link string, f io.Reader, size int64) error {
	broken := func(why string) error {
		return extensions.Errorf(extensions.KindUnavailable, "the build's files did not reach %s: %s", vendor, why)
	}
	if _, err := webcall.Link(link); err != nil {
		return broken("it names no safe address for them")
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, link, f)
	if err != nil {
		return broken("it names no address for them")
	}
	req.ContentLength = size
	resp, err := b.inside.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return broken(extensions.Clean(err.Error(), 200))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return broken("its store answers " + strconv.Itoa(resp.StatusCode))
	}
	return nil
}

// watch follows a build to its end, and tells of it.
func (b *backend) watch(ctx context.Context, id, build string, t *built) error {
	offset, log := 0, compose.BuildLog{Vendor: vendor, What: "a template of " + t.what}
	return ready.Wait{Interval: buildLook, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		var seen api.TemplateBuildInfo
		_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"templates", id, "builds", build, "status"},
			Query: url.Values{"logsOffset": {strconv.Itoa(offset)}}, Out: &seen, Is: func() bool { return seen.BuildID == build }})
		switch {
		case extensions.IsKind(err, extensions.KindUnavailable), extensions.IsKind(err, extensions.KindUnreachable):
			return err.Error(), nil // the build goes on without us
		case err != nil:
			return "", compose.CutOff(err)
		}
		offset += len(seen.LogEntries)
		for _, line := range seen.LogEntries {
			log.Add(ctx, line.Message+"\n")
		}
		switch seen.Status {
		case api.TemplateBuildStatusReady:
			return "", nil
		case api.TemplateBuildStatusError:
			_ = b.dropTemplate(ctx, id) // the sweep does it later
			return "", log.Failed(reason(seen), t.build)
		}
		return "the build goes on", nil
	})
}

// reason is why a build failed, and at which step.
func reason(seen api.TemplateBuildInfo) string {
	if seen.Reason == nil {
		return ""
	}
	if step := rest.Value(seen.Reason.Step); step != "" {
		return "step " + step + ": " + seen.Reason.Message
	}
	return seen.Reason.Message
}
