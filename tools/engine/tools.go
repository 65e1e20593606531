//go:build tools

// Package engine pins the Docker engine of `make testengine`, as tools/engine/run builds it.
package engine

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/moby/moby/v2/cmd/docker-proxy"
	_ "github.com/moby/moby/v2/cmd/dockerd"
	_ "github.com/opencontainers/runc"
)
