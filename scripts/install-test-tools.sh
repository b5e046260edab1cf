#!/usr/bin/env bash
# Installs the optional tools of the test suite on a Debian machine: a browser for the report, a PostgreSQL server for
# shared studies, Python for the package. Without them the tests that need them are skipped with a message.
set -euo pipefail

packages=()
command -v chromium >/dev/null || packages+=(chromium fonts-dejavu-core)
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages+=(postgresql)
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3 python3-venv python3-pip)
command -v cc >/dev/null || packages+=(gcc)
[ ${#packages[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${packages[*]}; the tests that need them will be skipped" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${packages[@]}"; }; then
  echo "could not install ${packages[*]}; the tests that need them will be skipped" >&2
fi
