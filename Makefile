# Everything a clean clone needs: `make demo`, `make test`. Only Python 3.11+ and make are required.
.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-all test-spark constraints soak endurance explore conformance test-cloud schemas any-schema reference clients lint format bench docs pictures dist clean

# Hundreds of processes import the product in the tests: each would compile it.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
# Any value: the newest versions that pyproject.toml allows, in .venv-newest, not the tested ones.
NEWEST ?=
VENV   ?= .venv$(if $(NEWEST),-newest)
export NEWEST
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SPARK  ?= 4.3.0
SPARK_VENV := .venv-spark-$(SPARK)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the tested versions of everything (uv where installed, else venv and pip)

$(STAMP): pyproject.toml scripts/bootstrap.sh $(wildcard scripts/constraints/*.txt)
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash scripts/bootstrap.sh
	@touch $@

demo: $(STAMP) ## the whole data path on this machine: Spanner -> Spark -> Parquet, verified row by row
	@$(BIN)/spanner-watcher demo $(DEMO_ARGS)

check: $(STAMP) lint ## for daily work: lint, then the tests that are quick and need no Spark
	@$(BIN)/python -m pytest -m "not slow and not spark" -n auto --dist loadscope $(PYTEST_ARGS)

test: $(STAMP) lint ## lint, then every test but the long ones, with Spark: fifteen minutes on two cores
	@$(BIN)/python -m pytest -m "not long" -n auto --dist loadscope $(PYTEST_ARGS)

test-all: $(STAMP) lint ## lint, then every test: most of an hour on two cores
	@$(BIN)/python -m pytest -n auto --dist loadscope $(PYTEST_ARGS)

test-spark: $(SPARK_VENV)/.installed ## the Spark tests on another Spark, in .venv-spark-VERSION: SPARK=4.0.1 (without: 4.3.0, the newest)
	@$(SPARK_VENV)/bin/python -m pytest -m spark -n auto --dist loadscope $(PYTEST_ARGS)

$(SPARK_VENV)/.installed: pyproject.toml scripts/bootstrap.sh
	@PYTHON="$(PYTHON)" VENV="$(SPARK_VENV)" SPARK_VERSION="$(SPARK)" bash scripts/bootstrap.sh
	@touch $@

test-cloud: $(STAMP) ## the end-to-end tests on a real instance, which asks first: DATABASE=spanner://projects/P/instances/I/databases/D
	@PYTHONPATH=.:tests $(BIN)/python -m cloud.run "$(DATABASE)" $(TEST_CLOUD_ARGS)

constraints: $(STAMP) ## write the installed versions into scripts/constraints/: NEWEST=1 after `make test NEWEST=1`
	@$(BIN)/python scripts/write_constraints.py

soak: $(STAMP) ## 200 randomised runs under faults, about half an hour: SOAK_ARGS="--runs 20"
	@$(BIN)/python tests/nemesis/soak.py $(SOAK_ARGS)

endurance: $(STAMP) ## hours of load with kills and schema changes: ENDURANCE_ARGS="--minutes 90 --rate 3000"
	@PYTHONPATH=.:tests $(BIN)/python -m endurance.run $(ENDURANCE_ARGS)

explore: $(STAMP) ## schedules of actors that meet in one database: EXPLORE_ARGS="--scenario all --schedules 10000"
	@PYTHONHASHSEED=0 PYTHONPATH=.:tests $(BIN)/python -m interleavings.run $(EXPLORE_ARGS)

conformance: $(STAMP) ## the case files of GoogleSQL and of Google's emulator: CONFORMANCE_ARGS="grammar --list"
	@PYTHONPATH=.:tests $(BIN)/python -m golden.run $(CONFORMANCE_ARGS)

schemas: $(STAMP) ## 177 schemas, 175 of them of others, each the whole way from its plan to its rollback: SCHEMAS_ARGS="--jobs 2 NAME"
	@PYTHONPATH=.:tests $(BIN)/python -m schemas.run $(SCHEMAS_ARGS)

any-schema: $(STAMP) ## random schemas, watched and copied in random ways: ANY_SCHEMA_ARGS="--examples 20000 --seed 7"
	@PYTHONPATH=.:tests $(BIN)/python -m schemas.any_schema $(ANY_SCHEMA_ARGS)

reference: $(STAMP) ## random SQL against GoogleSQL's reference: REFERENCE_ARGS="--expressions 20000 --queries 5000 --list"
	@PYTHONPATH=.:tests $(BIN)/python -m reference.run $(REFERENCE_ARGS)

clients: $(STAMP) ## test suites of other people's clients on the embedded server, minutes each: SUITE="go python" CLIENTS_ARGS=--json
	@PYTHONPATH=.:tests $(BIN)/python -m clients.run $(SUITE) $(CLIENTS_ARGS)

lint: $(STAMP) ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(STAMP) ## let ruff fix what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## run the short set of benchmarks on the embedded server, with a report: BENCH_ARGS="--out FOLDER"
	@$(BIN)/spanner-watcher bench run --short $(BENCH_ARGS)

dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
dist: $(STAMP) ## wheel and source distribution in dist/: the same bytes from the same commit
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist

docs: $(STAMP) ## the site of the documentation, in build/site; dead links are errors
	@PYTHONPATH=scripts $(BIN)/python -m reference_pages
	@$(BIN)/python scripts/build_site.py build

pictures: $(STAMP) ## the pictures of the documentation, made of the program itself: docs/pictures
	@PYTHONPATH=.:tests $(BIN)/python -m pictures.run

clean: ## remove what make made
	rm -rf $(VENV) .venv-* .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
