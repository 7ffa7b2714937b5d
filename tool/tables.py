#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables in docs/ that the code has already: operators, passes, TensorFlow's operators.

    tables.py [--build DIR]            rewrites docs/ops.md, docs/passes.md and the table in docs/tensorflow.md
    tables.py [--build DIR] --check    fails if one of them is not what the code says
    tables.py --tf [--check]           TensorFlow's alone, which needs no build"""
import argparse
import glob
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BEGIN, END = "<!-- %s: made by tool/tables.py -->", "<!-- end of %s -->"

# Who runs a pass, by the file that names it; in the order of a program's way.
PIPELINES = [
    ("src/pass/pipeline.c", "simplify"),
    ("src/pass/optimize_module.c", "optimize_module"),
    ("src/targets/cpu/target.c", "cpu"),
    ("src/targets/gpu/target.c", "gpu"),
    ("src/targets/ref/ref.c", "ref"),
    ("src/quant/quantize.c", "quantize"),
    ("src/quant/float.c", "quantize to floats"),
    ("src/quant/halve.c", "quantize, keeping 16 bits"),
    ("src/quant/gain.c", "what bytes gain"),
    ("src/quant/weights4.c", "quantize weights"),
    ("src/plan/choice.c", "a run with sizes known late"),
    ("src/generate/beforehand.c", "a decoder with an encoder"),
    ("src/generate/lengths.c", "a decoder with an encoder on a card"),
    ("src/pass/fuse_pointwise_reduce.c", "fuse_pointwise_reduce"),
]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def rows_of(build, what):
    text = subprocess.run([os.path.join(build, "bin", "mgx-tables"), what], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def cell(text):
    return text.replace("|", "\\|")


# --- operators ---


def operators(build):
    rows = ["| operator | meaning | inputs | attributes | kind |", "|---|---|---|---|---|"]
    for name, meaning, inputs, attributes, types, flags in rows_of(build, "ops"):
        attributes = "<br>".join(cell(a) for a in attributes.split("; ")) if attributes else ""
        rows.append(f"| `{name}` | {cell(meaning)} | {inputs} | {attributes} | {', '.join(filter(None, (flags, types)))} |")
    return "\n".join(rows)


# --- passes ---


def listed(path):
    """The arrays of passes in a file: (name of the array, passes)."""
    found = re.findall(r"const struct mgx_pass \*const (\w+)\[\] = \{(.*?)\};", read(path), re.S)
    return [(name, re.findall(r"&mgx_pass_(\w+)", body)) for name, body in found]


def users():
    by_pass = {}
    for path, who in PIPELINES:
        for _, passes in listed(path):
            for name in passes:
                if who not in by_pass.setdefault(name, []):
                    by_pass[name].append(who)
    return by_pass


def check_pipelines():
    """Every file that lists passes is known above."""
    known = {path for path, _ in PIPELINES} | {"src/pass/registry.c"}
    for path in glob.glob(os.path.join(ROOT, "src", "**", "*.c"), recursive=True):
        short = os.path.relpath(path, ROOT)
        if short not in known and "/test" not in short and listed(short):
            sys.exit(f"tables: {short} lists passes: name its pipeline in tool/tables.py")


def passes(build):
    check_pipelines()
    by_pass = users()
    rows = ["| pass | what it does | run by |", "|---|---|---|"]
    for name, meaning in rows_of(build, "passes"):
        rows.append(f"| `{name}` | {cell(meaning)} | {', '.join(by_pass.get(name, ['whoever asks by name']))} |")
    return "\n".join(rows)


def pipelines():
    rows = []
    for path, who in PIPELINES:
        for name, found in listed(path):
            if found and who not in ("cpu", "gpu"):  # their stages say more
                rows += item(f"*{who}* (`{path}`, `{name}`)", found)
    return "\n".join(rows)


def item(what, names):
    line = f"- {what}: {', '.join(f'`{name}`' for name in names)}"
    return textwrap.wrap(line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def stages(build):
    rows = []
    for target, name, when, names in rows_of(build, "stages"):
        rows += item(f"*{target}: {name}*{', with ' + when if when else ''}", names.split())
    return "\n".join(rows)


# --- TensorFlow ---


def tf_names(path):
    return sorted(re.findall(r'\.name = "([^"]+)"', read(os.path.join("src", "tf", path))))


def tensorflow():
    folder = os.path.join(ROOT, "src", "tf")
    rows = ["| rules in `src/tf/` | operators |", "|---|---|"]
    for path in ["simple.c"] + sorted(os.path.relpath(p, folder) for p in glob.glob(os.path.join(folder, "op", "*.c"))):
        found = tf_names(path)
        if found:
            rows.append(f"| `{path}` | {', '.join(found)} |")
    return "\n".join(rows)


# --- the pages ---


def replace(text, what, table):
    before, rest = text.split(BEGIN % what)
    return before + BEGIN % what + "\n" + table + "\n" + END % what + rest.split(END % what)[1]


def write(doc, tables, check):
    """Whether the page was wrong."""
    text = made = read(doc)
    for what, table in tables:
        made = replace(made, what, table)
    if check:
        if made != text:
            print(f"tables: {doc} is not what the code says: make tables")
        return made != text
    with open(os.path.join(ROOT, doc), "w", encoding="utf-8") as file:
        file.write(made)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tf", action="store_true")
    arguments = parser.parse_args()
    bad = write("docs/tensorflow.md", [("operators", tensorflow())], arguments.check)
    if not arguments.tf:
        bad |= write("docs/ops.md", [("operators", operators(arguments.build))], arguments.check)
        bad |= write("docs/passes.md", [("passes", passes(arguments.build)), ("stages", stages(arguments.build)), ("pipelines", pipelines())], arguments.check)
    return bad


if __name__ == "__main__":
    sys.exit(main())
