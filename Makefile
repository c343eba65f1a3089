# Every target sets up what it needs first; a second run repeats nothing. Logs are in build/logs.
PYTHON ?= python3
VENV := .venv/bin/python
BUILD := $(PYTHON) tools/build.py

.DEFAULT_GOAL := help
.PHONY: help demo build test lint format bench asan tsan fuzz setup clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: ## search text by meaning with MiniLM (FILE=notes.txt for your own text)
	@$(BUILD) --target products
	@$(VENV) examples/semantic_search.py $(FILE)

build: ## compile everything: build/bin, build/lib and the Python extension
	@$(BUILD)

test: ## run the C++ and Python tests
	@$(BUILD)
	@$(VENV) tools/run_tests.py

lint: ## check format, Python code and who includes whom
	@$(PYTHON) tools/setup.py --lint
	@$(VENV) tools/lint.py

format: ## reformat the sources
	@$(PYTHON) tools/setup.py --lint
	@$(VENV) tools/lint.py --fix

bench: ## compare with ONNX Runtime, and kernels with the machine's limits
	@$(BUILD) --target benchmarks
	@build/bin/bench/kernels_bench
	@$(BUILD) --target products
	@$(VENV) bench/allocations.py
	@$(VENV) bench/run.py

asan: ## run the C++ tests with the address and undefined-behaviour sanitizers
	@$(BUILD) --preset asan
	@$(VENV) tools/run_tests.py --preset asan

tsan: ## run the threaded C++ tests (Thread or Concurrent in the name) with the thread sanitizer
	@$(BUILD) --preset tsan
	@$(VENV) tools/run_tests.py --preset tsan --filter 'Thread|Concurrent'

fuzz: ## feed damaged graph files to the loaders under the sanitizers (SECONDS=60 for each of three)
	@$(BUILD) --preset asan --target graph_files_fuzz
	@build/asan/bin/tests/graph_files_fuzz --seconds $(or $(SECONDS),60)

setup: ## only install and fetch what the build needs; cmake --preset default works afterwards
	@$(PYTHON) tools/setup.py

clean: ## remove build/ (the .venv and the user's ggml cache stay)
	rm -rf build python/headrace/_core*.so python/headrace/_core.pyi python/webnn/__init__.pyi
