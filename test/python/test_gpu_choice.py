# SPDX-License-Identifier: MIT
"""The next token on a card beside the reference's rule, on scores that are drawn: every kind of cut, ties, penalties, biases, words forbidden.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many draws of each.
"""
import os

from card import needs_card, some  # first: it says which card
import migraphx
import numpy as np
import pytest

pytestmark = needs_card
CASES = int(os.environ.get("MGX_CASES", "12"))
TEMPERATURE, TOP_K, TOP_P, MIN_P, REPETITION, DRAW, SEEN, BIASED, KNOBS = range(9)
TEXTS, ROOM = 3, 64


class Chooser:
    """The operator for so many words, on a card and by its reference."""

    def __init__(self, words, type, tokens):
        self.words, self.type, self.tokens = words, type, tokens
        self.programs = [self.build(target) for target in ("gpu", "ref")]

    def build(self, target):
        p = migraphx.program()
        m, S = p.get_main_module(), migraphx.shape
        scores = [TEXTS, self.tokens, self.words] if self.tokens else [TEXTS, self.words]
        inputs = [m.add_parameter("scores", S(type=self.type, lens=scores)), m.add_parameter("knobs", S(type="double_type", lens=[TEXTS, KNOBS])),
                  m.add_parameter("seen", S(type="int32_type", lens=[TEXTS, ROOM])), m.add_parameter("bias", S(type="float_type", lens=[TEXTS, self.words]))]
        m.add_return([m.add_instruction(migraphx.op("choose_token"), inputs)])
        p.compile(migraphx.get_target(target))
        return p

    def check(self, feed):
        card, right = (np.asarray(p.run(feed)[0]) for p in self.programs)
        assert card.tolist() == right.tolist(), feed["knobs"]
        return right


@pytest.fixture(scope="module", params=some([(9000, "half_type", 2), (50, "float_type", 0)]), ids=str)
def chooser(request):
    return Chooser(*request.param)


def feed(c, rng, spread=3.0, **knobs):
    shape = [TEXTS, c.tokens, c.words] if c.tokens else [TEXTS, c.words]
    scores = (rng.standard_normal(shape) * spread).astype(np.float16 if c.type == "half_type" else np.float32)
    table = np.zeros((TEXTS, KNOBS))
    table[:, [TOP_P, REPETITION]] = 1
    for name, value in knobs.items():
        table[:, globals()[name.upper()]] = value
    table[:, DRAW] = rng.random(TEXTS)
    seen = np.stack([rng.permutation(c.words)[:ROOM] if c.words >= ROOM else np.resize(rng.permutation(c.words), ROOM) for _ in range(TEXTS)])
    bias = rng.standard_normal((TEXTS, c.words)).astype(np.float32)
    bias[rng.random(bias.shape) < 0.3] = -np.inf
    return {"scores": scores, "knobs": table, "seen": seen.astype(np.int32), "bias": bias}


RULES = {
    "best": {},
    "all": {"temperature": 0.8},
    "first": {"temperature": 1.0, "top_k": 7},
    "nucleus": {"temperature": 0.7, "top_p": 0.9},
    "both": {"temperature": 1.5, "top_k": 40, "top_p": 0.6},
    "small": {"temperature": 1.0, "min_p": 0.1},
    "penalty": {"temperature": 0.9, "repetition": 1.3, "seen": 40},
    "penalised_best": {"repetition": 4.0, "seen": 30},
    "biased": {"temperature": 1.0, "biased": 1, "top_p": 0.95},
    "everything": {"temperature": 2.0, "top_k": 100, "top_p": 0.8, "min_p": 0.01, "repetition": 0.8, "seen": 20, "biased": 1},
}


@pytest.mark.parametrize("rule", RULES)
def test_tokens_are_the_rules(chooser, rule):
    rng, drawn = np.random.default_rng([7, len(rule)]), set()
    for _ in range(CASES):
        tokens = chooser.check(feed(chooser, rng, **RULES[rule]))
        assert (tokens >= 0).all()
        drawn |= set(tokens.tolist())
    assert len(drawn) > 3


def test_of_equal_scores_the_first(chooser):
    """Whole numbers: many words weigh the same, also where a cut falls."""
    rng = np.random.default_rng(9)
    for knobs in ({}, {"temperature": 1.0, "top_k": 5}, {"temperature": 1.0, "top_p": 0.5}):
        for _ in range(CASES):
            f = feed(chooser, rng, **knobs)
            f["scores"] = np.round(f["scores"] * 2)
            card, right = (np.asarray(p.run(f)[0]) for p in chooser.programs)
            assert all(a == b or a == -2 for a, b in zip(card, right))  # -2: too many alike, the host chooses
            assert chooser.words > 1000 or (card != -2).all()


def test_no_choice(chooser):
    rng = np.random.default_rng(11)
    for bad in (np.nan, np.inf):
        for temperature in (0.0, 1.0):
            f = feed(chooser, rng, temperature=temperature)
            f["scores"][1, ..., chooser.words - 3] = bad
            assert chooser.check(f)[1] == -1
    f = feed(chooser, rng, temperature=1.0)
    f["scores"][2] = -np.inf
    assert chooser.check(f)[2] == -1
    f["scores"][2, ..., 31] = -5
    assert chooser.check(f)[2] == 31
