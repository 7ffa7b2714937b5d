# SPDX-License-Identifier: MIT
# The front door. `make help` lists the verbs.
BUILD ?= build
GENERATOR := $(shell command -v ninja >/dev/null 2>&1 && echo Ninja || echo "Unix Makefiles")
CMAKE_ARGS ?=

.PHONY: all help test format
all: $(BUILD)/CMakeCache.txt
	cmake --build $(BUILD) -j2

$(BUILD)/CMakeCache.txt:
	cmake -S . -B $(BUILD) -G "$(GENERATOR)" $(CMAKE_ARGS)

help:
	@echo "make          build everything into $(BUILD)/"
	@echo "make test     run the tests"
	@echo "make format   format the sources"

test: all
	cd $(BUILD) && ctest --output-on-failure -j2

format:
	clang-format -i $$(git ls-files '*.c' '*.h')
