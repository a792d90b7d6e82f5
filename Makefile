# Everything a developer types. Each target works on a fresh machine which has Python 3.11 or newer and a package
# registry: it makes the environment it needs in $(VENV) once, and is quick after that.
#
#   make demo            train a teacher, distil a student, solve problems, re-rank (examples/quickstart.py)
#   make test            the tests that CI runs            make test ARGS="tests/runtime/expressions -x"
#   make test-slow       those that take longer
#   make test-oldest     a part of them with the oldest versions that setup.cfg allows, in .venv-oldest
#   make test-newest     the tests that CI runs, with the newest versions that pip finds, in .venv-newest
#   make lint / format   check style / rewrite files
#   make types           check the types of the public names with mypy
#   make docs            build the documentation into docs/site; warnings are errors
#   make notebook        run examples/notebook.ipynb and store its outputs (ten minutes)
#   make bench           speed against the peer, written to examples/benchmarks/RESULTS.md
#                        make bench ARGS=--quick: two minutes each, nothing is written
#   make dist            wheel and source archive
#   make clean           remove the environments and what the tools wrote
#
# An environment of your own: make test VENV=path/to/venv

VENV ?= .venv
JOBS ?= 2
ARGS ?=
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)

BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
CONSTRAINTS ?= --constraint constraints.txt
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet $(CONSTRAINTS)

# Many small operations are slower on several threads than on one; the test workers share the cores instead.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-oldest test-newest types lint format docs notebook bench dist clean

help:
	@sed -n 's/^#   //p' Makefile

$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# constraints.txt names a torch version: without it the newest torch comes with several GB of CUDA libraries.
$(STAMPS)/package: setup.cfg constraints.txt | $(STAMPS)/venv
	@echo "Installing hf-mwp and what it needs into $(VENV) (the first time takes minutes)"
	$(PIP) --editable '.[cli]'
	@touch $@

$(STAMPS)/demo: $(STAMPS)/package
	$(PIP) --editable '.[demo]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/package
	$(PIP) --editable '.[dev]'
	@touch $@

$(STAMPS)/onnx: $(STAMPS)/package
	$(PIP) --editable '.[onnx]'
	@touch $@

$(STAMPS)/ruff: constraints.txt | $(STAMPS)/venv
	$(PIP) ruff
	@touch $@

# Reads the sources and does not import them: no other package is needed.
$(STAMPS)/docs: setup.cfg constraints.txt | $(STAMPS)/venv
	$(PIP) mkdocs 'mkdocstrings[python]' ruff zensical
	@touch $@

# Threads that wait actively make a training ten times slower beside other programs; sleeping ones cost a tenth without.
demo: $(STAMPS)/demo
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python examples/quickstart.py $(ARGS)

test: $(STAMPS)/dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal $(ARGS)

test-slow: $(STAMPS)/demo $(STAMPS)/dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m slow $(ARGS)

# The oldest Python, too: some of these versions have no wheels for newer ones. Dependencies of dependencies are the newest
# that fit, as users get them. The tests import each requirement.
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11
OLDEST_PIP = $(OLDEST)/bin/python -m pip install --disable-pip-version-check --quiet --constraint $(OLDEST)/constraints.txt
OLDEST_TESTS ?= tests/test_public_api.py tests/solver/training/test_solver_trainer.py \
	tests/compress/trainers/test_distillation_trainer.py tests/compress/pruning/test_head_pruning_callback.py \
	tests/solver/pipelines/test_math_word_problem_pipeline.py tests/runtime tests/utils tests/commands/recipes/test_recipe.py \
	tests/compress/models/test_lora.py tests/solver/metrics/test_evaluate_metrics.py tests/runtime/tagging/test_jieba_tagger.py \
	tests/compress/pruning/test_score_drawing.py tests/commands/terminal

$(OLDEST)/.installed: setup.cfg constraints.txt
	test -x $(OLDEST)/bin/python || $(OLDEST_PYTHON) -m venv $(OLDEST)
	grep '^torch==' constraints.txt > $(OLDEST)/constraints.txt
	sed -n -E '/^install_requires/,/^$$/p; /^cli =/,$$p' setup.cfg \
		| sed -n -E '/^ +torch>/d; s/^ +([A-Za-z0-9_-]+)>=([0-9.]+).*/\1==\2/p' >> $(OLDEST)/constraints.txt
	$(OLDEST_PIP) --editable '.[cli]' pytest hypothesis
	@touch $@

test-oldest: $(OLDEST)/.installed
	$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -m "not slow" $(OLDEST_TESTS) $(ARGS)

# Without constraints.txt.
test-newest:
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=--upgrade

$(STAMPS)/mypy: constraints.txt | $(STAMPS)/package
	$(PIP) mypy
	@touch $@

types: $(STAMPS)/mypy
	$(BIN)/python examples/type_stubs.py --check
	$(BIN)/mypy

lint: $(STAMPS)/ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMPS)/ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# MkDocs finds broken links that Zensical lets through.
docs: $(STAMPS)/docs
	$(BIN)/python docs/make_pages.py
	$(BIN)/mkdocs build --quiet --strict --theme mkdocs --config-file docs/mkdocs.yml --site-dir $(abspath $(STAMPS))/site
	$(BIN)/zensical build --strict --clean --config-file docs/mkdocs.yml

notebook: $(STAMPS)/demo
	$(PIP) ipykernel nbclient
	$(BIN)/jupyter-execute --inplace --timeout=1800 examples/notebook.ipynb

# Without arguments, the results are written down; `--quick` only shows that all of them run.
BENCHMARKS := gts athena fine_tuning distillation cache_memory import_time solving pruning stark deploy

bench: $(STAMPS)/demo $(STAMPS)/onnx
	set -e; for name in $(BENCHMARKS); do $(BIN)/python examples/benchmarks/$$name.py $(or $(ARGS),--write); done

dist: $(STAMPS)/dev
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf .venv .venv-oldest .venv-newest .mypy_cache build dist docs/site docs/site_pages docs/.cache *.egg-info .pytest_cache .ruff_cache .hypothesis .bench
