#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants faults, one at a time, and says where each of them ends.

    faults.py [--only NAME] [--draw N [--seed S] [--list FILE]] [--tree PATH] [--jobs N] [--python PATH] [--report FILE]
              [--trust]

A fault is one line or two of the engine as a tired person would have written them: a stride of the
other axis, an offset in elements, a count that is not kept, a share that is not taken. Each is
planted in a copy of the tree (build-faults/tree), which is built without NDEBUG; then the tests of
its area run, in order, until one does not pass. What ended it is

    home       an assertion of the folder of the fault, or the message of its verifier
    elsewhere  an assertion or a verifier's message of another folder
    test       a test that compared results, or a crash
    nobody     every test passed

A fault whose place no longer reads as it did fails the script: the list below goes with the code.
Wanted: at least 25 of 30 end at home. Slow: about a minute for each, after the first build.

--draw plants N faults that nobody chose: a line of a folder (DRAWN) by chance, with a comparison, a
sum, a flag or an index changed, or a statement left out. Some of them change nothing that anyone
could see, and some lines no test of the area reaches: read what ends with nobody. --list keeps the
drawn faults in a file; where it exists already, they are read from it, so that those that ended with
nobody can be planted again after a test was written."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

WANTED = 25
ROOT = TREE = BUILD = SUITE = None  # set by `place`
CARD = {}  # what the tests' environment needs for a card, OpenCL on the processor where there is no other

# The models of the importer's area: of the ONNX suite those that reach the places below.
CASES = ("^test_(basic_conv|conv|averagepool_2d|maxpool_2d|maxpool_with_argmax|split|slice|gather|cast_|shape_|constant|unsqueeze|concat|loop|if_|"
         "matmul|gemm|reduce_mean|softmax|layer_norm|lstm|pad|transpose|resize_down|scatter|topk|einsum|attention_3d)")

SUITES = {"suite": ["--only", CASES], "contrib": []}  # models, by what makes them

# Of each area: the folders that are its home, and the tests that reach it, broad ones first.
AREAS = {
    "ir": (["src/ir"], ["pass/cases", "targets/cpu/cpu", "ir/module", "ir/tensor", "ir/shape", "ir/verify", "op/cases"]),
    "plan": (["src/plan"], ["targets/cpu/cpu", "far/far", "plan/layout", "plan/schedule", "plan/join",
                            "targets/cpu/lower/dynamic", "onnx/loop", "far/far_cases", "far/far_random", "plan/source"]),
    "lowering": (["src/targets/cpu"], ["targets/cpu/cpu", "targets/cpu/lower/pooling", "targets/cpu/lower/epilogue",
                                       "targets/cpu/lower/dynamic", "suite", "targets/cpu/lower/rnn",
                                       "targets/cpu/lower/norm", "targets/cpu/lower/narrow", "targets/cpu/random"]),
    "importer": (["src/onnx", "src/import"], ["suite", "onnx/graph", "onnx/form", "onnx/tensor", "onnx/loop"]),
    "format": (["src/format"], ["format/container", "api/mxr", "api/file"]),
}

# Where faults are drawn, and the tests that reach them; "folder/*" is every test in C below that folder,
# "python/..." one of pytest, contrib the operators of com.microsoft.
DRAWN = {
    "pass": (["src/pass"], ["pass/cases", "pass/*", "targets/cpu/cpu", "targets/cpu/lower/norm", "targets/cpu/lower/epilogue",
                            "targets/cpu/lower/quantized", "targets/cpu/random", "far/far_random", "targets/gpu/gpu"]),
    "plan": (["src/plan"], ["plan/*", "targets/cpu/cpu", "far/far", "targets/cpu/lower/dynamic", "onnx/loop", "far/far_random",
                            "far/far_cases", "targets/sizes", "targets/cpu/tune", "api/mxr", "api/run", "api/threads", "python/gpu_few"]),
    "targets": (["src/targets"], ["targets/cpu/cpu", "targets/cpu/lower/*", "targets/cpu/special", "targets/cpu/random",
                                  "targets/cpu/tune", "targets/gpu/*", "targets/values", "targets/sizes", "targets/memory",
                                  "suite", "contrib", "python/caches", "python/cached_attention", "python/gpu_few",
                                  "python/gpu_caches", "python/gpu_kernels", "python/gpu_matrix"]),
    "quant": (["src/quant"], ["quant/*", "api/quantize"]),
    "onnx": (["src/onnx"], ["onnx/graph", "onnx/*", "api/onnx_graph", "suite", "contrib"]),
}

