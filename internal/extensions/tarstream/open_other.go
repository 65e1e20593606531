//go:build !unix

package tarstream

const nonblock = 0
