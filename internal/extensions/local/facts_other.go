//go:build !linux

package local

func memoryMB() int64 { return 0 }

func freeMemoryMB() *int64 { return nil }

func freeDiskMB(string) int64 { return 0 }

func holding(box) []string { return nil }