# area, name, file (and where it was before), as it is, as it is planted
FAULTS = [
    ("ir", "stride of the wrong axis", "src/ir/shape.c",
     "result.strides[permutation[i]] = stride;\n        stride = product(stride, s->lens[permutation[i]]);",
     "result.strides[permutation[i]] = stride;\n        stride = product(stride, s->lens[i]);"),
    ("ir", "edge left in the old list", "src/ir/edit.c",
     "    mgx_unlink_use(ins, slot);\n    ins->in[slot] = by;",
     "    ins->in[slot] = by;"),
    ("ir", "instructions not counted down", "src/ir/link.h",
     "    ins->prev = ins->next = NULL;\n    m->count--;",
     "    ins->prev = ins->next = NULL;"),
    ("ir", "share not taken", "src/ir/tensor.c",
     "    mgx_storage_retain(t->storage);\n",
     ""),
    ("ir", "axes merged by one side", "src/ir/tensor.c",
     "if (last >= 0 && c->from[last] == a * length && c->to[last] == b * length) {",
     "if (last >= 0 && c->to[last] == b * length) {"),
    ("ir", "literals of a copy not kept", "src/ir/clone.c",
     "return mgx_keep(&c->to->literals, ins->literal->storage) ? MGX_OK : mgx_fail_memory(c->diag);",
     "return MGX_OK;"),

    ("plan", "offset in elements", "src/plan/layout.c",
     "v->offset = c->offset + at * c->shape.strides[axis] * size;",
     "v->offset = c->offset + at * c->shape.strides[axis];"),
    ("plan", "life not prolonged", "src/plan/live.c",
     "    root->last = out->last;\n",
     ""),
    ("plan", "neighbours of one step missed", "src/plan/memory.c",
     "if (b->v[active[k]].last >= b->v[i].first)\n                active[kept++]",
     "if (b->v[active[k]].last > b->v[i].first)\n                active[kept++]"),
    ("plan", "only the first writer", "src/plan/schedule.c",
     "    writer[root->first] = s;\n",
     "    if (writer[root->first] < 0)\n        writer[root->first] = s;\n"),
    ("plan", "result dropped a step early", "src/plan/live.c",
     "touch(plan->results[k].value, plan->step_count);",
     "touch(plan->results[k].value, plan->step_count - 1);"),
    ("plan", "key without the offset", "src/plan/source.c",
     "range->source.number, range->source.offset + (int64_t)((uintptr_t)data - range->begin)};",
     "range->source.number, range->source.offset};"),
    ("plan", "view's offset lost", "src/plan/compile.c",
     "ref->offset += (int64_t)root->scratch;",
     "ref->offset = (int64_t)root->scratch;"),
    ("plan", "stale twin", "src/plan/transfer.c",
     "if (root->twin && root->twin_age == root->writes) {",
     "if (root->twin) {"),

    ("lowering", "rows and columns swapped", "src/targets/cpu/lower/gemm.c",
     ".b_row = b->strides[n - 2],\n                               .b_col = b->strides[n - 1],",
     ".b_row = b->strides[n - 1],\n                               .b_col = b->strides[n - 2],"),
    ("lowering", "rows merged, not counted", "src/targets/cpu/lower/gemm.c",
     "        d->m *= x->lens[k];\n        x->count--;",
     "        x->count--;"),
    ("lowering", "group's weights a group too far", "src/targets/cpu/lower/conv.c",
     "d->w_group = w->strides[0] * (d->out_channels / d->groups);",
     "d->w_group = w->strides[0] * d->out_channels;"),
    ("lowering", "axis moved without its stride", "src/targets/cpu/lower/copy.c",
     "        k->from[i] = k->from[i + 1];\n        k->to[i] = k->to[i + 1];\n",
     "        k->from[i] = k->from[i + 1];\n"),
    ("lowering", "workspace of one thread", "src/targets/cpu/lower/pointwise.c",
     "c->workspace = p->thread_floats * sizeof(float) * (size_t)c->machine->threads;",
     "c->workspace = p->thread_floats * sizeof(float);"),
    ("lowering", "stride of the axis before", "src/targets/cpu/lower/pooling.c",
     "(struct axis){walk.axis[i], x->strides[i + 2], y->strides[i + 2]};",
     "(struct axis){walk.axis[i], x->strides[i + 1], y->strides[i + 2]};"),
    ("lowering", "length of the result's axis", "src/targets/cpu/lower/gather.c",
     "g->length = x->lens[axis];",
     "g->length = c->out->lens[axis];"),

    ("importer", "padding's end beside its begin", "src/import/window.c|src/onnx/window.c",
     "w->pads[i + w->spatial] = total - w->pads[i];",
     "w->pads[i + 1] = total - w->pads[i];"),
    ("importer", "kernel from the channels on", "src/onnx/op/conv.c",
     "return mgx_onnx_window_read(n, x, weights->shape.lens + 2, w);",
     "return mgx_onnx_window_read(n, x, weights->shape.lens + 1, w);"),
    ("importer", "types out of order", "src/onnx/tensor.c",
     "                                MGX_INT32,\n                                MGX_INT64,",
     "                                MGX_INT64,\n                                MGX_INT32,"),
    ("importer", "first output for all", "src/onnx/graph.c",
     "            value->ins = n->out[i];",
     "            value->ins = n->out[0];"),
    ("importer", "end of a slice off by one", "src/import/build.c",
     'mgx_ints("ends", &end, 1)),\n',
     'mgx_ints("ends", &(int64_t){end - 1}, 1)),\n'),

    ("format", "numbers the other way round", "src/format/msgpack.c",
     "bytes[1 + i] = (uint8_t)(number >> (8 * (width - 1 - i)));",
     "bytes[1 + i] = (uint8_t)(number >> (8 * i));"),
    ("format", "end not moved", "src/format/mxr_container.c",
     "    w->end = at + bytes;",
     "    w->end = at;"),
    ("format", "lengths for strides", "src/format/mxr_write.c",
     "mgx_value_ints(arena, scalar ? &zero : s->strides, rank)",
     "mgx_value_ints(arena, scalar ? &zero : s->lens, rank)"),
    ("format", "source without its offset", "src/format/mxr_container.c",
     "*offset = (int64_t)(MGX_CONTAINER_DATA + b->at + inside);",
     "*offset = (int64_t)(MGX_CONTAINER_DATA + b->at);"),
]


