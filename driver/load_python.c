// SPDX-License-Identifier: MIT
// Reading .py: the program that a Python script builds. python3 runs the script, as the user would,
// and saves the migraphx.program it left behind: the one called p, or else the only one there is.
//
// Python would look for modules in the working folder first, as the program is given by -c. A file
// that lies there is not what the user named, so the folder is left out; the script's own folder
// comes in its place when the script runs, as it does for `python3 script`.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

extern char **environ;

static const char script[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n" // Python 3.9 has no -P
    "import os, runpy\n"
    "try:\n"
    "    import migraphx\n"
    "except ImportError as e:\n"
    "    sys.exit('%s: %s cannot import migraphx (%s): install it there or name its folder in '\n"
    "             'PYTHONPATH' % (sys.argv[1], sys.executable, e))\n"
    "sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))\n"
    "left = runpy.run_path(sys.argv[1], run_name='__main__')\n"
    "found = {k: v for k, v in left.items() if isinstance(v, migraphx.program)}\n"
    "if 'p' not in found and len({id(v) for v in found.values()}) != 1:\n"
    "    sys.exit(sys.argv[1] + (': builds several programs, and none is called p: '\n"
    "             + ', '.join(sorted(found)) if found else ': builds no program'))\n"
    "migraphx.save(found.get('p') or next(iter(found.values())), sys.argv[2])\n";

static bool run_python(const char *file, const char *saved)
{
    char *const words[] = {(char *)"python3", (char *)"-c",  (char *)script,
                           (char *)file,      (char *)saved, NULL};
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, words[0], NULL, NULL, words, environ) != 0) {
        log_error("%s: there is no python3 to run it", file);
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && !work_stopped())
        ;
    if (status != 0)
        log_error("%s: python3 gave no program", file);
    return status == 0;
}

bool load_python(const struct options *o, migraphx_program_t *out)
{
    const char *folder = getenv("TMPDIR");
    char saved[4096];
    snprintf(saved, sizeof saved, "%s/migraphx-driver.XXXXXX", folder ? folder : "/tmp");
    const int fd = mkstemp(saved);
    if (fd < 0) {
        log_error("cannot write %s", saved);
        return false;
    }
    close(fd);
    migraphx_file_options_t options = NULL;
    const bool good = run_python(o->file, saved) && OK(migraphx_file_options_create(&options)) &&
                      OK(migraphx_load(out, saved, options));
    migraphx_file_options_destroy(options);
    unlink(saved);
    return good;
}
