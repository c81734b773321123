# Needs python 3.11 or newer, Java 17 or newer, and make; everything else goes into .venv.
#
#   make demo    write, append, query and check the New York flights of 2013; in S3 with ARGS='--store s3'
#   make demo-stream  the same flights arrive month by month, and two streams follow them, killed midway and restarted
#   make test    run the tests that a person waits for: those of the library, then those of Spark
#   make test-crashes  run those of killed writers, races, failing stores and damaged files; .ci/run adds them
#   make test-systems  run all others: these, clusters, whole programs, random operations, and what takes long
#   make lint    ruff, mypy and the import contracts
#   make docs    build the documentation site in build/site; broken links fail
#   make matrix  run the tests of Spark on the older releases of Spark that are supported
#   make lowest  run the tests of the library on the lowest versions of packages that are supported
#   make ages    run the tests of files and tables that earlier releases of pylance write
#   make wheel   build wheels: one for every platform, one for this platform that contains compiled kernels

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
NEED_JAVA := Java 17 or newer is needed and was not found: install it (Debian, Ubuntu: apt install default-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME to it
NEED_PYTHON := Python 3.11 or newer is needed and was not found: install it, or name it with make PYTHON=...

PARALLEL := --numprocesses=auto --maxprocesses=4 --dist=worksteal --durations=25
# Tests make many small files durable, for which disks are waited for. Memory is used instead if there is plenty.
MEMORY := $(shell awk '/MemAvailable/ && $$2 > 12000000 {print "/dev/shm"}' /proc/meminfo 2>/dev/null)
PYTEST := $(if $(MEMORY),TMPDIR=$(MEMORY)) $(BIN)/python -m pytest $(PARALLEL)
WAITED_FOR := --timeout=900 -m 'not slow and not system and not nightly'
SPARKS := 4.1 4.2
AGES := 0.26.1 0.32.1 0.38.3 1.0.4 2.0.1 4.0.2 7.1.0 10.0.0 12.0.0
AZURITE := 3.37.0
LOWEST := --constraint tools/lowest.txt --editable '.[cli,examples,glue,hive,report]' hypothesis 'moto[glue]' pylance==14.0.2 pytest pytest-xdist
CLASSES := spark-classes.jsa

# $(call make_environment,DIRECTORY,PYTHON) and $(call install,DIRECTORY,REQUIREMENTS): uv installs in a third of pip's
# time. Where it cannot, pip does.
make_environment = $(2) -m venv $(1) && { $(1)/bin/python $(PIP) uv 2>/dev/null || true; }
install = { $(1)/bin/python -m uv --version >/dev/null 2>&1 \
  && $(1)/bin/python -m uv pip install --quiet --python $(1)/bin/python $(2); } || $(1)/bin/python $(PIP) $(2)

# Spark's workers have to be the Python of the driver.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

# Many processes import the package. They do not compile its modules again, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-stream test test-library test-spark test-crashes test-systems lint docs matrix lowest ages wheel java install prepared clean

help:
	@sed -n 's/^#   //p' $(firstword $(MAKEFILE_LIST))

demo: java $(VENV)/.examples $(VENV)/.kernels
	$(BIN)/python examples/flights.py $(ARGS)

demo-stream: java $(VENV)/.examples $(VENV)/.kernels
	$(BIN)/python examples/stream_flights.py $(ARGS)

# All stages but that of Spark have a process more than there are cores, since tests wait for disks and for other
# processes. Every process of Spark's stage has one JVM, which its tests share. A test that hangs fails after 15
# minutes. With ARGS pytest runs once, with these.
ifdef ARGS
test: prepared
	$(PYTEST) $(ARGS)
else
test: test-library test-spark
endif

test-library test-crashes test-systems: export PYTEST_XDIST_AUTO_NUM_WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

test-library: prepared
	$(PYTEST) $(WAITED_FOR) --ignore=tests/spark

test-spark: prepared
	$(PYTEST) $(WAITED_FOR) tests/spark

test-crashes: prepared
	$(PYTEST) --timeout=900 -m 'system and not nightly' --ignore=tests/spark

test-systems: prepared
	$(PYTEST) --timeout=900 -m '(slow or system) and not nightly'

# All that runs need; without it each of them makes what it lacks.
install: $(VENV)/.dev $(VENV)/.docs $(VENV)/.test
prepared: java $(VENV)/.test $(VENV)/.kernels $(VENV)/.azurite $(VENV)/$(CLASSES)

# PySpark 4.1 and 4.2 leave sockets open, of which Python warns when it collects them.
matrix: java $(SPARKS:%=$(VENV)-spark-%/$(CLASSES))
	@set -e; for spark in $(SPARKS); do \
	  echo "Spark $$spark"; \
	  export PYSPARK_PYTHON=$(CURDIR)/$(VENV)-spark-$$spark/bin/python; \
	  export PYSPARK_DRIVER_PYTHON=$$PYSPARK_PYTHON; \
	  $(if $(MEMORY),TMPDIR=$(MEMORY)) $$PYSPARK_PYTHON -m pytest $(PARALLEL) -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning $(or $(ARGS),$(WAITED_FOR) tests/spark); \
	done

lowest: $(VENV)-lowest/.test
	$(VENV)-lowest/bin/python -m pytest $(PARALLEL) $(or $(ARGS),tests/expressions tests/file tests/table)

ages: prepared $(AGES:%=$(VENV)-pylance-%/.installed)
	$(PYTEST) -m nightly $(or $(ARGS),tests/ages)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/zensical build --clean --strict

wheel: $(VENV)/.test
	$(BIN)/python tools/build_wheels.py

java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1); \
	if [ "$${major:-0}" -lt 17 ]; then echo '$(NEED_JAVA)' >&2; exit 1; fi

