#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate: this build beside the last release's record, model by model. docs/gate.md says what a record holds and what moves.

    gate.py [--build build] [--models PATTERN ...] [--write] [--list]

Prints what moved beyond its noise, each with the steps that changed, and ends with 1 where a move has no line in the notes.
`--write` writes the record anew instead: of all models, or of some into the record that there is.
"""
import argparse
import collections
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "gate"))
import compare  # noqa: E402
import models  # noqa: E402
import record  # noqa: E402

MEASURED = ("run", "compile", "peak")
TIMEOUT = 600


# --- one model ---

def one_process(args, made, seconds):
    """What a worker says of a model; a row with a status where it ends otherwise."""
    path, inputs, options = made
    wanted = {**options, "target": args.target, "isa": args.isa, "seconds": seconds, "times": not args.no_times}
    command = [sys.executable, os.path.join(HERE, "gate", "worker.py"), args.build, path, inputs, json.dumps(wanted)]
    quiet = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, env=quiet)
    except subprocess.TimeoutExpired:
        return {"status": f"fails: more than {TIMEOUT} s"}
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if not rows:
        return {"status": f"fails: ended with {done.returncode}"}
    if "peak" in rows[-1]:
        rows[-1]["peak"] = [rows[-1]["peak"], 0.0]
    return rows[-1]


def nodes_by_kind(steps):
    found = collections.defaultdict(list)
    for step, nodes in steps:
        found[record.kind_of(step)].append(nodes)
    return dict(found)


def joined(rows):
    """Several processes' rows as one: medians of what is measured, with the larger spread, that within or that between."""
    row = dict(rows[0])
    for figure in MEASURED:
        if figure in row:
            values = [r[figure][0] for r in rows if figure in r]
            middle = statistics.median(values)
            between = (max(values) - min(values)) / 2 / max(middle, 1e-9)
            row[figure] = [middle, max(between, statistics.median(r[figure][1] for r in rows if figure in r))]
    digests = {r.get("bits") for r in rows}
    if len(digests) > 1:
        row["bits"] = "unsteady"
    if "steps" in row:
        row["plan"], row["nodes"] = record.plan_of(row["steps"]), nodes_by_kind(row["steps"])
    return row


DRIVER_FLAGS = {"int8": ["--int8"], "fp16": ["--fp16"], "bf16": ["--bf16"], "int4": ["--int4-weights"]}


