# Two commands do all the set-up on a machine with nothing but Python 3.11 or newer:
#   make demo   creates .venv and checks DP-APVI on the ICU-Sepsis patients
#   make test   creates .venv and runs the checks of a change on the built wheel; ROOM=ledger: what reaches that folder
#   make test-all   runs every check there is, for a night
# and `make serve-demo` serves a ledger with three datasets at http://127.0.0.1:8080
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find privcheck algorithms audits -type f -not -name '*.pyc') pyproject.toml README.md LICENSE

.PHONY: demo serve-demo dist test test-fast coverage test-all seconds fuzz corpus corpus-smartnoise corpus-tumult corpus-training peers locks lint docs pictures speed bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/privcheck check dp-apvi --data icu-sepsis --out runs/dp-apvi

serve-demo: $(VENV)/.installed
	$(BIN)/python -m privcheck.cli.demo runs/serve-demo

# run from tests/, so that nothing is imported from the tree: what is tested is the installed wheel; the threads of BLAS
# and OpenMP would only wait for each other, as there is a worker to every core
PYTEST := cd tests && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PRIVCHECK_TEST_WHEEL=1 ../$(BIN)/pytest -c ../pyproject.toml --rootdir .. -q
WORKERS := --numprocesses logical --dist worksteal
ROOM ?=
CHOSEN := $(if $(ROOM),--room $(ROOM))

# lint and doctests run beside the tests; what they said is shown when all have ended
test: $(VENV)/.developing
	@$(MAKE) --no-print-directory lint >$(VENV)/lint.log 2>&1 & lint=$$!; \
	($(PYTEST) --doctest-modules --pyargs privcheck privcheck_algorithms privcheck_audits privcheck_check) >$(VENV)/doctest.log 2>&1 & doctest=$$!; \
	trap "kill $$lint $$doctest" INT TERM; \
	($(PYTEST) $(WORKERS) $(CHOSEN) -m "not nightly" .); tests=$$?; wait $$doctest; doctest=$$?; wait $$lint; lint=$$?; \
	cat $(VENV)/doctest.log $(VENV)/lint.log; test $$lint = 0 -a $$doctest = 0 -a $$tests = 0

test-fast: $(VENV)/.developing
	@$(PYTEST) $(WORKERS) $(CHOSEN) -m "not slow and not nightly" .

coverage: $(VENV)/.developing
	@$(PYTEST) $(WORKERS) -m "not slow and not nightly" --cov=privcheck --cov=privcheck_algorithms --cov=privcheck_audits \
	  --cov=privcheck_check --cov-report=json:../$(VENV)/coverage.json --cov-report= .
	$(BIN)/python benchmarks/lines_run.py $(VENV)/coverage.json

# all tiers, and the tests of random examples again with 3 000 new ones each; a stopped run goes on where it was. The
# tables of results and the seconds by which tests are put into tiers are committed
test-all: $(VENV)/.developing
	@($(PYTEST) $(WORKERS) --record ../benchmarks/nightly.md --kept ../$(VENV)/all.tests .); all=$$?; \
	(HYPOTHESIS_PROFILE=nightly; export HYPOTHESIS_PROFILE; \
	$(PYTEST) $(WORKERS) -m hypothesis --record ../benchmarks/nightly_examples.md --kept ../$(VENV)/examples.tests .); \
	examples=$$?; for code in $$all $$examples; do case $$code in 0|5) ;; *) exit 1;; esac; done; \
	rm $(VENV)/all.tests $(VENV)/examples.tests  # 5: all was finished before

# the seconds of tests that are newer than the last `make test-all`, so that they are put into tiers
seconds: $(VENV)/.developing
	$(PYTEST) $(WORKERS) -m "not nightly" --record ../$(VENV)/change.md --kept ../$(VENV)/change.tests .

# 10 000 random declarations and 5 000 jobs for the accountant against oracles of their own; the tests look at some hundred
fuzz: $(VENV)/.developing
	PYTHONPATH=tests $(BIN)/python benchmarks/verdicts.py --number 10000
	cd tests/fuzz && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../../$(BIN)/python -W error -m accounting --jobs 5000 \
	  --processes $$(getconf _NPROCESSORS_ONLN) --keep ../../$(VENV)/fuzz.jobs --write ../../benchmarks/fuzz_accounting.md
	rm $(VENV)/fuzz.jobs

# mechanisms of published libraries, in an environment of their own
corpus: $(VENV)-corpus/.installed
	OMP_NUM_THREADS=1 $(VENV)-corpus/bin/python benchmarks/corpus.py

corpus-smartnoise corpus-tumult: corpus-%: $(VENV)-corpus-%/.installed
	OMP_NUM_THREADS=1 $(VENV)-corpus-$*/bin/python benchmarks/corpus.py --set $*

corpus-training: $(VENV)-corpus-training/.installed
	OMP_NUM_THREADS=1 $(VENV)-corpus-training/bin/python benchmarks/corpus_training.py

