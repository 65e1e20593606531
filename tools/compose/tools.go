//go:build tools

// Package compose pins the Docker Compose that the tests run if the machine has none.
package compose

import _ "github.com/docker/compose/v5/cmd"