def shares(args, made):
    """Percent of a call's time by kernel, from the driver's perf; {} where the driver cannot run the model so."""
    path, inputs, options = made
    driver = os.path.join(args.build, "bin", "migraphx-driver")
    if not os.path.exists(driver):
        return {}
    import numpy as np
    sizes = [w for name, a in np.load(inputs).items() for w in ("--input-dim", "@" + name, *map(str, a.shape))]
    command = [driver, "perf", "--json", f"--{args.target}", "--threads", "1", "-n", "10", path,
               *sizes, *DRIVER_FLAGS.get(options.get("quantize"), [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return {}
    spent, found = {i["index"]: i["ms"] for i in said["instructions"]}, collections.Counter()
    for step in said["steps"]:
        detail = f" ({step['detail']})" if step["detail"] else ""
        found[step["kernel"] + detail] += spent.pop(step["instruction"], 0)  # of an instruction's steps the first stands for all
    total = sum(found.values())
    return {kernel: 100 * ms / total for kernel, ms in found.items()} if total else {}


def measure(args, name, processes, profile):
    """(row, what was made) of a model, or (None, reason) where it cannot be made here."""
    try:
        made = models.make(name, os.path.join(args.build, "gate"), os.path.join(args.build, "zoo"))
    except models.Skipped as skipped:
        return None, str(skipped)
    rows = [one_process(args, made, args.seconds) for _ in range(processes)]
    bad = next((r for r in rows if r["status"] != "runs"), None)
    row = bad or joined(rows)
    if profile and not bad and not args.no_times:
        row["time"] = shares(args, made)
    return row, made


# --- all of them ---

def nearest(before, rows):
    """The rows as one, each measured figure the one nearest to the record's: what moved has moved in every process."""
    row = joined(rows)
    for figure in MEASURED:
        if figure in row and figure in before:
            values = [joined([r])[figure] for r in rows if figure in r]
            row[figure] = min(values, key=lambda v: abs(math.log(max(v[0], 1e-9) / max(before[figure][0], 1e-9))))
    return row


def compared(args, name, before, same_class):
    """(row, moves, notes) of a model; as long as measured figures seem to have moved, they are measured again."""
    row, made = measure(args, name, 1, False)
    if row is None:
        return None, made, []
    rows, (found, noted) = [row], compare.moves(name, before, row, same_class)
    while same_class and len(rows) <= args.again and any(m.figure in MEASURED for m in found):
        again = one_process(args, made, args.seconds)
        if again["status"] != "runs":
            return again, compare.moves(name, before, again, same_class)[0], []
        rows.append(again)
        row = nearest(before, rows)
        found, noted = compare.moves(name, before, row, same_class)
    if any(m.figure == "run" for m in found):
        row["time"] = shares(args, made)
        found, noted = compare.moves(name, before, row, same_class)
    return row, found, noted


def show(move, reason):
    print(f"{move.model:32} {move.figure:8} {move.text}" + (f"\n{'':42}explained: {reason}" if reason else ""), flush=True)
    for line in move.more[:12]:
        print(f"{'':42}{line}")
    if len(move.more) > 12:
        print(f"{'':42}... and {len(move.more) - 12} more")


def gather(moved):
    """One cause moves many models: figures, and the kernels and steps below them, by how many models they moved in."""
    figures, causes = collections.Counter(m.figure for m in moved), collections.defaultdict(set)
    for move in moved:
        for line in move.more:
            words = line.split("  # ")[0].split(": ")[0]
            causes[(move.figure, re.sub(r"^([+-]) \d+ ", r"\1 ", words))].add(move.model)
    print("moved: " + ", ".join(f"{figure} of {count}" for figure, count in figures.most_common()))
    for (figure, words), where in sorted(causes.items(), key=lambda c: (-len(c[1]), c[0]))[:12]:
        print(f"{len(where):5} models, {figure}: {words}")


def warn_of_load():
    """Processor time is no cure for shared caches: what is bound by memory moves with the neighbours' work."""
    load, count = os.getloadavg()[0], os.cpu_count() or 1
    if load > count + 0.5:
        print(f"warning: the machine is busy (load {load:.1f} on {count} processors): speed may move by it, above all of what memory bounds", flush=True)


def sum_up(counts, moved, known, used):
    if moved:
        gather(moved)
    for note in known:
        if note not in used:
            print(f"notes: `{' '.join(note[0])}` `{' '.join(note[1])}` explains nothing")
    print(", ".join(f"{value} {key}" for key, value in counts.items()), flush=True)


def check(args, names, path):
    head, before = record.read(path)
    here = record.machine(args.isa or isa_of(args))
    other = [key for key in here if head.get(key) != here[key]]
    known, used, moved, counts = compare.notes(args.notes), [], [], collections.Counter({"models": 0, "moved": 0, "explained": 0, "unexplained": 0})
    print(f"== {len(names)} models against {os.path.relpath(path)} ({head.get('version')}), " + ("on the same class of machine" if not other else
          "on another class of machine, whose bits, speed and memory are only noted: " + ", ".join(f"{k} {here[k]}, not {head.get(k)}" for k in other)), flush=True)
    if not args.models:
        for name in sorted(set(before) - set(names)):
            print(f"{name:32} is in the record and no more in the list")
            counts["unexplained"] += 1
    for name in names:
        if name not in before:
            print(f"{name:32} is not in the record", flush=True)
            continue
        row, found, noted = compared(args, name, before[name], not other)
        if row is None:
            print(f"{name:32} skipped: {found}", flush=True)
            continue
        counts["models"] += 1
        for move in noted if args.verbose else []:
            print(f"{move.model:32} {move.figure:8} {move.text} (noted)")
        moved += found
        for move in found:
            reason = compare.reason_for(move, known)
            counts.update(["moved", "explained" if reason else "unexplained"])
            used += [n for n in known if reason and n[2] == reason]
            show(move, reason)
    sum_up(counts, moved, known if not args.models else [], used)
    return 1 if counts["unexplained"] else 0


EXPLANATIONS = """# What moved since the record, and why

A line a move: model pattern, figures (`*` for all), reason. `make gate` fails on a move that no line explains, and
`make gate-record` empties the list. `docs/gate.md` has the figures.

"""


def write(args, names, path):
    head, rows = record.read(path) if args.models and os.path.exists(path) else ({}, {})
    head = {"version": version_of(args.build), **record.machine(args.isa or isa_of(args)), "processes": args.processes, "load": f"{os.getloadavg()[0]:.1f}"}
    for name in names:
        row, made = measure(args, name, args.processes, True)
        if row is None:
            print(f"{name:32} skipped: {made}", flush=True)
            continue
        rows[name] = row
        print(f"{name:32} " + "  ".join(f"{k} {row[k][0]:.3g} ({row[k][1]:.2g})" for k in MEASURED + ("error", "apart") if k in row)
              + ("" if row["status"] == "runs" else row["status"]), flush=True)
        record.write(path, head, rows)
    if not args.models:
        with open(args.notes, "w", encoding="utf-8") as f:
            f.write(EXPLANATIONS)
    print(f"{len(rows)} models in {os.path.relpath(path)}")
    return 0


# --- what this build and machine are ---

def in_build(build, code):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); import migraphx; {code}", os.path.join(build, "python")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def isa_of(args):
    """The instruction set that the CPU target takes here."""
    code = ("p = migraphx.program(); m = p.get_main_module(); x = m.add_parameter('x', migraphx.shape(type='float', lens=[2])); "
            "m.add_return([m.add_instruction(migraphx.op('relu'), [x])]); p.compile('cpu', threads=1); print(p.explain())")
    return next(line.rpartition("isa: ")[2] for line in in_build(args.build, code).splitlines() if "isa: " in line)


def version_of(build):
    return in_build(build, "print(migraphx.__version__)")


def record_path(args):
    """The record of this instruction set; where there is none, that of another."""
    mine = os.path.join(args.record, f"{args.isa or isa_of(args)}.txt")
    if args.write or os.path.exists(mine):
        return mine
    others = sorted(f for f in os.listdir(args.record) if f.endswith(".txt"))
    return os.path.join(args.record, others[0]) if others else sys.exit(f"gate: no record in {args.record}; make gate-record writes one")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--models", nargs="*", help="patterns, as draw/conv*")
    parser.add_argument("--write", action="store_true", help="the record, anew")
    parser.add_argument("--list", action="store_true", help="the models' names")
    parser.add_argument("--record", default=os.path.join(HERE, "gate"), help="folder of the records")
    parser.add_argument("--notes", help="what is explained (default RECORD/notes.md)")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--isa", help="hold this engine to an instruction set")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of a model's rounds, in a process")
    parser.add_argument("--processes", type=int, default=3, help="of each model, for the record")
    parser.add_argument("--again", type=int, default=5, help="processes more, at most, of a model whose figures seem to have moved")
    parser.add_argument("--no-times", action="store_true", help="no speed")
    parser.add_argument("--verbose", action="store_true", help="print also what is only noted")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.notes = args.notes or os.path.join(args.record, "notes.md")
    names, start = models.chosen(args.models), time.time()
    if args.list or not names:
        print("\n".join(names) or f"gate: no model is called {' '.join(args.models)}")
        return 0 if names else 1
    warn_of_load()
    result = (write if args.write else check)(args, names, record_path(args))
    print(f"== gate: {'written' if args.write else 'FAILED: explain or mend what moved' if result else 'passed'} in {time.time() - start:.0f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
