package compose

import "github.com/compose-spec/compose-go/v2/types"

// Project is a policed stack.
type Project struct {
	Compose *types.Project
	Bundle  *Bundle
}
