//go:build !unix

package local

func noSpace(error) bool { return false }

func noFolder(error) bool { return false }
