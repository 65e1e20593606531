package rest

// Value is what an optional member of a message holds; the zero value if it is absent.
func Value[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// Some is an optional member of a message, absent in place of the zero value.
func Some[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
