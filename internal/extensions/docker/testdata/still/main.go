// Program still listens on the port of its argument until it is ended, and is all that its image has.
package main

import (
	"net"
	"os"
)

func main() {
	l, err := net.Listen("tcp", ":"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		_, _ = c.Write([]byte("still here"))
		_ = c.Close()
	}
}
