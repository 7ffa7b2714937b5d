# SPDX-License-Identifier: MIT
"""Two cards in one process, and runs in flight on one: a stand-in for HIP's runtime that has two cards and runs kernels on the processor.

What comes from the host and goes back to it is large enough to go by pieces of pinned memory (src/targets/gpu/machine/stage.h).
"""
import asyncio
import json
import os
import subprocess
import sys
import threading

import pytest

FOLDER = os.environ.get("MGX_EMULATED_HIP", "")
CHILD = os.environ.get("MGX_TWO_CARDS")
HERE = os.path.dirname(os.path.abspath(__file__))
if CHILD:
    sys.path.insert(0, os.path.join(HERE, "..", "host", "triton"))
    import decoders
    import models
    import numpy as np
    import onnx

    import migraphx
    from migraphx import serving

in_child = pytest.mark.skipif(not CHILD, reason="of a process that has the stand-in")
LARGE = 70_001  # floats


def test_two_cards():
    if CHILD or not os.path.exists(os.path.join(FOLDER, "libamdhip64.so.7")):
        pytest.skip("no emulated cards")
    pytest.importorskip("onnx")
    environment = dict(os.environ, MGX_TWO_CARDS="1", MIGRAPHX_GPU_DEVICE="hip",
                       LD_LIBRARY_PATH=FOLDER + ":" + os.environ.get("LD_LIBRARY_PATH", ""),
                       MIGRAPHX_KERNEL_CACHE=os.path.join(FOLDER, "kernels"))
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", os.path.basename(__file__)],
                          env=environment, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    at = tmp_path_factory.mktemp("models") / "product.onnx"
    onnx.save(models.product(), str(at))
    return str(at)


def doubled(card):
    """2 x and x + 1, of many floats."""
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[LARGE]))
    one = main.add_literal(migraphx.argument(np.ones(1, np.float32)))
    wide = main.add_instruction(migraphx.op("multibroadcast", out_lens=[LARGE]), [one])
    main.add_return([main.add_instruction(migraphx.op("add"), [x, x]), main.add_instruction(migraphx.op("add"), [x, wide])])
    program.compile(migraphx.get_target("gpu"), device_id=card)
    return program


def in_threads(count, work):
    failed = []

    def call(i):
        try:
            work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


@in_child
def test_runs_in_flight_do_not_mix():
    programs = [doubled(0), doubled(1)]

    def work(i):
        for k in range(2):
            x = np.random.default_rng(10 * i + k).standard_normal(LARGE).astype(np.float32)
            want = [x + x, x + 1]
            got = programs[i % 2].run({"x": x})
            x[:] = 0  # nothing reads it any more
            for g, w in zip(got, want):
                np.testing.assert_array_equal(np.array(g), w)

    in_threads(4, work)


@in_child
def test_a_model_is_on_each_card(path):
    model = serving.Model(path, cards=[0, 1])
    assert len(model.programs) == 2 and model.at_once == 4
    ran = [0, 0]
    gate = threading.Barrier(2)

    class Counted:
        def __init__(self, i):
            self.i, self.program = i, model.programs[i]

        def run(self, feed):
            ran[self.i] += 1
            gate.wait(60)  # the other one is at its run, too
            return self.program.run(feed)

    model.programs = [Counted(0), Counted(1)]

    def work(i):
        x = np.random.default_rng(i).standard_normal((4, 8)).astype(np.float32)
        np.testing.assert_allclose(model.run({"x": x})["y"], x @ models.WEIGHT, rtol=1e-4, atol=1e-5)

    in_threads(2, work)
    assert ran == [1, 1] and model._busy == [0, 0]


@in_child
def test_bytes_become_floats_on_the_card(path):
    model = serving.Model(path, cards=[1], bytes={"x": {"scale": [0.25], "offset": [-1]}})
    x = np.random.default_rng(3).integers(0, 256, (4, 8), np.uint8)
    np.testing.assert_allclose(model.run({"x": x})["y"], (x * np.float32(0.25) - 1) @ models.WEIGHT, rtol=1e-4, atol=1e-4)


@in_child
def test_a_service_has_several_runs_under_way(path):
    service = serving.Service({"product": path}, cards=[0, 1], most=4)

    async def ask():
        async def one(i):
            x = np.random.default_rng(i).standard_normal((2, 8)).astype(np.float32)
            got = await service.infer("product", {"x": x})
            np.testing.assert_allclose(got["y"], x @ models.WEIGHT, rtol=1e-4, atol=1e-5)
        await asyncio.gather(*[one(i) for i in range(40)])

    asyncio.run(ask())
    service.close()


@in_child
def test_cards_are_named_rightly(path):
    with pytest.raises(ValueError, match="each once"):
        serving.Model(path, cards=[1, 1])
    with pytest.raises(ValueError, match="target gpu"):
        serving.Model(path, cards=[0], target="cpu")
    with pytest.raises(RuntimeError, match="no number 7"):
        serving.Model(path, cards=[7])


@pytest.fixture(scope="module", params=["room", "lengths"])
def folder(request, tmp_path_factory):
    at = str(tmp_path_factory.mktemp("folders") / request.param)
    decoders.save(at, request.param)
    return at


