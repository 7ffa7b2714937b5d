// SPDX-License-Identifier: MIT
// generate: writes on from a prompt with the model in a folder.
//
// Tokens are the engine's own. Text takes a tokenizer, which python3's migraphx.generate has: the
// verb becomes that module with the same words. Both print as it comes, and at the end what it took.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

extern char **environ;

// --- text, by python3 ---

static const char script[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n" // nothing out of the current folder
    "try:\n"
    "    from migraphx import generate\n"
    "except ImportError as e:\n"
    "    sys.exit('error: text is made by the Python module migraphx.generate, and %s cannot "
    "import it (%s): install '\n"
    "             'it there (where its sources are: pip install .[text]) or name its folder in "
    "PYTHONPATH; "
    "--tokens needs no Python'\n"
    "             % (sys.executable, e))\n"
    "generate.main(sys.argv[1:])\n";

enum { WORDS = 64, NUMBER = 16 };

struct words_of {
    const char *items[WORDS];
    int count;
    char numbers[4][NUMBER];
};

static void put(struct words_of *w, const char *flag, const char *value)
{
    if (!value || w->count + 3 > WORDS)
        return;
    w->items[w->count++] = flag;
    w->items[w->count++] = value;
}

static void put_number(struct words_of *w, int at, const char *flag, int value)
{
    snprintf(w->numbers[at], NUMBER, "%d", value);
    put(w, flag, value ? w->numbers[at] : NULL);
}

static void put_words(struct words_of *w, const struct options *o)
{
    w->items[w->count++] = "python3";
    w->items[w->count++] = "-c";
    w->items[w->count++] = script;
    put(w, "--prompt", o->prompt);
    put(w, "--sound", o->sound);
    put(w, "--language", o->language);
    put(w, "--task", o->task);
    put(w, "--target", target_name(o));
    put(w, "--temperature", o->temperature);
    put(w, "--top-p", o->top_p);
    put(w, "--min-p", o->min_p);
    put(w, "--repetition-penalty", o->repetition_penalty);
    put(w, "--seed", o->seed);
    put(w, "--isa", o->isa);
    put_number(w, 0, "--top-k", o->top_k);
    put_number(w, 1, "--max-tokens", o->max_tokens);
    put_number(w, 2, "--threads", o->threads);
    put_number(w, 3, "--guesses", o->guesses);
    put(w, "--draft", o->draft);
    put(w, "--cards", o->cards);
    for (int i = 0; i < o->stop.count; i++)
        put(w, "--stop", o->stop.items[i]);
    if (o->chat)
        w->items[w->count++] = "--chat";
    w->items[w->count++] = "--";
    w->items[w->count++] = o->file;
    w->items[w->count] = NULL;
}

static int write_text(const struct options *o)
{
    struct words_of w = {.count = 0};
    pid_t child;
    int status = -1;
    if (o->stop.count > (WORDS - 42) / 2) {
        log_error("more than %d texts to stop at", (WORDS - 42) / 2);
        return EXIT_FAILURE;
    }
    put_words(&w, o);
    if (posix_spawnp(&child, w.items[0], NULL, NULL, (char *const *)w.items, environ) != 0) {
        log_error("text is made by python3, and there is none; --tokens needs no Python");
        return EXIT_FAILURE;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

// --- tokens ---

struct writer {
    const struct options *o;
    migraphx_generator_t generator;
    migraphx_generator_options_t options;
    size_t text;
};

static bool set_guesses(struct writer *w)
{
    migraphx_generator_t draft = NULL; // which is on one card
    const bool good =
        (!w->o->draft || (OK(migraphx_generator_options_set_cards(w->options, NULL, 0)) &&
                          OK(migraphx_generator_load(&draft, w->o->draft, w->options)) &&
                          OK(migraphx_generator_set_draft(w->generator, draft)))) &&
        OK(migraphx_generator_set_guesses(w->generator, w->text, (size_t)w->o->guesses));
    migraphx_generator_destroy(draft);
    return good;
}

static bool make_options(const struct options *o, migraphx_generator_options_t *out)
{
    migraphx_compile_options_t compile = NULL;
    struct cards cards;
    const bool good =
        read_cards(o, &cards) && OK(migraphx_compile_options_create(&compile)) &&
        OK(migraphx_compile_options_set_threads(compile, (size_t)o->threads)) &&
        OK(migraphx_compile_options_set_isa(compile, o->isa)) &&
        OK(migraphx_generator_options_create(out)) &&
        OK(migraphx_generator_options_set_target(*out, target_name(o))) &&
        OK(migraphx_generator_options_set_compile_options(*out, compile)) &&
        OK(migraphx_generator_options_set_cards(*out, cards.numbers, (size_t)cards.count));
    migraphx_compile_options_destroy(compile);
    return good;
}

// A flag that was given, as a number.
static bool set(const char *word, migraphx_sampling_t sampling,
                migraphx_status (*setter)(migraphx_sampling_t, double))
{
    return !word || OK(setter(sampling, strtod(word, NULL)));
}

static bool set_sampling(struct writer *w)
{
    const struct options *o = w->o;
    migraphx_sampling_t s = NULL;
    const bool good =
        OK(migraphx_generator_sampling(&s, w->generator)) &&
        set(o->temperature, s, migraphx_sampling_set_temperature) &&
        set(o->top_p, s, migraphx_sampling_set_top_p) &&
        set(o->min_p, s, migraphx_sampling_set_min_p) &&
        set(o->repetition_penalty, s, migraphx_sampling_set_repetition_penalty) &&
        (!o->top_k || OK(migraphx_sampling_set_top_k(s, (size_t)o->top_k))) &&
        (!o->seed || OK(migraphx_sampling_set_seed(s, strtoull(o->seed, NULL, 10)))) &&
        OK(migraphx_generator_set_sampling(w->generator, w->text, s));
    migraphx_sampling_destroy(s);
    return good;
}

// "1,2,3": NULL, after a message, where they are none.
static int64_t *read_tokens(const char *text, size_t *count)
{
    int64_t *list = malloc((strlen(text) / 2 + 1) * sizeof *list);
    const char *at = text;
    *count = 0;
    for (bool more = true; list && more;) {
        char *end;
        errno = 0;
        list[(*count)++] = strtoll(at, &end, 10);
        more = *end == ',';
        if (end == at || errno || (!more && *end)) {
            log_error("--tokens needs numbers with commas between them, not '%s'", text);
            free(list);
            return NULL;
        }
        at = end + 1;
    }
    return list;
}

// For a model with an encoder they are what the text is about, which begins by itself.
static bool tell(struct writer *w, int64_t *tokens, size_t count)
{
    migraphx_program_parameters_t inputs = NULL;
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    const size_t lens[2] = {1, count};
    int64_t start = -1;
    bool good = OK(migraphx_generator_start(&start, w->generator)) &&
                OK(migraphx_program_parameters_create(&inputs)) &&
                OK(migraphx_shape_create(&shape, migraphx_shape_int64_type, (size_t *)lens, 2)) &&
                OK(migraphx_argument_create(&argument, shape, tokens)) &&
                OK(migraphx_program_parameters_add(inputs, "input_ids", argument)) &&
                OK(migraphx_generator_set_source(w->generator, w->text, inputs));
    if (good && start < 0) {
        log_error("the folder does not say which token a text begins with");
        good = false;
    }
    good = good && OK(migraphx_generator_append(w->generator, w->text, &start, 1));
    migraphx_program_parameters_destroy(inputs);
    migraphx_argument_destroy(argument);
    migraphx_shape_destroy(shape);
    return good;
}

static bool append(struct writer *w)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0, inputs = 0;
    int64_t *tokens = read_tokens(w->o->tokens, &count);
    bool good = tokens && OK(migraphx_generator_source_shapes(&shapes, w->generator)) &&
                OK(migraphx_program_parameter_shapes_size(&inputs, shapes));
    good = good && (inputs ? tell(w, tokens, count)
                           : OK(migraphx_generator_append(w->generator, w->text, tokens, count)));
    migraphx_program_parameter_shapes_destroy(shapes);
    free(tokens);
    return good;
}

// The next token, unless there is to be none: *done.
static bool step(struct writer *w, int written, bool *done)
{
    size_t size = 0, context = 0;
    int64_t token;
    if (!OK(migraphx_generator_size(&size, w->generator, w->text)) ||
        !OK(migraphx_generator_context(&context, w->generator)))
        return false;
    *done = (w->o->max_tokens && written == w->o->max_tokens) || (context && size == context);
    if (*done)
        return true;
    const migraphx_status status = migraphx_generator_next(&token, w->generator, &w->text, 1);
    if (status == migraphx_status_cancelled && work_stopped()) {
        *done = true;
        return true;
    }
    if (!OK(status) || !OK(migraphx_generator_is_end(done, w->generator, token)))
        return false;
    if (!*done)
        printf(written ? " %lld" : "%lld", (long long)token);
    fflush(stdout);
    return true;
}

static long resident_mib(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void report(struct writer *w, double began)
{
    static const char *const names[] = {"prompt_tokens", "prompt_seconds", "answer_tokens",
                                        "answer_seconds"};
    double v[4] = {0};
    for (int i = 0; i < 4; i++)
        if (!OK(migraphx_generator_statistic(&v[i], w->generator, names[i])))
            return;
    log_result(
        "prompt: %.0f tokens, %.1f a second; answer: %.0f tokens, %.1f a second; ready after "
        "%.2f s; %ld MiB resident",
        v[0], v[1] > 0 ? v[0] / v[1] : 0, v[2], v[3] > 0 ? v[2] / v[3] : 0, began / 1000,
        resident_mib());
}

static bool write_tokens(struct writer *w)
{
    const double start = now_ms();
    work_begin("reading the model", 0);
    bool done = false, good = make_options(w->o, &w->options) &&
                              OK(migraphx_generator_load(&w->generator, w->o->file, w->options)) &&
                              OK(migraphx_generator_add(&w->text, w->generator)) &&
                              set_sampling(w) && set_guesses(w) && append(w);
    work_end();
    const double began = now_ms() - start;
    migraphx_generator_options_destroy(w->options);
    for (int written = 0; good && !done; written++)
        good = step(w, written, &done);
    if (good) {
        printf("\n");
        report(w, began);
    }
    migraphx_generator_destroy(w->generator);
    return good;
}

static int run(struct options *o)
{
    struct writer w = {.o = o};
    if (!o->file || !!o->prompt + !!o->tokens + !!o->sound != 1) {
        log_error("generate needs a folder, and --prompt, --sound or --tokens");
        return EXIT_USAGE;
    }
    if (!o->target)
        o->target = o->cards ? "gpu" : "cpu";
    if (!o->tokens)
        return write_text(o);
    return write_tokens(&w) ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define ROW(kind, name, member, argument, help, least)                                             \
    {                                                                                              \
        kind, name, NULL, OFFSET(member), argument, help, 0, NULL, least                           \
    }
// clang-format off
static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "what to write", 0, NULL},
    ROW(FLAG_WORD, "--prompt", prompt, "<text>", "what the text begins with (by python3's migraphx.generate)", 0),
    ROW(FLAG_WORD, "--sound", sound, "<file.wav>", "what a model of speech hears instead: 16 kHz, 16 bits", 0),
    ROW(FLAG_WORD, "--language", language, "<name>", "... in which language: en, de ... [the model finds out]", 0),
    ROW(FLAG_WORD, "--task", task, "<name>", "... transcribe, or translate: into English [transcribe]", 0),
    ROW(FLAG_SET, "--chat", chat, NULL, "... is a message: the folder's chat template is put around it", 0),
    ROW(FLAG_WORDS, "--stop", stop, "<text> ...", "... ends where one of these comes", 0),
    ROW(FLAG_WORD, "--tokens", tokens, "1,2,3", "the same as numbers; numbers are written too", 0),
    ROW(FLAG_INT, "--max-tokens", max_tokens, "N", "the most to write [until the model ends]", 1),
    ROW(FLAG_REAL, "--temperature", temperature, "<x>", "how far chance goes; 0: the best token [the folder's]", 0),
    ROW(FLAG_INT, "--top-k", top_k, "N", "only the N best tokens [the folder's]", 1),
    ROW(FLAG_REAL, "--top-p", top_p, "<x>", "only the best that have this probability together [the folder's]", 0),
    ROW(FLAG_REAL, "--min-p", min_p, "<x>", "only those with this share of the best one's [the folder's]", 0),
    ROW(FLAG_REAL, "--repetition-penalty", repetition_penalty, "<x>", "less of what is there already [the folder's]", 0),
    ROW(FLAG_INT, "--guesses", guesses, "N", "tokens that a run takes beside the one it needs, 15 at most [0]", 0),
    ROW(FLAG_WORD, "--draft", draft, "<folder>", "a smaller model of the same tokens, which guesses them", 0),
    ROW(FLAG_WORD, "--seed", seed, "N", "what chance follows from [0]", 0),
    {FLAG_HEADING, NULL, NULL, 0, NULL, "how to run", 0, NULL},
    {FLAG_NAME, "--ref", NULL, OFFSET(target), NULL, "the reference target", 0, "ref"},
    {FLAG_NAME, "--cpu", NULL, OFFSET(target), NULL, "the CPU target (the default)", 0, "cpu"},
    {FLAG_NAME, "--gpu", NULL, OFFSET(target), NULL, "the GPU target", 0, "gpu"},
    ROW(FLAG_WORD, "--cards", cards, "0,1", "... on these cards, which compute the model together", 0),
    ROW(FLAG_INT, "--threads", threads, "N", "threads per run [all the process may use]", 1),
    ROW(FLAG_WORD, "--isa", isa, "<name>", "generic, avx2, avx512, or native-avx512f ... [native]", 0),
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
// clang-format on
static const struct flag *const flags[] = {own, common_flags, NULL};
const struct verb verb_generate = {
    "generate",
    "Writes on from a prompt with the model in a folder.",
    "[flags] <folder> (--prompt <text> | --sound <file.wav> | --tokens 1,2,3)",
    flags,
    run,
    false};
