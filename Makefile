# Everything a contributor does has a target here; `make help` lists them.
# PYTHON chooses the interpreter that the virtual environment is made from, VENV where it lies.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
# Most tests wait rather than compute, so several run at once; PYTEST_ARGS="-n 0" runs them one after the other.
PARALLEL := -n 4
COVERAGE_ARGS ?= -m "not slow" tests/unit tests/contract tests/scenario
BENCH_ARGS ?= --keep
CHAOS_ARGS ?=
FUZZ_ARGS ?=
MUTANTS_ARGS ?=
KUBERNETES ?=
STORY_ARGS ?=

# Named in every install command: this is the release whose default build runs without a GPU on every machine that
# we support, and no other package may replace it.
TORCH := torch==2.13.0

BIN := $(VENV)/bin

# The tests start thousands of Pythons, and each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo story test test-slow test-airflow test-kubernetes coverage lint format docs docs-test layer-table translation-tables bench bench-search chaos fuzz mutants audit clean distclean system-packages hadoop

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo-installed ## Install the package and search a small real model on this machine
	@$(BIN)/cargobike demo
	@echo "  . $(BIN)/activate       puts the cargobike command on your path"

story: $(VENV)/.story-installed ## Walk the whole way, from raw data over serving to retraining, in some minutes (STORY_ARGS="--quick")
	@$(BIN)/python examples/fraud/story.py $(STORY_ARGS)

test: system-packages lint ## Install what the tests need, then check style, types and behaviour: what is quick, and one of each kind
	@$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(PYTEST_ARGS)

test-slow: system-packages $(VENV)/.dev-installed hadoop ## Run the tests that take long: Spark, chaos, fresh environments, browser tours, frameworks
	@$(BIN)/python -m pytest $(PARALLEL) -m slow $(PYTEST_ARGS)

test-airflow: $(VENV)/.dev-installed ## Run the tests of the provider for Airflow, in an environment with Airflow (made once)
	@$(BIN)/python -m pytest tests/scenario/test_airflow_provider.py $(PYTEST_ARGS)

test-kubernetes: $(VENV)/.dev-installed ## Run deployments on a real API server (KUBERNETES=folder with kube-apiserver, kube-controller-manager, etcd)
	@KUBERNETES="$(KUBERNETES)" $(BIN)/python -m pytest tests/scenario/test_real_cluster.py $(PYTEST_ARGS)

coverage: $(VENV)/.dev-installed ## Print how much of each room the quick tests run (COVERAGE_ARGS="tests/unit/store")
	@mkdir -p build
	@$(BIN)/python -m pytest --quiet --cov --cov-report=json:build/coverage.json $(COVERAGE_ARGS)
	@$(BIN)/python tests/support/covered_rooms.py build/coverage.json

lint: $(VENV)/.dev-installed ## Check style and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(VENV)/.dev-installed ## Rewrite the code in the house style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: $(VENV)/.dev-installed ## Write the documentation as a site to build/site, to be read without a network
	@NO_MKDOCS_2_WARNING=1 TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "python -m http.server --bind 127.0.0.1 --directory build/site    shows it at http://127.0.0.1:8000"

docs-test: $(VENV)/.dev-installed ## Run every snippet of the README and the docs, and every example
	@$(BIN)/python -m pytest tests/docs $(PYTEST_ARGS)

chaos: $(VENV)/.dev-installed ## Let random schedules of faults loose on searches, here and on Spark (CHAOS_ARGS="--schedules 1000 --seed 7")
	@$(BIN)/python tests/faults/chaos $(CHAOS_ARGS)

fuzz: $(VENV)/.dev-installed ## Try a million random inputs on everything that parses (FUZZ_ARGS="--inputs 50000 --seed 7")
	@$(BIN)/python tests/faults/fuzzing $(FUZZ_ARGS)

mutants: $(VENV)/.dev-installed ## Make small mistakes in the sources and see which the unit tests miss (MUTANTS_ARGS="--only journal --seed 7")
	@$(BIN)/python tests/mutants $(MUTANTS_ARGS)

audit: $(VENV)/.dev-installed ## Look up known weaknesses of the installed packages; needs the public database
	@$(PIP) install --quiet pip-audit
	@$(BIN)/python -m pip_audit --skip-editable

translation-tables: $(VENV)/.dev-installed ## Write the tables of old and new calls in the guides for people from older libraries
	@$(BIN)/python tests/support/translation_tables.py

layer-table: $(VENV)/.dev-installed ## Write the table of rooms and layers in docs/architecture.md
	@$(BIN)/python tests/architecture/layer_table.py

bench: $(VENV)/.dev-installed ## Measure all rooms beside their peers, and write docs/benchmarks.md (BENCH_ARGS="--brief --keep", "--only serving --keep")
	@.ci/system-packages bench
	@$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

bench-search: $(VENV)/.dev-installed ## Measure how good the searches are, beside peers, in virtual time (hours; what is known is kept)
	@$(PIP) install --quiet $(TORCH) --group bench
	@$(BIN)/python benchmarks/search/quality.py

clean: ## Remove caches and build products
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .coverage*
	@find src tests benchmarks examples providers -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the virtual environments too
	@rm -rf $(VENV) .venvs

system-packages:
	@.ci/system-packages

hadoop: $(VENV)/.dev-installed
	@.ci/hadoop-jars $(BIN)/python .venvs/hadoop

$(VENV)/.created:
	@PYTHON="$(PYTHON)" .ci/create-venv "$(VENV)"
	@$(PIP) install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.torch-installed: $(VENV)/.created
	@echo "Installing PyTorch (once) ..."
	@$(PIP) install --quiet $(TORCH)
	@touch $@

$(VENV)/.demo-installed: pyproject.toml $(VENV)/.torch-installed
	@echo "Installing Cargobike ..."
	@$(PIP) install --quiet $(TORCH) -e ".[demo]"
	@touch $@

$(VENV)/.story-installed: pyproject.toml $(VENV)/.torch-installed
	@echo "Installing Cargobike and what the story needs ..."
	@$(PIP) install --quiet $(TORCH) -e ".[data,demo,features,notebook,plot,serving,ui]"
	@touch $@

$(VENV)/.dev-installed: pyproject.toml $(VENV)/.torch-installed
	@echo "Installing Cargobike and what its tests need ..."
	@$(PIP) install --quiet $(TORCH) -e ".[all,demo]" --group dev --group docs --group frameworks
	@touch $@
