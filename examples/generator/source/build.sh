#!/bin/sh
# Puts the parts together, and checks the result.
set -eu
mkdir -p dist
{ echo "# version $VERSION"; cat parts/*.txt; } >dist/page.txt
[ "$(wc -l <dist/page.txt)" -gt 1 ] || { echo 'nothing was generated' >&2; exit 1; }
