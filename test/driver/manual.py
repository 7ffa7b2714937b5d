# SPDX-License-Identifier: MIT
"""manual.py DRIVER: the man page and the completions know every verb and every flag that the help prints, and are what
their readers (groff, bash, zsh, fish) accept, as far as these are installed."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

DRIVER = sys.argv[1]
OFFER = '. "$1"; COMP_WORDS=(migraphx-driver perf --iter); COMP_CWORD=2; _migraphx_driver; echo "${COMPREPLY[*]}"'


def say(*words):
    return subprocess.run([DRIVER, *words], check=True, capture_output=True, text=True).stdout


def flags_of(verb):
    for line in say(verb, "--help").splitlines():
        names = re.match(r"  (-[-\w]+)(?:, (-[-\w]+))?", line)
        yield from filter(None, names.groups() if names else ())


def section(text, start, end):
    found = re.search(start + r"(.*?)" + end, text, re.S | re.M)
    return found.group(1) if found else ""


def missing(man, bash, zsh, fish):
    """Yields what is not where it should be."""
    verbs = re.findall(r"^  ([a-z]+) ", section(say("--help"), "^verbs:$", "^$"), re.M)
    if len(verbs) < 9:
        yield f"the help names {verbs} alone"
    for verb in verbs:
        flags = list(flags_of(verb))
        if len(flags) < 4:
            yield f"the help of {verb} names {flags} alone"
        words = section(bash, rf'^    \*:{verb}\) words="', '"').split()
        specs = section(zsh, rf"^    {verb}\)$", ";;")
        names = set(re.findall(r" -[lso] (\S+)", "".join(re.findall(rf"_from {verb}'.*", fish))))
        for where, there in (("man", f".SS {verb}" in man), ("zsh", f"'{verb}:" in zsh), ("fish", f" -a {verb} " in fish)):
            if not there:
                yield f"{where} lacks {verb}"
        for flag in flags:
            for where, there in (("man", rf"\fB{flag}\fR" in man), ("bash", flag in words),
                                 ("zsh", f"{flag}[" in specs), ("fish", flag.lstrip("-") in names)):
                if not there:
                    yield f"{where} lacks {flag} of {verb}"


def refused(texts, folder):
    """Yields what the readers of the texts say against them."""
    paths = {}
    for name, text in texts.items():
        paths[name] = os.path.join(folder, name)
        with open(paths[name], "w", encoding="utf-8") as file:
            file.write(text)
    commands = [[shell, "-n", paths[shell]] for shell in ("bash", "zsh", "fish")]
    commands.append(["groff", "-man", "-Tutf8", "-ww", paths["man"]])
    for command in commands:
        if shutil.which(command[0]):
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode or done.stderr:
                yield f"{command[0]}: {done.stderr}"
    if shutil.which("bash"):
        offered = subprocess.run(["bash", "-c", OFFER, "-", paths["bash"]], capture_output=True, text=True, check=False)
        if offered.stdout.strip() != "--iterations":
            yield f"bash offers '{offered.stdout.strip()}' for perf --iter"


def main():
    texts = {shell: say("--completion", shell) for shell in ("bash", "zsh", "fish")}
    texts["man"] = say("--man").replace("\\-", "-")
    found = list(missing(texts["man"], texts["bash"], texts["zsh"], texts["fish"]))
    with tempfile.TemporaryDirectory() as folder:
        found += refused(texts, folder)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
