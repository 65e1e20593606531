package e2btest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
)

// allowed is the path inside of a request for files, by its token or its signature.
func (in inside) allowed(r *http.Request, operation string) (string, *failure) {
	query := r.URL.Query()
	name := query.Get("username")
	if in.s.accessToken != "" && r.Header.Get("X-Access-Token") != in.s.accessToken {
		signed := query.Get("path") + ":" + operation + ":" + name + ":" + in.s.accessToken
		if query.Has("signature_expiration") {
			signed += ":" + query.Get("signature_expiration")
		}
		sum := sha256.Sum256([]byte(signed))
		expires := number(query.Get("signature_expiration"))
		if query.Get("signature") != "v1_"+base64.RawStdEncoding.EncodeToString(sum[:]) || query.Has("signature_expiration") &&
			expires < in.v.clock.Now().Unix() {
			return "", fail(http.StatusUnauthorized, "invalid signature")
		}
	}
	if name == "" {
		name = "user"
	}
	if _, known := homes[name]; !known {
		return "", fail(http.StatusUnauthorized, fmt.Sprintf("error looking up user '%[1]s': user: unknown user %[1]s", name))
	}
	at, err := expand(query.Get("path"), name)
	if err != nil {
		return "", fail(http.StatusBadRequest, err.Error())
	}
	return at, nil
}

func (in inside) download(w http.ResponseWriter, r *http.Request) {
	at, refused := in.allowed(r, "read")
	if refused != nil {
		refuse(w, refused.Code, refused)
		return
	}
	info, err := os.Stat(in.s.Host(at))
	switch {
	case errors.Is(err, os.ErrNotExist):
		refuse(w, http.StatusNotFound, fail(http.StatusNotFound, fmt.Sprintf("path '%s' does not exist", at)))
		return
	case err == nil && info.IsDir():
		refuse(w, http.StatusBadRequest, fail(http.StatusBadRequest, fmt.Sprintf("path '%s' is a directory", at)))
		return
	}
	text, err := os.ReadFile(in.s.Host(at))
	if err != nil {
		refuse(w, http.StatusInternalServerError, fail(http.StatusInternalServerError, fmt.Sprintf("error opening file '%s': %v", at, err)))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(text)
}

func (in inside) uploadFiles(w http.ResponseWriter, r *http.Request) {
	at, refused := in.allowed(r, "write")
	if refused != nil {
		refuse(w, refused.Code, refused)
		return
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		refuse(w, http.StatusBadRequest, fail(http.StatusBadRequest, err.Error()))
		return
	}
	written := []map[string]any{}
	if kind == "application/octet-stream" {
		if !r.URL.Query().Has("path") {
			refuse(w, http.StatusBadRequest, fail(http.StatusBadRequest, "path query parameter is required for raw body upload"))
			return
		}
		if refused = in.put(at, r.Body); refused == nil {
			written = append(written, told(at))
		}
	} else {
		written, refused = in.parts(multipart.NewReader(r.Body, params["boundary"]), r)
	}
	if refused != nil {
		refuse(w, refused.Code, refused)
		return
	}
	refuse(w, http.StatusOK, written)
}

func told(at string) map[string]any {
	return map[string]any{"path": at, "name": path.Base(at), "type": "file"}
}

// parts writes each part of a form at the request's path or at its own file name.
func (in inside) parts(form *multipart.Reader, r *http.Request) (written []map[string]any, refused *failure) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return nil, fail(http.StatusInternalServerError, "error reading form: "+err.Error())
		}
		if part.FormName() != "file" {
			continue
		}
		at, _ := in.allowed(r, "write")
		if !r.URL.Query().Has("path") {
			_, disposition, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			if at, err = expand(disposition["filename"], "user"); err != nil {
				return nil, fail(http.StatusBadRequest, err.Error())
			}
		}
		for _, w := range written {
			if w["path"] == at {
				return nil, fail(http.StatusBadRequest, fmt.Sprintf("you cannot upload multiple files to the same path '%s' in one upload request, "+
					"only the first specified file was uploaded", at))
			}
		}
		if refused := in.put(at, part); refused != nil {
			return nil, refused
		}
		written = append(written, told(at))
	}
}

// put writes a file, with the folders above it.
func (in inside) put(at string, from io.Reader) *failure {
	if err := in.folders(path.Dir(at)); err != nil {
		return fail(http.StatusInternalServerError, "error ensuring directories: "+err.Error())
	}
	host := in.s.Host(at)
	if info, err := os.Stat(host); err == nil && info.IsDir() || strings.HasSuffix(at, "/") {
		return fail(http.StatusBadRequest, "path is a directory: "+at)
	}
	to, err := os.OpenFile(host, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fail(http.StatusInternalServerError, "error opening file: "+err.Error())
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Chown(in.s.UID, in.s.UID), to.Close()); err != nil {
		return fail(http.StatusInternalServerError, "error writing file: "+err.Error())
	}
	return nil
}
