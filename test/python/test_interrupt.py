# SPDX-License-Identifier: MIT
"""Ctrl-C ends what is at work, and everything is usable afterwards."""
import os
import signal
import threading
import time

import migraphx
import numpy as np
import pytest

LATE = 1.0  # seconds a call may take to end on a machine that does other things too


def heavy():
    """A program of some seconds on the reference."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[600, 600]))
    y = x
    for _ in range(30):
        y = m.add_instruction(migraphx.op("dot"), [y, x])
    m.add_return([y])
    return p


def interrupted(call, after=0.1):
    """How long after the signal the call ended, with KeyboardInterrupt."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        call()
        time.sleep(5)  # a call that was too quick: the signal comes here
        pytest.fail("no signal")
    ended = time.perf_counter()
    thread.join()
    return ended - sent[0]


def test_a_run_ends_and_can_be_repeated():
    p = heavy()
    p.compile("ref")
    x = np.zeros((600, 600), np.float32)
    for _ in range(2):
        assert interrupted(lambda: p.run({"x": x})) < LATE
    q = migraphx.program()
    m = q.get_main_module()
    m.add_return([m.add_instruction(migraphx.op("relu"), [m.add_parameter("x", migraphx.shape(lens=[2]))])])
    q.compile("cpu")
    assert q.run({"x": [-1.0, 2.0]})[0].tolist() == [0, 2]


def test_tuning_ends_and_can_be_repeated():
    p = migraphx.program()
    m = p.get_main_module()
    y = m.add_parameter("x", migraphx.shape(type="float_type", lens=[1, 64, 56, 56]))
    for i in range(20):  # problems of their own: what is alike is measured once
        w = m.add_literal(migraphx.generate_argument(migraphx.shape(lens=[72 + 8 * i, 64 + 8 * i, 3, 3]), i))
        y = m.add_instruction(migraphx.op("convolution", padding=[1, 1]), [y, w])
    m.add_return([y])
    text = str(p)
    assert interrupted(lambda: p.compile("cpu", exhaustive_tune=True), 0.2) < LATE
    assert not p.is_compiled() and str(p) == text
    p.compile("cpu")
    assert p.is_compiled()


def test_handlers_that_do_not_raise_let_calls_go_on():
    calls, before = [], signal.signal(signal.SIGUSR1, lambda *_: calls.append(p.is_compiled()))
    p = heavy()
    p.compile("cpu")
    try:
        thread = threading.Thread(target=lambda: [time.sleep(0.05), os.kill(os.getpid(), signal.SIGUSR1)])
        thread.start()
        for _ in range(3):
            assert len(p.run({"x": np.zeros((600, 600), np.float32)})) == 1
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == [True]


def test_other_threads_are_left_alone():
    p = heavy()
    p.compile("cpu")
    x, results = np.zeros((600, 600), np.float32), []
    threads = [threading.Thread(target=lambda: results.append(len(p.run({"x": x})))) for _ in range(2)]

    def both():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(5)

    assert interrupted(both) < LATE
    for _ in range(600):
        if len(results) == 2:
            break
        time.sleep(0.05)
    assert results == [1, 1]
