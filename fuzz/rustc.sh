#!/usr/bin/env bash
# The compiler of the fuzzers: instruments the crates that read files and the parsers they call, and compiles the rest plainly.
# With instruments the linear algebra takes a quarter of an hour, and tells a fuzzer nothing.
rustc="$1"
shift
crate=""
for argument in "$@"; do
  if [ "$crate" = next ]; then crate="$argument"; break; fi
  if [ "$argument" = --crate-name ]; then crate=next; fi
done
case "$crate" in
  qdc_data | qdc_tune | qdc_lab | flate2 | serde_json | toml* | safetensors | archive | configuration | dataset | edge_list | \
  generator | kernel | market | model | pickle | scipy | shard | spectrum | study) exec "$rustc" "$@" ;;
esac
plain=()
for argument in "$@"; do
  case "$argument" in
    -Cpasses=sancov-module | -Cllvm-args=* | -Zsanitizer=* | -Ccodegen-units=1) ;;
    *) plain+=("$argument") ;;
  esac
done
exec "$rustc" "${plain[@]}"
