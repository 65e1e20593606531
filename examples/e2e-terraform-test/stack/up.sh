#!/bin/sh
# Starts the stack: a queue (two folders) and a worker that turns each job
# into upper case.
set -eu
mkdir -p inbox outbox
if [ -f worker.pid ] && kill -0 "$(cat worker.pid)" 2>/dev/null; then
  exit 0
fi
sh worker.sh </dev/null >worker.log 2>&1 &
echo $! >worker.pid
