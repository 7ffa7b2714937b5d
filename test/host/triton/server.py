# SPDX-License-Identifier: MIT
"""Triton Inference Server with this backend, from the wheels that `make venv` puts into a folder: for tests and measurements.

    with Server(repository) as server:
        client = server.client()            # tritonclient.grpc
        server.get("/v2/models/m/config")   # JSON over HTTP

It listens on loopback alone, on ports that are free, and ends with its block. The library and the engine's are copied into a
folder of backends, under each name that it may have.
"""
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.environ.get("MGX_TRITON_PACKAGES", os.path.join(HERE, "..", "..", "..", "build", "triton"))
LIBRARY = os.environ.get("MGX_TRITON_LIBRARY", os.path.join(HERE, "..", "..", "..", "build", "lib", "libtriton_migraphx.so"))
BINARY = os.path.join(PACKAGES, "pytriton", "tritonserver", "bin", "tritonserver")
if PACKAGES not in sys.path:
    sys.path.append(PACKAGES)


def missing():
    """Why no server can start here; None: one can."""
    if not os.path.exists(BINARY):
        return f"no tritonserver in {PACKAGES} (tool/triton.txt)"
    os.chmod(BINARY, os.stat(BINARY).st_mode | stat.S_IXUSR)
    done = subprocess.run([BINARY, "--help"], env=environment(), capture_output=True, text=True)
    if "--model-repository" not in done.stdout + done.stderr:
        return "the tritonserver of the wheel does not run here: " + done.stderr[-200:]
    return None


def environment(extra=()):
    libraries = os.path.join(PACKAGES, "nvidia_pytriton.libs")
    return {**os.environ, "LD_LIBRARY_PATH": libraries + os.pathsep + os.environ.get("LD_LIBRARY_PATH", ""), **dict(extra)}


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def make_backends(folder, names=("migraphx",)):
    """A folder of backends: this one under each name."""
    for name in names:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        shutil.copy(LIBRARY, os.path.join(folder, name, f"libtriton_{name}.so"))
        shutil.copy(os.path.join(os.path.dirname(LIBRARY), "libmigraphx_c.so.3"), os.path.join(folder, name))
    return folder


def add_python(folder):
    """The server's own backend for models in Python, with the process of this interpreter's version."""
    parts = os.path.join(PACKAGES, "pytriton", "tritonserver")
    version = "%d.%d" % sys.version_info[:2]
    shutil.copytree(os.path.join(parts, "backends", "python"), os.path.join(folder, "python"))
    shutil.copy(os.path.join(parts, "python_backend_stubs", version, "triton_python_backend_stub"), os.path.join(folder, "python"))


class Server:
    """`options` go to the server as they are, `names` are those that the backend has."""

    def __init__(self, repository, options=(), names=("migraphx",), environment=(), wait=60, python=False):
        self.repository, self.options, self.names, self.extra, self.wait = repository, options, names, environment, wait
        self.python = python
        self.process = self.folder = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="mgx-triton-")
        self.backends = make_backends(os.path.join(self.folder, "backends"), self.names)
        try:
            if self.python:
                add_python(self.backends)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.http, self.grpc, self.metrics = free_ports(3)
        self.log = os.path.join(self.folder, "log")
        caches = os.path.join(PACKAGES, "pytriton", "tritonserver", "caches")
        command = [BINARY, "--model-repository", self.repository, "--backend-directory", self.backends,
                   "--cache-directory", caches, "--http-address", "127.0.0.1", "--grpc-address", "127.0.0.1",
                   "--metrics-address", "127.0.0.1", "--http-port", str(self.http), "--grpc-port", str(self.grpc),
                   "--metrics-port", str(self.metrics), "--exit-on-error", "false", "--exit-timeout-secs", "5", *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(self.extra), cwd=self.folder)
        end = time.monotonic() + self.wait
        while not self.answers("/v2/health/live"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the server did not start:\n" + self.said()[-4000:])
            time.sleep(0.01)

    def stop(self, kill=False):
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process = None

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def frames_of_end(self):
        """The libraries of the stack that a server prints when a signal ends it, the newest call first."""
        self.process.wait(30)
        return re.findall(r"^ *\d+# 0x[0-9A-F]+ in (\S+)", self.said(), re.MULTILINE)

    def answers(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def get(self, path, body=None, port=None):
        """JSON, or text where it is none; an error of the server's is a RuntimeError with its words."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.http}{path}", data=data)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                text = reply.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def post(self, path, body):
        return self.get(path, body=body)

    def client(self):
        import tritonclient.grpc as grpc
        return grpc.InferenceServerClient(f"127.0.0.1:{self.grpc}")

    def infer(self, model, client=None, outputs=None, **arrays):
        """Numpy arrays in and out."""
        import tritonclient.grpc as grpc
        from tritonclient.utils import np_to_triton_dtype
        inputs = []
        for name, array in arrays.items():
            one = grpc.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            one.set_data_from_numpy(array)
            inputs.append(one)
        wanted = [grpc.InferRequestedOutput(name) for name in outputs] if outputs else None
        reply = (client or self.client()).infer(model, inputs, outputs=wanted, client_timeout=60)
        return {one.name: reply.as_numpy(one.name) for one in reply.get_response().outputs}

    def statistics(self, model):
        return self.get(f"/v2/models/{model}/stats")["model_stats"][0]

    def resident(self):
        """Bytes of memory that the server holds."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def write_model(repository, name, content, config="", version=1, file="model.onnx"):
    """A folder of one model: an onnx.ModelProto, bytes, or a function that writes the file whose path it gets."""
    folder = os.path.join(repository, name, str(version))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file)
    if callable(content):
        content(path)
    else:
        with open(path, "wb") as out:
            out.write(content if isinstance(content, bytes) else content.SerializeToString())
    if config:
        with open(os.path.join(repository, name, "config.pbtxt"), "w", encoding="utf-8") as out:
            out.write(config)
    return path


def compiled_files(folder):
    return sorted(glob.glob(os.path.join(folder, "**", "compiled-*.mxr*"), recursive=True))
