package local

func selfPath() (string, error) { return "/proc/self/exe", nil }
