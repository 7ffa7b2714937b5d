# SPDX-License-Identifier: MIT
"""The record as text: a head of `name: value` lines that says on what machine, then a block a model, sorted.

    [draw/conv_00]
    status runs
    error 2.1e-07 3.0e-07
    run 0.3012 0.0021               median and spread, as have compile and peak
    plan 17 steps 0f3c...           and below it each kind of step: how often, kernel, operator, the model's operators, precision, device
      2 conv (direct) | group | Conv Relu | float_type | host
    time 31 % conv (direct)         of a call, by kernel
"""
import collections
import hashlib
import platform

PAIRS = ("run", "compile", "peak")
ERRORS = ("error", "apart")
COUNTS = ("scratch", "packed")
WORDS = ("status", "bits", "meaning", "without")


def kind_of(step):
    """A step as the record has it: kernel, operator, the model's operators, precision, device."""
    op, nodes, kernel, precision, device = step
    return " | ".join((kernel, op, nodes, precision, device))


def plan_of(steps):
    kinds = [kind_of(s) for s, _ in steps]
    return {"count": len(kinds), "digest": hashlib.sha256("\n".join(kinds).encode()).hexdigest()[:16], "kinds": dict(collections.Counter(kinds))}


def write_block(name, row):
    lines = [f"[{name}]"]
    lines += [f"{key} {row[key]}" for key in WORDS if row.get(key)]
    lines += [f"{key} {row[key][0]:.3g} {row[key][1]:.3g}" for key in ERRORS if key in row]
    lines += [f"{key} {row[key][0]:.4g} {row[key][1]:.2g}" for key in PAIRS if key in row]
    lines += [f"{key} {row[key]}" for key in COUNTS if key in row]
    if "plan" in row:
        lines.append(f"plan {row['plan']['count']} steps {row['plan']['digest']}")
        lines += [f"  {count} {kind}" for kind, count in sorted(row["plan"]["kinds"].items())]
    lines += [f"time {share:.0f} % {kernel}" for kernel, share in sorted(row.get("time", {}).items(), key=lambda t: (-round(t[1]), t[0])) if share >= 0.5]
    return "\n".join(lines) + "\n"


def write(path, head, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Written by make gate-record; docs/gate.md says what it is.\n")
        f.write("".join(f"{key}: {value}\n" for key, value in head.items()))
        f.write("".join("\n" + write_block(name, rows[name]) for name in sorted(rows)))


def read_line(row, line):
    key, _, rest = line.partition(" ")
    if line.startswith("  "):
        count, _, kind = line.strip().partition(" ")
        row["plan"]["kinds"][kind] = int(count)
    elif key == "plan":
        words = rest.split()
        row["plan"] = {"count": int(words[0]), "digest": words[2], "kinds": {}}
    elif key == "time":
        share, _, kernel = rest.partition(" % ")
        row.setdefault("time", {})[kernel] = float(share)
    elif key in PAIRS + ERRORS:
        row[key] = [float(w) for w in rest.split()]
    else:
        row[key] = int(rest) if key in COUNTS else rest


def read(path):
    """(head, {model: row})."""
    head, rows, row = {}, {}, None
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("["):
                row = rows[line[1:-1]] = {}
            elif row is not None and line:
                read_line(row, line)
            elif line and not line.startswith("#"):
                key, _, value = line.partition(": ")
                head[key] = value
    return head, rows


def processor():
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                key, _, value = line.partition(":")
                fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    return " ".join(filter(None, [fields.get("model name", platform.processor()), *(f"{k} {fields[k]}" for k in ("cpu family", "model") if k in fields)]))


def machine(isa):
    """The class of this machine: where all of it is equal, speed and bits compare."""
    import numpy
    import onnxruntime
    return {"instruction set": isa, "processor": processor(), "c library": " ".join(platform.libc_ver()), "onnxruntime": onnxruntime.__version__,
            "numpy": numpy.__version__}
