package lifecycle

import (
	"fmt"
	"strings"
)

// Diagram draws Edges as a Mermaid state diagram.
func Diagram() string {
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
