#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What perf prints of its runs, against a stopwatch that is preloaded and one at the end of the pipe.

    stopwatch.py DRIVER WATCH FOLDER       WATCH is the library of bench/stopwatch.c, FOLDER bench

The same runs are timed, so other work on the machine changes nothing; only when lines arrive at the end of the pipe may it
put off, which is not judged here.
"""
import argparse
import os
import sys
import tempfile

PRODUCT = """module: "main"
y = @param:y -> float_type, {256, 256}, {256, 1}
x = @param:x -> float_type, {256, 256}, {256, 1}
main:@2 = dot(x,y) -> float_type, {256, 256}, {256, 1}
main:@3 = @return(main:@2)
"""


def main():
    driver, watch, folder = sys.argv[1:4]
    sys.path.insert(0, folder)
    import stopwatch
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "product.txt")
        with open(path, "w", encoding="ascii") as f:
            f.write(PRODUCT)
        for threads in (1, 2):
            options = argparse.Namespace(driver=driver, watch=watch, target="cpu", threads=threads)
            row = stopwatch.perf(options, path, 200)
            found = stopwatch.ratios(row)
            good = abs(found["total"] - 1) <= 0.03 and abs(found["mean"] - 1) <= 0.03 and 0 < row["busy"] <= 1
            print(threads, row, found)
            bad += not good
    return bad


if __name__ == "__main__":
    sys.exit(main())
