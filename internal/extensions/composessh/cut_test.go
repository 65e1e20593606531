package composessh

import "testing"

func TestWhatIsCutIsCutAtLines(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
show() { printf "$1" | end_of "$2" | tr '\n' '|'; echo; }
show 'one\ntwo\n' 8
show 'one\ntwo' 7
show 'one\ntwo\n' 7
show 'one\ntwo\n' 5
show 'one\ntwo\n' 4
show 'one\ntwo' 3
show 'one\ntwothree\n' 5
show '' 5
`, "one|two|\none|two\n…|two|\n…|two|\n…|two|\n…|two\n… hree|")
}
