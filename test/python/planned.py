# SPDX-License-Identifier: MIT
"""A plugin of pytest's: what the passes for a card make of a program is run on the CPU, where no card is.

A program that is compiled for target("gpu"), of a stand-in that computes nothing, is saved as JSON, with every constant, its target is taken off
and it is loaded and compiled for the CPU; run() runs that one. So a test of a card's results becomes one of its plan's meaning: fusions,
joined products, zero points, scales and views, everything but the kernels. Groups are modules of ordinary operators, which any target runs.
"""
import os
import tempfile

import migraphx

compile_for, run_it = migraphx.program.compile, migraphx.program.run
TARGET = b'"targets":[{"name":"gpu"}],'
planned = {}  # by the program's address: the program, so that it stays, and what stands for it; the last ones
KEPT = 16


def portable(program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        migraphx.save(program, path, format="json")
        with open(path, "rb") as file:
            text = file.read()
        assert text.count(TARGET) == 1
        with open(path, "wb") as file:
            file.write(text.replace(b'"contexts":[{}],', b"").replace(TARGET, b""))
        return migraphx.load(path, format="json")


def compile_both(program, target, **options):
    compile_for(program, target, **options)
    if repr(target) == "gpu":
        plan = portable(program)
        compile_for(plan, migraphx.get_target("cpu"))
        planned[id(program)] = program, plan
        if len(planned) > KEPT:
            del planned[next(iter(planned))]


def run_plan(program, feeds, **options):
    return run_it(planned[id(program)][1] if id(program) in planned else program, feeds, **options)


migraphx.program.compile, migraphx.program.run = compile_both, run_plan
