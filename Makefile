# SPDX-License-Identifier: MIT
# The front door. `make help` lists the verbs; each prints what it does.
MAKEFLAGS += --no-print-directory
comma := ,
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
CMAKE_ARGS ?=
GENERATOR := $(shell command -v ninja >/dev/null 2>&1 && echo Ninja || echo "Unix Makefiles")
VENV := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
CONFIGURE = cmake -S . -B $(1) -G "$(GENERATOR)" $(CMAKE_ARGS) $(2) > $(1).log 2>&1 || { cat $(1).log; exit 1; }; rm -f $(1).log
COMPILE = cmake --build $(1) -j$(JOBS)

.PHONY: all tests help demo test check check-all arm no-avx suite hosts hosts-asan serving quantized tf-suite hostile random soak misuse long-text reference debug faults tables bench bench-kernels bench-import gate gate-record gpu-compile gpu-suite fuzz fail-alloc size coverage install wheel deb bare-debian first-day format venv clean

all: $(BUILD)/CMakeCache.txt
	@echo "== building the engine, its clients and the examples into $(BUILD)/"
	@$(call COMPILE,$(BUILD)) --target release

tests: $(BUILD)/CMakeCache.txt
	@echo "== building everything and the tests into $(BUILD)/"
	@$(call COMPILE,$(BUILD))

$(BUILD)/CMakeCache.txt:
	@echo "== configuring $(BUILD)/ ($(GENERATOR), release)"
	@$(call CONFIGURE,$(BUILD),-DCMAKE_BUILD_TYPE=Release -DMGX_PYTHON=$(abspath $(PYTHON)))

help:
	@echo "make             release build: $(BUILD)/bin/migraphx-driver, $(BUILD)/lib/libmigraphx_c.so.3, $(BUILD)/python"
	@echo "make demo        build, read pictures of digits, then compile and time a ResNet50"
	@echo "make test        build and run every test (installs its Python packages into $(VENV))"
	@echo "make check       style, layers, sizes, unit tests: before every commit"
	@echo "make check-all   gcc and clang, address+undefined and thread sanitizers, a valgrind sample"
	@echo "make arm         the tests on 64-bit ARM, cross-built into build-arm and run by QEMU"
	@echo "make no-avx      the tests of $(BUILD) on an x86-64 processor without AVX, run by QEMU"
	@echo "make suite       the ONNX backend suite on the reference target (TARGET=cpu for another)"
	@echo "make serving     Ray Data and Ray Serve with this engine, in an environment that it makes (Ray, 750 MB)"
	@echo "make hosts       ONNX Runtime 1.24, 1.28, 1.31 and the newest with this engine as their provider: the backend suite, the tests, the zoo"
	@echo "make hosts-asan  the provider's tests in ONNX Runtime and GenAI, the engine under the address sanitizer"
	@echo "make tf-suite    TensorFlow operators against TensorFlow itself, which it installs (TARGET=cpu)"
	@echo "make hostile     hostile models through the driver on every target, and the suite's cases with extremes"
	@echo "make random      random programs on cpu and on the test target far against the reference (COUNT=10000)"
	@echo "make soak        random programs (COUNT=10000) and the zoo, each three times, threads on detectors, under sanitizers (hours)"
	@echo "make long-text   a text of TOKENS=10000 by a decoder of each kind, and the memory it takes"
	@echo "make misuse      every function of the C and Python interfaces called at random, under sanitizers (SEQUENCES=10000)"
	@echo "make debug       a build with assertions in build-debug/, and the tests that reach most of them"
	@echo "make faults      thirty planted faults, one at a time, and where a debug build stops each of them (half an hour)"
	@echo "make gpu-compile the kernels of some models for NVIDIA and AMD architectures, and their steps on the host (no card needed)"
	@echo "make gpu-suite   the ONNX backend suite on target gpu: the card that MGX_TEST_DEVICE names, else OpenCL on the processor (minutes)"
	@echo "make bench-kernels  every CPU kernel timed on every instruction set"
	@echo "make bench       the benchmark against ONNX Runtime and OpenVINO"
	@echo "make gate        this build beside the last release's record of 122 models: results, kernels, speed, memory (GATE_ARGS=\"--models 'draw/*'\")"
	@echo "make gate-record the record anew, on a quiet machine"
	@echo "make bench-import  import, simplification and compilation against ONNX Runtime, and their growth"
	@echo "make fuzz        the fuzzers, SECONDS=60 each (needs clang)"
	@echo "make fail-alloc  the tests with allocations failing, a sample in minutes (FAIL_ARGS=--all for every one)"
	@echo "make quantized   the zoo's models through ONNX Runtime's quantizer, in four ways, against ONNX Runtime (an hour; MODELS=names)"
	@echo "make coverage    line coverage of src/ by the tests"
	@echo "make reference   docs/reference/ from the headers' comments and the docstrings"
	@echo "make size        lengths of functions and files, comments and assertions, by folder"
	@echo "make tables      docs/ops.md, docs/passes.md and TensorFlow's operators, from the code"
	@echo "make install     into PREFIX (default /usr/local)"
	@echo "make wheel       Python wheels in $(BUILD)/dist, for any Python from 3.9 on: the module, and the provider for ONNX Runtime"
	@echo "make deb         a Debian package in $(BUILD)/dist"
	@echo "make bare-debian every way to install, in a Debian 12 that has nothing else (needs root and debootstrap)"
	@echo "make first-day   make demo and make test there, with what README names, by a user and by root"
	@echo "make format      clang-format over the sources"

