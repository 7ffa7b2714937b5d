#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds circles in src/: of folders, by includes and by calls, and of files inside a folder, by calls.

A folder's floor is below those that use it: kernels below what calls them, the pass engine below the rules, the rules
below the passes. Two folders that reach each other have no order, and neither can be read or tested without the other.
The same holds of two files of a folder. A call is any use of a name with a prefix of ours (mgx_, cpu_, gpu_) that
another file defines, be it a function or a const object. No circle is allowed. Lists that the build makes from
definitions are not looked at.
"""
import collections
import os
import re
import subprocess
import sys

NAME = r"(?:mgx|cpu|gpu|migraphx)_\w+"
FUNCTION = re.compile(rf"^(?!static|extern|typedef)[a-z][\w *]*?\b({NAME})\([^;{{}}]*\)\s*\{{", re.M)
OBJECT = re.compile(rf"^const [\w *]*?\b({NAME})(?:\[[^\]]*\])? =", re.M)


def sources():
    listed = subprocess.run(["git", "ls-files", "src/*.c", "src/*.h"], capture_output=True, text=True, check=True).stdout.split()
    return {path: open(path, encoding="utf-8").read() for path in listed if os.path.exists(path)}


def includes(texts):
    """folder -> folder it includes -> a file that does."""
    edges = collections.defaultdict(dict)
    for path, text in texts.items():
        own = os.path.dirname(path)
        for target in re.findall(r'^ *# *include "([^"]+/)[^/"]+"', text, re.M):
            other = "src/" + target.rstrip("/")
            if other != own:
                edges[own].setdefault(other, f"{path} includes")
    return edges


def calls(texts):
    """file -> file it calls -> a name; comments, strings and names of types do not count."""
    code = {}
    for path, text in texts.items():
        text = re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"//[^\n]*", "", text))
        code[path] = re.sub(r"\b(struct|enum|union)\s+\w+", "", text) if path.endswith(".c") else ""
    home = {}
    for path, text in code.items():
        # Types are needed to see a definition, so look for those in the text with its types.
        plain = re.sub(r"//[^\n]*", "", texts[path])
        for name in FUNCTION.findall(plain) + OBJECT.findall(plain) if path.endswith(".c") else []:
            home.setdefault(name, path)
    edges = collections.defaultdict(dict)
    for path, text in code.items():
        for name in sorted(set(re.findall(rf"\b{NAME}\b", text))):
            other = home.get(name, path)
            if other != path:
                edges[path].setdefault(other, name)
    return edges


def circles(edges):
    """Groups of more than one that reach each other, each sorted."""
    reach = {}
    for start in list(edges):
        seen, stack = set(), [start]
        while stack:
            for other in edges.get(stack.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        reach[start] = seen
    groups = {tuple(sorted({a} | {b for b in reach[a] if a in reach.get(b, ())})) for a in reach}
    return sorted(group for group in groups if len(group) > 1)


def between_folders(texts, by_file):
    edges = includes(texts)
    for path, others in by_file.items():
        for other, name in others.items():
            a, b = os.path.dirname(path), os.path.dirname(other)
            if a != b:
                edges[a].setdefault(b, f"{path} uses {name} of")
    return edges


def inside_folders(by_file):
    edges = collections.defaultdict(dict)
    for path, others in by_file.items():
        for other, name in others.items():
            if os.path.dirname(path) == os.path.dirname(other):
                edges[path][other] = name
    return edges


def report(kind, edges):
    found = circles(edges)
    for group in found:
        print(f"circle of {kind}: {' '.join(group)}")
        for a in group:
            for b in sorted(set(edges[a]) & set(group)):
                print(f"    {a} -> {b}: {edges[a][b]}")
    return bool(found)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    texts = sources()
    by_file = calls(texts)
    bad = report("folders", between_folders(texts, by_file))
    bad |= report("files", inside_folders(by_file))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
