#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/answers.md names tests that are there, and every link of a document leads somewhere: answers.py DOCS TEST."""
import pathlib
import re
import sys


LINK = re.compile(r"(?<!!)\[[^\]\[]*\]\(([^)\s]+)\)")


def prose(page):
    """The text of a page without its blocks of code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    return re.sub(r"`[^`]*`", lambda match: match.group().replace("[", " ").replace("(", " "), text)


def anchors(page):
    """What headings are called in links: lower case, words joined by hyphens, other signs left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*?) *$", text, re.M)}


def broken_links(root):
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("bench/*.md")]
    count = 0
    for page in pages:
        for link in LINK.findall(prose(page)):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            count += 1
            if re.match(r"[a-z]+:", link):
                continue
            if not target.exists():
                yield f"no file: {page.relative_to(root)} links to {link}"
            elif anchor and anchor not in anchors(target):
                yield f"no heading: {page.relative_to(root)} links to {link}"
    if count < 60:
        yield f"only {count} links were found"


def dead_tests(page, root):
    seen, rows = set(), 0
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|") or line.startswith("|---") or cells[0] == "seen":
            continue
        rows += 1
        tests = re.findall(r"`([^`]+)`", cells[-1])
        if not tests and "declined" not in line:
            yield f"no test: {cells[0]}"
        for test in tests:
            path, _, case = test.partition(": ")
            file = root / path
            seen.add(test)
            if not file.exists():
                yield f"no file: {test}"
            elif case and not re.search(rf"\b{case}\b", file.read_text(encoding="utf-8")):
                yield f"no case: {test}"
    print(f"{rows} rows, {len(seen)} tests")


def main():
    docs, test = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    bad = [*dead_tests(docs / "answers.md", test), *broken_links(docs.parent)]
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
