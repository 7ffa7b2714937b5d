# SPDX-License-Identifier: MIT
"""What perf writes to be looked at: the page and the timeline. Run with the driver's path in DRIVER. A browser is not
needed: the page's script runs on a small document of page.js, where there is node."""
import collections
import html.parser
import json
import os
import re
import shlex
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_debugging import drive, make_folder # pylint: disable=unused-import

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTILE = ['</script><script>alert(1)</script><img src=x onerror="alert(1)">', "'single' \"double\" & <b>", "__proto__", "名前/層", "a, b = c -> d"]


def save(path, nodes, ends, weights=()):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends]
    graph = helper.make_graph(nodes, "g", info[:-1], info[-1:], [numpy_helper.from_array(v, n) for n, v in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.fixture(name="hostile")
def make_hostile(tmp_path):
    nodes, last = [], 'in "</script>'
    for k, name in enumerate(HOSTILE):
        nodes += [helper.make_node("MatMul", [last, "w"], [f"m{k}"], name=name), helper.make_node("Softmax", [f"m{k}"], [f"s{k}"], name=name + "2")]
        last = f"s{k}"
    w = np.random.default_rng(3).standard_normal((32, 32)).astype("f4")
    return save(tmp_path / "a <b>'\".onnx", nodes, [('in "</script>', [8, 32]), (last, [8, 32])], [("w", w)])


def page_of(model, *words):
    where = model.parent / "p.html"
    drive("perf", model, "-n", "3", "--html", where, *words)
    page = where.read_text()
    return where, page, json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.S).group(1))


def look(where):
    try:
        subprocess.run(["node", "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("no node to run the page's script with")
    done = subprocess.run(["node", os.path.join(HERE, "page.js"), str(where)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Tags(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.count, self.attributes = collections.Counter(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.count[tag] += 1
        self.attributes += attrs


def test_the_page(folder):
    where, page, data = page_of(folder / "model.onnx", "--cpu")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    tags = Tags(page)
    assert tags.count["script"] == 2 and tags.count["h1"] == 1 and tags.count["details"] == 1
    assert not {"src", "href"} & {name for name, _ in tags.attributes} and 'name="viewport"' in page
    assert data["instructions"] and data["steps"]
    timed = sorted((i for i in data["instructions"] if i["ms"] > 0), key=lambda i: -i["ms"])
    seen = look(where)
    assert seen["rows"] == len(timed) and seen["shapes"] > 2 * len(timed) and "product (MatMul)" in seen["details"]
    assert seen["order"] == [i["index"] for i in timed] and seen["rest"] == len(data["instructions"]) - len(timed)
    assert seen["walked"] == 4 and f"Total{len(timed)}" in seen["operators"]


def test_the_head_says_under_which_conditions(folder):
    where, _, data = page_of(folder / "model.onnx", "--cpu", "--threads", "1", "--isa", "generic", "--bf16")
    run = data["run"]
    assert run["target"] == "cpu" and run["threads"] == 1 and run["isa"] == "generic" and run["precision"] == "--bf16"
    assert run["machine"] and run["cores"] >= 1 and run["version"].startswith("2.") and re.match(r"\d{4}-\d\d-\d\d \d\d:", run["date"])
    assert "--isa generic" in run["command"] and run["command"].split()[1] == "perf"
    seen = look(where)
    for value in (run["machine"], run["version"], run["date"], run["command"], run["isa"], "--bf16"):
        assert value in seen["facts"]
    assert "differ" in seen["why"] and "model.onnx" in seen["title"]


def test_names_are_harmless(hostile):
    where, page, data = page_of(hostile, "--cpu")
    tags = Tags(page)
    assert tags.count["script"] == 2 and tags.count["img"] == 0 and tags.count["b"] == 0
    assert data["model"] == str(hostile)
    assert shlex.split(data["run"]["command"])[1:3] == ["perf", str(hostile)]
    nodes = "; ".join(s["nodes"] for s in data["steps"])
    seen = look(where)
    for name in HOSTILE:
        assert name in nodes and name in seen["details"]


def test_one_instruction_and_no_plan(tmp_path):
    model = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], name="only")], [("x", [2, 3]), ("y", [2, 3])])
    for target in ("--cpu", "--ref"):
        assert look(page_of(model, target)[0])["rows"] == 1


def test_the_slowest_comes_first(tmp_path):
    w = [("w0", np.ones((16, 1024), "f4")), ("w1", np.ones((1024, 1024), "f4"))]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], name="fast"), helper.make_node("MatMul", ["a", "w1"], ["y"], name="slow")]
    seen = look(page_of(save(tmp_path / "m.onnx", nodes, [("x", [1, 16]), ("y", [1, 1024])], w), "--cpu")[0])
    assert len(seen["order"]) == 2 and seen["order"][0] > seen["order"][1]


