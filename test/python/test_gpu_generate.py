# SPDX-License-Identifier: MIT
"""Text on a card beside text on the CPU: caches in the card's memory, written in place, copied, outgrown and taken back.

Few sizes run, for each is kernels to compile: one text by 1 and 16 tokens, two texts by 1, whatever the room.
"""
from card import needs_card  # first: it says which card
import migraphx
import numpy as np
import pytest

import decoders

pytestmark = needs_card
WORDS, ROOM = 50, 128


class Both:
    """One model on a card and on the CPU, whose texts go the same way."""

    def __init__(self, folder, context=0):
        self.models = [migraphx.generator(folder, target=target, piece=16, context=context) for target in ("gpu", "cpu")]
        self.use()

    def use(self):
        self.sides = [model.share() for model in self.models]
        return self

    def __getattr__(self, name):
        def call(*args, **settings):
            card, host = (getattr(side, name)(*args, **settings) for side in self.sides)
            assert card == host
            return card
        return call

    def check(self, *texts):
        for text in texts:
            card, host = (np.asarray(side.logits(text)) for side in self.sides)
            assert np.abs(card - host).max() <= 2e-5 * np.abs(host).max()

    def statistics(self):
        return self.sides[0].statistics()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("room"))
    decoders.save(path, "room", layers=1, width=32, heads=2, shared=1)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return Both(folder)


@pytest.fixture
def both(model):
    return model.use()


def some(count, seed=0):
    return np.random.default_rng(seed).integers(0, WORDS, count).tolist()


def test_a_prompt_in_pieces_then_tokens(both):
    text = both.add()
    for size in (7, 1, 16, 35):  # filled up, exact, and in three runs of which the last is filled up
        both.append(text, some(size, size))
        both.check(text)
    for _ in range(6):
        both.next([text])
    both.check(text)
    statistics = both.statistics()
    assert statistics["state_bytes"] == 2 * ROOM * 16 * 4  # of one layer: nothing was copied to another place


def test_a_text_goes_back_and_on(both):
    text = both.add()
    both.append(text, some(30))
    first = [both.next([text]) for _ in range(6)]
    both.rewind(text, 31)
    assert [both.next([text]) for _ in range(5)] == first[1:]
    both.rewind(text, 4)
    both.append(text, some(3, 3))
    both.check(text)
    both.rewind(text, 0)
    both.append(text, some(4, 4))
    both.check(text)


def test_a_room_doubles(both):
    text = both.add()
    both.append(text, some(ROOM - 3))  # its rows that fill up have no place already
    both.check(text)
    for _ in range(6):
        both.next([text])
    both.append(text, some(20, 1))
    both.check(text)
    assert both.statistics()["state_bytes"] == 2 * 2 * ROOM * 16 * 4


def test_texts_come_and_go(both):
    a, b = both.add(), both.add()
    both.append(a, some(9, 1))
    both.append(b, some(4, 2))
    for _ in range(4):
        both.next([a, b])
    both.rewind(a, 10)  # in the middle of a batch
    both.next([b, a])
    both.next([a])
    both.next([a, b])
    both.check(a, b)
    both.remove(b)
    b = both.add()
    both.append(b, some(1, 3))
    for _ in range(3):
        both.next([a, b])
    both.check(a, b)


def test_a_copy_and_what_it_is_of_both_go_on(both):
    a = both.add()
    both.append(a, some(12))
    both.next([a])
    both.check(a)
    held = both.statistics()["state_bytes"]
    b, c = both.fork(a, 13), both.fork(a, 5)
    both.append(a, some(2, 1))
    both.check(a)
    assert both.statistics()["state_bytes"] == held  # who stands at the end goes on in place
    both.append(b, some(2, 2))
    both.append(c, some(2, 3))
    both.check(b, c, a)
    for _ in range(3):
        both.next([a, b])
    both.next([c])
    both.check(a, b, c)


def test_sampling_is_the_same(both):
    text = both.add()
    both.append(text, some(5))
    both.set_sampling(text, temperature=1, top_k=20, seed=3)
    for _ in range(8):
        both.next([text])


def test_no_row_lies_behind_the_context(folder):
    """Near the context's end rows that would fill up a piece have no place: it runs token by token."""
    both = Both(folder, context=20)
    text = both.add()
    both.append(text, some(16))
    both.append(text, some(3, 1))
    both.check(text)
    both.next([text])
    with pytest.raises(RuntimeError, match="context is 20"):
        both.sides[0].next([text])