def told(g, count=6):
    """Tokens behind a prompt, after some of them are taken back, of a text that forks, and of two texts at once."""
    text = g.add()
    g.append(text, [3, 1, 4, 1, 5, 9, 2, 6])
    out = [g.next([text])[0] for _ in range(count)]
    g.rewind(text, 10)
    g.append(text, [7, 8])
    out += [g.next([text])[0] for _ in range(count)]
    other = g.fork(text, 5)
    g.append(other, [11])
    for _ in range(count):
        out += g.next([text, other])
    scores = np.array(g.logits(other))
    g.remove(text)
    return out, scores


@in_child
def test_a_decoder_is_shared_by_two_cards(folder):
    one, two = migraphx.generator(folder, target="gpu", cards=[1]), migraphx.generator(folder, target="gpu", cards=[0, 1])
    want, got = told(one), told(two)
    assert got[0] == want[0]
    np.testing.assert_allclose(got[1], want[1], rtol=2e-3, atol=2e-3)
    held, whole = two.statistics(), one.statistics()
    assert held["state_bytes"] > 0 and held["runs"] == whole["runs"]
    assert held["weight_bytes"] < 1.5 * whole["weight_bytes"]  # tables of words and normalisations are on both


@in_child
def test_what_all_cards_refuse_harms_none(folder):
    g = migraphx.generator(folder, target="gpu", cards=[0, 1], context=10)
    text = g.add()
    g.append(text, list(range(1, 10)))
    first = g.next([text])
    with pytest.raises(RuntimeError):
        g.next([text])  # the context is full
    with pytest.raises(RuntimeError, match="no text 7"):
        g.next([7])
    g.rewind(text, 9)
    assert g.next([text]) == first
    g.set_sampling(text, temperature=0.9, seed=3)
    g.rewind(text, 4)
    assert len(g.next([text])) == 1


@in_child
def test_two_generators_share_the_cards(folder):
    g = migraphx.generator(folder, target="gpu", cards=[0, 1])
    both, got = [g, g.share()], [None, None]

    def work(i):
        got[i] = told(both[i], 2)[0]

    in_threads(2, work)
    assert got[0] == got[1]


@in_child
def test_cards_of_a_decoder_are_named_rightly(folder, tmp_path):
    for cards, target, said in (([0, 0], "gpu", "twice"), ([0, 9], "gpu", "no number 9"), ([0, 1], "cpu", "no cards that go together"),
                                (list(range(9)), "gpu", "at most 8")):
        with pytest.raises((RuntimeError, ValueError), match=said):
            migraphx.generator(folder, target=target, cards=cards)
    decoders.save(str(tmp_path / "fixed"), "fixed")
    with pytest.raises(RuntimeError, match="card"):
        migraphx.generator(str(tmp_path / "fixed"), target="gpu", cards=[0, 1])


def drive(*words, code=0):
    done = subprocess.run([os.environ["MGX_DRIVER"], *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr[-2000:]
    return done


in_driver = pytest.mark.skipif(not (CHILD and "MGX_DRIVER" in os.environ), reason="of the driver, with the stand-in")


@in_driver
def test_the_driver_shares_a_decoder(folder):
    def write(*words):
        return drive("generate", folder, "--tokens", "3,1,4", "--max-tokens", "8", "--temperature", "0", *words).stdout
    want = write("--gpu")
    assert len(want.split()) == 8 and write("--cards", "0,1") == want == write("--cards", "1", "--gpu")
    assert write("--cards", "0,1", "--draft", folder, "--guesses", "3") == want
    assert "no number 9" in drive("generate", folder, "--tokens", "3", "--cards", "0,9", code=1).stderr
    assert "no cards that go together" in drive("generate", folder, "--tokens", "3", "--cards", "0,1", "--cpu", code=1).stderr


@in_driver
def test_the_driver_times_cards_alone_and_together(path):
    report = json.loads(drive("perf", path, "--cards", "1,0", "-n", "4", "--json").stdout)
    assert [c["card"] for c in report["cards"]] == [1, 0] and all(c["rate_alone"] > 0 for c in report["cards"])
    assert report["rate_together"] > 0 and report["runs"] == 4
    said = drive("perf", path, "--cards", "0,1", "-n", "4", "--totals").stdout
    assert "Card 1 alone: " in said and "2 cards together: " in said
    assert "cards" not in json.loads(drive("perf", path, "--cpu", "-n", "4", "--json").stdout)
    assert "no number 9" in drive("perf", path, "--cards", "0,9", "-n", "4", code=1).stderr


@in_driver
def test_a_number_is_of_the_chosen_kind_of_card(path):
    # HIP's stand-in is the first kind that is found; OpenCL's card is the processor
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="opencl")
    time = [os.environ["MGX_DRIVER"], "perf", path, "-n", "1", "--json"]
    if subprocess.run([*time, "--gpu"], capture_output=True, env=environment).returncode:
        pytest.skip("no card of OpenCL")
    done = subprocess.run([*time, "--cards", "0"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rate_together"] > 0


@in_driver
def test_a_compiled_model_lies_on_one_card(path, tmp_path):
    compiled = str(tmp_path / "m.mxr")
    drive("compile", path, "--gpu", "--binary", "-o", compiled)
    assert "a compiled one lies on one card" in drive("perf", compiled, "--cards", "0,1", "-n", "4", code=1).stderr
