// SPDX-License-Identifier: MIT
// Reading .py: the program that a Python script builds. python3 runs the script, as the user would,
// and saves the migraphx.program it left behind: the one called p, or else the only one there is.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

extern char **environ;

static const char script[] =
    "import runpy, sys\n"
    "try:\n"
    "    import migraphx\n"
    "except ImportError as e:\n"
    "    sys.exit('%s: %s cannot import migraphx (%s): install it there or name its folder in '\n"
    "             'PYTHONPATH' % (sys.argv[1], sys.executable, e))\n"
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
