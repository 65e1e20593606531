package ledger

import (
	"context"
)

func (s *store) Verify(ctx context.Context, pinned ...Head) (Report, error) {
	return Report{Ledger: s.id}, nil
}
