#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A decoder over several cards of one host, against the same on one of them.

    PYTHONPATH=build/python python3 bench/gpu_decoding_cards.py [--model 8b] [--bits 16 4] [--cards 2] [--done 500] [--json FILE]

The models are bench/gpu_decoding.py's, in folders that generators load. Tokens are compared first: the best one of each step by one card
and by all of them, up to the first that differs, and the scores there. Then both take turns, a group of tokens each: milliseconds a token,
with all that a generator does for one, are medians of the groups.
"""
import argparse
import json
import os
import statistics
import time

import numpy as np

import gpu_decoding
import migraphx


def write(name, bits, folder, context):
    m = gpu_decoding.Model(name, bits, folder, every=True)
    inputs = {"input_ids": "ids", "past_key_names": "past_k%d", "past_value_names": "past_v%d"}
    outputs = {"logits": "logits", "present_key_names": "present_k%d", "present_value_names": "present_v%d"}
    decoder = {"filename": os.path.basename(m.path), "inputs": inputs, "outputs": outputs}
    with open(os.path.join(folder, "genai_config.json"), "w", encoding="utf-8") as file:
        json.dump({"model": {"context_length": context, "vocab_size": m.words, "eos_token_id": 0, "decoder": decoder}}, file)
    words, size = m.words, m.bytes
    return words, size, os.path.join(folder, m.data)


class Writer:
    def __init__(self, folder, cards, prompt):
        start = time.perf_counter()
        self.g = migraphx.generator(folder, target="gpu", cards=cards)
        self.load, start = time.perf_counter() - start, time.perf_counter()
        self.text = self.g.add()
        self.g.append(self.text, prompt)
        self.tokens = [self.next()]
        self.first = time.perf_counter() - start

    def next(self):
        return self.g.next([self.text])[0]

    def group(self, count):
        start = time.perf_counter()
        self.tokens += [self.next() for _ in range(count)]
        return (time.perf_counter() - start) / count * 1e3


def compare(one, all_, count):
    """Tokens that agree from the beginning, and how far apart the scores behind them are."""
    for w in (one, all_):
        w.group(count)
    same = next((i for i, (a, b) in enumerate(zip(one.tokens, all_.tokens)) if a != b), len(one.tokens))
    a, b = (np.array(w.g.logits(w.text)) for w in (one, all_))
    return same, float(np.linalg.norm(a - b) / np.linalg.norm(a)) if same == len(one.tokens) else None


def measure(name, bits, args):
    import torch
    words, size, data = write(name, bits, args.folder, 8192)
    torch.cuda.empty_cache()
    prompt = [int(t) for t in np.random.default_rng(0).integers(1, words, args.done)]
    one, all_ = Writer(args.folder, [0], prompt), Writer(args.folder, list(range(args.cards)), prompt)
    row = {"model": name, "bits": bits, "cards": args.cards, "gigabytes": round(size / 1e9, 2)}
    for w, of in ((one, "one"), (all_, "all")):
        row[of + "_load_s"], row[of + "_first_s"] = round(w.load, 1), round(w.first, 1)
        print(f"{name}, {bits} bits, {of}: loaded in {w.load:.1f} s, first token {w.first:.1f} s, "
              f"{w.g.statistics()['weight_bytes'] / 1e9:.2f} GB of weights", flush=True)
    row["same"], row["error"] = compare(one, all_, 24)
    for w in (one, all_):
        w.group(args.group)
    times = list(zip(*[(one.group(args.group), all_.group(args.group)) for _ in range(args.groups)]))
    row["one_ms"], row["all_ms"] = (round(statistics.median(t), 4) for t in times)
    row["times_one"] = round(row["one_ms"] / row["all_ms"], 3)
    print("  ", row, flush=True)
    os.unlink(data)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["8b"], choices=gpu_decoding.MODELS)
    parser.add_argument("--bits", nargs="+", type=int, default=[16, 4], choices=[16, 8, 4])
    parser.add_argument("--cards", type=int, default=2)
    parser.add_argument("--done", type=int, default=500, help="tokens of the prompt")
    parser.add_argument("--group", type=int, default=40, help="tokens of a group")
    parser.add_argument("--groups", type=int, default=7)
    parser.add_argument("--folder", default="build/decoders")
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for name in args.model:
        for bits in args.bits:
            rows.append(measure(name, bits, args))
            if args.json:
                with open(args.json, "w", encoding="utf-8") as file:
                    json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