def place(root):
    """The tree the faults are planted in a copy of; the copy, its build and the models lie in it."""
    global ROOT, TREE, BUILD, SUITE
    ROOT = root.resolve()
    TREE, SUITE = ROOT / "build-faults" / "tree", ROOT / "build-faults" / "suite"
    BUILD = TREE / "build"


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **more)


def copy_tree():
    """The files that git knows, or would; those that differ alone are written, so that little is built again."""
    listed = run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT).stdout.split("\0")
    names = [name for name in listed if name and (ROOT / name).is_file()]
    for name in names:
        to = TREE / name
        if not to.exists() or to.read_bytes() != (ROOT / name).read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to)
    known = set(names)
    for path in [p for p in TREE.rglob("*") if p.is_file() and BUILD not in p.parents]:
        if str(path.relative_to(TREE)) not in known:
            path.unlink()


def home_of(paths):
    """Of the places a piece of code has had, the one where this tree has it."""
    return next((path for path in paths.split("|") if (ROOT / path).exists()), paths)


def check_anchors():
    bad = []
    for area, name, paths, before, _ in FAULTS:
        path = home_of(paths)
        count = (ROOT / path).read_text(encoding="utf-8").count(before) if (ROOT / path).exists() else 0
        if count != 1:
            bad.append(f"faults: {area}, {name}: {path} has its place {count} times, not once")
    print("\n".join(bad), end="\n" if bad else "")
    return not bad


def tests_of(area):
    """Those of the area's tests that this tree has, each once."""
    found = []
    for test in AREAS[area][1]:
        paths = sorted((TREE / "test").glob(test.replace("/*", "/**/*") + "_test.c"))
        found += [test] if test in SUITES or test.startswith("python/") else [str(p.relative_to(TREE / "test"))[:-len("_test.c")] for p in paths]
    return list(dict.fromkeys(found))


