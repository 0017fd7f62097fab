# Two commands do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# LEVELS=v3 builds one instruction-set level instead of all, for quicker turns while developing.
BUILD := $(if $(LEVELS),-C 'cmake.define.MAXMARGIN_LEVELS=$(LEVELS)')
# SKLEARN=1.6.* runs the tests with that scikit-learn, which stays in the environment until SKLEARN names another (1.*: newest).
SKLEARN ?=
NATIVE := $(shell find native -name '*.hpp' -o -name '*.cpp')

.PHONY: demo test lint unit parallel sklearn fuzz sanitize bench format stubs clean

demo: $(STAMP)
	$(PY) -m maxmargin.demo

test: lint unit

lint: $(STAMP) sklearn
	$(PY) -m ruff check src tests benchmarks
	$(PY) -m mypy

# A test that hangs ends the run, by a thread, which sees loops inside the core as well; the fault handler has shown where, as
# a process that pytest has started does not say it at its end.
# Two files of tests side by side, in processes of their own: WORKERS=0 runs all in one.
WORKERS ?= 2
unit: $(STAMP) sklearn
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --timeout=300 --timeout-method=thread \
		-o faulthandler_timeout=290

# Tests of fits and predictions, each in several threads at once.
parallel: $(STAMP)
	$(PY) -m pip install -q --disable-pip-version-check pytest-run-parallel
	$(PY) -m pytest -q --parallel-threads=3 tests/sklearn_api/test_dropin.py tests/sklearn_api/test_ecosystem.py \
		tests/sklearn_api/test_probability.py tests/oracle/test_libsvm.py \
		-k 'not memory_maps and not pickle_and_joblib and not grid_search'  # files of one name, processes

sklearn: $(STAMP)
	$(if $(SKLEARN),$(PY) -m pip install -q --disable-pip-version-check 'scikit-learn==$(SKLEARN)')

# The core under AddressSanitizer + UBSan, then ThreadSanitizer, driven by the tests (docs/testing.md).
sanitize: $(STAMP)
	tests/native/sanitize address
	tests/native/sanitize thread

# Every fuzz test with 100,000 inputs (a tenth where each takes long); about an hour.
fuzz: $(STAMP)
	MAXMARGIN_FUZZ=100000 $(PY) -m pytest -q tests -k fuzz

bench: $(STAMP)
	$(PY) -m pip install -q -e '.[bench]' --no-build-isolation
	$(PY) -m benchmarks run exact

format: $(STAMP)
	$(PY) -m ruff check --fix src tests benchmarks
	clang-format -i $(NATIVE)

# The type stub of the core, from the compiled module itself.
stubs: $(STAMP)
	$(PY) -m nanobind.stubgen -q -m maxmargin._core_v3 -o src/maxmargin/_core.pyi
	echo 'ISA: str' >> src/maxmargin/_core.pyi

# The build directory survives, so only changed sources compile again.
$(STAMP): pyproject.toml CMakeLists.txt $(NATIVE)
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check 'scikit-build-core>=0.10' 'nanobind>=2.4' cmake ninja 'setuptools>=70.1'
	$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation $(BUILD) -e '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build demo