$(BIN)/python:
	@python=""; for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo '$(NEED_PYTHON)' >&2; exit 1; fi; \
	echo "Creating $(VENV) with $$python"; $(call make_environment,$(VENV),"$$python")

$(VENV)/.examples: pyproject.toml | $(BIN)/python
	@echo "Installing the package and what the example needs into $(VENV)"
	@$(call install,$(VENV),--editable '.[examples]')
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@echo "Installing the package and what the tests need into $(VENV)"
	@$(call install,$(VENV),--editable '.[test]')
	@touch $@

# Compiled once, so that no query and no test waits for it. The package is there, as .examples or .test was made first.
$(VENV)/.kernels: $(wildcard lance_format/kernels/*.py lance_format/kernels/*/*.py) | $(BIN)/python
	@echo "Compiling kernels and planner, which takes a minute or two"
	@$(BIN)/python -m pyspark_lance.warm
	@touch $@

# An emulator of Azure. Without npm the tests that need it are skipped.
$(VENV)/.azurite: | $(BIN)/python
	@if command -v npm >/dev/null; then \
	  echo "Installing Azurite into $(VENV)"; \
	  npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite azurite@$(AZURITE) && touch $@; \
	fi

# The tests start some 30 JVMs. Without the archive they take longer.
$(VENV)/$(CLASSES) $(SPARKS:%=$(VENV)-spark-%/$(CLASSES)): %/$(CLASSES): %/.test
	@echo "Archiving the classes of Spark that tests load into $@"
	@rm -f $@
	@PYSPARK_PYTHON=$(CURDIR)/$*/bin/python $*/bin/python tools/archive_classes.py $@ >/dev/null 2>&1 || touch $@

$(VENV)-pylance-%/.installed:
	@echo "Installing pylance $* into $(@D)"
	@$(call make_environment,$(@D),$(BIN)/python)
	@$(call install,$(@D),pylance==$* pyarrow numpy)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing the package and what the checks need into $(VENV)"
	@$(call install,$(VENV),--editable '.[dev]')
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "Installing the package and what the documentation needs into $(VENV)"
	@$(call install,$(VENV),--editable '.[docs]')
	@touch $@

$(VENV)-spark-%/.test: pyproject.toml | $(BIN)/python
	@echo "Installing the package, Spark $* and what the tests need into $(VENV)-spark-$*"
	@$(call make_environment,$(VENV)-spark-$*,$(BIN)/python)
	@$(call install,$(VENV)-spark-$*,'pyspark==$*.*' --editable '.[test]')
	@touch $@

$(VENV)-lowest/.test: pyproject.toml tools/lowest.txt | $(BIN)/python
	@echo "Installing the package, the lowest versions of its dependencies and what the tests need into $(VENV)-lowest"
	@$(call make_environment,$(VENV)-lowest,$(BIN)/python)
	@$(call install,$(VENV)-lowest,$(LOWEST))
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest $(SPARKS:%=$(VENV)-spark-%) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .cache
