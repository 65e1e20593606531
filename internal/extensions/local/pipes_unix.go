//go:build unix

package local

import (
	"cmp"
	"errors"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
)

// pipes are the files between us and a starting init.
type pipes struct {
	null, configR, configW, socket, lease, end, readyR, readyW *os.File
}

func newPipes(bx box) (*pipes, error) {
	p := &pipes{}
	var errs [6]error
	p.null, errs[0] = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	p.configR, p.configW, errs[1] = os.Pipe()
	p.readyR, p.readyW, errs[2] = os.Pipe()
	p.socket, errs[3] = listenSocket(bx)
	p.lease, errs[4] = os.Open(bx.path(leaseName))
	p.end, errs[5] = os.OpenFile(bx.beside(endSuffix), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err := errors.Join(errs[:]...); err != nil {
		p.close()
		return nil, err
	}
	if _, err := lease.Read(p.lease); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// files are all that a stage starts with, in the order of its descriptors.
func (p *pipes) files(exe, hold, memory *os.File) []*os.File {
	return []*os.File{p.null, p.null, p.null, p.configR, p.socket, p.lease, p.end, p.readyW, cmp.Or(exe, p.null), cmp.Or(hold, p.null),
		cmp.Or(memory, p.null), p.null}
}

// closeTheirs closes what only the init needs, so that we see its end.
func (p *pipes) closeTheirs() {
	for _, f := range []*os.File{p.null, p.configR, p.socket, p.lease, p.end, p.readyW} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, f := range []*os.File{p.configW, p.readyR} {
		if f != nil {
			_ = f.Close()
		}
	}
}
