//go:build tools

// Package compose pins the Docker Compose that the tests run, where the
// machine has none of its own.
package compose

import _ "github.com/docker/compose/v5/cmd"
