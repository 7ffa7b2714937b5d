# SPDX-License-Identifier: MIT
"""Sequences, optionals, strings, random numbers."""
import numpy as np
from make_cases import D, INTS, Seq, T, Tuple


def sequences(w):
    a, b, c = w.random("float", (2, 3)), w.random("float", (2,)), w.random("float", ())
    s = Seq(a, b, c)
    w.case("sequence_construct", [a, b, c], s)
    w.case("sequence_construct[dtype=5]", [], Seq(type="int8"))
    w.case("sequence_construct", [a, w.random("int8", (2,))], fails="sequence_construct: member 0 is float_type, member 1 is int8_type")
    for i in (0, 2, -1, -3):
        w.case("sequence_at", [s, T("int64", i)], s.items[i])
    for i in (3, -4, 2**62):
        w.case("sequence_at", [s, T("int64", i)], aborts=f"sequence_at: position {i} is out of range for a sequence of 3")
    w.case("sequence_at", [a, T("int64", 0)], fails="sequence_at: input 0 is float_type, not a sequence")
    d = w.random("float", (1,))
    w.case("sequence_insert", [s, d], Seq(a, b, c, d))
    for i, want in [(0, (d, a, b, c)), (3, (a, b, c, d)), (-1, (a, b, d, c))]:
        w.case("sequence_insert", [s, d, T("int32", i)], Seq(*want))
    w.case("sequence_insert", [s, d, T("int32", 4)], aborts="sequence_insert: position 4 is out of range")
    w.case("sequence_erase", [s], Seq(a, b))
    w.case("sequence_erase", [s, T("int64", 0)], Seq(b, c))
    w.case("sequence_erase", [s, T("int64", -2)], Seq(a, c))
    w.case("sequence_erase", [s, T("int64", 3)], aborts="sequence_erase: position 3 is out of range")
    w.case("sequence_erase", [Seq()], aborts="sequence_erase: the sequence is empty")
    w.case("sequence_length", [s], T("int64", 3))
    w.case("sequence_length", [Seq()], T("int64", 0))
    x = w.random("float", (5, 2))
    parts = lambda at, axis=0: Seq(*(T("float", p) for p in np.split(x.a, at, axis)))
    w.case("split_to_sequence[axis=0,keepdims=1]", [x], parts([1, 2, 3, 4]))
    w.case("split_to_sequence[axis=0,keepdims=0]", [x], Seq(*(T("float", r) for r in x.a)))
    w.case("split_to_sequence[axis=0,keepdims=1]", [x, T("int64", 2)], parts([2, 4]))
    w.case("split_to_sequence[axis=0,keepdims=1]", [x, T("int64", [1, 3, 1])], parts([1, 4]))
    w.case("split_to_sequence[axis=-1,keepdims=1]", [x, T("int64", [2, 0])], parts([2], 1))
    w.case("split_to_sequence[axis=0,keepdims=1]", [x, T("int64", [1, 3])], aborts="split_to_sequence: parts add up to 4 of 5")
    w.case("split_to_sequence[axis=0,keepdims=1]", [x, T("int64", [9])], aborts="split_to_sequence: part 0 of size 9 does not fit into 5")
    w.case("split_to_sequence[axis=0,keepdims=1]", [x, T("int64", 0)], aborts="split_to_sequence: size 0 of a part is not positive")
    p, q = w.random("float", (2, 3)), w.random("float", (1, 3))
    w.case("concat_from_sequence[axis=0,new_axis=0]", [Seq(p, q)], T("float", np.concatenate([p.a, q.a])))
    w.case("concat_from_sequence[axis=-1,new_axis=1]", [Seq(p, p)], T("float", np.stack([p.a, p.a], -1)))
    w.case("concat_from_sequence[axis=1,new_axis=0]", [Seq(p, q)], aborts="concat_from_sequence: members 0 and 1 differ in shape")
    w.case("concat_from_sequence[axis=2,new_axis=0]", [Seq(p, q)], aborts="concat_from_sequence: axis 2 is out of range for rank 2")
    # an optional is a tuple of one member or none
    w.case("optional_construct", [a], Tuple(a))
    w.case("optional_construct", [], Tuple())
    w.case("optional_has_element", [Tuple(a)], T("bool", 1))
    w.case("optional_has_element", [Tuple()], T("bool", 0))
    w.case("optional_has_element", [a], T("bool", 1))
    w.case("optional_has_element", [], T("bool", 0))
    w.case("optional_get_element", [Tuple(a)], a)
    w.case("optional_get_element", [Tuple(s)], s)
    w.case("optional_get_element", [a], a)
    w.case("optional_get_element", [Tuple()], fails="optional_get_element: the optional is empty")


