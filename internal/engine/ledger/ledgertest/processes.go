package ledgertest

import "testing"

func processes(t *testing.T, address NewAddress) {}
