#!/bin/sh
# SPDX-License-Identifier: MIT
# hosts_asan.sh BUILD PYTHON: the provider's tests inside ONNX Runtime and GenAI, the engine instrumented with AddressSanitizer.
#
# The hosts are not instrumented. They throw: libstdc++ must be there when the sanitizer starts, or its own throw finds none behind
# itself, and who waits for the error waits for ever. What is freed stays for a while: little of it, or sessions that come and go
# would seem to leave it behind; the tests that weigh weights are left out.
set -eu
build=$(cd "$1" && pwd) python=$2
root=$(cd "$(dirname "$0")/.." && pwd)
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
cd "$root/test/host/ort"
env LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc \
    ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=4" MGX_ORT_LIBRARY="$build/lib/libmigraphx_ort.so" \
    "$python" -B -X faulthandler -m pytest -q -p no:cacheprovider -k "not held_once" test_provider.py test_calibration.py test_genai.py
