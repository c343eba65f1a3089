# Every target sets up what it needs first; a second run repeats nothing. Logs are in build/logs.
PYTHON ?= python3
VENV := .venv/bin/python
BUILD := $(PYTHON) tools/build.py
ONNXRUNTIME_PROGRAMS := magika rapidocr-onnxruntime silero-vad opencv-python-headless pyclipper shapely six pillow

# PyTorch and ExecuTorch, 1.5 GB of packages, come with these alone. EXECUTORCH=0 does without them here, too, and
# EXECUTORCH=1 brings them elsewhere.
NEED_PYTORCH := build test docs asan tsan fuzz executorch test-executorch test-executorch-suite test-cmake-lines \
  test-architectures test-onnxruntime test-transformers tiny-chat bench-load bench-growth bench-lowering bench-zoo \
  bench-micro bench-quantized bench-fast bench-published bench-neighbors bench-wheel bench-qwen3 bench-decoders \
  bench-embeddings
$(NEED_PYTORCH): export EXECUTORCH ?= 1

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*## .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: ## search text by meaning with MiniLM (FILE=notes.txt for your own text), and let a WebAssembly guest chat
	@$(BUILD) --target demo
	@$(VENV) examples/semantic_search.py $(FILE)
	@$(VENV) examples/wasm_chat.py

build: ## compile everything: build/bin, build/lib and the Python extension
	@$(BUILD)

test: ## run the C++ and Python tests
	@$(BUILD)
	@$(VENV) tools/run_tests.py

ggml-dev: ## compile what a user runs, without the tests and PyTorch, and check that .venv imports it
	@$(BUILD) --target products
	@$(VENV) -c 'import headrace, webnn; print("ready:", *headrace.devices())'

test-ggml: ## run the C++ tests and the WebNN guide's Python test on ggml
	@$(BUILD)
	@$(VENV) tools/run_tests.py --python tests/python/test_ggml_backend.py

docs: ## write the reference pages of docs/ anew: WebNN operators, language models' parameters, ONNX operators, ATen ops; and the operators in C++ and node/
	@$(BUILD) --target products
	@$(VENV) tools/reference_pages.py
	@$(VENV) tools/node_tables.py
	@$(VENV) tools/webnn_header.py
	@$(VENV) bench/peers_picture.py

site: ## build the documentation's site into build/site (installs mkdocs-material into build/)
	@$(BUILD) --target products
	@$(BUILD) --target webnn_stub
	@$(PYTHON) tools/setup.py --on-demand mkdocs-material --beside build/mkdocs --whole
	@PYTHONPATH=build/mkdocs NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs build --quiet
	@echo "build/site/index.html"

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

bench-ops: ## compare single operators with ONNX Runtime
	@$(BUILD) --target products
	@$(VENV) bench/micro_ops.py

