# SPDX-License-Identifier: MIT
"""Renders chat templates for generate.py, in a process of its own: requests and replies are lines of JSON.

A template comes out of a model's folder and is code. It runs in jinja2's sandbox, without files, and in a process that may use
two seconds of processor time for each request, one GiB of memory and no new files; generate.py kills it after some seconds more.
"""
import json
import resource
import sys

SECONDS, BYTES, TEXT = 2, 1 << 30, 1 << 24


def limit(used):
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def make_environment():
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message):
        raise ValueError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form):
        import datetime
        return datetime.datetime.now().strftime(form)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment


def render(environment, request):
    pieces, size = [], 0
    for piece in environment.from_string(request["template"]).generate(**request["values"]):
        pieces.append(piece)
        size += len(piece)
        if size > TEXT:
            raise ValueError(f"it writes more than {TEXT} characters")
    return "".join(pieces)


def answer(environment, request):
    try:
        return {"text": render(environment, request)}
    except MemoryError:
        return {"error": "it needs more memory than it may have"}
    except RecursionError:
        return {"error": "it calls itself without end"}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}


def reply(data):
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def main():
    sys.path[:] = json.loads(sys.stdin.readline())["path"]
    try:
        environment = make_environment()
    except ImportError as e:
        reply({})
        sys.stdin.readline()
        return reply({"missing": str(e)})
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    reply({})
    for line in sys.stdin:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        limit(usage.ru_utime + usage.ru_stime)
        reply(answer(environment, json.loads(line)))
    return None


if __name__ == "__main__":
    main()
