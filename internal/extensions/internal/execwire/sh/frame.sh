# The channel beside a command's streams. Variable: sbx_channel, a nonce that programs inside do not know, so that they cannot
# send anything.

# say JSON sends the caller a message on standard error.
say() { printf '\036%s%s\036' "$sbx_channel" "$1" >&2; }
