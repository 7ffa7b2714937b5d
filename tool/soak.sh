#!/bin/sh
# SPDX-License-Identifier: MIT
# soak.sh BUILD_ASAN BUILD_TSAN PYTHON COUNT SECONDS [MODEL ...]: the long run under sanitizers, with assertions.
#
#     COUNT random programs on far and on cpu, every program three times
#     the models of the zoo on cpu, three times each
#     8 threads on each detector for SECONDS
#
# One model lies on the disk at a time: with their weights they are gigabytes. Ends with 1 if anything failed.
set -u
asan=$1 tsan=$2 python=$3 count=$4 seconds=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
export UBSAN_OPTIONS=print_stacktrace=1
note() { # note TEXT CODE
    echo "   $1: $([ "$2" = 0 ] && echo clean || echo FAILED)"
    [ "$2" = 0 ] || failed=1
}
each() { # each SETS COMMAND... -- MODEL...: the command on the case of every model
    sets=$1 command=
    shift
    while [ "$1" != -- ]; do
        command="$command $1"
        shift
    done
    shift
    for model in "$@"; do
        PYTHONPATH=bench/zoo "$python" bench/zoo/cases.py "$work" --sets "$sets" "$model" > "$work/log" 2>&1 || cat "$work/log"
        $command "$work/$model"
        note "$model" $?
        rm -rf "${work:?}/$model"
    done
}
echo "== $count random programs, three times each, on far"
"$asan/test/test-far-far_random" --seeds 0 $((count - 1))
note far $?
echo "== $count random programs, three times each, on cpu: of drawn types, of half, of bfloat16"
"$asan/test/test-targets-cpu-random" --seeds 0 $((count - 1))
note cpu $?
echo "== the zoo, three times each, on cpu"
[ $# -gt 0 ] || set -- $(PYTHONPATH=bench/zoo "$python" bench/zoo/zoo.py list | cut -d' ' -f1)
each 1 "$asan/bin/mgx-run-onnx" --target cpu --seconds 1800 -- "$@"
echo "== 8 threads on detectors, $seconds s each"
each 6 "$tsan/bin/mgx-soak" --threads 8 --seconds "$seconds" -- $(PYTHONPATH=bench/zoo "$python" -c 'import cases; print(*cases.DETECTORS)')
[ $failed = 0 ] && echo "soak: clean"
exit $failed