# --- caches that grow ---

def growing(path, kind, **sizes):
    decoders.save(str(path), kind, layers=1, width=32, heads=2, context=120, **sizes)
    return Both(str(path))


ROWS = 2 * 32 * 4  # bytes of a token's keys and values


def test_caches_that_grow_have_room_on_a_card(tmp_path):
    """A token's place is told by its position and the mask: rows between a text and what is new are hidden."""
    both = growing(tmp_path, "masked")
    a, b = both.add(), both.add()
    for size in (7, 1, 16, 35):
        both.append(a, some(size, size))
        both.check(a)
    assert both.statistics()["state_bytes"] == ROWS * ROOM
    both.append(b, some(4, 2))
    for _ in range(4):
        both.next([a, b])  # of different lengths, in one run
    both.rewind(a, 20)
    both.append(a, some(3, 3))
    c = both.fork(a, 12)
    both.next([c, a])
    both.check(a, b, c)


@pytest.mark.parametrize("kind", ["windowed", "counted", "growing"])
def test_what_counts_rows_grows_as_before(tmp_path, kind):
    """Windows, positions counted from the cache, and what hides rows by its position would see another text."""
    both = growing(tmp_path, kind)
    text = both.add()
    both.append(text, some(12))
    both.check(text)
    for _ in range(3):
        both.next([text])
    both.check(text)
    assert both.statistics()["state_bytes"] < ROWS * ROOM


# --- states of fixed lengths ---

@pytest.mark.parametrize("kind", ["fixed", "stepwise", "hybrid", "padded", "joined", "mixed"])
def test_states_of_fixed_lengths(tmp_path, kind):
    """They change as a whole: pieces run in lengths that they fill, and whoever goes back takes a copy."""
    decoders.save(str(tmp_path), kind, layers=2, width=32, heads=2, shared=1, context=400)
    both = Both(str(tmp_path))
    a, b = both.add(), both.add()
    for size in (7, 1, 19):
        both.append(a, some(size, size))
        both.check(a)
    first = [both.next([a]) for _ in range(5)]
    both.rewind(a, 27)  # the end of what was given
    assert [both.next([a]) for _ in range(5)] == first
    both.append(b, some(4, 2))
    for _ in range(3):
        both.next([a, b])
    c = both.fork(a, 30)
    both.append(a, some(2, 5))
    both.next([c, b])
    both.check(a, b, c)
    both.rewind(a, 9)  # between marks
    both.append(a, some(3, 3))
    both.remove(b)
    b = both.add()
    both.append(b, some(1, 3))
    for _ in range(3):
        both.next([a, b])
    both.rewind(b, 0)
    both.append(b, some(2, 4))
    both.check(a, b, c)


@pytest.mark.parametrize("kind,on_card", [("hybrid", True), ("padded", False)])
def test_where_states_lie(tmp_path, kind, on_card):
    """In the card's memory, unless the model makes more of its mask than how long a text is."""
    decoders.save(str(tmp_path), kind, layers=2, width=32, heads=2, shared=1, context=400)
    both = Both(str(tmp_path))
    text = both.add()
    both.append(text, some(3))
    both.check(text)
    state, token = 32 * 3 * 4, 2 * 16 * 4
    copy = state + 3 * token  # to go back to, of what a text has; on the host runs leave what was there
    assert both.statistics()["state_bytes"] == state + ROOM * token + (copy if on_card else 0)


def test_who_goes_back_has_a_plan(tmp_path):
    """A copy has the room that its text needs; who goes on from it has one that plans are made for."""
    decoders.save(str(tmp_path), "hybrid", layers=2, width=32, heads=2, shared=1, context=400)
    both = Both(str(tmp_path))
    text = both.add()
    both.append(text, some(150))
    first = both.next([text])
    both.next([text])
    both.rewind(text, 150)
    assert both.next([text]) == first
    both.check(text)
    state, token = 32 * 3 * 4, 2 * 16 * 4
    marks = 112 + 128 + 144 + 150  # tokens at the ends of the last four pieces
    assert both.statistics()["state_bytes"] == 5 * state + (2 * ROOM + marks) * token
