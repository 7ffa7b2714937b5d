# SPDX-License-Identifier: MIT
"""What moved between two rows of the record, and whether somebody explained it.

A figure moves when it is beyond its noise and beyond a least size that is worth a word; better counts as much as worse,
since a record that is not true is no help next time. Bits, counts and plans have no noise.
"""
import collections
import fnmatch
import math
import re

LEAST = {"run": 0.15, "compile": 0.35, "peak": 0.05}  # relative
TIMES_SPREAD = 3
PEAK_MIB, BYTES = 2.0, 4096
# How often an error is as large, and how much larger: float's rounding, more of it where sums run in another order.
SAME_CLASS, OTHER_CLASS = (2.0, 1e-7), (4.0, 1e-6)
UNITS = {"run": "of ONNX Runtime's time", "compile": "of ONNX Runtime's time", "peak": "MiB"}

Move = collections.namedtuple("Move", "model figure text more")


def measured(figure, before, after):
    """The text of a move of what has a spread."""
    (a, a_spread), (b, b_spread) = before, after
    if min(a, b) <= 0 or (figure == "peak" and abs(a - b) < PEAK_MIB):
        return None
    moved = math.log(b / a)
    if abs(moved) <= max(math.log1p(LEAST[figure]), TIMES_SPREAD * (a_spread + b_spread)):
        return None
    return f"{a:.3g} -> {b:.3g} {UNITS[figure]} ({100 * (b / a - 1):+.0f} %, spreads {100 * a_spread:.1f} and {100 * b_spread:.1f} %)"


def error(before, after, allowed=SAME_CLASS):
    moved = any(abs(b - a) > allowed[1] and (max(a, b) > allowed[0] * min(a, b) or not math.isfinite(a + b)) for a, b in zip(before, after))
    return "RMS {:.2g} -> {:.2g}, largest {:.2g} -> {:.2g}".format(before[0], after[0], before[1], after[1]) if moved else None


def count(before, after):
    return f"{before} -> {after} bytes" if abs(after - before) > max(BYTES, 0.01 * before) else None


def coarse(kinds):
    """Without what another instruction set chooses: operators by precision and device, and whether the reference runs them."""
    found = collections.Counter()
    for kind, times in kinds.items():
        kernel, op, _, precision, device = kind.split(" | ")
        found[" | ".join(("ref" if kernel.startswith("ref") else "a kernel", op, precision, device))] += times
    return found


def plan(before, after, same_class, nodes):
    """(text, lines of what was and is) of another plan."""
    if before["digest"] == after["digest"]:
        return None, []
    was, now = (collections.Counter(p["kinds"]) if same_class else coarse(p["kinds"]) for p in (before, after))
    if was == now:
        return ("the same steps in another order", []) if same_class else (None, [])
    lines = [f"- {times} {kind}" for kind, times in sorted((was - now).items())]
    for kind, times in sorted((now - was).items()):
        where = nodes.get(kind, [])
        lines.append(f"+ {times} {kind}" + (f"  # {'; '.join(where[:2])}" + (" ..." if len(where) > 2 else "") if where and any(where) else ""))
    return f"{before['count']} -> {after['count']} steps", lines


def slower(before, after):
    """Which kernels' time moved as the whole did: shares of a call by its time, in that of ONNX Runtime's."""
    lines, whole = [], after["run"][0] - before["run"][0]
    for kernel in sorted(set(before.get("time", {})) | set(after.get("time", {}))):
        a, b = (row.get("time", {}).get(kernel, 0) / 100 * row["run"][0] for row in (before, after))
        if (b - a) / whole > 0.3:
            lines.append(f"{'+' if b > a else '-'} {kernel}: {a:.3g} -> {b:.3g} of it")
    return lines


def moves(model, before, after, same_class):
    """(what moved, what is only noted)."""
    found, noted = [], []

    def add(figure, text, more=(), firm=True):
        if text:
            (found if firm else noted).append(Move(model, figure, text, list(more)))
    if before["status"] != after["status"]:
        return [Move(model, "status", f"{before['status']} -> {after['status']}", [])], []
    for figure in ("bits", "meaning"):
        if figure in before and figure in after and same_class and before[figure] != after[figure]:
            add(figure, f"{before[figure]} -> {after[figure]}")
    for figure in ("error", "apart"):
        if figure in before and figure in after:
            add(figure, error(before[figure], after[figure], SAME_CLASS if same_class else OTHER_CLASS))
    if "plan" in before and "plan" in after:
        add("plan", *plan(before["plan"], after["plan"], same_class, after.get("nodes", {})))
    for figure in ("run", "compile", "peak"):
        if figure in before and figure in after:
            text = measured(figure, before[figure], after[figure])
            add(figure, text, slower(before, after) if text and figure == "run" else [], same_class)
    for figure in ("scratch", "packed"):
        if figure in before and figure in after:
            add(figure, count(before[figure], after[figure]), [], same_class)
    if before.get("without") != after.get("without"):
        add("without", f"{before.get('without')} -> {after.get('without')}", [], same_class)
    return found, noted


# --- what somebody explained ---

NOTE = re.compile(r"^- `([^`]+)` `([^`]+)`: (\S.*)$")


def notes(path):
    """[(model patterns, figures, reason)] of a file; a line of another form is none."""
    try:
        with open(path, encoding="utf-8") as f:
            found = [NOTE.match(line.rstrip()) for line in f]
    except FileNotFoundError:
        return []
    return [(m[1].split(), m[2].split(), m[3]) for m in found if m]


def reason_for(move, known):
    for patterns, figures, reason in known:
        if any(fnmatch.fnmatch(move.model, p) for p in patterns) and any(f in ("*", move.figure) for f in figures):
            return reason
    return None
