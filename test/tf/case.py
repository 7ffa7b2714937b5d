# SPDX-License-Identifier: MIT
"""What a case is: a name, a function of TensorFlow, makers of its inputs. make.py runs them.

Each case traces its function with the inputs as placeholders x0, x1, ... Random inputs come from the case's name, so
that a case is the same wherever it stands. A case named in QUICK is kept in the repository."""
import zlib

import numpy as np
import tensorflow as tf

R = tf.raw_ops
CASES = {}
QUICK = set()
LOWERED = set()  # control flow as Switch and Merge
CALLS = set()  # functions stay calls; there are no variables
EDITED = {}  # name: what makes the GraphDef that is kept of the one that ran: the same in nodes that TensorFlow runs no more
OPTIONAL = set()  # TensorFlow itself may know no kernel for the type


def rng(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def f(*shape, low=-2.0, high=2.0, dtype=np.float32):
    return lambda r: r.uniform(low, high, shape).astype(dtype)


def i(*shape, low=-5, high=6, dtype=np.int32):
    return lambda r: r.integers(low, high, shape).astype(dtype)


def b(*shape):
    return lambda r: r.integers(0, 2, shape).astype(bool)


def given(*values, dtype=np.float32):
    return lambda r: np.array(values, dtype)


def case(name, function, *inputs, quick=False):
    assert name not in CASES, name
    CASES[name] = (function, inputs)
    if quick:
        QUICK.add(name)


def weights(*shape, seed=0, dtype=np.float32):
    return tf.constant(np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype))


def internal(op, inputs, **attributes):
    """A node that only TensorFlow's optimiser writes."""
    def value(v):
        attr = tf.compat.v1.AttrValue()
        if isinstance(v, list) and isinstance(v[0], tf.DType):
            attr.list.type.extend([e.as_datatype_enum for e in v])
        elif isinstance(v, list):
            (attr.list.s if isinstance(v[0], str) else attr.list.i).extend([e.encode() if isinstance(e, str) else e for e in v])
        elif isinstance(v, str):
            attr.s = v.encode()
        elif isinstance(v, float):
            attr.f = v
        elif isinstance(v, int):
            attr.i = v
        else:
            attr.type = v.as_datatype_enum
        return attr
    graph = tf.compat.v1.get_default_graph()
    return graph.create_op(op, inputs, [tf.float32], attrs={k: value(v) for k, v in attributes.items()}, name="fused").outputs[0]
