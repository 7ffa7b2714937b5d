#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh BUILD SECONDS: runs every fuzzer for SECONDS on a copy of its corpus; the first finding fails.
set -eu
build=$1 seconds=$2
for fuzzer in "$build"/bin/fuzz-*; do
    name=$(basename "$fuzzer" | sed 's/^fuzz-//')
    corpus=$(mktemp -d)
    cp -r "fuzz/corpus/$name/." "$corpus/" 2>/dev/null || :
    echo "== $name: $seconds s"
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "$corpus" > "$build/$name.log" 2>&1 ||
        { tail -40 "$build/$name.log"; echo "fuzz: $name found something"; exit 1; }
    grep -E 'stat::number_of_executed_units' "$build/$name.log" || :
    rm -rf "$corpus"
done
echo "fuzz: nothing found"
