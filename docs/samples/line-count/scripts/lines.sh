#!/bin/bash
# Only builtins of bash are used, so nothing but bash has to be there.
mapfile -t lines <"$1"
echo "$1 has ${#lines[@]} lines"
