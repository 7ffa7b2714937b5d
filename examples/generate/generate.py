# SPDX-License-Identifier: MIT
"""Writes on from a prompt with the model in a folder, and says how many tokens per second that gives.

    python examples/generate/decoder.py decoder
    PYTHONPATH=build/python python examples/generate/generate.py decoder [steps [token ...]]

A list of tokens gives tokens; where the folder has a tokenizer, a text gives text and a list of messages the answer to them:

    for piece in model.generate("Once upon a time", temperature=0.8):
        print(piece, end="", flush=True)
"""
import sys

from migraphx.generate import Model


def main(folder="decoder", steps=200, *prompt):
    model = Model(folder)
    for (token,) in model.generate(prompt or [1], max_tokens=steps):
        print(token, end=" ", flush=True)
    print()
    done = model.statistics()
    print(f"{done['answer_tokens'] / done['answer_seconds']:.1f} tokens per second", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:]))
