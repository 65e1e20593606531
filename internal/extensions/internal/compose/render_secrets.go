package compose

import (
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// secretFiles mounts a service's secrets, each as a file: those it lists and, if it is a target, all. The
// stack's own secrets lie beside them.
func (r *renderer) secretFiles(name string, s *types.ServiceConfig, listed []string, target bool) error {
	if !r.o.SecretFiles {
		return nil
	}
	for _, secret := range sortedKeys(r.secrets) {
		if !target && !slices.Contains(listed, secret) {
			continue
		}
		at := extensions.SecretsDir + "/" + secret
		if r.brings(*s, secret, at) {
			continue
		}
		if taken := inTheWay(*s, at); taken != "" {
			return extensions.Errorf(extensions.KindInvalid, "service %q has a mount at %s, where the sandbox's secret %s becomes the file %s", name,
				taken, secret, at).
				At("compose").WithRemedy("mount it elsewhere, or rename the secret")
		}
		s.Volumes = append(s.Volumes, types.ServiceVolumeConfig{
			Type: types.VolumeTypeBind, Source: r.secretFile(secret), Target: at, ReadOnly: true, Bind: &types.ServiceVolumeBind{},
		})
	}
	return nil
}

// secretFile returns where a secret lies on the host.
func (r *renderer) secretFile(secret string) string { return token(VarSecrets) + "/" + secret }

// listedSecrets returns the secrets among a service's variables without a value.
func (r *renderer) listedSecrets(s types.ServiceConfig) []string {
	environments := []types.MappingWithEquals{s.Environment}
	for _, h := range append(slices.Clone(s.PostStart), s.PreStop...) {
		environments = append(environments, h.Environment)
	}
	var listed []string
	for _, env := range environments {
		for name, value := range env {
			if _, ok := r.secrets[name]; ok && value == nil {
				listed = append(listed, name)
			}
		}
	}
	return listed
}

// brings reports whether the stack itself puts this very secret at that place.
func (r *renderer) brings(s types.ServiceConfig, secret, at string) bool {
	return slices.ContainsFunc(s.Secrets, func(own types.ServiceSecretConfig) bool {
		return r.p.Compose.Secrets[own.Source].Environment == secret && fileAt(types.FileReferenceConfig(own), extensions.SecretsDir) == at
	})
}

// inTheWay returns a mount of the stack's own that would hide the file at that place, or keep the engine from
// putting it there.
func inTheWay(s types.ServiceConfig, at string) string {
	var files []string
	for _, own := range s.Secrets {
		files = append(files, fileAt(types.FileReferenceConfig(own), extensions.SecretsDir))
	}
	for _, own := range s.Configs {
		files = append(files, fileAt(types.FileReferenceConfig(own), "/"))
	}
	for _, m := range s.Volumes {
		target := inside(m.Target)
		if target == at || m.Type != types.VolumeTypeTmpfs &&
			(target == extensions.SecretsDir || m.ReadOnly && strings.HasPrefix(at, target+"/")) {
			return m.Target
		}
	}
	for _, t := range s.Tmpfs {
		place, _, _ := strings.Cut(t, ":")
		files = append(files, inside(place))
	}
	if slices.Contains(files, at) {
		return at
	}
	return ""
}

// fileAt returns where Compose puts a secret or config that a service names.
func fileAt(f types.FileReferenceConfig, dir string) string {
	if f.Target == "" {
		f.Target = f.Source
	}
	if !path.IsAbs(f.Target) {
		f.Target = path.Join(dir, f.Target)
	}
	return inside(f.Target)
}

// inside resolves the link that /var/run is everywhere.
func inside(name string) string {
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		return "/run" + rest
	}
	return name
}
