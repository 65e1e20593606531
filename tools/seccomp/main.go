// Command seccomp prints the system calls that containers of ext.docker may make: Docker's own default, without
// socketcall, whose arguments no filter sees.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/moby/profiles/seccomp"
)

func main() {
	p := seccomp.DefaultProfile()
	for _, s := range p.Syscalls {
		s.Names = slices.DeleteFunc(s.Names, func(name string) bool { return name == "socketcall" })
	}
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(text))
}
