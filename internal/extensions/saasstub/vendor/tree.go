package vendor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Paths inside an object.
const (
	WorkDir = "/workspace"
	HomeDir = "/home/sandbox"
	runDir  = "/run/sandbox"
	// SecretsDir has one file per secret delivered as a file. Like all of /run, it is in no snapshot.
	SecretsDir = "/run/secrets"
	envFile    = runDir + "/env.json" // the environment, including secrets: nowhere else
)

// prepareTree creates an object's standard folders, its environment and its secret files. It keeps what an
// upload already put there.
func (v *Vendor) prepareTree(o *Object, env, secrets map[string]string) error {
	root, err := v.openTree(o)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	b, err := json.Marshal(env)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(inside(SecretsDir), 0o700); err != nil {
		return err
	}
	for name, value := range secrets {
		if err := root.WriteFile(inside(SecretsDir+"/"+name), []byte(value), 0o600); err != nil {
			return err
		}
	}
	return root.WriteFile(inside(envFile), b, 0o600)
}

// openTree opens the object's root folder, creating it if missing. All access to an object's files goes
// through it, so no path or link leaves it.
func (v *Vendor) openTree(o *Object) (*os.Root, error) {
	dir := filepath.Join(v.home(o.Ref), "root")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	folders := []string{HomeDir, runDir, "/tmp"}
	if !o.NoAccess {
		folders = append(folders, WorkDir)
	}
	for _, f := range folders {
		if err := root.MkdirAll(inside(f), 0o755); err != nil {
			_ = root.Close()
			return nil, err
		}
	}
	return root, nil
}

func readEnv(root *os.Root) (map[string]string, error) {
	env := map[string]string{}
	b, err := root.ReadFile(inside(envFile))
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &env); err != nil {
		return nil, fmt.Errorf("%s: %w", envFile, err)
	}
	return env, nil
}

// base returns where relative paths start.
func (o *Object) base() string {
	if o.NoAccess {
		return HomeDir
	}
	return WorkDir
}

// resolve makes p absolute inside the object, starting at dir.
func resolve(dir, p string) string {
	if !strings.HasPrefix(p, "/") {
		p = dir + "/" + p
	}
	return path.Clean(p)
}

// inside turns an absolute path inside into one that os.Root accepts.
func inside(abs string) string {
	rel := strings.TrimPrefix(path.Clean("/"+abs), "/")
	if rel == "" {
		return "."
	}
	return filepath.FromSlash(rel)
}

// frozen reports whether a path must not change: the workspace with access ro.
func (o *Object) frozen(abs string) bool {
	return o.ReadOnly && (abs == WorkDir || strings.HasPrefix(abs, WorkDir+"/"))
}