bench-llm: ## compare language models with llama.cpp's own programs (MODEL=q4_0 ROUNDS=5)
	@$(BUILD) --target products
	@$(VENV) bench/llm.py $(if $(MODEL),--model $(MODEL)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-invariance: ## what batch_invariant costs eight streams (MODEL=q4_0 ROUNDS=5)
	@$(BUILD) --target products
	@$(VENV) bench/batch_invariance.py $(if $(MODEL),--model $(MODEL)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-structured: ## what JSON schemas cost eight streams (MODEL=q4_0)
	@$(BUILD) --target products
	@$(VENV) bench/structured.py $(if $(MODEL),--model $(MODEL))

bench-serve: ## compare headrace serve with llama-server over HTTP (MODEL=q4_0 ROUNDS=5; EMBEDDINGS=1: texts per second, beside fastembed, which it installs into build/)
	@$(BUILD) --target products
	@for package in $(if $(EMBEDDINGS),fastembed loguru mmh3 pillow py_rust_stemmers); do $(PYTHON) tools/setup.py --on-demand $$package --beside build/fastembed || exit 1; done
	@$(VENV) bench/serve.py $(if $(EMBEDDINGS),--embeddings) $(if $(MODEL),--model $(MODEL)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-service: ## the next turn after a restart and an eviction, and two models with room for one, beside llama-server's slots and router (ROUNDS=3)
	@$(BUILD) --target products
	@$(VENV) bench/disk_cache.py $(if $(ROUNDS),--rounds $(ROUNDS))
	@$(VENV) bench/router.py $(if $(ROUNDS),--rounds $(ROUNDS))

bench-embeddings: ## texts per second of headrace.SentenceEncoder beside fastembed and sentence-transformers with the same MiniLM (ROUNDS=5; installs both into build/)
	@$(BUILD) --target products
	@for package in fastembed loguru mmh3 pillow py_rust_stemmers; do $(PYTHON) tools/setup.py --on-demand $$package --beside build/fastembed || exit 1; done
	@$(PYTHON) tools/setup.py --on-demand sentence-transformers --beside build/sentence_transformers
	@$(VENV) bench/embeddings.py $(if $(ROUNDS),--rounds $(ROUNDS))

bench-load: ## from an ONNX file to the first answer, and memory until then, beside ONNX Runtime (MODELS="minilm_128 other.onnx" ROUNDS=5)
	@$(BUILD) --target products
	@$(VENV) bench/load.py $(if $(MODELS),--models $(MODELS)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-growth: ## a graph of 40,000 nodes, and memory after 10, 100 and 1,000 different input shapes, beside ONNX Runtime (MODELS="chain minilm lstm resnet18")
	@$(BUILD) --target products
	@$(VENV) bench/growth.py $(if $(MODELS),--cases $(MODELS))

bench-lowering: ## what lowering by ExecuTorch takes, and our part of it, beside XNNPACK's (MODELS="bert resnet152 llama" ROUNDS=3)
	@$(BUILD) --target products
	@$(VENV) bench/lowering.py $(if $(MODELS),--models $(MODELS)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-guests: ## what a WebAssembly guest's calls cost beside headrace.load (ROUNDS=10)
	@$(BUILD) --target products
	@PYTHONPATH=examples:tests/wasm $(VENV) bench/guests.py $(if $(ROUNDS),--rounds $(ROUNDS))

bench-rpc: ## a language model over one to three RPC hosts on links of 0, 0.1, 1 and 10 ms (MODEL=file.gguf)
	@$(BUILD) --target products
	@$(BUILD) --target slow_link
	@$(VENV) bench/rpc_links.py $(if $(MODEL),--model $(MODEL))

bench-zoo: ## compare whole models with ONNX Runtime, OpenVINO, XNNPACK and torch.compile (MODELS="mlp resnet18")
	@$(BUILD) --target benchmarks
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand openvino
	@$(VENV) bench/zoo_peers.py $(if $(MODELS),--models $(MODELS))

bench-quantized: ## compare quantised ONNX files with ONNX Runtime and OpenVINO: QDQ, QOperator, dynamic, 4 bits (MODELS="resnet18.qdq minilm.dynamic")
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand openvino
	@$(VENV) bench/quantized.py $(if $(MODELS),--models $(MODELS))

bench-fast: ## precision="fast" beside exact products and OpenVINO as it comes, with what it costs in accuracy (MODELS="minilm_128 resnet18")
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand openvino
	@$(VENV) bench/fast_precision.py $(if $(MODELS),--models $(MODELS))

bench-published: ## ten published architectures that nothing was tuned for, exact and fast, beside ONNX Runtime and OpenVINO (MODELS="convnext_tiny hifigan")
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand openvino
	@$(VENV) bench/published.py $(if $(MODELS),--models $(MODELS))

bench-neighbors: ## what a loaded model costs other programs, idle and at six runs a second, beside ONNX Runtime (MODELS="minilm_128 resnet18")
	@$(BUILD) --target products
	@$(VENV) bench/neighbors.py $(if $(MODELS),--models $(MODELS))

bench-micro: ## compare single operators with the same (MODELS="gemm_512 conv_1x1_256_64_56")
	@$(BUILD) --target benchmarks
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand openvino
	@$(VENV) bench/zoo_peers.py --group micro $(if $(MODELS),--models $(MODELS))

bench-qwen3: ## compare an exported model of Qwen3-0.6B's shape with llama-bench (FORMATS="q8_0 q4_0")
	@$(BUILD) --target products
	@$(VENV) bench/qwen3.py $(if $(FORMATS),--formats $(FORMATS))

bench-decoders: ## decode with ONNX models whose caches grow, beside ONNX Runtime, and time planning (MODELS="gpt2 llama t5 whisper")
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand onnxscript
	@$(VENV) bench/decoders.py $(if $(MODELS),--models $(MODELS))

bench-packed: ## compare llama-bench with our packed products and without (FORMATS="q8_0 f16")
	@$(BUILD) --target products
	@$(VENV) bench/packed_kernels.py $(if $(FORMATS),--formats $(FORMATS))

coverage: ## line coverage of src/ir, src/passes and src/ops by the C++ tests; below 90 % is a failure
	@$(BUILD) --preset coverage
	@$(VENV) tools/measure_coverage.py

cross-check: ## compile src/base to src/lower for 64-bit ARM Linux and for Windows (nothing is run)
	@$(BUILD) --target products
	@$(VENV) tools/cross_check.py

test-arm: ## run the tests of src/kernels for 64-bit ARM in QEMU (installs qemu-user; FILTER='BlockGemm*', COMPILER=aarch64-linux-gnu-g++)
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --arm
	@$(VENV) tools/test_arm.py $(if $(FILTER),--filter '$(FILTER)') $(if $(COMPILER),--compiler '$(COMPILER)')

wheels: ## build wheels for other machines into build/wheels/dist: manylinux_2_28, x86-64 and 64-bit ARM (ARCH=x86_64 ABI=cp311, or cp312; HEADRACE_VULKAN=ON: headrace-vulkan, too)
	@$(BUILD) --target products
	@$(BUILD) --target webnn_stub
	@$(PYTHON) tools/setup.py --on-demand auditwheel
	@PYTHONPATH=tools $(VENV) -m wheels $(if $(ARCH),--arch $(ARCH)) $(if $(ABI),--python $(ABI))

image: ## make a container image that serves a model, of a wheel that make wheels has built (installs mmdebstrap; ARCH=aarch64)
	@$(PYTHON) tools/setup.py
	@PYTHONPATH=tools $(VENV) -m wheels.image $(if $(ARCH),--arch $(ARCH))

test-wheels: ## test the wheels and images that make wheels and make image have built, in empty environments and on QEMU's CPUs (installs qemu-user)
	@$(PYTHON) tools/setup.py --arm
	@HEADRACE_TEST_WHEELS=1 $(VENV) -m pytest -q -rs -p no:cacheprovider tests/packaging/test_built_*.py

npm: ## pack the npm package, and its binaries for other machines, into build/npm/dist (ARCH=x86_64); after make wheels the addons alone are compiled
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --node
	@node node/scripts/bundle.mjs
	@PYTHONPATH=tools $(VENV) -m wheels.npm $(if $(ARCH),--arch $(ARCH))

test-npm: ## test the packages that make npm has made, installed offline into an empty folder (RUNTIMES="node18 node22 node24 node26 bun deno" fetches these into build/runtimes and runs them, too)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --node
	@$(PYTHON) tools/setup.py --arm
	@PYTHONPATH=tools $(VENV) -m wheels.runtimes $(RUNTIMES)
	@HEADRACE_TEST_WHEELS=1 $(VENV) -m pytest -q -rs -p no:cacheprovider tests/packaging/test_built_npm.py

test-cmake-lines: ## build the delegate by the plain CMake lines of docs/executorch.md (compiles everything again)
	@$(BUILD) --target products
	@HEADRACE_TEST_CMAKE_LINES=1 $(VENV) -m pytest -q -rs -p no:cacheprovider tests/packaging/test_cmake_lines.py

test-conan: ## make the Conan package of exported sources, and the example that uses it (installs conan; compiles everything again)
	@$(PYTHON) tools/setup.py --on-demand conan
	@HEADRACE_TEST_CONAN=1 $(VENV) -m pytest -q -rs -p no:cacheprovider tests/packaging/test_conan.py

test-windows: ## compile the graph library and the program for Windows, and test every op's samples under wine (installs wine64; FILTER='*matmul*')
	@$(PYTHON) tools/setup.py
	@PYTHONPATH=tools $(VENV) -m wheels.systems windows $(if $(FILTER),--filter '$(FILTER)')

cross-macos: ## compile the graph library and the program for macOS on 64-bit ARM (nothing is run)
	@$(PYTHON) tools/setup.py
	@PYTHONPATH=tools $(VENV) -m wheels.systems macos

bench-wheel: ## compare the wheel for this machine with the native build, on the zoo's models (MODELS="mlp resnet18")
	@$(BUILD) --target products
	@$(VENV) bench/wheel_speed.py $(if $(MODELS),--models $(MODELS))

executorch: ## build Headrace with the ExecuTorch delegate (PyTorch and ExecuTorch: 1.5 GB), and embed the demo's text with MiniLM from PyTorch (FILE=notes.txt for your own)
	@$(BUILD) --target products
	@$(VENV) examples/executorch_minilm.py $(FILE)

test-executorch: ## run the ExecuTorch door's tests
	@$(BUILD)
	@$(VENV) -m pytest -q tests/executorch

test-executorch-suite: ## run the operator tests of ExecuTorch's wheel on our backend, at tight tolerances
	@$(BUILD) --target products
	@PYTHONPATH=tests/executorch $(VENV) -m pytest -q -rs -p suite_plugin -p no:cacheprovider \
	  --pyargs executorch.backends.test.suite.operators

test-onnx-suite: ## run ONNX's backend tests as they are; fewer that pass than the floor is a failure (PEER=1: beside ONNX Runtime, FAILURES=1: list them)
	@$(BUILD) --target products
	@PYTHONPATH=tests/onnx $(VENV) tests/onnx/backend_suite.py $(if $(PEER),--onnxruntime) $(if $(FAILURES),--failures)

test-onnxruntime: ## run magika, rapidocr-onnxruntime and silero-vad from PyPI by headrace.onnxruntime and by ONNX Runtime, which have to agree, and time both (installs them into build/)
	@$(BUILD) --target products
	@for package in $(ONNXRUNTIME_PROGRAMS); do $(PYTHON) tools/setup.py --on-demand $$package --beside build/onnxruntime_programs || exit 1; done
	@$(VENV) -m pytest -q -rs -s -p no:cacheprovider tests/onnxruntime/test_programs.py

test-architectures: ## published architectures through both doors with open dimensions, up to an hour (ONLY="Detr SegFormer")
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand onnxscript
	@for package in torchvision timm pillow; do $(PYTHON) tools/setup.py --on-demand $$package --beside build/architectures || exit 1; done
	@$(VENV) tests/architectures/run_all.py $(if $(ONLY),--only $(ONLY))

mlx: ## build libggml-mlx.so, the ggml backend on Apple's MLX (installs the wheels mlx and mlx-cpu)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --mlx
	@$(BUILD) --target mlx_backend

test-mlx: ## test the MLX backend, with ggml's own test-backend-ops and llama.cpp's programs (FULL=1: its largest cases, too)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --mlx
	@$(BUILD) --target mlx_tests
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --peers
	@HEADRACE_MLX_OPS=$(if $(FULL),full,most) $(VENV) -m pytest -q -rs -p no:cacheprovider tests/backends/mlx

bench-mlx: ## compare the MLX backend with ggml's CPU: products, models, the cost of a graph (MODEL=file.gguf)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --mlx
	@$(BUILD) --target mlx_backend
	@$(BUILD) --target bench_mlx
	@$(PYTHON) tools/setup.py --peers
	@$(VENV) bench/mlx_backend.py $(if $(MODEL),--model $(MODEL))

test-vulkan: ## test ggml's Vulkan backend: op samples, WebNN's conformance cases and models on Vulkan0, which may be Mesa's driver for the CPU (installs that, Vulkan's headers and glslc; FILTER='*matmul*')
	@HEADRACE_VULKAN=ON $(BUILD) --target device_test
	@HEADRACE_VULKAN=ON $(BUILD) --target products
	@$(VENV) tools/test_device.py $(if $(FILTER),--filter '$(FILTER)')

cuda: ## compile ggml's CUDA backend, build/lib/libggml-cuda.so (CUDAARCHS='80;90', where this machine has no GPU; without a CUDA toolkit NVIDIA's compiler comes from PyPI)
	@HEADRACE_CUDA=ON $(BUILD) --target products

test-cuda: ## test ggml's CUDA backend: op samples, WebNN's conformance cases and models on CUDA0 (needs a GPU; FILTER='*matmul*')
	@HEADRACE_CUDA=ON $(BUILD) --target device_test
	@HEADRACE_CUDA=ON $(BUILD) --target products
	@$(VENV) tools/test_device.py --device CUDA0 $(if $(FILTER),--filter '$(FILTER)')

test-ray: ## test headrace.ray on a local Ray (installs it: 500 MB)
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand ray
	@$(VENV) -m pytest -q -rs -p no:cacheprovider tests/ray

bench-ray: ## measure Ray Serve with 1 to 4 replicas, and what a request costs beside the library alone
	@$(BUILD) --target products
	@$(PYTHON) tools/setup.py --on-demand ray
	@$(VENV) bench/ray_load.py

node: ## build the npm package in node/: the addons and dist/*.cjs (installs nodejs, npm and libnode-dev where they are missing)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --node
	@$(BUILD) --target node_addon
	@node node/scripts/bundle.mjs

test-node: node ## test the npm package: models, language models, WebNN's conformance cases, validation, lifetimes, types
	@node --test --test-reporter=spec tests/node

test-transformers: node ## compare transformers.js on headrace/onnxruntime-node with the same on ONNX Runtime (installs both from npm in build/transformers; the model is all-MiniLM-L6-v2)
	@# no scripts: that of onnxruntime-node fetches its CUDA part, which is not compared
	@npm install --prefix build/transformers --no-audit --no-fund --silent --ignore-scripts @huggingface/transformers@4.3.1
	@$(BUILD) --target products
	@test -e build/models/minilm/onnx/model.onnx || $(VENV) examples/node/export_minilm.py
	@HEADRACE_TRANSFORMERS=$(CURDIR)/build/transformers node --test --test-reporter=spec tests/node/transformers.test.mjs

bench-node: node ## what a dispatch of a 4x4 matmul costs in JavaScript, and a round trip
	@node bench/node_dispatch.mjs

web: ## compile the graph lane to WebAssembly for headrace/web, with and without threads and relaxed SIMD, in node/native/web (fetches Emscripten from Debian sid into the user's cache: 165 MB)
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --node
	@PYTHONPATH=tools $(VENV) -m web

test-web: ## test the WebAssembly modules: op samples and passes in Node, navigator.ml in Node and in Chromium with WebNN's conformance cases
	@$(PYTHON) tools/setup.py
	@$(PYTHON) tools/setup.py --node
	@PYTHONPATH=tools $(VENV) -m web --test

web-demo: web node ## serve a page with search by meaning, digits drawn by hand and models of one's own (PORT=8765)
	@PYTHONPATH=tools $(VENV) -m web.demo $(if $(PORT),--port $(PORT))

asan: ## run the C++ tests with the address and undefined-behaviour sanitizers
	@$(BUILD) --preset asan
	@$(VENV) tools/run_tests.py --preset asan

asan-node: node ## run the npm package's tests on addons with both sanitizers, whose library is loaded before Node (FILES=lifetimes.test.mjs ...)
	@$(BUILD) --preset asan --target node_addon
	@$(VENV) tools/node_asan.py $(FILES)

tsan: ## run the threaded C++ tests (Thread or Concurrent in the name) with the thread sanitizer
	@$(BUILD) --preset tsan
	@$(VENV) tools/run_tests.py --preset tsan --filter 'Thread|Concurrent'

fuzz: ## feed damaged graph files, ONNX models, delegates, packed weights, language models, RPC replies and calls of guests to the loaders under the sanitizers, changed ONNX models to headrace.load, and wrong values of components to their host (SECONDS=60 for each); run 10,000 random ones of branches and loops, and 10,000 of single operators, beside ONNX Runtime (CASES=)
	@$(BUILD) --preset asan --target fuzzers
	@$(BUILD) --target products
	@PYTHONPATH=tests/onnx:tests/python $(VENV) tests/onnx/model_fuzz.py --write build/fuzz/onnx
	@export LSAN_OPTIONS=suppressions=tools/lsan.supp:print_suppressions=0; \
	  for fuzzer in build/asan/bin/tests/*_fuzz; do $$fuzzer --seconds $(or $(SECONDS),60) || exit 1; done
	@PYTHONPATH=tests/onnx:tests/python $(VENV) tests/onnx/model_fuzz.py --seconds $(or $(SECONDS),60)
	@PYTHONPATH=tests/wasm $(VENV) tests/wasm/component_fuzz.py --seconds $(or $(SECONDS),60)
	@PYTHONPATH=tests/onnx:tests/python $(VENV) tests/onnx/control_flow_fuzz.py --cases $(or $(CASES),10000)
	@PYTHONPATH=tests/onnx:tests/python $(VENV) tests/onnx/operator_fuzz.py --cases $(or $(CASES),10000)

tiny-chat: ## train models/tiny-chat-q8_0.gguf again by PyTorch and test what it answers (10 minutes)
	@$(PYTHON) tools/setup.py
	@PYTHONPATH=tools $(VENV) -m tiny_chat.train
	@PYTHONPATH=tools $(VENV) -m tiny_chat.evaluate

stress-llm: ## 10,000 requests of 200 sessions with cancels, swaps and bad input; every answer is checked (REQUESTS=, SESSIONS=)
	@$(BUILD) --target llm_stress
	@build/bin/tests/llm_stress --requests $(or $(REQUESTS),10000) --sessions $(or $(SESSIONS),200) 2>/dev/null

stress-serve: ## 10,000 requests to headrace serve by 2,000 clients that come and leave at random; every answer is checked (REQUESTS=, CLIENTS=)
	@$(BUILD) --target products
	@$(VENV) bench/serve_stress.py $(if $(REQUESTS),--requests $(REQUESTS)) $(if $(CLIENTS),--clients $(CLIENTS))

soak-serve: ## headrace serve at full load for an hour: files are swapped, models and prompts given back, the server ended and killed, its disk filled; every answer is checked (MINUTES=)
	@$(BUILD) --target products
	@$(VENV) bench/serve_soak.py $(if $(MINUTES),--minutes $(MINUTES))

setup: ## only install and fetch what the build needs; cmake --preset default works afterwards
	@$(PYTHON) tools/setup.py

clean: ## remove build/ (the .venv and the user's ggml cache stay)
	rm -rf build python/headrace/_core*.so python/headrace/_core.pyi python/headrace/_llm*.so python/headrace/_llm.pyi python/webnn/__init__.pyi node/native node/dist node/node_modules
