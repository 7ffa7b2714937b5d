#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh BUILD VENV [NAME...]: runs the tests of an instrumented build and the generated cases (the backend suite,
# also with free and unknown shapes, versions, random, contrib; with NAMEs only these) on both targets; prints line coverage per folder of src/.
set -eu
build=$1 venv=$2
shift 2
[ $# -gt 0 ] || set -- suite "suite free" "suite unranked" versions random contrib
find "$build" -name '*.gcda' -delete
(cd "$build" && ctest -j2 -Q) || echo "coverage: some tests failed; the figures count all the same"
for cases; do
    script=${cases%% *} shapes=${cases#"$script"}
    # shellcheck disable=SC2086 # no word at all when there are no shapes
    "$venv/bin/python" "test/onnx/make_$script.py" --out "$build/$cases" ${shapes:+--shapes $shapes} > /dev/null
    for target in ref cpu; do
        printf '%-15s%-5s' "$cases" "$target"
        "$build/bin/mgx-run-onnx" --target "$target" "$build/$cases" | grep '^all' || :
    done
done
"$venv/bin/python" -m gcovr --root . --object-directory "$build" --filter src/ --gcov-ignore-parse-errors=all \
    --gcov-ignore-errors=all --merge-mode-functions=merge-use-line-min --json-summary "$build/coverage.json" "$build/CMakeFiles/mgx.dir" > /dev/null 2>&1
"$venv/bin/python" - "$build/coverage.json" <<'END'
import collections, json, os, sys
folders = collections.defaultdict(lambda: [0, 0])
for f in json.load(open(sys.argv[1]))["files"]:
    folder = os.path.dirname(f["filename"])
    while folder not in ("", "src"):  # counts for every folder above it too
        folders[folder][0] += f["line_covered"]
        folders[folder][1] += f["line_total"]
        folder = os.path.dirname(folder)
for folder, (covered, total) in sorted(folders.items()):
    print(f"{folder:32}{100 * covered / max(total, 1):6.1f} %  {covered} of {total} lines")
END
