#!/usr/bin/env bash
# Opens the report and the animation in headless Chromium: moves sliders, presses keys, sorts tables, compares the kernel
# that the page computes with the one qdc writes. Screenshots and a printed page go to test-artefacts/. Skips, and says
# so, without Chromium or Python.
set -euo pipefail
cd "$(dirname "$0")/../.."

chromium=""
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then chromium="$(command -v "$name")"; break; fi
done
if [ -z "$chromium" ]; then
  echo "SKIPPED: browser tests need Chromium (Debian: apt-get install chromium)"
  exit 0
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
  echo "SKIPPED: browser tests need Python 3.8 or newer"
  exit 0
fi

qdc="${QDC:-target/debug/qdc}"
if [ "$qdc" = target/debug/qdc ]; then cargo build --quiet --workspace; fi # what was built before may be older than the sources
mkdir -p test-artefacts
python3 tests/browser/test_pages.py "$chromium" "$qdc" test-artefacts