# generated plans, priced here and by the newest versions of other accountants, which are not pinned: one that does not
# install is left out. MORE_PEERS: what is installed last, such as dp-accounting's main branch,
# "git+https://github.com/google/differential-privacy\#subdirectory=python/dp_accounting"
MORE_PEERS ?=
peers: $(VENV)-peers/.installed
	for peer in $$(cat benchmarks/peers_requirements.txt) $(MORE_PEERS); do \
	  $(VENV)-peers/bin/python -m pip install --quiet --upgrade "$$peer" || echo "$$peer did not install"; done
	OMP_NUM_THREADS=1 $(VENV)-peers/bin/python benchmarks/peers_newest.py
	OMP_NUM_THREADS=1 $(VENV)-peers/bin/python benchmarks/allocation.py

$(VENV)-peers/.installed: $(VENV)/.installed
	@test -x $(VENV)-peers/bin/python || $(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet "$$(ls dist/privcheck-*.whl)[agents]"
	$(VENV)-peers/bin/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

$(VENV)-corpus-training/.installed: benchmarks/corpus_training_requirements.txt $(VENV)/.installed
	@test -x $(VENV)-corpus-training/bin/python || $(PYTHON) -m venv $(VENV)-corpus-training
	$(VENV)-corpus-training/bin/python -m pip install --quiet --requirement $< "$$(ls dist/privcheck-*.whl)"
	$(VENV)-corpus-training/bin/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

$(VENV)-corpus-smartnoise/.installed: benchmarks/corpus_smartnoise_requirements.txt $(VENV)/.installed
	@test -x $(VENV)-corpus-smartnoise/bin/python || $(PYTHON) -m venv $(VENV)-corpus-smartnoise
	$(VENV)-corpus-smartnoise/bin/python -m pip install --quiet --requirement $< "$$(ls dist/privcheck-*.whl)"
	$(VENV)-corpus-smartnoise/bin/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

# needs Java
$(VENV)-corpus-tumult/.installed: benchmarks/corpus_tumult_requirements.txt $(VENV)/.installed
	@test -x $(VENV)-corpus-tumult/bin/python || $(PYTHON) -m venv $(VENV)-corpus-tumult
	$(VENV)-corpus-tumult/bin/python -m pip install --quiet --requirement $<
	$(VENV)-corpus-tumult/bin/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

$(VENV)-corpus/.installed: benchmarks/corpus_requirements.txt $(VENV)/.installed
	@test -x $(VENV)-corpus/bin/python || $(PYTHON) -m venv $(VENV)-corpus
	$(VENV)-corpus/bin/python -m pip install --quiet --requirement $< "$$(ls dist/privcheck-*.whl)[agents]"
	$(VENV)-corpus/bin/python -m pip install --quiet --force-reinstall --no-deps dist/privcheck-*.whl
	@touch $@

# what is published: the source archive, the wheel made from it, the same bytes from the same commit on any machine, and
# what a run of it consists of (CycloneDX)
dist: $(VENV)/.developing
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/cyclonedx-py requirements locks/run.txt --pyproject pyproject.toml --output-reproducible -o dist/privcheck.cdx.json

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=algorithms:audits $(BIN)/lint-imports

docs: $(VENV)/.developing
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

# the gallery's, in Chromium; some minutes
pictures: $(VENV)/.developing
	$(BIN)/python docs/pictures.py

# the speed of what people wait for, against the last runs on record; nightly
speed: $(VENV)/.developing
	PYTHONPATH=tests $(BIN)/python benchmarks/history.py --write

bench: $(VENV)/.developing
	for script in benchmarks/*.py; do PYTHONPATH=tests $(BIN)/python $$script || exit 1; done

# the wheel is what is installed, tested and demonstrated, never the tree
# pip refuses a file whose hash is not in locks/
INSTALL := $(BIN)/python -m pip install --quiet --no-deps

$(VENV)/.installed: $(SOURCES) locks/run.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("privcheck needs Python 3.11 or newer, this is %s: make PYTHON=python3.11 …" % sys.version.split()[0])'
	@echo "installing privcheck and what it needs into $(VENV): about a minute, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -rf dist && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@$(INSTALL) --require-hashes --requirement locks/run.txt
	@$(INSTALL) --force-reinstall dist/privcheck-*.whl
	@find $(VENV)/lib -path '*/privcheck*' -name '*.nb[ic]' -delete  # compiled for what stood there before
	@touch $@

$(VENV)/.developing: $(VENV)/.installed locks/all.txt
	$(INSTALL) --require-hashes --requirement locks/all.txt
	@touch $@

# the newest versions that fit together; uv writes one file for every platform and Python
LOCKS := run:agents,icu-sepsis,service all:all,test,docs,lint,dist

locks:
	@test -x $(VENV)-locks/bin/uv || { $(PYTHON) -m venv $(VENV)-locks && $(VENV)-locks/bin/pip install --quiet uv; }
	for lock in $(LOCKS); do \
	  name=$${lock%%:*}; $(VENV)-locks/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11.5 --generate-hashes \
	    --no-header --no-annotate --extra $$(echo $${lock##*:} | sed 's/,/ --extra /g') -o $(VENV)-locks/$$name.txt pyproject.toml || exit 1; \
	  { head -n 1 locks/$$name.txt; cat $(VENV)-locks/$$name.txt; } >$(VENV)-locks/new && mv $(VENV)-locks/new locks/$$name.txt; \
	done

clean:
	rm -rf $(VENV) dist build
