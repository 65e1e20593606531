#!/bin/sh
# Any folder can be a sandbox's workspace.
echo "log level: ${LOG_LEVEL:-info}"
