//go:build race

package cli_test

const raced = true
