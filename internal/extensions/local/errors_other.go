//go:build !unix

package local

func noSpace(error) bool { return false }
