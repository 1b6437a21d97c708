# Every target sets up what it needs in .venv, with plain pip; `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
BACKENDS := backends/onnx backends/inductor backends/onnxrt backends/openvino backends/openxla backends/ipex backends/tvm backends/cudagraphs backends/tensorrt
PLUGINS := plugins/trace
WHEELS := core $(BACKENDS) $(PLUGINS) conformance
MODELS ?= bert resnet50
LEVEL ?= L4
SEED ?=
JUDGED := eager inductor onnxrt openvino openxla ipex tvm
REACHED := eager onnxrt openvino
ON_GPU := eager inductor cudagraphs openxla
DEVICE ?= cpu
BUNDLED := inductor openxla ipex tvm
TIMED := conformance/tests/run# workers that must not be late: no test that computes is beside these
BUNDLE := 24

export PYTHONDONTWRITEBYTECODE :=# tests start hundreds of processes: each would compile these sources anew

.PHONY: help setup test lint unit gpu inference promises demo bench conform coverage matrix pack zoo mutants fix api docs vendor wheels clean
.DEFAULT_GOAL := help

help:    ## list the targets
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/.ready    ## a virtual environment with the repository's wheels, editable

test: lint unit inference    ## every check: linter, types, tests, conformance

lint: .venv/.ready    ## ruff and mypy --strict
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy $(WHEELS:%=%/src) tests/wheels/acme/src

unit: .venv/.ready    ## the tests, with the examples in docstrings
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules -n logical --dist loadfile --ignore $(TIMED) $(WHEELS) tests
	$(BIN)/python -m pytest -q -n logical --dist worksteal $(TIMED)

promises: .venv/.ready    ## hold every promise to every backend, and write docs/results/promises.md
	$(BIN)/python -m tests.promises

demo: .venv/.ready    ## compare real models through every backend that is ready
	$(BIN)/fairlead compare $(MODELS)

bench: .venv/.ready    ## the measurements behind the numbers in the documentation
	$(BIN)/python benchmarks/compare.py

gpu: .venv/.ready    ## on a machine with a CUDA device: the tests that need one, and conformance on it
	$(BIN)/python -m pytest -q -m gpu -W default $(WHEELS) tests    # torch warns there of its own doings
	$(MAKE) conform DEVICE=cuda JUDGED="$(ON_GPU)"

inference: .venv/.ready    ## core inference on each of our backends: case by case on three, in bundles on the others
	$(MAKE) conform LEVEL=L1 JUDGED="$(REACHED)" SEED=0
	for b in $(BUNDLED); do $(BIN)/fairlead-conformance run $$b --level L1 --bundle $(BUNDLE) --seed 0 --report reports/$$b-bundled || exit 1; done

conform: .venv/.ready    ## the conformance suite on each of our backends, in full or to LEVEL; reports in reports/
	failed=; for b in $(JUDGED); do $(BIN)/fairlead-conformance run $$b --level $(LEVEL) $(SEED:%=--seed %) --device $(DEVICE) --report reports/$$b || failed="$$failed $$b"; done; \
	$(BIN)/fairlead-conformance scoreboard $(JUDGED:%=reports/%) -o reports/site; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

coverage: .venv/.ready    ## a page of what each backend says of each op in each dtype, in reports/
	$(BIN)/fairlead-conformance coverage --output reports/coverage.html

matrix: .venv/.ready    ## capture, the golden corpus and semantics on other releases of torch
	$(BIN)/python -m tests.matrix --report docs/results/matrix.md

pack: .venv/.ready    ## the case pack of the conformance suite, anew from PyTorch's samples
	$(BIN)/python -m conformance.generate

zoo: .venv/.ready    ## faulty backends that the conformance suite has to catch: how many it does
	$(BIN)/python -m conformance.tests.zoo

mutants: .venv/.ready    ## mutants of the reference interpreter: how many the suite kills; goes on where it ended
	$(BIN)/python -m conformance.tests.zoo mutants

fix: .venv/.ready    ## format, and mend what the linter can
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

api: .venv/.ready    ## write down the public signatures, the schema of reports and the list of cases anew
	$(BIN)/python tests/test_public_api.py

vendor:    ## fetch anew, with npm, the files of others that are in a wheel
	$(PYTHON) core/vendor.py

docs: .venv/.ready    ## the site in build/docs/site/: these pages, and one for each op of the IR
	rm -rf build/docs
	$(BIN)/python docs/stage.py build/docs/pages
	$(BIN)/fairlead op --pages build/docs/pages/ops
	$(BIN)/python -m sphinx -q -n -W --keep-going -c docs build/docs/pages build/docs/site

wheels: .venv/.ready    ## build every wheel into dist/
	for w in $(WHEELS); do (cd $$w && $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist) || exit 1; done

clean:    ## remove what the other targets made, the virtual environment too
	rm -rf .venv dist build reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: constraints.txt pyproject.toml $(WHEELS:%=%/pyproject.toml)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fairlead needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt --group dev --group docs \
	  --editable './core[torch,numpy,report,models]' $(BACKENDS:%=--editable ./%) $(PLUGINS:%=--editable ./%) --editable ./conformance
	touch $@
