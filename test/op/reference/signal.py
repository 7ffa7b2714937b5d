# SPDX-License-Identifier: MIT
"""dft and random_normal against numpy."""
import numpy as np
from make_cases import D, T


def parts(z):
    return np.stack([z.real, z.imag], -1)


def transforms(w):
    tol = {"float": (2e-5, 2e-5), "double": (1e-11, 1e-11), "half": (2e-2, 5e-3)}
    for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 30, 49):
        for type in ("double",) if n > 8 else ("double", "float", "half"):
            re, both = w.random(type, (2, n, 1)), w.random(type, (2, n, 2))
            z = both.a[..., 0] + 1j * both.a[..., 1]
            w.case("dft[axis=1]", [both], parts(np.fft.fft(z)), tol=tol[type])
            w.case("dft[axis=1]", [re], parts(np.fft.fft(re.a[..., 0])), tol=tol[type])
            w.case("dft[axis=1,onesided=1]", [re], parts(np.fft.rfft(re.a[..., 0])), tol=tol[type])
            w.case("dft[axis=1,inverse=1]", [both], parts(np.fft.ifft(z)), tol=tol[type])
            if n > 1:
                w.case("dft[axis=1,inverse=1,onesided=1]", [both], np.fft.irfft(z)[..., None], tol=tol[type])
    x = w.random("double", (3, 2, 4, 2))
    z = x.a[..., 0] + 1j * x.a[..., 1]
    for axis in (0, 1, 2, -2, -4):
        plain = axis if axis >= 0 else axis + 1
        w.case(f"dft[axis={axis}]", [x], parts(np.fft.fft(z, axis=plain)), tol=tol["double"])
        for n in (3, 6):
            w.case(f"dft[axis={axis}]", [x, T("int64", n, known=True)], parts(np.fft.fft(z, n, axis=plain)), tol=tol["double"])
            w.case(f"dft[axis={axis},inverse=1]", [x, T("int32", [n])], parts(np.fft.ifft(z, n, axis=plain)), tol=tol["double"])
    w.case("dft[axis=2,inverse=1,onesided=1]", [x, T("int64", 5)], np.fft.irfft(z, 5)[..., None], tol=tol["double"])
    x = w.random("double", (1, 97, 1))
    w.case("dft", [x], parts(np.fft.fft(x.a[..., 0])), tol=tol["double"])
    w.case("dft", [T("float", np.zeros((0, 4, 1)))], np.zeros((0, 4, 2)))
    w.case("dft", [T("float", np.zeros((1, 0, 1))), T("int64", 3)], np.zeros((1, 3, 2)))
    x = D("float", (1, 4, "n"), 8, 1)
    w.case("dft", [x], shape="dynamic, float_type, {n[1..4], 8, 2}")
    w.case("dft[onesided=1]", [D("float", 2, (5, 8), 1)], shape="dynamic, float_type, {2, [3..5], 2}")
    w.case("dft[inverse=1,onesided=1]", [D("float", 2, (5, 8), 2)], shape="dynamic, float_type, {2, [8..14], 1}")
    w.case("dft", [D("float", 2, 8, 1), D("int64")], shape="dynamic, float_type, {2, [1..268435456], 2}")
    w.case("dft[axis=2]", [x], fails="axis 2 holds the parts of a number")
    w.case("dft[axis=3]", [x], fails="axis 3 is out of range for rank 3")
    w.case("dft", [D("float", 1, 8, 3)], fails="numbers have 3 parts, not 1 or 2")
    w.case("dft", [D("float", 1, 0, 1)], fails="length 0 is out of range")
    w.case("dft", [D("float", 1, 4, 1), T("int64", 0, known=True)], fails="length 0 is out of range")
    w.case("dft", [D("float", 1, 4, 1), T("int64", 2**40, known=True)], fails="is out of range")
    w.case("dft", [D("float", 1, 4, 1), T("int64", [1, 2], known=True)], fails="input 1 has 2 values, not 1")
    w.case("dft", [T("float", np.zeros((1, 4, 1))), T("int64", -3)], aborts="length -3 is out of range")
    w.case("dft[inverse=1,onesided=1]", [D("float", 1, 1, 2)], fails="length 0 is out of range")
    w.case("dft", [D("int32", 1, 8, 1)], fails="must be of a float type")


def cases(w):
    transforms(w)
    w.case("random_normal", [D("int64", 1), D("half", (1, 4), 3)], shape="dynamic, half_type, {[1..4], 3}")
    w.case("random_normal", [D("int64", 1), D("int32", 3)], fails="must be of a float type")
    w.case("random_normal", [D("int64", 1), D("half", None)], shape="unranked, half_type")
    w.case("random_normal", [T("int64", [5]), T("float", np.zeros((0, 2)))], np.zeros((0, 2)), "float")
