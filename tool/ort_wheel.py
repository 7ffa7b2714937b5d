# SPDX-License-Identifier: MIT
"""Makes the wheel of the provider for ONNX Runtime: its library, the engine's beside it, and a module that says where they lie.

    python3 tool/ort_wheel.py BUILD OUT      of what is built in BUILD

It depends on nothing, not on onnxruntime either: which version that is, its user says.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mgx_wheel  # noqa: E402

NAME = "onnxruntime_ep_mgx"
DOCUMENT = os.path.join(mgx_wheel.SOURCE, "docs", "hosts.md")
LIBRARIES = ("libmigraphx_ort.so", "libmigraphx_c.so.3")


def metadata():
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    return (f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: {mgx_wheel.version()}\n"
            "Summary: Execution provider for ONNX Runtime: a graph compiler and inference engine in C\n"
            "License: MIT\nLicense-File: LICENSE\nRequires-Python: >=3.9\n"
            "Classifier: License :: OSI Approved :: MIT License\nClassifier: Operating System :: POSIX :: Linux\n"
            "Description-Content-Type: text/markdown\n\n") + text


def collect(build):
    """(path in the wheel, bytes, executable)"""
    with tempfile.TemporaryDirectory() as scratch:
        mgx_wheel.run("cmake", "--install", build, "--prefix", scratch, "--strip", quiet=True)
        for name in LIBRARIES:
            yield f"{NAME}/{name}", mgx_wheel.read(os.path.join(scratch, "lib", name)), True
    module = os.path.join(mgx_wheel.SOURCE, "python", NAME, "__init__.py")
    yield f"{NAME}/__init__.py", mgx_wheel.read(module), False


def build_wheel(build, out):
    files = list(collect(build))
    tag, info = mgx_wheel.platform_tag(files), f"{NAME}-{mgx_wheel.version()}.dist-info"
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag.split("."))
    files += [(f"{info}/METADATA", metadata().encode(), False),
              (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: ort_wheel\nRoot-Is-Purelib: false\n{tags}".encode(), False),
              (f"{info}/LICENSE", mgx_wheel.read(os.path.join(mgx_wheel.SOURCE, "LICENSE")), False)]
    name = f"{NAME}-{mgx_wheel.version()}-py3-none-{tag}.whl"
    mgx_wheel.write_wheel(os.path.join(out, name), files, info)
    return name


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    print(os.path.join(sys.argv[2], build_wheel(sys.argv[1], sys.argv[2])))
