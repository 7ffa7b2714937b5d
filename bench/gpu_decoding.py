#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A decoder on a card, a token at a time and prompts at once, against PyTorch on the same card.

    PYTHONPATH=build/python python3 bench/gpu_decoding.py [--model 1b 8b] [--bits 16 8 4] [--done 500 4000] [--texts 1]
                                                          [--prompts 128 1024] [--json FILE]

Writes each model as exporters do (GroupQueryAttention over caches with room, gates, normalisations without a mean; half, or MatMulNBits
with blocks of 32) with random weights into --folder. Ours: sizes fixed, everything in the card's memory, past and present one address,
run_async on PyTorch's stream. PyTorch: the same weights in half, a static cache, torch.compile with graphs; for prompts its own attention
for causal texts. Both give the scores of a prompt's last token alone, which is what its first answer needs; --every: ours those of all.

Results are compared first, relative RMS of the scores. Then both take turns, a group of runs each; a figure is the median of the groups.
The floor is the weights' bytes at the pace of a copy of 1 GiB within the card, measured beside.
"""
import argparse
import json
import os
import statistics
import time

import migraphx
import numpy as np
import torch
from onnx import TensorProto, helper

HALF, INT32, INT64 = TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
MODELS = {"1b": dict(layers=16, width=2048, heads=32, shared=8, inner=8192, words=32000),
          "8b": dict(layers=32, width=4096, heads=32, shared=8, inner=14336, words=128256),
          "tiny": dict(layers=2, width=256, heads=4, shared=2, inner=512, words=1000)}
PLACES, EPSILON, CARD = 8192, 1e-5, "cuda"


# --- the model ---

class Model:
    """The file, and the same weights for PyTorch in `w`."""

    def __init__(self, name, bits, folder, every=False):
        self.__dict__.update(MODELS[name], name=name, bits=bits, every=every)
        self.size = self.width // self.heads
        self.w, self.nodes, self.literals = {}, [], []
        self.path, self.data = os.path.join(folder, f"{name}_{bits}.onnx"), f"{name}_{bits}.bin"
        os.makedirs(folder, exist_ok=True)
        torch.manual_seed(0)
        with open(os.path.join(folder, self.data), "wb") as self.blob:
            graph = self.graph()
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        with open(self.path, "wb") as file:
            file.write(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
        self.bytes = os.path.getsize(os.path.join(folder, self.data)) - 2 * self.w["table"].numel()  # one row of it is read

    def put(self, name, value):
        raw = np.ascontiguousarray(value.cpu().numpy())
        self.blob.seek((self.blob.tell() + 4095) // 4096 * 4096)
        t = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(raw.dtype), dims=raw.shape, data_location=TensorProto.EXTERNAL)
        for key, v in (("location", self.data), ("offset", self.blob.tell()), ("length", raw.nbytes)):
            entry = t.external_data.add()
            entry.key, entry.value = key, str(v)
        self.blob.write(raw.tobytes())
        self.literals.append(t)

    def constant(self, name, value):
        self.w[name] = value
        self.put(name, value)

    def node(self, op, ins, outs, **attributes):
        self.nodes.append(helper.make_node(op, ins, outs, **attributes))

    def linear(self, x, name, k, n):
        w, y = (torch.randn(k, n, device=CARD) / k ** 0.5).half(), name + ".y"
        if self.bits == 16:
            self.constant(name, w)
            self.node("MatMul", [x, name], [y])
            return y
        most = 2 ** (self.bits - 1)
        blocks = w.float().T.reshape(n, k // 32, 32)
        scale = (blocks.abs().amax(-1, keepdim=True) / (most - 1)).clamp_min(1e-8).half().float()
        q = ((blocks / scale).round().clamp(-most, most - 1) + most).to(torch.uint8)
        self.w[name] = ((q.float() - most) * scale).reshape(n, k).T.half().contiguous()
        self.put(name + ".q", q[..., 0::2] | q[..., 1::2] << 4 if self.bits == 4 else q)
        self.put(name + ".s", scale.reshape(-1).half())
        self.node("MatMulNBits", [x, name + ".q", name + ".s"], [y], domain="com.microsoft", K=k, N=n, bits=self.bits, block_size=32)
        return y

    def norm(self, x, name):
        self.constant(name, 1 + 0.1 * torch.randn(self.width, device=CARD).half())
        self.node("SimplifiedLayerNormalization", [x, name], [name + ".y"], epsilon=EPSILON)
        return name + ".y"

    def layer(self, i, x):
        p = f"l{i}."
        qkv = self.linear(self.norm(x, p + "before"), p + "qkv", self.width, self.size * (self.heads + 2 * self.shared))
        self.node("GroupQueryAttention", [qkv, "", "", f"past_k{i}", f"past_v{i}", "lengths", "total", "cos", "sin"],
                  [p + "seen", f"present_k{i}", f"present_v{i}"], domain="com.microsoft", num_heads=self.heads, kv_num_heads=self.shared, do_rotary=1)
        self.node("Add", [x, self.linear(p + "seen", p + "o", self.width, self.width)], [p + "x"])
        n = self.norm(p + "x", p + "between")
        gate, up = (self.linear(n, p + part, self.width, self.inner) for part in ("gate", "up"))
        self.node("Sigmoid", [gate], [p + "s"])
        self.node("Mul", [gate, p + "s"], [p + "silu"])
        self.node("Mul", [p + "silu", up], [p + "t"])
        self.node("Add", [p + "x", self.linear(p + "t", p + "down", self.inner, self.width)], [p + "out"])
        return p + "out"

    def graph(self):
        value, cache = helper.make_tensor_value_info, ["B", self.shared, "R", self.size]
        angles = torch.arange(PLACES)[:, None] * 10000.0 ** (-torch.arange(self.size // 2) / (self.size // 2))
        self.constant("cos", angles.cos().half().to(CARD))
        self.constant("sin", angles.sin().half().to(CARD))
        self.constant("table", torch.randn(self.words, self.width, device=CARD).half() * 0.5)
        self.node("Gather", ["table", "ids"], ["x"])
        x = "x"
        for i in range(self.layers):
            x = self.layer(i, x)
        if not self.every:  # the last token's scores alone, as PyTorch is asked for here and generators need
            for name, v in (("last", -1), ("end", 2 ** 62), ("axis", 1)):
                self.put(name, torch.tensor([v]))
            self.node("Slice", [x, "last", "end", "axis"], ["row"])
            x = "row"
        self.node("Identity", [self.linear(x, "head", self.width, self.words)], ["logits"])
        self.caches = [f"{k}{i}" for i in range(self.layers) for k in "kv"]
        ins = [value("ids", INT64, ["B", "T"]), value("lengths", INT32, ["B"]), value("total", INT32, [])]
        ins += [value("past_" + c, HALF, cache) for c in self.caches]
        outs = [value("logits", HALF, ["B", "T" if self.every else 1, self.words])] + [value("present_" + c, HALF, cache) for c in self.caches]
        return helper.make_graph(self.nodes, self.name, ins, outs, self.literals)


# --- both engines ---

def card_caches(m, batch, room):
    g = torch.Generator(device=CARD).manual_seed(5)
    return {c: torch.randn(batch, m.shared, room, m.size, device=CARD, generator=g).half() for c in m.caches}


class Ours:
    def __init__(self, m, ids, done, room):
        batch, tokens = ids.shape
        dims = {"ids": [batch, tokens], "lengths": [batch], **{"past_" + c: [batch, m.shared, room, m.size] for c in m.caches}}
        start = time.perf_counter()
        self.p = migraphx.parse_onnx(m.path, map_input_dims=dims)
        self.p.compile(migraphx.get_target("gpu"), offload_copy=False)
        self.compile = time.perf_counter() - start
        self.host = sum(" ref " in line or "(reference)" in line for line in self.p.explain().splitlines())
        caches, self.keep = card_caches(m, batch, room), []
        self.logits = torch.zeros(batch, tokens if m.every else 1, m.words, device=CARD).half()
        given = {"ids": ids, "lengths": torch.full((batch,), done + tokens - 1, dtype=torch.int32, device=CARD),
                 "total": torch.tensor(done + tokens, dtype=torch.int32, device=CARD), **{"past_" + c: t for c, t in caches.items()}}
        results = [self.logits] + [caches[c] for c in m.caches]
        self.params = {name: self.argument(shape, results[int(name.rpartition("_")[2])] if "#output_" in name else given[name])
                       for name, shape in self.p.get_parameter_shapes().items()}
        self.stream = torch.cuda.current_stream().cuda_stream

    def argument(self, shape, t):
        self.keep.append(t)
        return migraphx.gpudata_to_argument(shape=shape, address=t.data_ptr())

    def __call__(self):
        self.p.run_async(self.params, self.stream, "ihipStream_t")

    def scores(self):
        self()
        torch.cuda.synchronize()
        return self.logits[:, -1].float()


def forward(m, ids, at, attend):
    """The model in PyTorch: `attend` has the caches."""
    w, x = m.w, m.w["table"][ids]
    batch, tokens = ids.shape
    cos, sin, half = w["cos"][at], w["sin"][at], m.size // 2

    def norm(t, name):
        return torch.nn.functional.rms_norm(t, (m.width,), w[name], EPSILON)

    def turn(t):
        a, b = t[..., :half], t[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    for i in range(m.layers):
        p = f"l{i}."
        qkv = (norm(x, p + "before") @ w[p + "qkv"]).view(batch, tokens, m.heads + 2 * m.shared, m.size).transpose(1, 2)
        q, k, v = qkv.split([m.heads, m.shared, m.shared], 1)
        seen = attend(i, turn(q), turn(k), v).transpose(1, 2).reshape(batch, tokens, m.width)
        x = x + seen @ w[p + "o"]
        n = norm(x, p + "between")
        x = x + (torch.nn.functional.silu(n @ w[p + "gate"]) * (n @ w[p + "up"])) @ w[p + "down"]
    return x[:, -1] @ w["head"]


class Theirs:
    """PyTorch, compiled: a token over a static cache, or a prompt from the beginning."""

    def __init__(self, m, ids, done, room):
        attention = torch.nn.functional.scaled_dot_product_attention
        caches, at = card_caches(m, ids.shape[0], room), torch.arange(done, done + ids.shape[1], device=CARD)
        for t in caches.values():
            torch._dynamo.mark_static_address(t)

        def step(ids, at, caches):
            mask = (torch.arange(room, device=CARD) <= at)[None, None, None]

            def attend(i, q, k, v):
                caches[f"k{i}"].index_copy_(2, at, k)
                caches[f"v{i}"].index_copy_(2, at, v)
                return attention(q, caches[f"k{i}"], caches[f"v{i}"], attn_mask=mask, enable_gqa=True)
            return forward(m, ids, at, attend)

        def prompt(ids, at, caches):
            return forward(m, ids, at, lambda i, q, k, v: attention(q, k, v, is_causal=True, enable_gqa=True))
        self.plain, self.args = (step if done else prompt), (ids, at, caches)
        torch._dynamo.reset()
        self.call = torch.compile(self.plain, mode="reduce-overhead", fullgraph=True, dynamic=False)

    def __call__(self):
        self.call(*self.args)

    def scores(self):
        return self.plain(*self.args).float()


# --- timing ---

def group(f, runs):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(runs):
        f()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / runs * 1e3


def in_turns(calls, runs, groups=7):
    for f in calls:
        group(f, 5)
    took = [[group(f, runs) for f in calls] for _ in range(groups)]
    return [statistics.median(t) for t in zip(*took)]


def pace():
    a = torch.empty(1 << 30, dtype=torch.int8, device=CARD)
    b = torch.empty_like(a)
    return 2 * a.numel() / in_turns([lambda: b.copy_(a)], 20)[0] * 1e3


def measure(m, tokens, done, texts, args):
    room = 1 << (done + tokens).bit_length()
    ids = torch.randint(0, m.words, (texts, tokens), device=CARD)
    ours = Ours(m, ids, done, room)
    row = {"model": m.name, "bits": m.bits, "texts": texts, "tokens": tokens, "done": done, "compile_s": round(ours.compile, 2), "host_steps": ours.host}
    engines = [ours]
    if not args.alone:
        theirs = Theirs(m, ids, done, room)
        want = theirs.scores()
        row["error"] = float((ours.scores() - want).norm() / want.norm())
        engines += [] if args.eager else [theirs]
    times = in_turns(engines, 50 if tokens == 1 else 10)
    row["ms"] = round(times[0], 4)
    if tokens == 1:
        row["share"] = round(m.bytes / args.pace * 1e3 / times[0], 3)
    if len(engines) > 1:
        row.update(torch_ms=round(times[1], 4), ratio=round(times[1] / times[0], 2))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["1b"], choices=MODELS)
    parser.add_argument("--bits", nargs="+", type=int, default=[16, 4], choices=[16, 8, 4])
    parser.add_argument("--done", nargs="*", type=int, default=[500, 4000])
    parser.add_argument("--prompts", nargs="*", type=int, default=[128, 1024])
    parser.add_argument("--texts", nargs="+", type=int, default=[1])
    parser.add_argument("--alone", action="store_true", help="without PyTorch, and without comparing")
    parser.add_argument("--every", action="store_true", help="scores of every token of a prompt from ours, not of the last alone")
    parser.add_argument("--eager", action="store_true", help="PyTorch says what is right, and is not timed")
    parser.add_argument("--folder", default="build/decoders")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    args.pace = pace()
    rows, card = [], torch.cuda.get_device_name()
    print(f"{card}: a copy moves {args.pace / 1e12:.2f} TB/s", flush=True)
    for name in args.model:
        for bits in args.bits:
            m = Model(name, bits, args.folder, args.every)
            print(f"{name}, {bits} bits: {m.bytes / 1e9:.2f} GB a token, {m.bytes / args.pace * 1e3:.3f} ms", flush=True)
            for tokens, done, texts in [*((1, d, t) for d in args.done for t in args.texts), *((p, 0, 1) for p in args.prompts)]:
                rows.append({"card": card, "pace": args.pace, **measure(m, tokens, done, texts, args)})
                print("  ", {k: v for k, v in rows[-1].items() if k not in ("card", "pace", "model", "bits")}, flush=True)
                if args.json:
                    with open(args.json, "w") as file:
                        json.dump(rows, file, indent=1)
            os.unlink(os.path.join(args.folder, m.data))
            del m
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
