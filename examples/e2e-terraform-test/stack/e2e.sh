#!/bin/sh
# Gives $1 jobs to the stack and checks every answer.
set -eu
n=$1
run=run-$$-$(date +%s)
i=1
while [ "$i" -le "$n" ]; do
  echo "job $i of $run" >"inbox.part"
  mv "inbox.part" "inbox/$run-$i"
  i=$((i + 1))
done
i=1
while [ "$i" -le "$n" ]; do
  tries=0
  until [ -f "outbox/$run-$i" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      echo "job $i was never worked off" >&2
      cat worker.log >&2
      exit 1
    fi
    sleep 0.1
  done
  want=$(echo "job $i of $run" | tr '[:lower:]' '[:upper:]')
  got=$(cat "outbox/$run-$i")
  if [ "$got" != "$want" ]; then
    echo "job $i: got '$got', want '$want'" >&2
    exit 1
  fi
  i=$((i + 1))
done
echo "$n jobs worked off"
