#!/usr/bin/env bash
# Opens the report and the animation in headless Chromium: moves sliders, sorts tables, compares the kernel that the
# page computes with the one qdc writes. Screenshots go to test-artefacts/. Skips, and says so, without Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."

chromium=""
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then chromium="$(command -v "$name")"; break; fi
done
if [ -z "$chromium" ]; then
  echo "SKIPPED: browser tests need Chromium (Debian: apt-get install chromium)"
  exit 0
fi
if ! command -v python3 >/dev/null; then
  echo "SKIPPED: browser tests need python3"
  exit 0
fi

qdc="${QDC:-target/debug/qdc}"
[ -x "$qdc" ] || cargo build -q -p qdc-cli
mkdir -p test-artefacts
python3 tests/browser/test_pages.py "$chromium" "$qdc" test-artefacts
