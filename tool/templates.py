#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate for templates of device code (src/targets/gpu/kernel/*.gpu).

    templates.py [--write]

The head of a template says in words what the text before it defines, and lists the names in lines of their own:

    // After: lines tiles        templates that stand before it, whose names it uses
    // Wants: M N K LOAD_A       names that it uses and somebody has to define
    // Takes: DIRECT             names that it uses inside of an #if or a macro alone

The lists are checked: a name of capitals, or a function, that neither the template, the prelude, those of After nor C
have, is wanted, and what is wanted is used. In a build with assertions whoever writes a template has to have
defined what it wants (gpu_put_text). --write makes the lists anew, of what stands in After.
"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "src" / "targets" / "gpu" / "kernel"
WIDTH = 100
KNOWN = set("""if elif for while switch return sizeof defined do else asm volatile float aligned ext_vector_type run run0 run1 u32
    min max abs fabs fabsf fmin fmax fminf fmaxf ceil floor fma fmaf exp exp2f log sqrt rsqrtf pow tanh tanhf rint ldexp""".split())
PASTED = {"a_load", "a_store", "b_load", "b_store"}  # gemm_operand.gpu's, by its prefix
MAKERS = re.compile(r"__|make_|_Pragma|dot_4x8packed")  # what compilers of device code bring


def code_of(text):
    """Without comments and what strings say, lines kept."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


def head_list(text, word):
    return [name for line in re.findall(rf"^// {word}: (.*)$", text, flags=re.M) for name in line.split()]


def defined(code):
    """Names that the text itself makes: macros and their parameters, enumerators, functions, local names."""
    names = set(re.findall(r"^[ ]*#[ ]*define[ ]+(\w+)", code, flags=re.M))
    names.update(name for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", code, flags=re.S) for name in re.findall(r"(\w+)\s*(?==|,|$)", body + ","))
    for line in re.findall(r"^[ ]*#[ ]*define[ ]+\w+\(([^)]*)\)", code, flags=re.M):
        names.update(re.findall(r"\w+", line))
    # A definition: a type's word, maybe a star, the name, and an opening bracket.
    for line in code.splitlines():
        if not line.startswith((" ", "#", "\t")):
            names.update(re.findall(r"[\w*]\s+\**(\w+)\s*\(", line))
            names.update(re.findall(r"^(\w+)\s*\(", line)[:1] if not line.rstrip().endswith(";") else [])
    return names


def used(code):
    names = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", code)) | set(re.findall(r"\b([a-z_]\w*)\s*\(", code))
    return {name for name in names - KNOWN if not MAKERS.match(name)}


def certain(code):
    """What is compiled whatever is defined: no directives, nothing between #if and #endif."""
    depth, kept, continued = 0, [], False
    for line in code.splitlines():
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and directive.group(1).startswith("if"):
            depth += 1
        elif directive and directive.group(1) == "endif":
            depth -= 1
        elif not depth and not directive and not continued:
            kept.append(line)
        continued = (continued or bool(directive)) and line.endswith("\\")
    return "\n".join(kept)


def wanted(texts, name):
    """What a template wants, and what it may want."""
    code = code_of(texts[name])
    before = ["prelude"] + head_list(texts[name], "After")
    known = defined(code)
    for other in before:
        known |= defined(code_of(texts[other]))
    asked = set(re.findall(r"#\s*ifn?def\s+(\w+)", code_of(texts["prelude"]))) | set(re.findall(r"defined[ (]+(\w+)", code_of(texts["prelude"])))
    open_names = used(code) - known - asked
    takes = open_names - (used(certain(code)) - PASTED)
    return open_names - takes, takes


def lines_of(word, names):
    lines, line = [], f"// {word}:"
    for name in sorted(names):
        if len(line) + 1 + len(name) > WIDTH:
            lines.append(line)
            line = f"// {word}:"
        line += " " + name
    return lines + [line] if names else []


def write(name, text, wants, takes):
    body = re.sub(r"^// (Wants|Takes): .*\n", "", text, flags=re.M)
    lines = body.splitlines()
    at = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    lines[at:at] = lines_of("Wants", wants) + lines_of("Takes", takes)
    (FOLDER / (name + ".gpu")).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.gpu"))}
    bad = 0
    for name, text in texts.items():
        if name == "prelude":
            continue
        wants, takes = wanted(texts, name)
        if "--write" in sys.argv:
            write(name, text, wants, takes)
            continue
        for word, there in (("Wants", wants), ("Takes", takes)):
            said = set(head_list(text, word))
            for extra, what in ((there - said, f"uses, and its list '{word}' does not have,"), (said - there, f"does not use, and its list '{word}' has,")):
                if extra:
                    print(f"templates: {name}.gpu {what} {' '.join(sorted(extra))}")
                    bad = 1
    if not bad:
        print("templates: every name is of the dialect, of the template, or on its list")
    return bad


if __name__ == "__main__":
    sys.exit(main())
