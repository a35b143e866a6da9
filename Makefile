# Every chore of the project. `make` or `make help` lists them; each target sets up what it needs.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
EXTRAS ?= offline,fast,openvino,static,agents,http,s3,git,fsspec,scatter,dev
# More words for pip, jupyter, voila and pytest, e.g.  make test PYTEST_FLAGS='-k archive -x'
PIP_FLAGS ?=
LAB_FLAGS ?=
VOILA_FLAGS ?=
PYTEST_FLAGS ?=
# The tests of one file run one after the other, two files side by side. WORKERS= runs all of them in one process.
WORKERS ?= -n 2 --dist loadfile

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
NOTEBOOKS = $(wildcard notebooks/*.ipynb)
BENCHMARKS = $(wildcard benchmarks/bench_*.py)

.DEFAULT_GOAL := help
.PHONY: help demo lab voila test check bench docs clean
.DELETE_ON_ERROR:

help: ## list the targets
	@echo "usage: make TARGET [PYTHON=python3.12] [VENV=.venv]"
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## /  \1|/' | \
	  while IFS='|' read -r target text; do printf '%-10s %s\n' "$$target" "$$text"; done

demo: $(STAMP) ## open the example field, embed it, search it three ways, map it; writes build/demo.html
	@echo "==> demo: the example field, opened, embedded, searched and mapped"
	@mkdir -p build
	$(BIN)/memoryfield demo

# JupyterLab asks elsewhere for news and updates, and asks a newcomer whether it may: not in this environment.
lab: $(STAMP) ## open JupyterLab on the notebooks
	@echo "==> lab: JupyterLab on notebooks/ (end it with Ctrl-C)"
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  > $(VENV)/share/jupyter/lab/settings/overrides.json
	$(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/01-what-is-a-memoryfield.ipynb $(LAB_FLAGS)

# Voila's own template names style sheets on a CDN: the browser is told to fetch from this server only.
OWN_MACHINE := default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; connect-src 'self' ws://127.0.0.1:* data:

voila: $(STAMP) ## show the Workbench on the example field with Voila, which it installs (end it with Ctrl-C)
	@echo "==> voila: the Workbench at http://127.0.0.1:8866"
	$(PIP) install --quiet --constraint constraints.txt $(PIP_FLAGS) voila
	@mkdir -p build
	$(BIN)/python -c "import nbformat as n; v = n.v4; n.write(v.new_notebook(cells=[v.new_code_cell('import memoryfield as mf\nfrom memoryfield_widgets import Workbench\nWorkbench(mf.open_field(\"../data/harbor\", model=\"auto\"))')]), 'build/workbench.ipynb')"
	cd build && $(abspath $(BIN))/voila workbench.ipynb --no-browser --Voila.ip=127.0.0.1 \
	  --Voila.tornado_settings="{'headers': {'Content-Security-Policy': \"$(OWN_MACHINE)\"}}" $(VOILA_FLAGS)

# The browser tests need a Chromium: the machine's own, else Debian's package (as root), else Playwright's download.
# Where none of the three can be had, they are skipped and say so.
test: $(STAMP) ## run all tests
	@$(BIN)/python tests/browser/bring_browser.py
	@echo "==> test: pytest, with warnings as errors"
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_FLAGS)

check: $(STAMP) ## lint, formatting, types, floors, rule ids in tests, stripped notebooks
	@echo "==> check: ruff (lint and formatting)"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "==> check: mypy --strict"
	$(BIN)/mypy --strict memoryfield widgets
	@echo "==> check: import-linter (an import only goes down)"
	$(BIN)/lint-imports
	@echo "==> check: each rule of the format is named by a test"
	$(BIN)/python tests/check_ids.py
ifneq ($(NOTEBOOKS),)
	@echo "==> check: notebooks are stored stripped"
	$(BIN)/nbstripout --verify $(NOTEBOOKS)
endif

bench: $(STAMP) ## run the benchmarks one after the other (ratios; takes a while, wants a quiet machine)
ifeq ($(BENCHMARKS),)
	@echo "==> bench: no benchmarks/bench_*.py yet"
else
	@set -e; for script in $(BENCHMARKS); do echo "==> bench: $$script"; $(BIN)/python "$$script"; done
endif

docs: $(STAMP) ## build the documentation and the executed notebooks into build/docs (warnings are errors)
	@echo "==> docs: Sphinx into build/docs"
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
ifneq ($(NOTEBOOKS),)
	@echo "==> docs: the notebooks, executed, into build/docs/notebooks"
	PLOTLY_RENDERER=notebook $(BIN)/jupyter nbconvert --execute --to html --template notebook_pages \
	  --TemplateExporter.extra_template_basedirs=docs --output-dir build/docs/notebooks $(NOTEBOOKS)
endif

clean: ## delete the environment, caches and everything that was built (never a page)
	@echo "==> clean: $(VENV), build, dist and tool caches"
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find memoryfield widgets tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made anew when what it is made from has changed. pip goes first (pinned, so that all machines
# resolve alike), then torch by its exact version, so that nothing that depends on it chooses another one.
$(STAMP): pyproject.toml constraints.txt
	@echo "==> setup: $(VENV) with the pinned packages (several minutes the first time)"
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else \
	  "Python %d.%d found, 3.11 to 3.13 needed; choose one with  make PYTHON=python3.12" % v)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt $(PIP_FLAGS) pip
	@echo "    torch"
	$(PIP) install --quiet --constraint constraints.txt $(PIP_FLAGS) '$(TORCH)'
	@echo "    everything else"
	$(PIP) install --quiet --constraint constraints.txt $(PIP_FLAGS) --editable '.[$(EXTRAS)]'
	@touch $@
