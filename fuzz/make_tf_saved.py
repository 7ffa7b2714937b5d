# SPDX-License-Identifier: MIT
"""A SavedModel as an input of tf_saved.c: make_tf_saved.py FOLDER OUT

Only the table of its variables is read, uncompressed, of one block."""
import os
import sys


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def wire(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return wire(number << 3 | 2) + wire(len(data)) + data


def entries(block):
    """The keys and values of a block, whose restart points at the end only serve searching."""
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    at, key = 0, b""
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        size, at = varint(block, at)
        key = key[:shared] + block[at:at + own]
        yield key, block[at + own:at + own + size]
        at += own + size


def variables(table):
    at = len(table) - 48
    _, at = varint(table, at)
    _, at = varint(table, at)
    offset, at = varint(table, at)
    size, at = varint(table, at)
    for _, handle in entries(table[offset:offset + size]):
        start, at = varint(handle, 0)
        length, _ = varint(handle, at)
        yield from entries(table[start:start + length])


def fields(data):
    """Number and bytes of each field, tag included, and what a message among them holds."""
    at = 0
    while at < len(data):
        start = at
        tag, at = varint(data, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 == 2:
            size, at = varint(data, at)
        elif tag & 7 == 0:
            _, at = varint(data, at)
        yield tag >> 3, data[start:at + size], data[at:at + size]
        at += size


def lean(model):
    """Without what no importer reads: lists of operators, the objects that made the model."""
    out = b""
    for number, whole, meta in fields(model):
        if number == 2:
            kept = b""
            for part, text, info in fields(meta):
                if part == 1:
                    text = field(1, b"".join(t for k, t, _ in fields(info) if k != 2))
                kept += text if part in (1, 2, 3, 5) else b""
            whole = field(2, kept)
        out += whole
    return out


def main():
    folder, out = sys.argv[1:]
    with open(os.path.join(folder, "variables", "variables.index"), "rb") as file:
        table = file.read()
    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        model = file.read()
    with open(out, "wb") as file:
        file.write(b"".join(field(1, field(1, k) + field(2, v)) for k, v in variables(table)) + field(2, lean(model)))


if __name__ == "__main__":
    main()
