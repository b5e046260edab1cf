# The two commands a newcomer needs are `make demo` and `make test`; the rest are their parts.

.PHONY: demo release test lint test-rust doc

demo:
	cargo run --release -- demo

# The binary with everything: studies on PostgreSQL, figures as PNG.
release:
	cargo build --release -p qdc-cli --features postgres,png

test: lint test-rust doc test-optuna test-python test-browser
	@echo "all tests passed"

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

test-rust:
	cargo test --workspace --no-fail-fast

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Parts that need more than Rust: a Python with pip, a browser, PostgreSQL. What is not there is skipped, and said so.
.PHONY: test-optuna test-python test-browser

test-optuna:
	crates/qdc-tune/tests/optuna/run.sh

test-python:
	python/test.sh

test-browser:
	tests/browser/run.sh
