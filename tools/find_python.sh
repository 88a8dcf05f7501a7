#!/bin/sh
# Prints a Python that can run Lamina: the one named as argument, else the first suitable on PATH.
# Each candidate is run, not only found: version managers leave commands behind that answer with an error.
set -u

suits() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

if [ -n "${1:-}" ]; then
    if suits "$1"; then
        command -v "$1"
        exit 0
    fi
    echo "\`$1\` is not a working Python 3.10 or newer: call make with PYTHON=/path/to/python3" >&2
    exit 1
fi

for candidate in python3.13 python3.12 python3.11 python3.10 python3 python; do
    if suits "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

echo "No Python 3.10 or newer was found: install one (Debian and Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13) or call make with PYTHON=/path/to/python3" >&2
exit 1
