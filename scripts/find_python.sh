#!/bin/sh
# Prints the first Python that can run clew: 3.11 or newer, with venv and ensurepip (Debian packs those apart).
# PYTHON, when set, is the only candidate.
needs='import sys; sys.exit(sys.version_info < (3, 11))'
candidates=${PYTHON:-python3.13 python3.12 python3.11 python3}
for candidate in $candidates; do
    if "$candidate" -c "$needs" >/dev/null 2>&1; then
        if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            echo "$candidate"
            exit 0
        fi
        echo "$candidate cannot make virtual environments: install its venv package (Debian, Ubuntu: python3-venv)." >&2
    elif version=$("$candidate" -V 2>&1); then
        echo "$candidate is $version." >&2
    fi
done
echo "clew needs Python 3.11 or newer; tried: $candidates. Install one, or name it: make run PYTHON=/path/to/python3" >&2
exit 1
