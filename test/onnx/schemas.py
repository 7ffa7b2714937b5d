#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares every ONNX rule with the standard's schemas: the kinds that it takes, the types of its results.

    schemas.py --build build

A rule says both in its row (src/onnx/node.h), and mgx-tables prints the rows. The schemas are the onnx package's, of
all versions that a rule is for. A kind that a schema admits must be taken, and none that no schema admits. A result
must have the type that the schema gives it: a type of its own, that of an input, or one that an attribute names.
EXCEPT lists what differs, with the reason; an entry that does not differ is an error.
"""
import argparse
import pathlib
import subprocess
import sys

import onnx

DOMAINS = {"", "ai.onnx.ml"}
KINDS = {"text", "complex", "sequence", "optional"}
ELEMENTS = {"b": "bool", "f": "float", "i": "int32", "l": "int64", "t": "string", "u": "uint8"}
NO_MEANING = "the standard admits every type; what is summed, weighed or compared with 0 are numbers"
NEVER_LATE = "the rule is never put off to the run, so nobody asks"
OLD = "experimental, in the standard before its schemas had versions"
EXCEPT = {
    "Affine: is in no schema": OLD,
    "Col2Im: does not take text": NO_MEANING,
    "ConstantFill: is in no schema": OLD,
    "Crop: is in no schema": OLD,
    "DynamicSlice: is in no schema": OLD,
    "GridSample: does not take complex": NO_MEANING,
    "GridSample: does not take text": NO_MEANING,
    "ImageScaler: is in no schema": OLD,
    "LabelEncoder: result 0 is '0', version 2 says T2": NEVER_LATE,
    "LabelEncoder: result 0 is '0', version 4 says T2": NEVER_LATE,
    "NonZero: does not take complex": NO_MEANING,
    "NonZero: does not take text": NO_MEANING,
    "Optional: result 0 is '0', version 15 says O": NEVER_LATE,
    "Optional: result 0 is '0', version 28 says O": NEVER_LATE,
    "OptionalGetElement: result 0 is 'e', version 15 says V": NEVER_LATE,
    "OptionalGetElement: result 0 is 'e', version 18 says V": NEVER_LATE,
    "OptionalGetElement: result 0 is 'e', version 28 says V": NEVER_LATE,
    "Resize: does not take complex": NO_MEANING,
    "Resize: does not take text": NO_MEANING,
    "Scale: is in no schema": OLD,
    "SimplifiedLayerNormalization: is in no schema": OLD,
    "Upsample: does not take complex": NO_MEANING,
    "Upsample: does not take text": NO_MEANING,
}


def rows(build):
    """name, domain, first and last opset, kinds, letters of the results, their attribute; of the known domains."""
    text = subprocess.run([build / "bin" / "mgx-tables", "onnx"], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, domain, since, until, takes, result, attribute = line.split("\t")
        if domain in DOMAINS:
            yield name, domain, int(since), int(until), set(takes.split()), result, attribute


def schemas_of(every, name, domain, since, until):
    """The versions of an operator that are in force somewhere from `since` to `until`."""
    versions = sorted(every.get((name, domain), []), key=lambda schema: schema.since_version)
    for at, schema in enumerate(versions):
        last = versions[at + 1].since_version - 1 if at + 1 < len(versions) else 1 << 30
        if last >= since and (not until or schema.since_version <= until):
            yield schema


def kind_of(text):
    if text.startswith("optional("):
        return "optional"
    if text.startswith("seq("):
        return "sequence"
    return "complex" if "complex" in text else "text" if "string" in text else None


def kinds_of(schema):
    return {kind_of(text) for value in schema.inputs for text in value.types} - {None}


def entries(letters):
    """The entries of results: "0@2?u" is "0" and "@2?u"."""
    entry = ""
    for at, letter in enumerate(letters):
        entry += letter
        if letter not in "@?" and letters[at + 1 : at + 2] != "?":
            yield entry
            entry = ""


def fits(entry, schema, output, attribute):
    """Does an entry say what the schema says of a result?"""
    types = {str(text) for text in output.types}
    if entry[0] == "@":
        named = attribute in schema.attributes and attribute != ""
        return fits(entry[1:], schema, output, attribute) or (named and output_is_free(schema, output))
    if entry[0].isdigit():
        at = int(entry[0])
        if at >= len(schema.inputs):  # the last input may stand for many
            return entry[1:2] == "?" and fits(entry[2:], schema, output, attribute)
        given = schema.inputs[at]
        return given.type_str == output.type_str or {str(text) for text in given.types} == types and len(types) == 1
    if entry in ELEMENTS:
        return types == {f"tensor({ELEMENTS[entry]})"}
    if entry == "e":
        return all(text.startswith("tensor(") for text in types) and kind_of(str(list(schema.inputs[0].types)[0])) == "sequence"
    if entry in ("s", "q"):
        return all(text.startswith("seq(") for text in types)
    if entry in ("v", "B", "C"):
        return attribute in schema.attributes
    return entry in ("c", "o") and types == {"tensor(string)", "tensor(int64)"}


def output_is_free(schema, output):
    """An attribute decides the type: it is no input's."""
    return len(output.types) > 1 and all(value.type_str != output.type_str for value in schema.inputs)


def result_problems(schema, letters, attribute):
    if not schema.inputs:  # never imported late: there is nothing to wait for
        return
    all_of_them = list(entries(letters))
    for at, output in enumerate(schema.outputs):
        entry = all_of_them[min(at, len(all_of_them) - 1)]
        if not fits(entry, schema, output, attribute):
            yield f"result {at} is '{entry}', version {schema.since_version} says {output.type_str}"


def problems(row, every):
    name, domain, since, until, takes, letters, attribute = row
    found = list(schemas_of(every, name, domain, since, until))
    if not found:
        yield "is in no schema"
        return
    admitted = set().union(*(kinds_of(schema) for schema in found))
    for kind in sorted(admitted - takes):
        yield f"does not take {kind}"
    for kind in sorted(takes - admitted):
        yield f"takes {kind}, which no schema admits"
    for schema in found:
        yield from result_problems(schema, letters, attribute)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    every = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        every.setdefault((schema.name, schema.domain), []).append(schema)
    bad, used, count = 0, set(), 0
    for row in rows(build):
        count += 1
        for problem in problems(row, every):
            key = f"{row[0]}: {problem}"
            if key in EXCEPT:
                used.add(key)
            else:
                bad += 1
                print(key)
    for key in sorted(set(EXCEPT) - used):
        bad += 1
        print(f"agrees, take it from the list: {key}")
    print(f"{count} rules, {bad} disagree with the schemas of onnx {onnx.__version__}, {len(used)} are excepted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
