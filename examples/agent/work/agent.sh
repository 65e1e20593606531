#!/bin/sh
# Stands in for an agent: reads its instructions, needs its token, and writes an answer.
set -eu
[ -n "${AGENT_TOKEN:-}" ] || { echo 'there is no token' >&2; exit 1; }
echo "task: $(cat .sandboxer/instructions.md)" >answer.txt
echo "words: $(($(wc -w <notes.txt)))" >>answer.txt
