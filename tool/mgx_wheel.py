# SPDX-License-Identifier: MIT
"""Makes the Python wheel: what `pip install .` and `pip wheel .` call (PEP 517), from the standard library alone.

The wheel is an installed prefix, taken apart: the module, its stubs, its modules in Python and onnx_migraphx go where Python
finds them, all the rest into the package migraphx_prefix beside them, where the module's run path expects the library. Its tag is read
off the binaries: the newest glibc that one of them names.

    pip wheel .                                  builds in build-wheel/
    pip wheel . --config-settings=build=build    takes what is built in build/
    python3 tool/mgx_wheel.py build OUT          the same, without pip
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PREFIX = "migraphx_prefix"
PYTHON_PARTS = ("migraphx.abi3.so", "migraphx.pyi", "onnx_migraphx", "migraphx_modules")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same tree gives the same file


def version():
    with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(migraphx VERSION ([0-9.]+)", file.read(), re.M).group(1)


def metadata():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: migraphx\nVersion: {version()}\n"
            "Summary: Graph compiler and inference engine with the interface of MIGraphX\n"
            "License: MIT\nLicense-File: LICENSE\nRequires-Python: >=3.9\n"
            "Classifier: License :: OSI Approved :: MIT License\n"
            "Classifier: Operating System :: POSIX :: Linux\n"
            "Classifier: Programming Language :: C\n"
            "Classifier: Programming Language :: Python :: 3\n"
            "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
            "Provides-Extra: text\nRequires-Dist: tokenizers; extra == 'text'\nRequires-Dist: jinja2; extra == 'text'\n"
            "Provides-Extra: ray\nRequires-Dist: ray[data,serve]; extra == 'ray'\nRequires-Dist: numpy; extra == 'ray'\n"
            "Description-Content-Type: text/markdown\n\n") + readme


# --- what lies in the wheel ---

PREFIX_INIT = '''\
# SPDX-License-Identifier: MIT
"""The C side of this installation: PATH holds include/, lib/ (library, CMake package, pkg-config) and bin/.

    cmake -DCMAKE_PREFIX_PATH=$(python -m migraphx_prefix) ..
    cc demo.c $(PKG_CONFIG_PATH=$(python -m migraphx_prefix)/lib/pkgconfig pkg-config --cflags --libs migraphx)
