#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page for those who come from MIGraphX against the driver: migration.py DRIVER PAGE.

What the page calls the same must be known here, what is this engine's alone must be named, and
every variable that is read must be on the page.
"""
import re
import subprocess
import sys


def rows(page, title):
    """(names in the first column, second column) of the table under a title."""
    part = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 2 and not cells[0].startswith(("---", "MIGraphX")):
            yield re.findall(r"`([^`]+)`", cells[0]), cells[1]


def main():
    driver, path = sys.argv[1:]
    with open(path, encoding="utf-8") as f:
        page = f.read()

    def output(*arguments):
        return subprocess.run([driver, *arguments], capture_output=True, text=True, check=True).stdout

    bad = []
    read = set(re.findall(r"MIGRAPHX_[A-Z0-9_]+", output("--man").replace("\\", "")))
    same = {name for names, here in rows(page, "Environment") if here.startswith("the same") for name in names}
    theirs = [name for names, _ in rows(page, "Environment") for name in names if name.startswith("MIGRAPHX")]
    bad += [f"{name} is not read" for name in sorted(same - read)]
    bad += [f"{name} is not on the page" for name in sorted(read) if f"`{name}`" not in page]
    bad += [f"{name} is read, and the page says otherwise" for name in sorted(read & (set(theirs) - same))]
    bad += [f"{name} stands twice" for name in sorted(set(theirs)) if theirs.count(name) > 1]
    top = output("--help")
    verbs = re.findall(r"^  (\w+)  ", top, re.M)
    known = set(re.findall(r"--[\w-]+", top)) | {"--ort-sha"} | set(verbs)
    for verb in verbs:
        known |= set(re.findall(r"--[\w-]+", output(verb, "--help")))
    for names, _ in rows(page, "The driver"):
        bad += [f"{name} is not known to the driver" for name in names if name[0] != "." and name not in known]
    for line in bad:
        print(line)
    print(f"{len(theirs)} variables, {len(known)} verbs and flags")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
