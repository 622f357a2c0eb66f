# Everything here needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test explore lint bench lock

setup: .venv/ready

.venv/ready: constraints.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch .venv/ready

demo: setup
	$(BIN)/afterturn demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

explore: setup # what is drawn at random, drawn anew, and more of it: for a night, not for every change
	AFTERTURN_SEEDS=200 $(BIN)/python -m pytest tests/properties tests/integration/test_erasure_canary.py \
		--hypothesis-profile=explore --timeout 0
	$(BIN)/python -m tests.chaos.storm --seconds 600

bench: setup
	$(BIN)/python -m bench

lock: # pins every version with its hashes; needs uv on the PATH
	uv pip compile pyproject.toml --extra dev --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --custom-compile-command "make lock" --output-file constraints.txt
