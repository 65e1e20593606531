// Package ociimage knows images by their names: which references are names at all, which are ours, and which
// name an image has that is built from given inputs. It pulls and builds nothing.
package ociimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Lengths are checked apart: a pattern that counts to hundreds is built at the start of every process, sandboxes' inits too.
const (
	maxReference = 512
	maxPinned    = 255 + len("@sha256:") + 64
)

var (
	reference = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)
	id        = regexp.MustCompile(`^(sha256:.*|[0-9a-f]{64})$`)
	likeAnID  = regexp.MustCompile(`^[0-9a-f]+$`)
	pinned    = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}$`)
)

// Valid reports whether ref can be a name of an image, and is not the id of one on some machine.
func Valid(ref string) bool {
	return len(ref) <= maxReference && reference.MatchString(ref) && !IsID(ref)
}

// IsID reports whether an engine takes ref for the id of an image that it has.
func IsID(ref string) bool { return id.MatchString(ref) }

// Pinned reports whether ref names one image for ever, by its digest: name@sha256:… with 64 hex digits.
func Pinned(ref string) bool { return len(ref) <= maxPinned && pinned.MatchString(ref) }

// ByName returns a reference that the engine reads only as a name. If no image has a name of hexadecimal
// digits alone, the engine takes it for the start of an id and would run whatever image of the host has it,
// even another sandbox's build.
func ByName(ref string) string {
	if likeAnID.MatchString(ref) {
		return ref + ":latest"
	}
	return ref
}

// Reserved reports whether a reference, however it is spelled, leads to the names of images that are
// built on hosts. Such an image counts as ours, and whoever owns the name at a registry could put something
// else there.
func Reserved(ref string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(ref)), "@")
	parts := slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return false
	}
	host, _, _ := strings.Cut(parts[0], ":")
	switch {
	case host == "sandboxer.invalid":
		return true
	case host == "docker.io", strings.HasSuffix(host, ".docker.io"), host == "registry.hub.docker.com":
		parts = parts[1:]
	}
	if len(parts) > 0 && parts[0] == "library" {
		parts = parts[1:]
	}
	return len(parts) > 1 && parts[0] == "sandboxer"
}

// Repository is the name of all built images; the tag is the digest. No registry can serve it: the domain
// invalid never has an address.
const Repository = "sandboxer.invalid/build"

// Copies is the name of all images that are copies of sandboxes, or that a sandbox is just made of.
const Copies = "sandboxer.invalid/copy"

// Tag returns the name of the image with that key.
func Tag(key string) string { return Repository + ":" + key }

// Key returns the lower-case hex SHA-256 of everything that determines a built image, as far as it is known
// here: a struct of what the build is asked for, the digest of its files, and the user's own cache key. An image
// that FROM names by a moving tag is not part of it. inputs become JSON, so only exported fields count.
func Key(inputs any) string {
	raw, err := json.Marshal(inputs)
	if err != nil { // strings, numbers and maps of strings cannot fail
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Onto makes a Dockerfile take from image to what it takes from image from.
func Onto(dockerfile, from, to string) string {
	lines := strings.SplitAfter(dockerfile, "\n")
	for i, line := range lines {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch verb := strings.ToUpper(words[0]); {
		case verb == "FROM":
			image := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "--") }) + 1
			if words[image] == from {
				words[image] = to
				lines[i] = strings.Join(words, " ") + "\n"
			}
		case verb == "COPY" && slices.Contains(words, "--from="+from):
			lines[i] = strings.Replace(line, "--from="+from, "--from="+to, 1)
		}
	}
	return strings.Join(lines, "")
}

// Registry returns the host of the registry that serves a reference, with its port: extensions.DefaultRegistry if
// the reference names none.
func Registry(ref string) string {
	host, rest, slash := strings.Cut(ref, "/")
	if !slash || rest == "" || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return extensions.DefaultRegistry
	}
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		return extensions.DefaultRegistry
	}
	return host
}

// Login returns the user and the password for the first of the images whose registry has a login; none = "".
func Login(ctx context.Context, all extensions.Registries, images ...string) (user, password string, err error) {
	for _, image := range images {
		if login, ok := all[Registry(image)]; ok {
			secret, err := login.Password(ctx)
			return login.Username, secret.Reveal(), err
		}
	}
	return "", "", nil
}
