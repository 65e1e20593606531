package compose

// Rules is every reason for which a stack can be refused, sorted by id.
func Rules() []Rule { return nil }
