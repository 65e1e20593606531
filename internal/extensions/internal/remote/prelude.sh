# The functions for every script of a Call. Runs in any POSIX sh, with LC_ALL=C; _sbx_t is the mark that distinguishes our
# lines from those of other programs.

# answer [doc]: sends the JSON document, from $1 or stdin.
answer() {
	printf '\n%s answer\n' "$_sbx_t"
	if [ $# -gt 0 ]; then printf '%s' "$1"; else cat; fi
	printf '\n%s end\n' "$_sbx_t"
}

# fail kind message [remedy]: answers with an error and ends the script, or the
# subshell it is called in.
fail() {
	answer "{\"error\":{\"kind\":$(json_string "$1"),\"message\":$(json_string "$2"),\"remedy\":$(json_string "${3-}")}}"
	exit 1
}

# progress text: sends a line to the caller. A missing reader is not a failure.
progress() {
	printf '%s %s\n' "$_sbx_t" "$*" >&2 2>/dev/null || :
}

# json_text text: sets json to text as a JSON string. It passes bytes that are not UTF-8; the reader replaces them. Of
# special characters, most texts have only newlines, and a short one needs no other program.
json_text() {
	json= _sbx_plain= _sbx_rest=$1
	while [ "${#1}" -le 8192 ]; do
		_sbx_line=${_sbx_rest%%'
'*}
		[ "$_sbx_line" != "$_sbx_rest" ] || break
		json="$json$_sbx_line\\n" _sbx_plain=$_sbx_plain$_sbx_line
		_sbx_rest=${_sbx_rest#"$_sbx_line"?}
	done
	case $_sbx_plain$_sbx_rest in
	*[\"\\[:cntrl:]]*) json=\"$(printf '%s\n' "$1" | _sbx_escape)\" ;;
	*) json=\"$json$_sbx_rest\" ;;
	esac
}

# json_string [text]: prints text, or stdin without its last newline, as a JSON string.
json_string() {
	if [ $# -eq 0 ]; then
		printf '"'
		tr -d '\000' | _sbx_escape
		printf '"'
		return
	fi
	json_text "$1"
	printf '%s' "$json"
}

# A sed per line, and a tr to join them: linear in the input. _sbx_sed comes with the script.
_sbx_escape() { sed "$_sbx_sed" | tr -d '\n'; }
