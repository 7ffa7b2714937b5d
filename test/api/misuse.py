#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every function of the headers called at random, with right and wrong arguments, in random order.

    misuse.py LIBRARY INCLUDE [--sequences 40] [--calls 60] [--seed 0]

The table of calls is the headers themselves: a parameter of a type that nothing below knows how to
make is an error, so a new function is called as soon as it is declared. Every call answers with a
status, a failure says why, and every handle can be destroyed at the end; what the memory does is
for the sanitizers to see (`make misuse`). Handles are kept to the end of their sequence: using one
after its end is against the rules, as is a buffer shorter than is said. Works in a folder of its
own, so that any word may be the name of a file.
"""
import argparse
import ctypes
import os
import random
import re
import sys
import tempfile

BORROWED = ("migraphx_argument_buffer", "migraphx_get_onnx_operator_name_at_index")  # char ** that is not the caller's
ROOM = 64  # entries of every array that is handed over
WORDS = ["", "x", "y", "main", "body", "ref", "cpu", "none", "text", "json", "msgpack", "py", "cpp", "graphviz", "relu", "add", "dot",
         "softmax", "convolution", "pointwise", "if", "loop", "literal", "@param", "convert", "reshape", "float_type", "string_type",
         "tuple_type", "int64_type", "{axis: 1}", "{axes: [0, 1]}", "{target_type: 1}", "{", "[1, 2", "{axis: 99999999999999999999}",
         "simplify_algebra", "dead_code_elimination", "avx2", "generic", "file.mxr", "no/such/folder", "\xff\xfe", "n" * 300,
         'module: "main"\nx = @param:x -> float_type, {2}, {1}\ny = relu(x)\n', 'module: "main"\n@0 = @literal{1} -> int8_type, {1}, {0}\n']


def declared(include):
    """(name, [(type, parameter)]) of every function of the C interface."""
    text = ""
    for header in ("migraphx.h", "extensions.h", "host.h"):
        with open(os.path.join(include, "migraphx", header), encoding="utf-8") as f:
            text += re.sub(r"//[^\n]*", "", f.read())
    found = []
    for name, arguments in re.findall(r"MIGRAPHX_C_EXPORT\s+migraphx_status\s+(\w+)\s*\((.*?)\)\s*;", text, re.S):
        arguments = " ".join(arguments.split()).replace("void (*release)(void *owner)", "release_fn release")
        parameters = []
        for p in arguments.split(","):
            match = re.match(r"(.*?)(\w+)$", p.strip())
            parameters.append((match[1].strip(), match[2]) if match else (p.strip(), ""))
        found.append((name, parameters))
    return found


class Sequence:
    def __init__(self, library, seed):
        self.lib, self.r = library, random.Random(seed)
        self.owned, self.borrowed, self.retired, self.kept = {}, {}, [], []
        self.buffer = ctypes.create_string_buffer(1 << 16)

    # --- values by type ---

    def handle(self, kind, const):
        choices = self.owned.get(kind, []) + (self.borrowed.get(kind, []) if const or kind == "module" else [])
        return self.r.choice(choices) if choices and self.r.random() < 0.95 else None

    def array(self, ctype, make):
        made = (ctype * ROOM)(*[make() for _ in range(ROOM)])
        self.kept.append(made)
        return made

    def word(self):
        return self.r.choice(WORDS).encode("latin-1")

    def fits(self, shape):
        size = ctypes.c_size_t()
        return shape and self.lib.migraphx_shape_bytes(ctypes.byref(size), ctypes.c_void_p(shape)) == 0 and size.value <= len(self.buffer)

    def size(self, name):
        if name in ("i", "idx", "index", "value") and self.r.random() < 0.2:
            return self.r.choice([1 << 20, 1 << 31, 1 << 63, (1 << 64) - 1])
        return self.r.randrange(9)

    def number(self, kind, name):
        if kind == "size_t":
            return ctypes.c_size_t(self.size(name))
        if kind == "uint64_t":
            return ctypes.c_uint64(self.r.choice([0, 1, 7, 2**32, 2**64 - 1]))
        if kind == "int64_t":
            return ctypes.c_int64(self.r.choice([0, 1, 2, 5, -1, 1 << 62, -(1 << 63)]))
        if kind == "double":
            return ctypes.c_double(self.r.choice([0, 1, -1, 0.5, 1e300, float("nan")]))
        return ctypes.c_bool(self.r.random() < 0.5)

    def pointer(self, kind, name, made):
        """Arrays of ROOM entries: results go where arguments come from."""
        bare = kind.replace("const ", "").replace("*const", "*").replace(" ", "")
        if bare in ("size_t*", "int64_t*"):
            return self.array(ctypes.c_size_t, lambda: self.r.randrange(5))
        if bare in ("double*", "float*", "bool*", "migraphx_shape_datatype_t*"):
            return self.array(ctypes.c_double, lambda: self.r.random())
        if bare == "char**":
            return self.array(ctypes.c_char_p, lambda: b"n" * 64 if self.r.random() < 0.2 else self.word().ljust(16, b"."))
        if bare in ("size_t**", "void**"):
            return self.array(ctypes.c_void_p, lambda: None)
        if bare == "void*" or bare == "char*":
            needs_room = name in ("buffer", "data", "out")
            return self.buffer if needs_room and (not made.get("shape_seen") or self.fits(made["shape_seen"])) else None
        match = re.match(r"(const_)?migraphx_(\w+)_t\*$", bare)
        return match and self.array(ctypes.c_void_p, lambda: self.handle(match[2], True))

    def argument(self, function, kind, name, made):
        if name == "out" and kind.endswith("*") and not kind.startswith("char *") or kind == "char **":
            return self.array(ctypes.c_void_p, lambda: None)
        if kind == "const char *":
            made["text"] = self.word() if self.r.random() < 0.97 else None
            if name == "buffer":
                return self.buffer if self.fits(made.get("shape_seen")) else None
            return ctypes.c_char_p(made["text"])
        if kind == "size_t" and made.get("text") is not None and name == "size" and function.endswith("_parse"):
            return ctypes.c_size_t(len(made["text"]))
        if kind == "int":
            return ctypes.c_int(self.r.randrange(-1, 30))
        if kind == "float":
            return ctypes.c_float(self.r.choice([0, 1, -1, float("nan")]))
        if kind in ("size_t", "int64_t", "uint64_t", "double", "bool"):
            return self.number(kind, name)
        if kind == "migraphx_shape_datatype_t":
            return ctypes.c_int(self.r.randrange(-1, 40) if self.r.random() < 0.4 else 4)
        match = re.match(r"(const_)?migraphx_(\w+)_t$", kind)
        if match and not match[2].endswith("_callback"):
            value = self.handle(match[2], match[1])
            if match[2] == "shape":
                made["shape_seen"] = value
            return ctypes.c_void_p(value)
        if kind.endswith("*"):
            return self.pointer(kind, name, made)
        if kind == "release_fn" or "callback" in kind or "custom_op_" in kind:
            return ctypes.c_void_p(None)
        raise SystemExit(f"{function}: no value for a parameter of type {kind!r}")

    # --- calls ---

    def retire(self, *kinds):
        for kind in kinds:
            self.retired += [(kind, h) for h in self.owned.pop(kind, [])]

    def keep(self, function, parameters, arguments):
        for (kind, name), value in zip(parameters, arguments):
            match = re.match(r"(const_)?migraphx_(\w+)_t \*$", kind)
            if name == "out" and match and match[2] != "shape_datatype" and value[0]:
                borrowed = match[1] or match[2] in ("module", "context")
                pool = self.borrowed if borrowed else self.owned
                pool.setdefault(match[2], []).append(value[0])
            elif kind == "char **" and function not in BORROWED and value[0]:
                self.lib.migraphx_string_destroy(ctypes.c_void_p(value[0]))

    def call(self, function, parameters):
        made = {}
        arguments = [self.argument(function, kind, name, made) for kind, name in parameters if kind != "..."]
        if function.endswith("_destroy"):
            arguments = [ctypes.c_void_p(None)]
        if function.endswith("_assign_to"):  # what was borrowed of the one that is overwritten is gone
            self.borrowed = {}
            if function.startswith("migraphx_program_a"):
                self.retire("instruction", "instructions", "modules")
        status = getattr(self.lib, function)(*arguments)
        if status == 0:
            self.keep(function, parameters, arguments)
            return True
        text = ctypes.c_char_p()
        self.lib.migraphx_get_last_error(ctypes.byref(text))
        if not text.value:
            raise SystemExit(f"{function}: status {status} without a text")
        return False

    def end(self):
        self.retire(*list(self.owned))
        self.retired.sort(key=lambda entry: entry[0] == "program")  # programs last
        for kind, handle in self.retired:
            if getattr(self.lib, f"migraphx_{kind}_destroy")(ctypes.c_void_p(handle)) != 0:
                raise SystemExit(f"migraphx_{kind}_destroy fails")


def lose_handles(library):
    for _ in range(8):
        handle = ctypes.c_void_p()
        library.migraphx_shape_create_scalar(ctypes.byref(handle), 4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("include")
    parser.add_argument("--sequences", type=int, default=40)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lose", action="store_true", help="some handles on purpose: whoever looks for leaks must find them")
    args = parser.parse_args()
    library = ctypes.CDLL(os.path.abspath(args.library))
    functions = declared(args.include)
    good = {name: 0 for name, _ in functions}
    makers = [f for f in functions if f[0].endswith(("_create", "_create_scalar", "_get_main_module", "_parse"))]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.stdout.flush()
        stdout = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # program_print
        for seed in range(args.seed, args.seed + args.sequences):
            sequence = Sequence(library, seed)
            with open("last", "w", encoding="utf-8") as f:
                f.write(f"{seed}\n")
            for i in range(args.calls):
                name, parameters = sequence.r.choice(makers if i < args.calls // 4 or sequence.r.random() < 0.15 else functions)
                good[name] += sequence.call(name, parameters)
            sequence.end()
        os.dup2(stdout, 1)
        os.chdir("/")
    if args.lose:
        lose_handles(library)
    never = sorted(name for name, count in good.items() if not count)
    print(f"{args.sequences} sequences of {args.calls} calls over {len(functions)} functions, "
          f"{len(functions) - len(never)} of them with success")
    return 0


if __name__ == "__main__":
    sys.exit(main())
