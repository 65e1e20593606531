# Operation: check that a sandbox can be copied now. The answer has what its stack was made of, if that was in the workspace.

use_root
use_box "$id"
read_clock
started=$uptime op=look
need_tools
take_ready
unlock_sandbox
stack=
[ ! -f "$box/stack.json" ] || stack="\"stack\":$(cat "$box/stack.json")"
answer "{$stack}"
