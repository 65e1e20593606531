package lifecycle

import (
	"fmt"
	"strings"
)

// diagram draws Edges as a Mermaid state diagram.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %s\n", Requested)
	for _, e := range Edges {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", e.From, e.To, e.Why)
	}
	for _, s := range States {
		if Terminal(s) {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}

// next lists where a state can go, in the order of a life.
func next(from State) []State {
	var out []State
	for _, s := range States {
		if Can(from, s) {
			out = append(out, s)
		}
	}
	return out
}
