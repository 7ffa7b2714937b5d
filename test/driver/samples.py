# SPDX-License-Identifier: MIT
"""samples.py DRIVER: calibration samples in every form give the same ranges; damaged ones are refused; ranges and
budgets go through files. Without numpy: the files are written here by their formats."""
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

DRIVER = sys.argv[1]
MODEL = """module: "main"
x = @param:x -> float_type, {2, 3}, {3, 1}
y = @param:y -> float_type, {3, 2}, {2, 1}
w = @literal{1, 2, 3, 4, 5, 6} -> float_type, {2, 3}, {3, 1}
a = dot(x, y)
b = dot(a, w)
c = @return(b)
"""
SHAPES = {"y": (3, 2), "x": (2, 3)}  # the order in which this text makes them
random.seed(1)
SAMPLES = [{k: [random.uniform(-2, 2) for _ in range(6)] for k in SHAPES} for _ in range(4)]


def npy(values, shape, kind="<f8"):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}{kind[-2:] == 'f8' and 'd' or 'f'}", *values)


def proto(values, shape):
    dims = b"".join(b"\x08" + bytes([d]) for d in shape)
    return dims + b"\x10\x01" + b"\x4a" + bytes([4 * len(values)]) + struct.pack(f"<{len(values)}f", *values)


def floats(values, shape):
    """float_data instead of raw_data, packed dims."""
    return b"\x0a" + bytes([len(shape), *shape]) + b"\x10\x01" + b"\x22" + bytes([4 * len(values)]) + struct.pack(f"<{len(values)}f", *values)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def npz(path, sample, method, kind="<f4"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as z:
        for k, v in sample.items():
            z.writestr(k + ".npy", npy(v, SHAPES[k], kind))


def quantize(folder, *flags):
    return subprocess.run([DRIVER, "quantize", "--ref", f"{folder}/model.txt", *flags], capture_output=True, text=True, check=False, timeout=60)


def ranges(folder, form):
    done = quantize(folder, "--calibration", f"{folder}/{form}", "--save-ranges", f"{folder}/{form}.ranges")
    assert done.returncode == 0, (form, done.stderr)
    with open(f"{folder}/{form}.ranges", encoding="utf-8") as f:
        return f.read()


def make(folder):
    write(f"{folder}/model.txt", MODEL.encode())
    for i, sample in enumerate(SAMPLES):
        npz(f"{folder}/stored/{i}.npz", sample, zipfile.ZIP_STORED)
        npz(f"{folder}/deflated/{i}.npz", sample, zipfile.ZIP_DEFLATED)
        for number, (k, v) in enumerate(sample.items()):
            write(f"{folder}/named/{i}/{k}.npy", npy(v, SHAPES[k], "<f4"))
            write(f"{folder}/doubles/{i}/{k}.npy", npy([struct.unpack("f", struct.pack("f", e))[0] for e in v], SHAPES[k]))
            write(f"{folder}/raw/test_data_set_{i}/input_{number}.pb", proto(v, SHAPES[k]))
            write(f"{folder}/raw/test_data_set_{i}/output_0.pb", b"not looked at")
            write(f"{folder}/data/test_data_set_{i}/input_{number}.pb", floats(v, SHAPES[k]))


def damaged(folder):
    for form in ("stored", "deflated"):
        with open(f"{folder}/{form}/0.npz", "rb") as f:
            whole = f.read()
        for _ in range(40):
            part = bytearray(whole)
            part[random.randrange(len(part))] ^= 1 << random.randrange(8)
            yield form, bytes(part[:random.randrange(len(part))])
            yield form, bytes(part)


def main():
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        found = {form: ranges(folder, form) for form in ("stored", "deflated", "named", "doubles", "raw", "data")}
        assert len(set(found.values())) == 1, found
        low = min(min(s["x"]) for s in SAMPLES)
        assert f"input 0 {struct.unpack('f', struct.pack('f', low))[0]:.6f}"[:14] in found["raw"], found["raw"]
        for _, part in damaged(folder):  # an error or a sample, never a crash
            write(f"{folder}/bad/0.npz", part)
            assert quantize(folder, "--calibration", f"{folder}/bad").returncode in (0, 1)
        write(f"{folder}/bad/0.npz", b"")
        done = quantize(folder, "--calibration", f"{folder}/bad")
        assert done.returncode == 1 and "is no .npz file" in done.stderr
        done = quantize(folder, "--calibration", f"{folder}/nowhere")
        assert done.returncode == 1 and "samples are folders" in done.stderr
        done = quantize(folder, "--ranges", f"{folder}/raw.ranges", "--save-ranges", f"{folder}/again")
        with open(f"{folder}/again", encoding="utf-8") as f:
            assert f.read() == found["raw"] and done.returncode == 0
        write(f"{folder}/cut", found["raw"][:-30].encode())
        done = quantize(folder, "--ranges", f"{folder}/cut")
        assert done.returncode == 1 and "ranges of a quantization" in done.stderr, done.stderr
        done = quantize(folder, "--calibration", f"{folder}/raw", "--budget", "1", "-o", f"{folder}/q.mxr")
        assert done.returncode == 0 and "error" in done.stdout and "of 1 allowed" in done.stdout, done.stdout + done.stderr
        done = quantize(folder, "--calibration", f"{folder}/raw", "--check", f"{folder}/q.mxr")
        assert done.returncode == 0 and "is within the budget of 1" in done.stdout, done.stdout + done.stderr
        done = quantize(folder, "--calibration", f"{folder}/raw", "-o", f"{folder}/r.mxr")
        done = quantize(folder, "--calibration", f"{folder}/raw", "--check", f"{folder}/r.mxr", "--budget", "1e-9")
        assert done.returncode == 1 and "is above the budget" in done.stdout, done.stdout + done.stderr


if __name__ == "__main__":
    main()
