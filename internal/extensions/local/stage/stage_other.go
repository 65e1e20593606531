//go:build unix && !linux

package stage

import (
	"encoding/json"
	"errors"
	"syscall"
)

// Hide keeps our descriptors from the programs we start.
func Hide() error {
	for fd := FDConfig; fd <= FDReady; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}

func buildWalls() error { return errors.New("walls need Linux") }

func keep() error { return errors.New("cgroups need Linux") }

func describe(err error) string {
	b, _ := json.Marshal(Failure{Step: "init", Text: err.Error()})
	return string(b)
}
