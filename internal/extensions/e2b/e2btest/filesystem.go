package e2btest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
)

// at is a call's path inside.
func (in inside) at(header http.Header, asked string) (string, error) {
	who, err := user(header)
	if err != nil {
		return "", err
	}
	return expand(asked, who)
}

// entry describes the object of a path inside. A link is told of as what it leads to.
func (in inside) entry(at string) (*filesystem.EntryInfo, error) {
	info, err := os.Lstat(in.s.Itself(at))
	if err != nil {
		return nil, notFound(err, at)
	}
	out := &filesystem.EntryInfo{Name: path.Base(at), Path: at, Owner: "user", Group: "user"}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, _ := os.Readlink(in.s.Itself(at))
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(at), target)
		}
		out.SymlinkTarget = &target
		if led, err := os.Lstat(in.s.Host(at)); err == nil {
			info = led
		}
	}
	out.Size, out.Mode, out.Permissions = info.Size(), uint32(info.Mode().Perm()), info.Mode().String()
	out.ModifiedTime = timestamppb.New(info.ModTime())
	switch {
	case info.IsDir():
		out.Type = filesystem.FileType_FILE_TYPE_DIRECTORY
	case info.Mode()&fs.ModeSymlink != 0:
		out.Type = filesystem.FileType_FILE_TYPE_SYMLINK
	case info.Mode().IsRegular():
		out.Type = filesystem.FileType_FILE_TYPE_FILE
	}
	return out, nil
}

func notFound(err error, at string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("path not found: %s", at))
	}
	return connect.NewError(connect.CodeInternal, err)
}

// Stat describes one object.
func (in inside) Stat(_ context.Context, req *connect.Request[filesystem.StatRequest]) (*connect.Response[filesystem.StatResponse], error) {
	at, err := in.at(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	e, err := in.entry(at)
	return connect.NewResponse(&filesystem.StatResponse{Entry: e}), err
}

// MakeDir makes a folder and those above it.
func (in inside) MakeDir(_ context.Context,
	req *connect.Request[filesystem.MakeDirRequest]) (*connect.Response[filesystem.MakeDirResponse], error) {
	at, err := in.at(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(in.s.Host(at)); err == nil {
		if info.IsDir() {
			return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", at))
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path already exists but it is not a directory: %s", at))
	}
	if err := in.folders(at); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	e, err := in.entry(at)
	return connect.NewResponse(&filesystem.MakeDirResponse{Entry: e}), err
}

// folders makes at and what is missing above it, as the sandbox's user.
func (in inside) folders(at string) error {
	if at == "/" {
		return nil
	}
	if _, err := os.Stat(in.s.Host(at)); err == nil {
		return nil
	}
	if err := in.folders(path.Dir(at)); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(in.s.Host(at), 0o755), os.Lchown(in.s.Host(at), in.s.UID, in.s.UID))
}

// Move renames an object, into folders that it makes.
func (in inside) Move(_ context.Context, req *connect.Request[filesystem.MoveRequest]) (*connect.Response[filesystem.MoveResponse], error) {
	from, err := in.at(req.Header(), req.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	to, err := in.at(req.Header(), req.Msg.GetDestination())
	if err != nil {
		return nil, err
	}
	if err := in.folders(path.Dir(to)); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	if err := os.Rename(in.s.Itself(from), in.s.Itself(to)); err != nil {
		return nil, notFound(err, from)
	}
	e, err := in.entry(to)
	return connect.NewResponse(&filesystem.MoveResponse{Entry: e}), err
}

// ListDir describes what a folder holds, some levels down; 0 is one level.
func (in inside) ListDir(_ context.Context,
	req *connect.Request[filesystem.ListDirRequest]) (*connect.Response[filesystem.ListDirResponse], error) {
	at, err := in.at(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	root := in.s.Host(at)
	if info, err := os.Stat(root); err != nil {
		return nil, notFound(err, at)
	} else if !info.IsDir() {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path is not a directory: %s", at))
	}
	out := &filesystem.ListDirResponse{}
	err = filepath.WalkDir(root, func(found string, d fs.DirEntry, err error) error {
		if err != nil || found == root {
			return err
		}
		below := strings.TrimPrefix(found, root+"/")
		e, err := in.entry(path.Join(at, below))
		if err != nil {
			return err
		}
		out.Entries = append(out.Entries, e)
		if d.IsDir() && strings.Count(below, "/")+1 >= int(max(1, req.Msg.GetDepth())) {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return connect.NewResponse(out), nil
}

// Remove removes an object with all below it; an absent one is no error.
func (in inside) Remove(_ context.Context,
	req *connect.Request[filesystem.RemoveRequest]) (*connect.Response[filesystem.RemoveResponse], error) {
	at, err := in.at(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if at == "/" {
		return nil, connect.NewError(connect.CodeInternal, errors.New("error removing file or directory: /"))
	}
	if err := os.RemoveAll(in.s.Itself(at)); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return connect.NewResponse(&filesystem.RemoveResponse{}), nil
}
