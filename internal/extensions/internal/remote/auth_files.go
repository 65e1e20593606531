package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxKeyFile bounds a key or certificate file, in bytes.
const maxKeyFile = 64 << 10

// fromFiles reads the identity files; for a key that the agent holds, the agent signs.
func (l *login) fromFiles(agentKeys []candidate) ([]candidate, error) {
	var out []candidate
	for _, f := range l.plan.files {
		keys, err := l.fromFile(f, agentKeys)
		if err != nil {
			return nil, err
		}
		out = append(out, keys...)
	}
	return out, nil
}

func (l *login) fromFile(f identityFile, agentKeys []candidate) ([]candidate, error) {
	data, err := readSmall(f.path)
	if err != nil {
		return l.without(f, err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err == nil {
		if keys := inAgent(agentKeys, signer.PublicKey(), f.path); len(keys) > 0 {
			return keys, nil
		}
		able, ok := signer.(ssh.AlgorithmSigner)
		if !ok {
			return nil, fmt.Errorf("the key of %s cannot sign", f.path)
		}
		return []candidate{{signer: able, source: f.path}}, nil
	}
	public := publicOf(f.path, data, err)
	if public != nil {
		if keys := inAgent(agentKeys, public, f.path); len(keys) > 0 {
			return keys, nil
		}
	}
	return l.unusable(f, public, err)
}

// publicOf returns the public key of a file whose private key we cannot read: an encrypted file, or a public
// key whose other half is in the agent.
func publicOf(path string, data []byte, err error) ssh.PublicKey {
	if encrypted := (*ssh.PassphraseMissingError)(nil); errors.As(err, &encrypted) {
		if encrypted.PublicKey != nil {
			return encrypted.PublicKey
		}
		if data, err = readSmall(path + ".pub"); err != nil {
			return nil
		}
	}
	key, err := keyOf(string(data))
	if err != nil {
		return nil
	}
	return key
}

// inAgent finds a key in the agent: the key itself, or certificates for it.
func inAgent(agentKeys []candidate, key ssh.PublicKey, path string) []candidate {
	var out []candidate
	for _, k := range agentKeys {
		if sameKey(bare(realKey(k.signer.PublicKey())), bare(key)) {
			k.source = path + " in the agent"
			out = append(out, k)
		}
	}
	return out
}

func (l *login) unusable(f identityFile, public ssh.PublicKey, err error) ([]candidate, error) {
	var encrypted *ssh.PassphraseMissingError
	isEncrypted := errors.As(err, &encrypted)
	if !f.named {
		if isEncrypted {
			l.skip("%s is encrypted and not in the agent", f.path)
		} else {
			l.skip("%s is not a supported private key", f.path)
		}
		return nil, nil
	}
	which := ""
	if public != nil {
		which = " (" + fingerprint(public) + ")"
	}
	switch {
	case isEncrypted && l.plan.agentNamed:
		return nil, extensions.Errorf(extensions.KindUnauthorized, "the private key %s%s is encrypted, and the agent does not have it", f.path,
			which).
			WithRemedy("run `ssh-add %s`", f.path)
	case isEncrypted:
		return nil, extensions.Errorf(extensions.KindUnauthorized,
			"the private key %s%s is encrypted, and sandboxer cannot ask for its passphrase", f.path, which).
			WithRemedy("run `ssh-add %s` and set `agent = true` beside private_key_file in the host's identity", f.path).At("ssh.identity")
	case public != nil:
		return nil, extensions.Errorf(extensions.KindUnauthorized, "%s is a public key%s, and no agent has its private key", f.path, which).
			WithRemedy("set the private key, or `ssh-add` it and set `agent = true`").At("ssh.identity")
	}
	return nil, extensions.Errorf(extensions.KindInvalid, "%s is not a supported private key", f.path).
		WithRemedy("give a key made by ssh-keygen (OpenSSH or PEM format)").At("ssh.identity.private_key_file")
}

func (l *login) without(f identityFile, err error) ([]candidate, error) {
	if f.named {
		return nil, extensions.Errorf(extensions.KindInvalid, "the private key cannot be read: %w", err).
			WithRemedy("check the path in the host's identity").At("ssh.identity.private_key_file")
	}
	if errors.Is(err, fs.ErrNotExist) {
		l.skip("%s does not exist", f.path)
	} else {
		l.skip("%s cannot be read", f.path)
	}
	return nil, nil
}

// withCertificates puts each key's certificates before it: those that arguments named, and those beside the
// key files.
func (l *login) withCertificates(keys []candidate) ([]candidate, error) {
	files := l.plan.certs
	for _, f := range l.plan.files {
		files = append(files[:len(files):len(files)], identityFile{path: f.path + "-cert.pub"})
	}
	var out []candidate
	used := map[string]bool{}
	certs := map[string]*ssh.Certificate{}
	for _, f := range files {
		cert, err := readCertificate(f)
		if err != nil {
			return nil, err
		}
		if cert != nil {
			certs[f.path] = cert
		}
	}
	for _, k := range keys {
		for _, f := range files {
			cert := certs[f.path]
			if cert == nil || used[f.path] || !sameKey(cert.Key, k.signer.PublicKey()) {
				continue
			}
			certified, err := certify(k, cert, f.path)
			if err != nil {
				return nil, err
			}
			used[f.path] = true
			out = append(out, certified)
		}
		out = append(out, k)
	}
	for _, f := range l.plan.certs {
		if f.named && !used[f.path] {
			return nil, extensions.Errorf(extensions.KindInvalid,
				"the certificate %s is for the key %s, which is neither the given one nor in the agent",
				f.path, fingerprint(certs[f.path])).
				WithRemedy("set the certificate's own private key").At("ssh.identity.certificate_file")
		}
	}
	return out, nil
}

func certify(k candidate, cert *ssh.Certificate, path string) (candidate, error) {
	signer, err := ssh.NewCertSigner(cert, k.signer)
	if err != nil {
		return candidate{}, fmt.Errorf("%s: %w", path, err)
	}
	able, ok := signer.(ssh.AlgorithmSigner)
	if !ok {
		return candidate{}, fmt.Errorf("%s: its key cannot sign", path)
	}
	return candidate{signer: able, source: "certificate " + path, agent: k.agent, certified: true}, nil
}

// readCertificate reads a user certificate. It returns nil if a file that no argument named is absent, is no
// certificate, or is of no use now.
func readCertificate(f identityFile) (*ssh.Certificate, error) {
	data, err := readSmall(f.path)
	if err != nil {
		if f.named {
			return nil, extensions.Errorf(extensions.KindInvalid, "the certificate cannot be read: %w", err).
				WithRemedy("check the path in the host's identity").At("ssh.identity.certificate_file")
		}
		return nil, nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	cert, ok := key.(*ssh.Certificate)
	if err != nil || !ok || cert.CertType != ssh.UserCert {
		if f.named {
			return nil, extensions.Errorf(extensions.KindInvalid, "%s is not a user certificate", f.path).
				WithRemedy("give the file that `ssh-keygen -s` wrote: …-cert.pub").At("ssh.identity.certificate_file")
		}
		return nil, nil
	}
	if expired(cert, time.Now()) {
		if f.named {
			return nil, extensions.Errorf(extensions.KindUnauthorized, "the certificate %s expired at %s", f.path, certTime(cert.ValidBefore)).
				WithRemedy("get a new one from its CA").At("ssh.identity.certificate_file")
		}
		return nil, nil
	}
	return cert, nil
}

func expired(cert *ssh.Certificate, at time.Time) bool {
	return cert.ValidBefore != ssh.CertTimeInfinity && uint64(max(at.Unix(), 0)) >= cert.ValidBefore
}

// readSmall reads a regular file of at most maxKeyFile bytes; a pipe could keep us waiting forever.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("%s is too large for a key", path)
	}
	return data, nil
}
