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
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Limits on a build: how often it is looked at, how long an upload may take, and what is told of its log.
const (
	buildLook   = time.Second
	uploadTime  = 30 * time.Minute
	maxLogLines = 20
	maxLogText  = 2000 // characters
)

// make builds a template to its end. A build that fails leaves no template.
func (b *backend) make(ctx context.Context, spec extensions.Spec, t *built) error {
	in := t.size
	in.Name = &t.name
	var asked api.TemplateRequestResponseV3
	if _, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"v3", "templates"}, In: in, Out: &asked,
		Is: func() bool { return refName.MatchString(asked.TemplateID) && refName.MatchString(asked.BuildID) }}); err != nil {
		return notMade(err)
	}
	start, err := b.startOf(ctx, spec, t, asked.TemplateID)
	if err != nil {
		return notMade(err)
	}
	extensions.Progress(ctx, "Building a template of "+t.what, "")
	path := []string{"v2", "templates", asked.TemplateID, "builds", asked.BuildID}
	if _, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: path, In: start}); err != nil {
		return notMade(err)
	}
	return b.watch(ctx, asked.TemplateID, asked.BuildID, t)
}

// notMade is the error of a step of a build: whether or not it arrived, no sandbox was made, and the next try finds
// what is there.
func notMade(err error) error {
	if extensions.IsKind(err, extensions.KindIndeterminate) || extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.Errorf(extensions.KindUnavailable, "the template's build was cut off: %w", err)
	}
	return err
}

// startOf is the body that starts a build. Its files are uploaded first.
func (b *backend) startOf(ctx context.Context, spec extensions.Spec, t *built, id string) (start api.TemplateBuildStartV2, err error) {
	if t.parent != nil {
		start.FromTemplate = &t.parent.name
	} else {
		start.FromImage = &t.image
		if login, ok := spec.Registries[ociimage.Registry(t.image)]; ok {
			password, err := login.Password(ctx)
			if err != nil {
				return start, err
			}
			start.FromImageRegistry = &api.FromImageRegistry{Type: api.Registry, Username: login.Username, Password: password.Reveal()}
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
	return hash, b.put(ctx, value(link.Url), r, packed.Size)
}

// put sends a file to an address that the vendor gave, without the key: the address itself lets it in, so it is in no
// message.
func (b *backend) put(ctx context.Context, link string, f io.Reader, size int64) error {
	broken := func(why string) error {
		return extensions.Errorf(extensions.KindUnavailable, "the build's files did not reach %s: %s", vendor, why)
	}
	if _, err := webcall.Address(link); err != nil {
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
	var tail []string
	offset, subject := 0, "Building a template of "+t.what
	return ready.Wait{Interval: buildLook, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		var seen api.TemplateBuildInfo
		_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"templates", id, "builds", build, "status"},
			Query: url.Values{"logsOffset": {strconv.Itoa(offset)}}, Out: &seen, Is: func() bool { return seen.BuildID == build }})
		switch {
		case extensions.IsKind(err, extensions.KindUnavailable), extensions.IsKind(err, extensions.KindUnreachable):
			return err.Error(), nil // the build goes on without us
		case err != nil:
			return "", notMade(err)
		}
		offset += len(seen.LogEntries)
		for _, line := range seen.LogEntries {
			if tail = append(tail, extensions.Clean(line.Message, 400)); len(tail) > maxLogLines {
				tail = tail[1:]
			}
		}
		if len(seen.LogEntries) > 0 {
			extensions.Progress(ctx, subject, tail[len(tail)-1])
		}
		switch seen.Status {
		case api.TemplateBuildStatusReady:
			return "", nil
		case api.TemplateBuildStatusError:
			err := notBuilt(seen, t, tail)
			_ = b.dropTemplate(ctx, id) // the sweep does it later
			return "", err
		}
		return "the build goes on", nil
	})
}

// notBuilt tells why a build failed, with the end of its log.
func notBuilt(seen api.TemplateBuildInfo, t *built, tail []string) error {
	why := ""
	if seen.Reason != nil {
		why = extensions.Clean(seen.Reason.Message, 400)
		if step := value(seen.Reason.Step); step != "" {
			why = "step " + extensions.Clean(step, 40) + ": " + why
		}
	}
	text := extensions.LastLines(strings.Join(tail, "\n"), maxLogText)
	if text != "" {
		text = "\n" + text
	}
	return extensions.Errorf(extensions.KindInvalid, "%s could not build a template of %s: %s%s", vendor, t.what, why, text).At("image").
		WithRemedy("correct the image or its Dockerfile; a private image needs a login of its registry")
}
