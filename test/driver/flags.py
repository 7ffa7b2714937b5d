# SPDX-License-Identifier: MIT
"""flags.py DRIVER: every verb takes every flag that MIGraphX's driver takes there, spelt the same, with as many words."""
import subprocess
import sys

LOADER = """--test; --onnx; --tf; --migraphx; --migraphx-json; --batch 1; --nhwc; --nchw; --skip-unknown-operators;
    --debug-symbols; -t 1; --trim 1; -s 1; --trim-size 1; --input-dim @x 1 3 @y 2; --dim-param @n 2;
    --dim-param @n {min:1,max:4,optimals:[2]}; --dyn-input-dim @x [{min:1,max:4,optimals:[2]},3,24,24];
    --default-dyn-dim {min:1,max:4}; --output-names a b; -O; --optimize; -p auto_contiguous;
    --apply-pass dead_code_elimination; --mlir; --replace-literals; --strip-context"""
OUTPUT = """-g; --graphviz; --cpp; --py; --python; --json; --text; --binary; --netron; --brief; -o f; --output f"""
COMPILE = """--fill0 x y; --fill1 x y; --load-arg @x f; --gpu; --cpu; --ref; --enable-offload-copy; --disable-fast-math;
    --exhaustive-tune; --fp16; --bf16; --int8; --fp8; --int4-weights"""
COMMON = """-h; --help; --log-level debug; --log-level 3; --log-file f g"""
COUNT = "-n 1; --iterations 1"
VERIFY = """--rms-tol 0.1; --atol 0.1; --rtol 0.1; -i; --per-instruction; -r; --reduce; -b; --bisect; --ref-use-double;
    -c f; --compiled-model f"""
VERBS = {
    "read": [LOADER, OUTPUT], "compile": [LOADER, OUTPUT, COMPILE], "run": [LOADER, COMPILE],
    "time": [LOADER, COMPILE, COUNT], "perf": [LOADER, COMPILE, COUNT, "-d; --detailed"],
    "verify": [LOADER, COMPILE, VERIFY], "params": [LOADER], "roctx": [LOADER, COMPILE],
    "op": ["-l; --list; relu"], "onnx": ["-l; --list"], "tf": ["-l; --list"],
}


def refused(command):
    done = subprocess.run([sys.argv[1], *command], capture_output=True, text=True, check=False)
    return f"{' '.join(command)}: {done.stderr.strip()}" if done.returncode or done.stderr else None


def main():
    commands = [["--help"], ["-h"], ["--version"], ["-v"], ["--ort-sha"], []]
    for verb, tables in VERBS.items():
        for entry in "; ".join(tables + [COMMON]).split(";"):
            commands.append([verb, *entry.split(), "--help"]) # which parses all and does nothing
    found = list(filter(None, map(refused, commands)))
    print("\n".join(found) or f"{len(commands)} command lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
