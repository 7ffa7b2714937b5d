#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/reference/: every public function of C, C++ and Python, from the headers' comments
and the docstrings.

    tool/reference.py [--check]       PYTHONPATH=build/python; --check compares and writes nothing

Holds: a C function has a comment in front of it, or follows one of RULES; a Python name has a
docstring. What has neither is an error, so that the pages cannot fall behind. C++ members name
the C function that they call: its text is theirs.
"""
import difflib
import enum
import inspect
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include/migraphx"
OUT = ROOT / "docs/reference"
RULES = (
    (r"migraphx_(\w+)_destroy", "Ends a handle of the caller's. What it made for others, or shares with them, lives on."),
    (r"migraphx_(\w+)_assign_to", "Makes `output` a copy of `input`; what `output` held before is given up."),
)


def prose(lines):
    """Comment lines as Markdown: what is indented is an example."""
    text, code = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented != code and line:
            text += [""] if text and text[-1] else []
            code = indented
        text.append(line if code else line.replace("*", "\\*"))
    return "\n".join(text).strip("\n")


# --- C ---

def split_header(path):
    """("section", title), ("comment", lines) and ("code", text) in the order of the file."""
    comment = []
    code = ""
    for line in path.read_text().splitlines():
        match = re.match(r"\s*//( (.*))?$", line)
        if match and not code:
            title = re.match(r"--- (.*) ---$", match[2] or "")
            if title:
                yield "comment", comment
                yield "section", title[1]
                comment = []
            else:
                comment.append(match[2] or "")
        elif not line.strip() and not code:
            yield "comment", comment
            comment = []
        elif not line.startswith("#") and (code or re.match(r"MIGRAPHX_C_EXPORT|typedef", line)):
            code += ("\n" if code else "") + line
            if code.count("{") == code.count("}") and code.rstrip().endswith(";"):
                yield "declaration", (comment, code)
                comment, code = [], ""
        else:
            comment = []


def reflow(code):
    """A declaration without the header's alignment."""
    return "\n".join(textwrap.wrap(re.sub(r"\s+", " ", code).replace("( ", "("), 96, subsequent_indent="    "))


def c_functions(path):
    """[(section, name or None, declaration, comment)]; comments without a declaration, too."""
    section, out = "types", []
    for kind, value in split_header(path):
        if kind == "section":
            section = value
        elif kind == "comment" and value and section != "types":
            out.append((section, None, "", value))
        elif kind == "declaration":
            comment, code = value
            name = re.search(r"(migraphx_\w+)\(", code) if code.startswith("MIGRAPHX") else None
            if name or comment or section != "handles":
                out.append((section, name and name[1], reflow(code.replace("MIGRAPHX_C_EXPORT", "").strip()) if name else code, comment))
    return out


def c_text(name, comment):
    for pattern, text in RULES:
        if not comment and re.fullmatch(pattern, name):
            return text
    if not comment:
        sys.exit(f"reference: {name} has no comment")
    return prose(comment)


def c_page(headers):
    page = ["# The C interface", "", "Made by `make reference` from the headers. The whole of a small program:",
            "", "```c", (ROOT / "examples/hello.c").read_text().strip(), "```"]
    for header in headers:
        page += ["", f"# {header.name}", "", prose(head_comment(header))]
        before = None
        for section, name, code, comment in c_functions(header):
            if section != before:
                page += ["", f"## {section[0].upper()}{section[1:]}"]
                before = section
            if name:
                page += ["", f"### {name}", "", "```c", code, "```", "", c_text(name, comment)]
            else:
                page += ["", *(["```c", code, "```", ""] if code else []), prose(comment)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page)) + "\n"


def head_comment(path):
    lines = []
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("//"):
            return lines
        lines.append(line[3:])
    return lines


# --- C++ ---

def cpp_blocks(path):
    """Top-level structs and functions: (namespace within migraphx, comment, lines)."""
    comment, block, depth, hidden, inner = [], [], 0, False, ""
    for line in path.read_text().splitlines():
        space = re.match(r"(} // )?namespace (\w+)", line)
        if space and space[2] in ("detail", "impl"):
            hidden = not space[1]
        elif space and space[2] != "migraphx":
            inner = "" if space[1] else space[2] + "::"
        if hidden or (not block and re.match(r"#|namespace|inline namespace|[{}]", line)):
            comment = []
        elif not block and re.match(r"// ---", line):
            comment = []
        elif not block and line.startswith("//"):
            comment.append(line[3:])
        elif not block and not line.strip():
            comment = []
        else:
            block.append(line)
            depth += line.count("{") - line.count("}")
            if depth == 0 and re.search(r"[;}]\s*$", line):
                yield inner, comment, block
                comment, block = [], []


def signature(lines):
    """What stands before the body, and before what a constructor hands on."""
    head = []
    for line in lines:
        if line.strip() == "{" or re.match(r"\s+: ", line):
            break
        head.append(re.sub(r" \{$", "", line.strip()))
        if line.endswith(" {"):
            break
    text = " ".join(head)
    text = re.sub(r"\) : .*", ")", text)
    text = re.sub(r",? class = typename std::(common_type|enable_if)<.*>::type>", ">", text)
    text = re.sub(r"^(inline|friend|static constexpr) ", "", text)
    return re.sub(r"\s+", " ", text.rstrip(";"))


