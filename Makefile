# Every task of this repository. Needs Python 3.10+, Java 17+ and make; everything else goes into .venv.
#   make demo    a tour on the example shop          make test    everything CI runs
# Another Python than the first one on the PATH: make test PYTHON=python3.12

PYTHON ?=
BIN := .venv/bin
STAMP := .venv/.lamina-installed
ARCHIVE := .venv/spark.jsa
PYTEST := $(BIN)/python -m pytest
# Two at a time, each file as a whole: most of the time goes into starting Spark, which leaves a core idle. The order
# is that of tests/conftest.py: longest first.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder
SLOW := tests/spark tests/e2e tests/conformance tests/protocol

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check fast static spark e2e protocol golden docs bench lock format clean java

help: ## list these tasks
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

demo: java $(STAMP) ## build the example shop on local Spark, change a model, build it in dev
	@$(BIN)/python tools/demo.py

test: java $(STAMP) static $(ARCHIVE) ## everything CI runs: static checks and all tests
	@$(BIN)/python -m tests.kit.outside
	@$(PYTEST) $(SIDE_BY_SIDE) tests

check: $(STAMP) static fast ## static checks and the tests without Spark

fast: $(STAMP) ## the tests without Spark
	@$(PYTEST) $(SIDE_BY_SIDE) -m "not spark and not slow" $(SLOW:%=--ignore=%) tests

# All of them are run, so that everything wrong is seen at once.
static: $(STAMP) ## lint, format, types, spelling, imports
	@status=0; \
	$(BIN)/ruff check --quiet --output-format concise . || status=1; \
	$(BIN)/ruff format --check --quiet --output-format concise . || { echo "not formatted: run \`make format\`" >&2; status=1; }; \
	$(BIN)/mypy --no-error-summary || status=1; \
	$(BIN)/codespell || status=1; \
	report="$$($(BIN)/lint-imports --no-logo 2>&1)" || { echo "$$report" >&2; status=1; }; \
	exit $$status

format: $(STAMP) ## format the code and mend what the linter can mend
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

spark: java $(STAMP) $(ARCHIVE) ## the tests on a real local Spark session
	@$(PYTEST) -m spark --ignore=tests/e2e tests

e2e: java $(STAMP) $(ARCHIVE) ## the command line on real projects
	@$(PYTEST) tests/e2e

protocol: $(STAMP) ## every interleaving of the write protocol
	@$(PYTEST) tests/protocol

golden: java $(STAMP) ## rewrite the expected SQL and output in tests/golden
	@LAMINA_UPDATE_GOLDEN=1 $(PYTEST) -m golden tests

docs: $(STAMP) ## rewrite the generated reference pages
	@$(BIN)/python -m tools.reference

bench: java $(STAMP) ## measure planning and running
	@$(BIN)/python benchmarks/run.py

lock: $(STAMP) ## resolve requirements.lock anew
	@$(BIN)/uv pip compile pyproject.toml --extra spark --extra connect --extra postgres --group dev \
		--universal --python-version 3.10 --generate-hashes --upgrade \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

clean: ## remove .venv, the demo and every cache
	@rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@python="$$(sh tools/find_python.sh $(PYTHON))" && "$$python" tools/check_java.py

# Compared by content: after a fresh clone or a pull the times of these files say nothing.
$(STAMP): requirements.lock pyproject.toml tools/make_venv.py
	@python="$$(sh tools/find_python.sh $(PYTHON))" && "$$python" tools/make_venv.py

$(ARCHIVE): $(STAMP) tools/spark_archive.py
	@$(BIN)/python tools/spark_archive.py