def reaches(path, test):
    """Whether a test may come to this file at all: those of the processor do not to what is the card's, nor the other way."""
    card = "gpu" in test
    if path.startswith("src/targets/gpu/"):
        return card
    return not (card and path.startswith("src/targets/"))


def target_of(test):
    if test.startswith("python/"):
        return "migraphx_python"
    return "mgx-run-onnx" if test in SUITES else "test-" + test.replace("/", "-")


def build(test, jobs):
    """One test's program alone: most faults end before the others are wanted."""
    made = run(["cmake", "--build", str(BUILD), f"-j{jobs}", "--target", target_of(test), *(["python_package"] if test.startswith("python/") else [])])
    return None if made.returncode == 0 else made.stdout[-3000:] + made.stderr[-1000:]


def configure(python):
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    made = run(["cmake", "-S", str(TREE), "-B", str(BUILD), "-G", generator, "-DCMAKE_BUILD_TYPE=Debug",
                "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DMGX_WERROR=OFF", f"-DMGX_PYTHON={python}"])
    if made.returncode:
        sys.exit(made.stdout + made.stderr)
    words = run([python, str(ROOT / "tool" / "opencl.py"), str(BUILD / "opencl")]).stdout.split()
    CARD.update(word.split("=", 1) for word in words)
    for name, more in SUITES.items():
        folder = SUITE.parent / name
        made = None if folder.exists() else run([python, f"test/onnx/make_{name}.py", "--out", str(folder), *more], cwd=ROOT)
        if made and made.returncode:
            sys.exit(made.stdout + made.stderr)


def run_test(test):
    """None if it passed, else what it said."""
    if test in SUITES:
        command = [str(BUILD / "bin" / "mgx-run-onnx"), "--target", "cpu", str(SUITE.parent / test)]
    else:
        # ctest ends what runs too long; who waits for ctest alone leaves it running.
        command = ["ctest", "--test-dir", str(BUILD), "--output-on-failure", "--timeout", "290", "-R", f"^{test}$"]
    try:
        done = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False,
                              env=dict(os.environ, MALLOC_PERTURB_="165", **CARD))
    except subprocess.TimeoutExpired:
        return "it ran longer than 300 seconds"
    text = done.stdout.decode(errors="replace")
    return None if done.returncode == 0 else text + ("" if done.returncode > 0 else f"\nsignal {-done.returncode}")


ASSERTED = re.compile(r"(src/[\w/]+\.[ch]):(\d+): (\w+): Assertion `(.*)' failed")
# What verifiers say, and whose they are: mgx_program_verify, the plan's certificate, and its witness,
# which names the kernel that made another value than its operator does.
VERIFIERS = [
    ("ir", re.compile(r"(its list is broken after|counts \d+ instructions, not|does not list this use|"
                      r"lists a use that does not read|its rule says|are not inside its storage|owns no share in its|"
                      r"has another shape|comes later|is not in the program)[^\n]*")),
    ("plan", re.compile(r"plan: (step \d+|a value of|result \d+)[^\n]*")),
    ("lowering", re.compile(r"step of \w+ by kernel \w+: element[^\n]*")),
]


def judge(area, test, text):
    """Where it ended, and what said so."""
    asserted = ASSERTED.search(text)
    if asserted:
        path, line, _, condition = asserted.groups()
        home = any(path.startswith(folder + "/") for folder in AREAS[area][0])
        return "home" if home else "elsewhere", f"{path}:{line}: {condition[:70]}"
    for of, pattern in VERIFIERS:
        said = pattern.search(text)
        if said:
            return "home" if area == of else "elsewhere", "verifier: " + said.group(0)[:90]
    last = [line for line in text.strip().splitlines() if line.strip()]
    return "test", f"{test}: {(last[0] if last else 'failed')[:70]}"


# What a tired person does to a line: each pattern with what takes its place.
SLIPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
         (r" \+ 1\b", ""), (r" - 1\b", ""), (r" && ", " || "), (r" \|\| ", " && "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
         (r"\[i\]", "[0]"), (r"\[axis\]", "[0]"), (r" \+ ", " - "), (r" \+= ", " = "), (r"(?<=[(= ])!(?=\w)", ""),
         (r"^ +[\w>.\[\]-]+ (=|\+=|-=|\|=) [^;{]+;$", ""), (r"^ +[\w>.\[\]-]+(\+\+|--);$", ""), (r"^ +mgx_\w+\([^;]*\);$", "")]


