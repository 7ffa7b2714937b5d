// SPDX-License-Identifier: MIT
// migraphx-driver: the table of verbs, and what happens before and after each of them.
#include "verbs.h"

extern char **environ;

static const struct verb *const verbs[] = {&verb_read,   &verb_compile, &verb_run,
                                           &verb_time,   &verb_perf,    &verb_verify,
                                           &verb_params, &verb_op,      &verb_onnx};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const char *version(void)
{
    const char *text = "";
    migraphx_get_version(&text);
    return text;
}

static void print_overview(FILE *to)
{
    fprintf(to, "usage: migraphx-driver <verb> [flags] [<file>]\n\nverbs:\n");
    for (int i = 0; i < VERBS; i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "\n  %-10s %s\n  %-10s %s\n\n", "--help",
            "This text; '<verb> --help' for its flags.", "--version",
            "The version of MIGraphX that is served.");
    fprintf(to, "example: migraphx-driver perf --batch 8 model.onnx\n");
}

static const struct verb *find_verb(const char *name)
{
    for (int i = 0; i < VERBS; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[VERBS];
    for (int i = 0; i < VERBS; i++)
        names[i] = verbs[i]->name;
    const char *near = suggest(name, names, VERBS);
    fprintf(stderr, "error: unknown verb '%s'", name);
    fprintf(stderr, near ? ", did you mean '%s'?\n\n" : "\n\n", near);
    print_overview(stderr);
    return EXIT_USAGE;
}

// --- logging around a verb ---

static bool set_up_log(const struct options *o)
{
    const char *level = o->log_level ? o->log_level : getenv("MIGRAPHX_LOG_LEVEL");
    if (level && !log_set_level(level)) {
        fprintf(stderr, "error: '%s' is not a log level\n", level);
        return false;
    }
    for (int i = 0; i < o->log_file.count; i++)
        if (!log_add_file(o->log_file.items[i])) {
            fprintf(stderr, "error: cannot append to '%s'\n", o->log_file.items[i]);
            return false;
        }
    return true;
}

static char *join(int argc, char **argv)
{
    size_t size = 1;
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *line = calloc(size, 1);
    for (int i = 0, at = 0; line && i < argc; i++)
        at += sprintf(line + at, "%s%s", i ? " " : "", argv[i]);
    return line;
}

// Variables that the engine reads; anything else that begins with MIGRAPHX is probably a mistake.
static void log_environment(void)
{
    static const char *const known[] = {
        "MIGRAPHX_TRACE_COMPILE", "MIGRAPHX_TRACE_PASSES",   "MIGRAPHX_TIME_PASSES",
        "MIGRAPHX_TRACE_EVAL",    "MIGRAPHX_DISABLE_PASSES", "MIGRAPHX_NUM_THREADS",
        "MIGRAPHX_CPU_ISA",       "MIGRAPHX_PROBLEM_CACHE",  "MIGRAPHX_LOG_LEVEL"};
    for (char **e = environ; *e; e++) {
        if (strncmp(*e, "MIGRAPHX", 8) != 0)
            continue;
        const size_t length = strcspn(*e, "=");
        bool used = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            used |= strlen(known[i]) == length && strncmp(*e, known[i], length) == 0;
        if (used)
            log_info("%s\\", *e);
        else
            log_warn("Unused environment variable: %.*s", (int)length, *e);
    }
}

static int run_verb(const struct verb *verb, struct options *o, int argc, char **argv)
{
    char *line = join(argc, argv);
    const double start = now_ms();
    log_info("Running [ MIGraphX Version: %s ]: %s", version(), line ? line : "");
    const int code = verb->run(o);
    fflush(stdout);
    log_environment();
    log_info("[ MIGraphX Version: %s ] Complete(%gs): %s", version(), (now_ms() - start) / 1000,
             line ? line : "");
    free(line);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        print_overview(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--version") == 0) {
        printf("MIGraphX Version: %s\n", version());
        return EXIT_SUCCESS;
    }
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return unknown_verb(argv[1]);
    struct options o = {.iterations = 100};
    int code = EXIT_USAGE;
    if (!parse_flags(verb, argc - 2, argv + 2, &o))
        fprintf(stderr, "For more information try '--help'\n");
    else if (o.help) {
        print_help(verb);
        code = EXIT_SUCCESS;
    } else if (set_up_log(&o))
        code = run_verb(verb, &o, argc, argv);
    free_options(&o);
    log_end();
    return code;
}
