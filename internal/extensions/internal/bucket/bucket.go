// Package bucket puts files into a store that speaks S3, with credentials that a vendor lends for it.
package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Limits of one call.
const (
	askTime   = time.Minute
	putTime   = 30 * time.Minute
	maxAnswer = 1 << 20 // bytes
)

// empty is the SHA-256 of nothing.
const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Bucket is one bucket, addressed by its path.
type Bucket struct {
	Endpoint string // https, or http on this machine
	Region   string // "" = "us-east-1", which stores without regions expect
	Name     string
	// Key, Secret and Session are the credentials that were lent.
	Key             string
	Secret, Session extensions.Secret
	HTTP            *http.Client // of webcall
}

// Has reports whether a file is there. Errors are KindUnavailable: asking again does no harm.
func (b Bucket) Has(ctx context.Context, key string) (bool, error) {
	var found struct {
		Contents []struct{ Key string }
	}
	body, err := b.do(ctx, askTime, http.MethodGet, "", url.Values{"list-type": {"2"}, "max-keys": {"1"}, "prefix": {key}}, nil, 0, empty)
	if err == nil && xml.Unmarshal(body, &found) != nil {
		err = b.broken("it does not answer in XML")
	}
	return len(found.Contents) > 0 && found.Contents[0].Key == key, err
}

// Put writes a file of that size and SHA-256, in hex. Errors are KindUnavailable: it is there as a whole or not at all.
func (b Bucket) Put(ctx context.Context, key string, content io.Reader, size int64, sum string) error {
	_, err := b.do(ctx, putTime, http.MethodPut, key, nil, content, size, sum)
	return err
}

// Bring puts packed files there, unless it has them, and tells of it under their name. hash is their SHA-256, in hex.
func (b Bucket) Bring(ctx context.Context, key, hash, name string, packed *spool.Spool) error {
	has, err := b.Has(ctx, key)
	if err != nil || has {
		return err
	}
	r, err := packed.Reader()
	if err != nil {
		return err
	}
	extensions.Progress(ctx, "Sending "+name, strconv.FormatInt(packed.Size>>10, 10)+" KiB")
	return b.Put(ctx, key, r, packed.Size, hash)
}

// do makes one call. No message has what the vendor lent: errors of HTTP have addresses, which have none of it.
func (b Bucket) do(ctx context.Context, limit time.Duration, method, key string, query url.Values, body io.Reader, size int64,
	sum string) ([]byte, error) {
	at, err := webcall.Address(b.Endpoint)
	if err != nil {
		return nil, b.broken("its address %w", err)
	}
	at.Path = path.Join("/", at.Path, b.Name, key)
	at.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, b.broken("it has no such address")
	}
	req.ContentLength = size
	req.Header.Set("X-Amz-Content-Sha256", sum)
	lent := aws.Credentials{AccessKeyID: b.Key, SecretAccessKey: b.Secret.Reveal(), SessionToken: b.Session.Reveal()}
	region := b.Region
	if region == "" {
		region = "us-east-1"
	}
	if err := v4.NewSigner().SignHTTP(ctx, lent, req, sum, "s3", region, time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }); err != nil {
		return nil, b.broken("a request to it cannot be signed")
	}
	resp, err := b.HTTP.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, b.broken("%s", extensions.Clean(err.Error(), 200))
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, b.broken("its answer broke off")
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		var said struct{ Code string }
		_ = xml.Unmarshal(answer, &said)
		return nil, b.broken("%s", strings.TrimSpace("it answers "+strconv.Itoa(resp.StatusCode)+" "+extensions.Clean(said.Code, 60)))
	}
	return answer, nil
}

func (b Bucket) broken(format string, args ...any) error {
	return extensions.Errorf(extensions.KindUnavailable, "the vendor's store %s did not accept the files: %w", extensions.Clean(b.Name, 80),
		fmt.Errorf(format, args...)).WithRemedy("try again")
}