def strings(w):
    t = lambda *v: T("string", list(v))
    x, y = t("ab", "", "ä", "x"), t("c", "d", "", "😀")
    w.case("string_concat", [x, y], t("abc", "d", "ä", "x😀"))
    w.case("string_equal", [x, t("ab", "x", "ä", "y")], [1, 0, 1, 0], "bool")
    w.case("string_concat", [x, w.random("float", (4,))], fails="string_concat: input 1 is float_type, not string_type")
    words = t("a.b.c", "", "no", ".x.")
    split = lambda rows, n: Tuple(T("string", np.array([r + [""] * (n - len(r)) for r in rows], dtype=object).reshape(len(rows), n)), T("int64", [len(r) for r in rows]))
    w.case("string_split[delimiter=.,maxsplit=-1]", [words], split([v.split(".") for v in words.raw], 3))
    w.case("string_split[delimiter=.,maxsplit=1]", [words], split([v.split(".", 1) for v in words.raw], 2))
    words = t("  a b  c ", "", "one", "a\tb")
    w.case("string_split[delimiter=,maxsplit=-1]", [words], split([v.split() for v in words.raw], 3))
    words = t("  a b  c", "", "one", "a\tb")
    w.case("string_split[delimiter=,maxsplit=1]", [words], split([v.split(None, 1) for v in words.raw], 2))
    days = t("monday", "Tuesday", "ÄRGER", "monday")
    n = "string_normalizer[case_change_action=%s,is_case_sensitive=%d,stopwords={%s}]"
    w.case(n % ("UPPER", 1, ""), [days], t("MONDAY", "TUESDAY", "ÄRGER", "MONDAY"))
    w.case(n % ("LOWER", 1, "monday"), [days], t("tuesday", "ärger"))
    w.case(n % ("NONE", 0, "TUESDAY"), [days], t("monday", "ÄRGER", "monday"))
    w.case(n % ("NONE", 1, "TUESDAY"), [days], days)
    w.case(n % ("NONE", 1, "monday"), [T("string", [["monday", "monday"]])], T("string", [[""]]))
    w.case("regex_full_match[pattern=a+b?]", [t("a", "aab", "b", "", "aabb")], [1, 1, 0, 0, 0], "bool")
    w.case("regex_full_match[pattern=(a]", [t("a")], fails="")
    two = T("string", np.array([["ab, c", "d"]], object))
    w.case("tokenizer[separators={\", \"},tokenexp=,pad_value=#,mincharnum=1,mark=0]", [two],
           T("string", np.array([[["ab", "c"], ["d", "#"]]], object)))
    w.case("tokenizer[separators={},tokenexp=(a|b|c)+,pad_value=#,mincharnum=2,mark=1]", [t("abc a", "dcb")],
           T("string", np.array([["\x02", "abc", "\x03"], ["\x02", "cb", "\x03"]], object)))
    w.case("tokenizer[separators={\"x\"},tokenexp=,pad_value=,mincharnum=1,mark=1]", [t("x", "")],
           T("string", np.zeros((2, 0), object)))
    w.case("tokenizer[tokenexp=a]", [D("float", 2)], fails="input 0 is float_type, not string_type")
    w.case("tokenizer", [t("a")], fails="neither separators nor an expression")
    w.case("tokenizer[tokenexp=a]", [D("string", 3)], shape="dynamic, string_type, {3, [0..]}")
    # The hashes that MurmurHash3's own tests give for these texts.
    w.case("murmur_hash[seed=0]", [t("", "a", "abc", "Hello, world!")], [0, 0x3C2569B2, 0xB3DD93FA, 0xC0363E43], "uint32")
    w.case("murmur_hash[seed=1,positive=0]", [t("")], [0x514E28B7], "int32")
    w.case("murmur_hash", [T("int32", [3])], [847579505], "uint32")
    w.case("murmur_hash", [D("half", 3)], fails="takes integers, floats and strings, not half_type")


def random(w):
    weights = np.array([[1.0, 3.0, 0.0, 6.0], [0.0, 0.0, 1.0, 0.0]])
    cdf = np.cumsum(weights, 1)
    u = np.array([[0.0, 0.0999, 0.1, 0.3999, 0.4, 0.99], [0.0, 0.1, 0.2, 0.5, 0.9, 0.9999]])
    want = [[int(np.searchsorted(c, v * c[-1], "right")) for v in r] for c, r in zip(cdf, u)]
    w.case("multinomial[dtype=8]", [T("double", cdf), T("double", u)], want, "int32")
    w.case("multinomial[dtype=9]", [T("double", cdf), T("double", u)], want, "int64")
    w.case("random_uniform", [D("uint64", None), D("half", 2)], shape="unranked, half_type")
    w.case("random_uniform", [T("uint64", [7]), D("half", 2, 3)], shape="half_type, {2, 3}, {3, 1}")
    mersenne = np.random.RandomState(1234567).rand(4, 320)  # beyond one turn of the state
    w.case("random_mersenne", [T("uint64", [1234567]), D("double", 4, 320)], shape="double_type, {4, 320}, {320, 1}")
    w.case("random_mersenne", [T("uint64", [1234567]), T("double", np.zeros((4, 320)))], mersenne, "double")
    w.case("random_mersenne", [T("uint64", [1]), D("float", 2)],
           fails="random_mersenne: input 1 is float_type, not double_type")
    w.case("random_seed", [], shape="uint64_type, {1}, {1}")
    uniform(w)


def uniform(w):
    """As libstdc++ draws from std::mt19937; numpy's generator has the same words."""
    def words(seed, n):
        return np.random.RandomState(seed).randint(0, 2**32, n, np.uint32).astype(np.uint64)

    def real(seed, n):
        pairs = words(seed, 2 * n).astype(np.float64).reshape(n, 2)
        return (pairs[:, 0] + pairs[:, 1] * 2.0**32) / 2.0**64

    for kind in ("float", "double"):
        like = T(kind, np.zeros((3, 130)))
        w.case("random_uniform", [T("uint64", [5489]), like], real(5489, 390).reshape(3, 130), kind)
    w.case("random_uniform", [T("float", [7.9]), T("float", np.zeros(5))], real(7, 5), "float")
    w.case("random_uniform", [T("int32", [9]), T("uint16", np.zeros(6))], words(9, 6) >> 16, "uint16")
    w.case("random_uniform", [T("int32", [9]), T("int32", np.zeros(6))], words(9, 6) >> 1, "int32")
    pairs = words(3, 8).reshape(4, 2)
    w.case("random_uniform", [T("int64", [3]), T("int64", np.zeros(4))], pairs[:, 0] >> 1 << 32 | pairs[:, 1], "int64")


def cases(w):
    sequences(w)
    strings(w)
    random(w)