def members(block):
    """(comment, signature, C functions called) of a struct's public members."""
    comment, member, depth, public = [], [], 0, True
    for line in block[1:-1]:
        text = line.strip()
        if re.fullmatch(r"(private|protected|public):", text):
            public = text == "public:"
        elif not member and text.startswith("//"):
            comment.append(text[3:])
        elif not member and (not text or re.match(r"MIGRAPHX_(HANDLE|DEPRECATED)|#", text)):
            comment = [] if not text else comment
        else:
            member.append(line)
            depth += line.count("{") - line.count("}")
            if depth == 0 and re.search(r"[;}]\s*$", line):
                if public:
                    called = re.findall(r"\bmigraphx_\w+(?=[,()\s])", "\n".join(member))
                    yield comment, signature(member), [c for c in called if c in C_NAMES]
                comment, member = [], []


def cpp_lines(sig, called):
    """The C function behind it, where the line has room, else in front of it."""
    note = f"// {called[0]}" if called else ""
    short = f"{sig}   {note}".rstrip()
    wrapped = textwrap.wrap(sig, 98, subsequent_indent="    ")
    return [short] if len(short) <= 98 else [note, *wrapped] if note else wrapped


def cpp_page(groups):
    page = ["# The C++ interfaces", "",
            "Made by `make reference` from the headers. Behind a member stands the C function that it",
            "calls: [c.md](c.md) says what that does. The whole of a small program:",
            "", "```cpp", (ROOT / "examples/hello.cpp").read_text().strip(), "```"]
    for title, paths in groups:
        page += ["", f"# {title}", "", prose(head_comment(paths[0]))]
        free = []
        for path in paths:
            for inner, comment, block in cpp_blocks(path):
                if re.match(r"(struct|class|template.*struct)\b.*\{$", " ".join(block[:1])):
                    name = signature(block[:1])
                    name = re.sub(r" : .*", "", name).replace("struct ", f"struct {inner}")
                    page += ["", f"## {name}", *(["", prose(comment)] if comment else [])]
                    lines = []
                    for notes, sig, called in members(block):
                        lines += [f"// {n}" for n in notes] + cpp_lines(sig, called)
                    page += ["", "```cpp", *lines, "```"] if lines else []
                elif re.match(r"(inline|template)", block[0]):
                    called = [c for c in re.findall(r"\bmigraphx_\w+", "\n".join(block)) if c in C_NAMES]
                    free += [f"// {n}" for n in comment] + cpp_lines(signature(block), called)
        page += ["", "## Functions", "", "```cpp", *free, "```"] if free else []
    return "\n".join(page) + "\n"


# --- Python ---

def call_of(value):
    """Its parameters without self; a set among their defaults in order, not in that of its hashes."""
    text = str(inspect.signature(value)).replace("(self, /, ", "(").replace("(self, /)", "()").replace("/, ", "")
    return re.sub(r"\{([^{}]*)\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", text)


def describe(name, value, depth):
    doc = inspect.getdoc(value)
    if not doc:
        sys.exit(f"reference: {name} has no docstring")
    try:
        call = "" if isinstance(value, enum.EnumMeta) else call_of(value)
    except (TypeError, ValueError):
        call = ""
    if isinstance(value, enum.EnumMeta):
        doc += "\n\n" + textwrap.fill(", ".join(f"`{member}`" for member in value.__members__), 98)
    return ["", f"{'#' * depth} {name}{call}", "", doc]


def python_page(module):
    page = ["# The Python module", "", "Made by `make reference` from the docstrings; `help(migraphx)` shows the same.",
            "", "```python", (ROOT / "examples/hello.py").read_text().strip(), "```", "", inspect.getdoc(module)]
    public = sorted((n, v) for n, v in vars(module).items() if not n.startswith("_"))
    for name, value in public:
        if inspect.isclass(value):
            page += describe(name, value, 2)
            for inner, member in sorted(vars(value).items()):
                slot = inspect.ismemberdescriptor(member) and inner in (inspect.getdoc(value) or "")
                if not (inner.startswith("_") or slot or isinstance(member, (int, str))):
                    page += describe(f"{name}.{inner}", getattr(value, inner), 3)
    page += ["", "## Functions"]
    for name, value in public:
        if callable(value) and not inspect.isclass(value):
            page += describe(name, value, 3)
    return "\n".join(page) + "\n"


def pages():
    import migraphx

    def cpp(folder, first):
        return [INCLUDE / first] + sorted((INCLUDE / folder).glob("*.hpp"))

    return {
        "c.md": c_page([INCLUDE / "migraphx.h", INCLUDE / "extensions.h", INCLUDE / "host.h"]),
        "cpp.md": cpp_page([("migraphx.hpp", cpp("api", "migraphx.hpp")), ("The guides' headers", cpp("native", "native.hpp"))]),
        "python.md": python_page(migraphx),
    }


def main():
    bad = False
    OUT.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = OUT / name
        have = path.read_text() if path.exists() else ""
        if "--check" not in sys.argv:
            path.write_text(text)
        elif have != text:
            bad = True
            diff = difflib.unified_diff(have.splitlines(), text.splitlines(), f"docs/reference/{name}", "now", n=0, lineterm="")
            print("\n".join(list(diff)[:20]), "\nreference: run 'make reference'")
    sys.exit(bad)


C_NAMES = {name for header in ("migraphx.h", "extensions.h", "host.h") for _, name, _, _ in c_functions(INCLUDE / header) if name}
if __name__ == "__main__":
    main()
