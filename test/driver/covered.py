# SPDX-License-Identifier: MIT
"""covered.py DRIVER TESTS: every flag in the help of any verb is used by a test that runs the driver with it.

Uses are looked for in the command lines of the cases and in the strings of the Python tests in folder TESTS;
flags.py is none of them, since what it runs ends with the help.
"""
import ast
import pathlib
import re
import shlex
import subprocess
import sys


def flags_of(driver):
    """{flag: its spellings} of all verbs together."""
    def text(*words):
        return subprocess.run([driver, *words, "--help"], capture_output=True, text=True, check=True).stdout
    found = {}
    for verb in re.findall(r"^  (\w+)  ", text(), re.M):
        for line in text(verb).splitlines():
            names = re.match(r"  ((?:--?[\w-]+(?:, )?)+)", line)
            if names:
                spellings = names.group(1).split(", ")
                found.setdefault(spellings[-1], set()).update(spellings)
    return found


def words_of(path):
    """What a test may say to the driver."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".case":
        return {word for line in re.findall(r"^\$ (.*)", text, re.M) for word in shlex.split(line)}
    return {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def main():
    driver, tests = sys.argv[1], pathlib.Path(sys.argv[2])
    files = sorted(tests.glob("*.case")) + [path for path in sorted(tests.glob("*.py")) if path.name not in ("flags.py", "covered.py")]
    used = set().union(*map(words_of, files))
    flags = flags_of(driver)
    missing = [" ".join(sorted(names)) for _, names in sorted(flags.items()) if not names & used]
    for names in missing:
        print("no test runs the driver with", names)
    print(f"{len(flags)} flags, {len(missing)} without a test")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