@pytest.mark.parametrize("how", [[], ["--bf16"], ["--int8"]])
def test_shares_are_those_of_the_text(folder, how):
    data = json.loads(drive("perf", folder / "model.onnx", "--cpu", "-n", "3", "--json", *how).stdout)
    product = [s for s in data["steps"] if s["flops"] > 0][0]
    i, limits = data["instructions"][product["instruction"]], data["limits"]
    kind = {"bf16_type": "bf16", "int8_type": "bytes", "uint8_type": "bytes"}.get(product["reads"], "floats")
    assert i["kind"] == kind and all(0 <= j["share"] <= 100.0001 for j in data["instructions"])
    peak = {"floats": limits["gflops"], "bytes": limits["bytes_gflops"], "bf16": limits["bf16_gflops"]}[kind]
    near = limits["cache_gbytes"] if product["moved"] <= limits["cache_bytes"] else limits["middle_gbytes"]
    steps = [s for s in data["steps"] if s["instruction"] == product["instruction"]]
    want = max(i["done"] / peak, sum(s["moved"] for s in steps) / near) * 1e-4 / i["ms"]
    assert abs(i["share"] - want) < 1e-3 * want
    for name in {"bytes", "bf16"} - {kind}: # of what the model has none of nothing is said
        assert limits[name + "_gflops"] == limits["gflops"]


def luminance(colour):
    parts = [int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)]
    return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for w, c in zip((.2126, .7152, .0722), parts))


def test_contrast_in_light_and_dark(folder):
    page = page_of(folder / "model.onnx", "--cpu")[1]
    themes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", page, re.S)]
    assert len(themes) == 2 and "prefers-color-scheme: dark" in page
    for theme in themes:
        for name in ["fg", "soft", "link"] + [f"c{k}" for k in range(9)]: # 4.5 is WCAG's level AA
            for ground in ("bg", "plot"):
                a, b = sorted((luminance(theme[name]), luminance(theme[ground])))
                assert (b + .05) / (a + .05) >= 4.5, (name, ground)


# --- the timeline ---

@pytest.fixture(name="wide")
def make_wide(tmp_path):
    """Convolutions that two threads share."""
    rng = np.random.default_rng(3)
    w = [(f"w{k}", rng.standard_normal((64, 64, 3, 3)).astype("f4") / 24) for k in range(3)]
    nodes = [helper.make_node("Conv", [f"t{k}", f"w{k}"], [f"t{k + 1}"], pads=[1] * 4, name=f"conv{k}") for k in range(3)]
    return save(tmp_path / "wide.onnx", nodes, [("t0", [1, 64, 56, 56]), ("t3", [1, 64, 56, 56])], w)


def events_of(model, *words):
    drive("perf", model, "-n", "5", "--trace", model.parent / "t.json", *words)
    trace = json.loads((model.parent / "t.json").read_text())
    by = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        assert e["pid"] == 1
        by[e["ph"], e.get("cat") if e["name"] != "run" else "run itself"].append(e)
    return trace, by


def helped_events(model, *words):
    """On a busy machine a worker may come too late to help."""
    for _ in range(20):
        trace, by = events_of(model, *words)
        if by["X", "help"]:
            break
    return trace, by


def check_line(events):
    for before, after in zip(events, events[1:]):
        assert after["ts"] >= before["ts"] + before["dur"] - 0.002


def test_the_timeline_has_a_line_for_every_thread(wide):
    trace, by = helped_events(wide, "--cpu", "--threads", "2")
    names = {(e["name"], e["tid"]): e["args"].get("name") for e in by["M", None]}
    assert names["process_name", 1] == str(wide) and names["thread_name", 1] == "calling thread"
    own, helped, whole = by["X", "run"], by["X", "help"], by["X", "run itself"][0]
    check_line(own)
    assert len(own) >= 3 and all(e["tid"] == 1 and e["dur"] > 0 and e["args"]["average_us"] > 0 for e in own)
    assert abs(whole["dur"] - own[-1]["ts"] - own[-1]["dur"]) < 0.01 and trace["otherData"]["run"]["threads"] == 2
    assert "conv0 (Conv)" in [e["args"]["step"]["nodes"] for e in own]
    for e in helped: # as part of what the calling thread is at
        assert names["thread_name", e["tid"]] == "worker 1" == f"worker {e['tid'] - 1}"
        assert any(o["ts"] - 0.01 <= e["ts"] and e["ts"] + e["dur"] <= o["ts"] + o["dur"] + 0.01 and o["name"] == e["name"] for o in own)
    assert helped
    plan = json.loads(drive("plan", wide, "--cpu", "--threads", "2", "--json").stdout)
    most = max(e["args"]["bytes"] for e in by["C", None])
    assert 64 * 56 * 56 * 4 <= most <= max(s["offset"] + s["bytes"] for s in plan["steps"] if s["place"] == "scratch")


@pytest.mark.parametrize("words", [["--cpu", "--threads", "1"], ["--ref"]])
def test_the_timeline_of_one_thread(folder, words):
    _, by = events_of(folder / "model.onnx", *words)
    check_line(by["X", "run"])
    assert by["X", "run"] and not by["X", "help"]
    assert [e["args"]["name"] for e in by["M", None] if e["name"] == "thread_name"] == ["calling thread"]


def test_names_in_the_timeline(hostile):
    _, by = events_of(hostile, "--cpu")
    nodes = "; ".join(e["args"]["step"]["nodes"] for e in by["X", "run"] if "step" in e["args"])
    assert HOSTILE[0] in nodes
