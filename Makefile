# The few commands a developer needs. Everything is built under build/ and installed into .venv only.
PYTHON := .venv/bin/python
.PHONY: setup demo test dev check sanitize bench npu-check

setup:  ## system packages, .venv, kerf in it; quick when nothing is to do
	scripts/setup.sh

demo: setup  ## trains and runs small models, with what was compiled and how fast
	$(PYTHON) examples/demo.py

test: setup  ## C++ tests, golden tests, Python tests, checks; ends with "N passed, N failed"
	cmake --preset release
	cmake --build --preset release
	$(PYTHON) scripts/run_tests.py

dev:  ## incremental build of core and bindings into .venv
	scripts/install_kerf.sh

check:  ## layers, sizes, format
	$(PYTHON) scripts/check_layers.py
	$(PYTHON) scripts/check_sizes.py
	scripts/check_format.sh

sanitize:  ## unit, property and golden tests under the address and undefined-behaviour sanitizers
	cmake --preset sanitize
	cmake --build --preset sanitize
	ctest --preset sanitize

npu-check:  ## kernels for Ascend NPUs through all levels that need no card: .ci/npu
	.ci/npu

bench: setup  ## ratios against eager and TorchInductor, measured in one run
	$(PYTHON) benchmarks/run.py
