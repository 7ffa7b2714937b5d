#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds folders of src/ that include each other in a circle, also inside a layer.

A folder's floor is below those that include it: kernels below what calls them, the pass engine below the rules, the
rules below the passes. Two folders that reach each other have no order, and neither can be read or tested without
the other. KNOWN holds the circles that are still to be opened; it may only shrink.
"""
import collections
import os
import re
import subprocess
import sys

KNOWN = set()


def includes():
    """folder -> folder it includes -> a file that does."""
    edges = collections.defaultdict(dict)
    files = subprocess.run(["git", "ls-files", "src/*.c", "src/*.h"], capture_output=True, text=True, check=True).stdout.split()
    for path in filter(os.path.exists, files):
        own = os.path.dirname(path)
        with open(path, encoding="utf-8") as f:
            for target in re.findall(r'^ *# *include "([^"]+/)[^/"]+"', f.read(), re.M):
                other = "src/" + target.rstrip("/")
                if other != own:
                    edges[own].setdefault(other, path)
    return edges


def reachable(edges, start):
    seen, stack = set(), [start]
    while stack:
        for other in edges.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    edges = includes()
    reach = {folder: reachable(edges, folder) for folder in list(edges)}
    found = {(a, b) for a in reach for b in reach[a] if a < b and a in reach.get(b, ())}
    for a, b in sorted(found - KNOWN):
        print(f"{a} and {b}: {edges[a].get(b, 'by way of others')}, {edges[b].get(a, 'by way of others')}")
    return 1 if found - KNOWN else 0


if __name__ == "__main__":
    sys.exit(main())
