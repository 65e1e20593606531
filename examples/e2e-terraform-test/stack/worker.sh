#!/bin/sh
# Processes jobs until the sandbox ends.
while :; do
  for job in inbox/*; do
    [ -f "$job" ] || continue
    tr '[:lower:]' '[:upper:]' <"$job" >"outbox/.part"
    mv "outbox/.part" "outbox/${job##*/}"
    rm "$job"
  done
  sleep 0.1
done
