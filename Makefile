# Two commands do all the set-up on a machine with nothing but Python 3.11 or newer:
#   make demo   creates .venv and checks DP-APVI on the ICU-Sepsis patients
#   make test   creates .venv and runs every check on the built wheel
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find privcheck algorithms audits -type f -not -name '*.pyc') pyproject.toml README.md LICENSE

.PHONY: demo test test-fast fuzz lint docs bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/privcheck check dp-apvi --data icu-sepsis --out runs/dp-apvi

# run from tests/, so that nothing is imported from the tree: what is tested is the installed wheel
PYTEST := cd tests && PRIVCHECK_TEST_WHEEL=1 ../$(BIN)/pytest -c ../pyproject.toml --rootdir .. -q
# the auditors' tests, about half of the time, run beside all others; what they said is shown when both have ended
BOTH = (trap - INT; $(PYTEST) $(1) audits) >$(VENV)/audits.log 2>&1 & audits=$$!; trap "kill $$audits" INT TERM; \
	($(PYTEST) $(1) --ignore=audits .); others=$$?; wait $$audits; audits=$$?; cat $(VENV)/audits.log; \
	test $$audits = 0 -a $$others = 0

test: lint
	$(PYTEST) --doctest-modules --pyargs privcheck privcheck_algorithms privcheck_audits
	@$(call BOTH,)

test-fast: $(VENV)/.developing
	@$(call BOTH,-m "not slow")

# 10 000 random declarations and 5 000 jobs for the accountant against oracles of their own; the tests look at some hundred
fuzz: $(VENV)/.developing
	PYTHONPATH=tests $(BIN)/python benchmarks/verdicts.py --number 10000
	cd tests/fuzz && ../../$(BIN)/python -W error -m accounting --jobs 5000 --processes $$(getconf _NPROCESSORS_ONLN)

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=algorithms:audits $(BIN)/lint-imports

docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/privcheck-*.whl)[docs]"
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

bench: $(VENV)/.developing
	for script in benchmarks/*.py; do PYTHONPATH=tests $(BIN)/python $$script || exit 1; done

# the wheel is what is installed, tested and demonstrated, never the tree
$(VENV)/.installed: $(SOURCES) constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("privcheck needs Python 3.11 or newer, this is %s: make PYTHON=python3.11 …" % sys.version.split()[0])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	rm -rf dist && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python -m pip install --quiet --constraint constraints.txt dist/privcheck-*.whl
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/privcheck-*.whl)[test,lint]"
	@touch $@

clean:
	rm -rf $(VENV) dist build