"""
import os
import sys

PATH = os.path.dirname(os.path.abspath(__file__))


def driver():
    """Becomes migraphx-driver with the arguments of this process."""
    program = os.path.join(PATH, "bin", "migraphx-driver")
    os.execv(program, [program] + sys.argv[1:])
'''
PREFIX_MAIN = "# SPDX-License-Identifier: MIT\nfrom . import PATH\n\nprint(PATH)\n"
ENTRY_POINTS = ("[console_scripts]\nmigraphx-driver = migraphx_prefix:driver\n"
                "[torch_dynamo_backends]\n" + "".join(f"{name} = migraphx.torch:backend\n" for name in
                                                      ("migraphx", "migraphx_pretraced", "migraphx_aot")))


def run(*command, quiet=False):
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL if quiet else sys.stderr)


def is_writable(folder):
    return os.access(folder, os.W_OK)


def built(settings, scratch):
    """The build folder: the one given, as it is, or one that is brought up to date here."""
    given = (settings or {}).get("build")
    if given:
        return os.path.abspath(given)
    folder = os.path.join(SOURCE if is_writable(SOURCE) else scratch, "build-wheel")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    fresh = not os.path.exists(os.path.join(folder, "CMakeCache.txt"))
    run("cmake", "-S", SOURCE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DMGX_WERROR=OFF", *(generator if fresh else []))
    print("migraphx: building the engine, some minutes of processor time", file=sys.stderr, flush=True)
    run("cmake", "--build", folder, "--target", "release", f"-j{os.cpu_count() or 1}")
    return folder


def read(path):
    with open(path, "rb") as file:
        return file.read()


def unlink_names(path, data):
    """A wheel holds no symbolic links: the library keeps its soname alone, and the linker is told in a text file."""
    if path.startswith("lib/cmake/"):
        return data.replace(b"libmigraphx_c.so.3.0", b"libmigraphx_c.so.3")
    return data


def collect(prefix):
    """Yields (path in the wheel, bytes, executable) for every file of an installed prefix."""
    for folder, folders, names in os.walk(prefix):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(folder, name)
            path = os.path.relpath(full, prefix)
            parts = path.split(os.sep)
            if parts[0] == "lib" and parts[1] in PYTHON_PARTS:
                stub = {"migraphx.pyi": "__init__.pyi", "generate.pyi": "generate.pyi"}.get(name)
                target = f"migraphx-stubs/{stub}" if stub else "/".join(parts[1:])
            elif path == "lib/libmigraphx_c.so":
                yield f"{PREFIX}/{path}", b"INPUT(libmigraphx_c.so.3)\n", False
                continue
            elif path == "lib/libmigraphx_c.so.3.0":
                continue
            else:
                target = f"{PREFIX}/{path}"
            yield target, unlink_names(path, read(full)), os.access(full, os.X_OK)
    yield f"{PREFIX}/__init__.py", PREFIX_INIT.encode(), False
    yield f"{PREFIX}/__main__.py", PREFIX_MAIN.encode(), False


def platform_tag(files):
    """The newest glibc that a binary names decides; what names none, or another machine, gets the plain tag."""
    plain = re.sub(r"[-.]", "_", sysconfig.get_platform())
    binaries = [data for _, data, _ in files if data[:4] == b"\x7fELF"]
    versions = [int(v) for data in binaries for v in re.findall(rb"GLIBC_2\.(\d+)", data)]
    if not versions or not plain.startswith("linux_"):
        return plain
    machine = plain[len("linux_"):]
    newest = max(max(versions), 17 if machine == "x86_64" else 0)
    old_name = f".manylinux2014_{machine}" if newest == 17 else ""
    return f"manylinux_2_{newest}_{machine}{old_name}"


# --- writing archives ---

def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(path, files, info):
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, executable in files:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, data)
            record.append(f"{name},{digest(data)},{len(data)}\n")
        record.append(f"{info}/RECORD,,\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", EPOCH), "".join(record))


def dist_info(tag):
    info = f"migraphx-{version()}.dist-info"
    tags = "".join(f"Tag: cp39-abi3-{one}\n" for one in tag.split(".") if one)
    wheel = f"Wheel-Version: 1.0\nGenerator: mgx_wheel\nRoot-Is-Purelib: false\n{tags}"
    return info, [(f"{info}/METADATA", metadata().encode(), False), (f"{info}/WHEEL", wheel.encode(), False),
                  (f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False),
                  (f"{info}/LICENSE", read(os.path.join(SOURCE, "LICENSE")), False)]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        build = built(config_settings, scratch)
        prefix = os.path.join(scratch, "prefix")
        run("cmake", "--install", build, "--prefix", prefix, "--strip", quiet=True)
        files = list(collect(prefix))
    tag = platform_tag(files)
    info, more = dist_info(tag)
    name = f"migraphx-{version()}-cp39-abi3-{tag}.whl"
    write_wheel(os.path.join(wheel_directory, name), files + more, info)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip wants to know first; without it pip builds the engine for this, under a line that reads "Preparing metadata"."""
    info, files = dist_info("")
    for name, data, _ in files:
        path = os.path.join(metadata_directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return info


def get_requires_for_build_wheel(config_settings=None):
    """What this machine lacks and PyPI has; a C compiler it must have itself."""
    return [] if shutil.which("cmake") else ["cmake>=3.21", "ninja"]


def build_sdist(sdist_directory, config_settings=None):
    """The files that git tracks, with the metadata that an archive of sources carries."""
    base = f"migraphx-{version()}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, check=True, capture_output=True).stdout
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in filter(None, listed.decode().split("\0")):
            archive.add(os.path.join(SOURCE, name), f"{base}/{name}")
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(metadata())
            file.flush()
            archive.add(file.name, f"{base}/PKG-INFO")
    return base + ".tar.gz"


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    print(os.path.join(sys.argv[2], build_wheel(sys.argv[2], {"build": sys.argv[1]})))