def slips_of(line):
    """The line with one slip, for each that it may have."""
    if "assert" in line or line.lstrip().startswith(("//", "#", "static", "for (int", "const", "}")) or '"' in line:
        return []
    made = []
    for pattern, by in SLIPS:
        for found in re.finditer(pattern, line):
            made.append(line[:found.start()] + by + line[found.end():])
    return made


def draw(count, seed):
    """Faults by chance, as many in each area. The place is a line that its file has once."""
    chance, faults, areas = random.Random(seed), [], list(DRAWN)
    while len(faults) < count:
        area = areas[len(faults) % len(areas)]
        folder = ROOT / chance.choice(DRAWN[area][0])
        path = chance.choice(sorted(p for p in folder.rglob("*.c") if "/kernel/" not in str(p) and "/machine/" not in str(p)))
        text = path.read_text(encoding="utf-8")
        line = chance.choice(text.splitlines())
        slips = slips_of(line)
        if slips and text.count(line + "\n") == 1:
            slip = chance.choice(slips)
            said = f"{path.name}: {line.strip()} -> {slip.strip() or 'nothing'}"
            faults.append((area, said, str(path.relative_to(ROOT)), line + "\n", slip + "\n"))
    return faults


def drawn(arguments):
    """The faults of --list, or new ones, which it keeps then."""
    if arguments.list and arguments.list.exists():
        return [tuple(fault) for fault in json.loads(arguments.list.read_text(encoding="utf-8"))]
    faults = draw(arguments.draw, arguments.seed)
    if arguments.list:
        arguments.list.write_text(json.dumps(faults, indent=1), encoding="utf-8")
    return faults


def try_fault(fault, jobs):
    area, _, paths, before, after = fault
    file = TREE / home_of(paths)
    clean = file.read_text(encoding="utf-8")
    file.write_text(clean.replace(before, after), encoding="utf-8")
    try:
        for test in tests_of(area):
            if not reaches(home_of(paths), test):
                continue
            failed = build(test, jobs)
            if failed:
                return "unbuilt", failed.strip().splitlines()[-1][:70]
            text = run_test(test)
            if text is not None:
                return judge(area, test, text)
        return "nobody", "every test passed"
    finally:
        file.write_text(clean, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="faults whose area or name contains this")
    parser.add_argument("--draw", type=int, help="this many faults by chance in place of the list")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", type=pathlib.Path, help="a file of drawn faults: read if it is there, else written")
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="another state of the repository to plant them in (a git worktree)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--python", default=sys.executable, help="one with the tests' packages")
    parser.add_argument("--report", type=pathlib.Path, help="also write the table there")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a fault first")
    parser.add_argument("--check", action="store_true", help="look only whether every place is there")
    arguments = parser.parse_args()
    place(arguments.tree)
    if not check_anchors():
        return 1
    if arguments.check:
        return 0
    if arguments.draw:
        AREAS.update(DRAWN)
    faults = [f for f in (drawn(arguments) if arguments.draw else FAULTS) if not arguments.only or arguments.only in f[0] or arguments.only in f[1]]
    copy_tree()
    configure(arguments.python)
    for test in [] if arguments.trust else dict.fromkeys(test for area in dict.fromkeys(f[0] for f in faults) for test in tests_of(area)):
        text = build(test, arguments.jobs) or run_test(test)
        if text is not None:
            sys.exit(f"faults: {test} fails without any\n{text[-2000:]}")
    lines, counts = ["| fault | ends | what says so |", "|---|---|---|"], {}
    for fault in faults:
        where, what = try_fault(fault, arguments.jobs)
        counts[where] = counts.get(where, 0) + 1
        lines.append("| %s: %s | %s | `%s` |" % (fault[0], fault[1], where, what.replace("|", "\\|").replace("`", "'")))
        print(lines[-1], flush=True)
    summary = ", ".join(f"{counts.get(w, 0)} {w}" for w in ("home", "elsewhere", "test", "nobody", "unbuilt"))
    print(f"{len(faults)} faults: {summary}")
    if arguments.report:
        arguments.report.write_text("\n".join(lines) + f"\n\n{len(faults)} faults: {summary}\n", encoding="utf-8")
    return 0 if arguments.only or arguments.draw or counts.get("home", 0) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
