// SPDX-License-Identifier: MIT
// migraphx-driver: what it says of itself, and what happens before and after each verb.
#include <unistd.h>

#include "verbs.h"

static const char *version(void)
{
    const char *text = "";
    migraphx_get_version(&text);
    return text;
}

static void print_overview(FILE *to)
{
    fprintf(to, "usage: migraphx-driver <verb> [flags] [<file>]\n\nverbs:\n");
    for (const struct verb *const *v = driver_verbs; *v; v++)
        fprintf(to, "  %-10s %s\n", (*v)->name, (*v)->summary);
    fprintf(to, "\n  %-10s %s\n  %-10s %s\n\n", "--help",
            "This text; 'help <verb>' or '<verb> --help' for its flags.", "--version",
            "The version of MIGraphX that is served.");
    fprintf(to, "Models run on the best target there is (gpu, cpu, ref) unless a flag names one.\n"
                "example: migraphx-driver perf --batch 8 model.onnx\n");
}

// Does some verb have this flag, or is it a model? Then the verb was left out.
static bool lacks_verb(const char *word)
{
    for (const struct verb *const *v = driver_verbs; *v; v++)
        if (has_flag(*v, word))
            return true;
    return access(word, F_OK) == 0;
}

static int missing_verb(int argc, char **argv)
{
    fprintf(stderr, "error: a verb is missing before '%s', for example: migraphx-driver perf",
            argv[1]);
    for (int i = 1; i < argc; i++)
        fprintf(stderr, " %s", argv[i]);
    fprintf(stderr, "\n\n");
    print_overview(stderr);
    return EXIT_USAGE;
}

static int unknown_verb(const char *name)
{
    const char *names[32];
    int count = 0;
    for (const struct verb *const *v = driver_verbs; *v && count < 32; v++)
        names[count++] = (*v)->name;
    const char *near = suggest(name, names, count);
    fprintf(stderr, "error: unknown %s '%s'", name[0] == '-' ? "flag" : "verb", name);
    fprintf(stderr, near ? ", did you mean '%s'?\n\n" : "\n\n", near);
    print_overview(stderr);
    return EXIT_USAGE;
}

// --- logging around a verb ---

static bool set_up_log(const struct options *o)
{
    const char *level = o->log_level ? o->log_level : getenv("MIGRAPHX_LOG_LEVEL");
    if (level && !log_set_level(level)) {
        fprintf(stderr, "error: '%s' is not a log level: none, error, warn, info, debug, trace\n",
                level);
        return false;
    }
    for (int i = 0; i < o->log_file.count; i++)
        if (!log_add_file(o->log_file.items[i])) {
            fprintf(stderr, "error: cannot append to '%s'\n", o->log_file.items[i]);
            return false;
        }
    return true;
}

// The engine reads its environment once, in its first call.
static void set_traces(const struct options *o)
{
    char level[16];
    snprintf(level, sizeof level, "%d", o->trace_eval);
    if (o->trace_compile)
        setenv("MIGRAPHX_TRACE_COMPILE", "1", 1);
    if (o->trace_passes)
        setenv("MIGRAPHX_TRACE_PASSES", "1", 1);
    if (o->time_passes)
        setenv("MIGRAPHX_TIME_PASSES", "1", 1);
    if (o->trace_eval)
        setenv("MIGRAPHX_TRACE_EVAL", level, 1);
}

// As a shell takes it: a word with anything in it that means something there stands in quotes.
static char *put_word(char *at, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%_+=:,./-";
    if (*word && !word[strspn(word, plain)])
        return stpcpy(at, word);
    *at++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            at = stpcpy(at, "'\\''");
        else
            *at++ = *word;
    return stpcpy(at, "'");
}

static char *join(int argc, char **argv)
{
    size_t size = 1;
    for (int i = 0; i < argc; i++)
        size += 4 * strlen(argv[i]) + 3;
    char *line = calloc(size, 1), *at = line;
    for (int i = 0; line && i < argc; i++)
        at = put_word(i ? stpcpy(at, " ") : at, argv[i]);
    return line;
}

static int run_verb(const struct verb *verb, struct options *o, int argc, char **argv)
{
    char *line = join(argc, argv);
    o->command = line ? line : "";
    const double start = now_ms();
    log_info("Running [ MIGraphX Version: %s ]: %s", version(), line ? line : "");
    work_start();
    int code = verb->run(o);
    if (work_interrupted())
        code = EXIT_INTERRUPTED;
    work_stop();
    fflush(stdout);
    log_environment();
    log_info("[ MIGraphX Version: %s ] %s(%gs): %s", version(),
             code == EXIT_SUCCESS ? "Complete" : "Failed", (now_ms() - start) / 1000,
             line ? line : "");
    free(line);
    return code;
}

// --help, --version and what packages are made of; -1 where the words are none of these.
static int describe(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    const bool help =
        strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (help && argc > 2 && find_verb(argv[2]))
        print_help(find_verb(argv[2]));
    else if (help && argc > 2)
        return unknown_verb(argv[2]);
    else if (help)
        print_overview(stdout);
    else if (strcmp(word, "-v") == 0 || strcmp(word, "--version") == 0)
        printf("MIGraphX Version: %s\n", version());
    else if (strcmp(word, "--ort-sha") == 0)
        printf("ONNX Runtime: none; this engine is not part of it and is not built with it\n");
    else if (strcmp(word, "--man") == 0)
        print_manual(version());
    else if (strcmp(word, "--completion") != 0)
        return -1;
    else if (argc < 3 || !print_completion(argv[2])) {
        fprintf(stderr, "error: --completion needs bash, zsh or fish\n");
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const int described = describe(argc, argv);
    if (described >= 0)
        return described;
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return lacks_verb(argv[1]) ? missing_verb(argc, argv) : unknown_verb(argv[1]);
    struct options o = {.iterations = 100};
    int code = EXIT_USAGE;
    if (!parse_flags(verb, argc - 2, argv + 2, &o))
        fprintf(stderr, "For more information try '--help'\n");
    else if (o.help) {
        print_help(verb);
        code = EXIT_SUCCESS;
    } else if (set_traces(&o), set_up_log(&o))
        code = run_verb(verb, &o, argc, argv);
    free_options(&o);
    log_end();
    return code;
}
