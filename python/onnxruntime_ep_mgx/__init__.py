# SPDX-License-Identifier: MIT
"""The engine as an execution provider of ONNX Runtime 1.24 and newer.

    import onnxruntime as ort
    import onnxruntime_ep_mgx as mgx

    ort.register_execution_provider_library("mgx", mgx.get_library_path())
    options = ort.SessionOptions()
    options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == mgx.get_ep_name()], {})

Importing it loads nothing and needs no package.
"""
import os

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path():
    """The library that ONNX Runtime registers."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "..", "migraphx_prefix", "lib"), os.path.join(here, ".."), os.path.join(here, "..", "..", "lib")):
        path = os.path.normpath(os.path.join(folder, "libmigraphx_ort.so"))
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"libmigraphx_ort.so is not beside {here}")


def get_ep_name():
    """The provider's own name, by which sessions find it."""
    return "MgxExecutionProvider"


def get_ep_names():
    """All names that a registered library offers."""
    return ["MgxExecutionProvider", "MIGraphXExecutionProvider"]