# --- Python for the tests only; the engine and the driver need none ---
venv: $(VENV)/ready
$(VENV)/ready: tool/requirements.txt tool/opencl.txt tool/triton.txt tool/amd.txt
	@echo "== installing the tests' Python packages into $(VENV)"
	@mkdir -p $(BUILD)
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r tool/requirements.txt
	@$(PYTHON) tool/opencl.py --found || $(PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
		-r tool/opencl.txt 2> /dev/null || echo "== no wheels of OpenCL for this machine"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --no-compile --upgrade \
		--target $(BUILD)/triton -r tool/triton.txt 2> /dev/null || echo "== no wheels of Triton for this machine"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --no-compile --upgrade \
		--target $(BUILD)/amd -r tool/amd.txt 2> /dev/null || echo "== no wheel of AMD's build of ONNX Runtime for this machine"
	@touch $@

demo: all
	@echo "== digits: a small network reads handwritten digits"
	@$(BUILD)/bin/digits examples/digits/digits.onnx examples/digits/test.csv
	@echo "== resnet50: built in code, compiled, timed"
	@$(BUILD)/bin/resnet50

test: venv tests
	@cmake -S . -B $(BUILD) -DMGX_PYTHON=$(abspath $(PYTHON)) > /dev/null
	@$(call COMPILE,$(BUILD)) > /dev/null
	@echo "== running the tests"
	@cd $(BUILD) && env $$($(abspath $(PYTHON)) $(CURDIR)/tool/opencl.py opencl) ctest --output-on-failure -j$(JOBS)
	@$(MAKE) suite
	@$(MAKE) judge-suite TARGET=cpu
	@$(MAKE) host-installed

check: CMAKE_ARGS += -DMGX_WERROR=ON
check: tests
	@start=$$(date +%s); tool/style.sh && tool/layers.sh && tool/tested.py && tool/templates.py && python3 tool/size.py > $(BUILD)/size.txt; failed=$$?; \
	tail -3 $(BUILD)/size.txt; [ $$failed = 0 ] && \
	(cd $(BUILD) && env $$($(abspath $(PYTHON)) $(CURDIR)/tool/opencl.py opencl 2> /dev/null) \
		ctest --output-on-failure -j$(JOBS) -LE slow) && \
	echo "== check: passed in $$(($$(date +%s) - start)) s"

# Each of these makes its cases and judges them; two at a time, their lines one after the other.
TARGET ?= ref
SUITES := suite suite_free suite_unranked contrib versions random
suite_MAKE := make_suite.py
suite_free_MAKE := make_suite.py --shapes free
suite_unranked_MAKE := make_suite.py --shapes unranked
contrib_MAKE := make_contrib.py
versions_MAKE := make_versions.py
random_MAKE := make_random.py
suite_SAYS := the ONNX backend suite
suite_free_SAYS := the ONNX backend suite with free shapes
suite_unranked_SAYS := the ONNX backend suite with unranked shapes
contrib_SAYS := the operators of com.microsoft and ai.onnx.ml against ONNX Runtime
versions_SAYS := every version of every operator
random_SAYS := random attributes and shapes

suite: venv tests
	@$(MAKE) -j$(JOBS) --output-sync=target $(SUITES:%=judge-%)

judge-%:
	@echo "== $($*_SAYS) on $(TARGET)"
	@$(PYTHON) test/onnx/$(firstword $($*_MAKE)) --out $(BUILD)/$* $(wordlist 2,9,$($*_MAKE))
	@$(PYTHON) test/onnx/judge.py --build $(BUILD) --target $(TARGET) --cases $(BUILD)/$*

# ONNX Runtime's versions with the engine as their provider; those that are not installed go into folders of their own.
HOST_VERSIONS ?= 1.24.4 1.28.0 1.31.1 installed
hosts: venv tests
	@$(PYTHON) test/onnx/make_suite.py --out $(BUILD)/suite
	@$(MAKE) $(HOST_VERSIONS:%=host-%)
	@echo "== the zoo through the provider, every node placed"
	@$(PYTHON) bench/verify.py --build $(BUILD) --host --limit 1e-4

host-%: venv
	@echo "== ONNX Runtime $*: the ONNX backend suite through the provider, and the provider's own tests"
	@test $* = installed || test -d $(BUILD)/hosts/$* || $(PYTHON) -m pip install --quiet --disable-pip-version-check \
		--no-deps --target $(BUILD)/hosts/$* onnxruntime==$*
	@for how in "" --optimise; do PYTHONPATH=$(BUILD)/hosts/$* $(PYTHON) test/host/ort/suite.py --build $(BUILD) $$how || exit 1; done
	@PYTHONPATH=$(BUILD)/hosts/$* MGX_ORT_LIBRARY=$(abspath $(BUILD))/lib/libmigraphx_ort.so \
		$(PYTHON) -B -m pytest -q -p no:cacheprovider test/host/ort

# The engine instrumented, its kernels not: what reads and writes where hosts say so.
hosts-asan: venv
	@echo "== building into build-hosts-asan/ (address sanitizer)"
	@$(call CONFIGURE,build-hosts-asan,-DCMAKE_BUILD_TYPE=RelWithDebInfo -DMGX_SANITIZE=address -DMGX_SANITIZE_KERNELS=OFF -DMGX_PYTHON=$(abspath $(PYTHON)))
	@cmake --build build-hosts-asan -j$(JOBS) --target migraphx_ort > build-hosts-asan/hosts.log || { tail -20 build-hosts-asan/hosts.log; exit 1; }
	@tool/hosts_asan.sh build-hosts-asan $(PYTHON)

# Ray in an environment of its own, which is too large for every merge; what its workers do is tested without it (python/serving).
RAY_VENV := $(BUILD)/venv-ray
serving: tests
	@test -x $(RAY_VENV)/bin/python || python3 -m venv $(RAY_VENV)
	@$(RAY_VENV)/bin/python -c "import ray, pytest" 2> /dev/null || $(RAY_VENV)/bin/pip install -q --disable-pip-version-check -r tool/ray.txt
	@echo "== Ray Data and Ray Serve with migraphx.ray"
	@PYTHONPATH=$(abspath $(BUILD))/python $(RAY_VENV)/bin/python -B -m pytest -q -p no:cacheprovider -W ignore test/host/ray

MODELS ?=
quantized: venv tests
	@$(PYTHON) bench/quantized.py check $(BUILD)/quantized --build $(BUILD) $(if $(MODELS),--models $(MODELS))

TF_VENV := $(BUILD)/venv-tf
tf-suite: tests
	@test -x $(TF_VENV)/bin/python || python3 -m venv $(TF_VENV)
	@$(TF_VENV)/bin/python -c "import tensorflow" 2> /dev/null || $(TF_VENV)/bin/pip install -q tensorflow-cpu
	@echo "== TensorFlow operators against TensorFlow on $(TARGET)"
	@$(TF_VENV)/bin/python test/tf/make.py --out $(BUILD)/tf 2> $(BUILD)/tf.log || { tail -20 $(BUILD)/tf.log; exit 1; }
	@$(TF_VENV)/bin/python test/tf/make_saved.py --out $(BUILD)/tf/saved 2> $(BUILD)/tf.log || { tail -20 $(BUILD)/tf.log; exit 1; }
	@$(TF_VENV)/bin/python test/tf/judge.py --build $(BUILD) --target $(TARGET) --saved $(BUILD)/tf/saved $(BUILD)/tf

hostile: venv tests
	@echo "== hostile models, one process each"
	@$(PYTHON) test/onnx/hostile.py --build $(BUILD)
	@$(PYTHON) test/onnx/hostile_forms.py --build $(BUILD)
	@echo "== the suite's cases with one thing set to an extreme"
	@$(PYTHON) test/onnx/make_suite.py --out $(BUILD)/suite
	@$(PYTHON) test/onnx/make_contrib.py --out $(BUILD)/contrib
	@$(PYTHON) test/onnx/make_extreme.py --cases $(BUILD)/suite/node $(BUILD)/contrib --out $(BUILD)/extreme --absent --each 4
	@$(BUILD)/bin/mgx-run-onnx --hostile $(BUILD)/extreme
	@$(BUILD)/bin/mgx-run-onnx --hostile --target cpu $(BUILD)/extreme

# Another build takes sanitizers: make random COUNT=2000 BUILD=build-asan CMAKE_ARGS=-DMGX_SANITIZE=address,undefined
COUNT ?= 10000
random: $(BUILD)/CMakeCache.txt
	@$(call COMPILE,$(BUILD)) --target test-targets-cpu-random test-far-far_random > $(BUILD)/random.log || { cat $(BUILD)/random.log; exit 1; }
	@echo "== $(COUNT) seeds on far: results copied, results left in its memory"
	@$(BUILD)/test/test-far-far_random --seeds 0 $$(($(COUNT) - 1))
	@echo "== $(COUNT) seeds on cpu: of drawn types, of half, of bfloat16; every instruction set of this machine"
	@$(BUILD)/test/test-targets-cpu-random --seeds 0 $$(($(COUNT) - 1))

# Hours, so apart from everything else: nice -n 19 make soak. Instrumented kernels take long to compile, and MGX_SANITIZE_KERNELS=OFF leaves them.
SOAK_SECONDS ?= 600
SOAK_ARGS ?=
SOAK_BUILD = -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMGX_SANITIZE=$(1) $(SOAK_ARGS)
soak: venv
	@echo "== building into build-soak-asan/ and build-soak-tsan/ (sanitizers, assertions)"
	@$(call CONFIGURE,build-soak-asan,$(call SOAK_BUILD,address$(comma)undefined))
	@cmake --build build-soak-asan -j$(JOBS) --target mgx-run-onnx test-targets-cpu-random test-far-far_random > build-soak-asan/soak.log || { tail -20 build-soak-asan/soak.log; exit 1; }
	@$(call CONFIGURE,build-soak-tsan,$(call SOAK_BUILD,thread))
	@cmake --build build-soak-tsan -j$(JOBS) --target mgx-soak > build-soak-tsan/soak.log || { tail -20 build-soak-tsan/soak.log; exit 1; }
	@tool/soak.sh build-soak-asan build-soak-tsan $(PYTHON) $(COUNT) $(SOAK_SECONDS) $(MODELS)

SEQUENCES ?= 10000
misuse: venv
	@echo "== building into build-misuse/ (address and undefined sanitizers)"
	@$(call CONFIGURE,build-misuse,-DCMAKE_BUILD_TYPE=RelWithDebInfo -DMGX_SANITIZE=address$(comma)undefined -DMGX_PYTHON=$(abspath $(PYTHON)))
	@cmake --build build-misuse -j$(JOBS) --target migraphx_c migraphx_python
	@tool/misuse.sh build-misuse $(PYTHON) $(SEQUENCES)

TOKENS ?= 10000
long-text: $(BUILD)/CMakeCache.txt
	@$(call COMPILE,$(BUILD)) --target test-generate-memory > /dev/null
	@echo "== $(TOKENS) tokens of a decoder with room in its caches, with one that grows, with a state of fixed lengths"
	@$(BUILD)/test/test-generate-memory --tokens $(TOKENS)

# Assertions, the plan's certificate and its witness are in builds without NDEBUG alone.
DEBUG_TESTS := ^(ir/|plan/|format/|far/|op/cases|pass/cases|quant/random|targets/sizes|targets/cpu/(cpu|random)|targets/cpu/lower/(norm|pooling|rnn|epilogue|quantized)|targets/cpu/kernel/product/gemm$$|api/(run|mxr|file)|onnx/(graph|form|loop|tensor|defer|hostile))
debug:
	@echo "== building into build-debug/ (assertions), and running the tests that reach most of them"
	@$(call CONFIGURE,build-debug,-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 -DMGX_WERROR=OFF -DMGX_PYTHON=$(abspath $(PYTHON)))
	@$(call COMPILE,build-debug) --target $$(cd build-debug && ctest -N -R '$(DEBUG_TESTS)' | sed -n 's|^ *Test .*: \(.*\)|test-\1|p' | tr / -) > /dev/null
	@cd build-debug && ctest --output-on-failure -j$(JOBS) -R '$(DEBUG_TESTS)'

faults: venv
	@echo "== faults planted in build-faults/, one at a time"
	@$(PYTHON) tool/faults.py --python $(abspath $(PYTHON)) --jobs $(JOBS)

check-all: check
	@tool/check_all.sh $(JOBS)

# Other processors than this machine's, run by QEMU's user-mode emulation. What is left out, and why: test/emulated/.
EMULATOR = $(firstword $(foreach name,qemu-$(1) qemu-$(1)-static,$(if $(shell command -v $(name) 2> /dev/null),$(name))))
MISSING = { echo "missing: $(1) (Debian, Ubuntu: apt-get install $(2))"; exit 1; }
ARM_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
arm:
	@command -v aarch64-linux-gnu-gcc > /dev/null || $(call MISSING,aarch64-linux-gnu-gcc,$(ARM_PACKAGES))
	@test -n "$(call EMULATOR,aarch64)" || $(call MISSING,qemu-aarch64,$(ARM_PACKAGES))
	@echo "== building into build-arm/ (64-bit ARM)"
	@$(call CONFIGURE,build-arm,-DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/aarch64-linux-gnu.cmake)
	@$(call COMPILE,build-arm) --target mgx-tests migraphx-driver digits
	@echo "== running the tests under $(call EMULATOR,aarch64)"
	@CC=aarch64-linux-gnu-gcc python3 tool/emulated.py --build build-arm --jobs $(JOBS) --leave test/emulated/arm.txt -- $(call EMULATOR,aarch64) -L /usr/aarch64-linux-gnu

no-avx: tests
	@test -n "$(call EMULATOR,x86_64)" || $(call MISSING,qemu-x86_64,qemu-user)
	@echo "== running the tests under $(call EMULATOR,x86_64) as Intel's Nehalem (SSE4.2, no AVX)"
	@python3 tool/emulated.py --build $(BUILD) --jobs $(JOBS) --leave test/emulated/no-avx.txt -- $(call EMULATOR,x86_64) -cpu Nehalem

# NVRTC and hiprtc compile without a card; the models are compiled for OpenCL's CPU. What is not installed is skipped.
gpu-compile: venv all
	@echo "== kernels for other cards"
	@$(PYTHON) tool/gpu_compile.py --build $(BUILD)

# OpenCL on the processor does not finish the architectures of kind "light" in time.
GPU_KINDS ?= $(if $(MGX_TEST_DEVICE),"",node simple pytorch-converted pytorch-operator)
gpu-suite: venv tests
	@echo "== the ONNX backend suite on target gpu ($(or $(MGX_TEST_DEVICE),OpenCL on the processor))"
	@$(PYTHON) test/onnx/make_suite.py --out $(BUILD)/suite
	@words=$$(test -n "$(MGX_TEST_DEVICE)" || $(PYTHON) tool/opencl.py $(BUILD)/opencl); \
	 test -n "$(MGX_TEST_DEVICE)" || echo "$$words" | grep -q LD_LIBRARY_PATH || $(PYTHON) tool/opencl.py --found || exit 1; \
	 env $$words MGX_TEST_DEVICE=$(or $(MGX_TEST_DEVICE),opencl) \
	    $(PYTHON) test/onnx/judge.py --build $(BUILD) --target gpu --jobs $(JOBS) --cases $(BUILD)/suite --kinds $(GPU_KINDS) -- --batch 30

# Every public function of C, C++ and Python, from the headers' comments and the docstrings.
reference: venv all
	@echo "== writing docs/reference/"
	@PYTHONPATH=$(BUILD)/python $(PYTHON) tool/reference.py

bench: venv all
	@$(call COMPILE,$(BUILD)) --target bench-tools > /dev/null
	@$(PYTHON) bench/bench.py --build $(BUILD) $(BENCH_ARGS)

# One verb for every kernel test's --bench: GFLOP/s and the share of the measured FMA peak, GB/s,
# values per nanosecond, for each instruction set this machine has.
bench-kernels: tests
	@for test in $(BUILD)/test/test-targets-cpu-kernel-*; do \
		echo "== $${test##*-}"; $$test --bench || exit 1; \
	done

bench-import: venv
	@cmake -S . -B $(BUILD) > /dev/null
	@cmake --build $(BUILD) -j$(JOBS) --target mgx-phases > /dev/null
	@$(PYTHON) bench/import.py --build $(BUILD) $(BENCH_ARGS)

# docs/gate.md
GATE_ARGS ?=
gate: venv all
	@$(PYTHON) bench/gate.py --build $(BUILD) $(GATE_ARGS)

gate-record: venv all
	@$(PYTHON) bench/gate.py --build $(BUILD) --write $(GATE_ARGS)

SECONDS ?= 60
fuzz:
	@echo "== building the fuzzers into build-fuzz/ (clang, address and undefined sanitizers)"
	@CC=clang $(call CONFIGURE,build-fuzz,-DMGX_FUZZ=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo)
	@$(call COMPILE,build-fuzz)
	@tool/fuzz.sh build-fuzz $(SECONDS)

FAIL_ARGS ?=
fail-alloc: tests
	@echo "== tests with failing allocations (FAIL_ARGS=--all for every one)"
	@python3 tool/fail_alloc.py $(BUILD) $(FAIL_ARGS)

coverage: venv
	@echo "== building into build-coverage/ and running the tests"
	@$(call CONFIGURE,build-coverage,-DMGX_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug -DMGX_PYTHON=$(abspath $(PYTHON)))
	@$(call COMPILE,build-coverage)
	@tool/coverage.sh build-coverage $(VENV)

size:
	@python3 tool/size.py

tables: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j$(JOBS) --target mgx-tables > /dev/null
	@python3 tool/tables.py --build $(BUILD)

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX) > $(BUILD)/install.log || { cat $(BUILD)/install.log; exit 1; }
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig 2>/dev/null || :; fi
	@echo "== installed into $(DESTDIR)$(PREFIX); for Python: export PYTHONPATH=$(PREFIX)/lib"

wheel: all
	@python3 tool/mgx_wheel.py $(BUILD) $(BUILD)/dist
	@python3 tool/ort_wheel.py $(BUILD) $(BUILD)/dist

deb: all
	@cpack --config $(BUILD)/CPackConfig.cmake -B $(BUILD)/dist > $(BUILD)/deb.log || { cat $(BUILD)/deb.log; exit 1; }
	@rm -rf $(BUILD)/dist/_CPack_Packages $(BUILD)/deb.log
	@ls $(BUILD)/dist/*.deb

first-day:
	@tool/bare_debian.sh --first-day

bare-debian:
	@tool/bare_debian.sh

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf $(BUILD) build-*
