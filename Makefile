# The two commands a newcomer needs are `make demo` and `make test`; the rest are their parts.

.PHONY: demo test lint test-rust doc

demo:
	cargo run --release -- demo

test: lint test-rust doc
	@echo "all tests passed"

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

test-rust:
	cargo test --workspace --no-fail-fast

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Parts that need more than Rust: a Python with pip, a browser.
.PHONY: test-python test-browser

test-python:
	python/test.sh

test-browser:
	tests/browser/run.sh
