#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds circles in src/, driver/ and python/: of folders, by includes and by calls, and of files inside a folder, by calls.

A folder's floor is below those that use it: kernels below what calls them, the pass engine below the rules, the rules
below the passes. Two folders that reach each other have no order, and neither can be read or tested without the other.
The same holds of two files of a folder. A call is any use of a name that another file defines, be it a function or a
const object; names of src/ have a prefix (mgx_, cpu_, gpu_), those of the driver and of the Python module have none and
count inside their folder. No circle is allowed. Lists that the build makes from definitions are not looked at.
"""
import collections
import os
import re
import subprocess
import sys

NAME = r"(?:mgx|cpu|gpu|migraphx)_\w+"
CLIENTS = ("driver", "python")


def definitions(name):
    """Patterns of functions and of const objects so named."""
    return (re.compile(rf"^(?!static|extern|typedef|return|else)[a-z][\w *]*?\b({name})\([^;{{}}]*\)\s*\{{", re.M),
            re.compile(rf"^const [\w *]*?\b({name})(?:\[[^\]]*\])? =", re.M))


OURS, ANY = definitions(NAME), definitions(r"\w+")


def sources():
    kinds = [f"{part}/*.{kind}" for part in ("src", *CLIENTS) for kind in "ch"]
    listed = subprocess.run(["git", "ls-files", *kinds], capture_output=True, text=True, check=True).stdout.split()
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
    home, own = {}, {}
    for path in texts:
        # Types are needed to see a definition, so look for those in the text with its types.
        plain = re.sub(r"//[^\n]*", "", texts[path]) if path.endswith(".c") else ""
        folder = path.split("/")[0]
        for pattern in ANY if folder in CLIENTS else OURS:
            for name in pattern.findall(plain):
                (own.setdefault(folder, {}) if folder in CLIENTS else home).setdefault(name, path)
    edges = collections.defaultdict(dict)
    for path, text in code.items():
        if path.startswith(CLIENTS):  # fields and locals may have a function's name: a call has its parenthesis
            known, used = own.get(path.split("/")[0], {}), re.findall(r"(?<![.>])\b([a-z]\w+)\(|&([a-z]\w+)", text)
            used = {a or b for a, b in used}
        else:
            known, used = home, re.findall(rf"\b{NAME}\b", text)
        for name in sorted(set(used)):
            other = known.get(name, path)
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
