// SPDX-License-Identifier: MIT
// The command line: tables of flags, their parser, the help, and suggestions for misspelt words.
//
// A word is a flag only if it equals one exactly, or is "--flag=value". A flag of many words takes
// all that follow up to the next flag, so "--input-dim @a 1 2 @b 3 --fp16" needs no quoting; "--"
// ends its words, and behind it nothing is a flag.
#include <ctype.h>
#include <errno.h>
#include <limits.h>

#include "verbs.h"

#define SET(name, other, member, help)                                                             \
    {                                                                                              \
        FLAG_SET, name, other, OFFSET(member), NULL, help, 0, NULL                                 \
    }
#define WORD(name, other, member, argument, help)                                                  \
    {                                                                                              \
        FLAG_WORD, name, other, OFFSET(member), argument, help, 0, NULL                            \
    }
#define INT(name, other, member, least, help)                                                      \
    {                                                                                              \
        FLAG_INT, name, other, OFFSET(member), "N", help, 0, NULL, least                           \
    }
#define WORDS(name, other, member, argument, help)                                                 \
    {                                                                                              \
        FLAG_WORDS, name, other, OFFSET(member), argument, help, 0, NULL                           \
    }
#define TYPE(name, kind, help)                                                                     \
    {                                                                                              \
        FLAG_TYPE, name, NULL, OFFSET(type), NULL, help, kind, NULL                                \
    }
#define NAME(name, other, member, word, help)                                                      \
    {                                                                                              \
        FLAG_NAME, name, other, OFFSET(member), NULL, help, 0, word                                \
    }
#define REAL(flag, short, member, help)                                                            \
    {                                                                                              \
        FLAG_REAL, flag, short, OFFSET(member), "<x>", help, 0, NULL                               \
    }
#define HEADING(text)                                                                              \
    {                                                                                              \
        FLAG_HEADING, NULL, NULL, 0, NULL, text, 0, NULL                                           \
    }
#define END                                                                                        \
    {                                                                                              \
        FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL                                               \
    }

// clang-format off
const struct flag loader_flags[] = {
    HEADING("what to load"),
    SET("--test", NULL, test, "the built-in model gemm instead of a file"),
    WORD("--model", NULL, model, "<name>", "a built-in model: gemm, conv, mlp, attention"),
    TYPE("--onnx", FILE_ONNX, "the file is an ONNX model, whatever its name"),
    TYPE("--tf", FILE_TF, "... a TensorFlow graph"),
    TYPE("--migraphx", FILE_MXR, "... a saved program"),
    TYPE("--migraphx-json", FILE_JSON, "... a program saved as JSON"),
    TYPE("--migraphx-text", FILE_TEXT, "... a program as `read` prints it"),
    INT("--batch", NULL, batch, 1, "size of open dimensions [1], and of perf's rate"),
    NAME("--nhwc", NULL, model, NULL, "layout of TensorFlow graphs (the default)"),
    SET("--nchw", NULL, nchw, "layout of TensorFlow graphs"),
    SET("--skip-unknown-operators", NULL, skip_unknown, "import them as unknown:<name>"),
    SET("--debug-symbols", NULL, debug_symbols, "print the model's node names"),
    INT("--trim", "-t", trim, 0, "drop this many instructions from the end"),
    INT("--trim-size", "-s", trim_size, 0, "keep only this many before that"),
    WORDS("--input-dim", NULL, input_dim, "@name d ...", "lengths of an input"),
    WORDS("--dim-param", NULL, dim_param, "@name d", "length or range of a named dimension"),
    WORDS("--dyn-input-dim", NULL, dyn_input_dim, "@name dims", "ranges: \"[{min:1,max:4},3,24]\""),
    WORD("--default-dyn-dim", NULL, default_dyn_dim, "<range>", "range of open dimensions"),
    SET("--dynamic-dims", NULL, dynamic_dims, "keep open dimensions open"),
    WORDS("--output-names", NULL, output_names, "<name> ...", "results of a TensorFlow graph"),
    SET("--optimize", "-O", optimize, "simplify the program after reading"),
    WORDS("--apply-pass", "-p", apply_pass, "<name> ...", "run passes, in this order"),
    SET("--replace-literals", NULL, replace_literals, "make literals parameters literal:0, ..."),
    SET("--mlir", NULL, mlir, "accepted, and changes nothing"),
    SET("--strip-context", NULL, strip_context, "forget that a saved program is compiled"),
    SET("--trust-kernels", NULL, trust, "run the compiled GPU kernels in a saved program"),
    END};

const struct flag output_flags[] = {
    HEADING("how to write the program"),
    NAME("--text", NULL, format, "text", "the text form (the default)"),
    NAME("--json", NULL, format, "json", "JSON"),
    NAME("--py", "--python", format, "py", "Python that builds it"),
    NAME("--cpp", NULL, format, "cpp", "C++ that builds it"),
    NAME("--graphviz", "-g", format, "graphviz", "a graph for dot"),
    NAME("--binary", NULL, format, "binary", "a saved program"),
    NAME("--netron", NULL, format, "netron", "an ONNX model for Netron to draw"),
    SET("--brief", NULL, brief, "graphviz: operator names alone"),
    WORD("--output", "-o", output, "<file>", "into a file (binary unless a form is given)"),
    END};

const struct flag compile_flags[] = {
    HEADING("how to compile and what to feed"),
    NAME("--ref", NULL, target, "ref", "the reference target"),
    NAME("--cpu", NULL, target, "cpu", "the CPU target (without a flag the best there is: gpu, cpu, ref)"),
    NAME("--gpu", NULL, target, "gpu", "the GPU target"),
    WORDS("--fill0", NULL, fill0, "<input> ...", "fill inputs with zeros"),
    WORDS("--fill1", NULL, fill1, "<input> ...", "fill inputs with ones"),
    WORDS("--load-arg", NULL, load_arg, "@input <file>", "read inputs from .npy, .npz, .pb or saved arguments"),
    SET("--enable-offload-copy", NULL, offload_copy, "copy inputs and results in every run"),
    SET("--disable-fast-math", NULL, no_fast_math, "no inexact rewrites"),
    SET("--exhaustive-tune", NULL, exhaustive, "measure every candidate kernel"),
    WORD("--tuning-cache", NULL, tuning_cache, "<file>", "keep what tuning measured"),
    SET("--tuning-strict", NULL, tuning_strict, "fail where the tuning cache has no answer"),
    REAL("--tuning-seconds", NULL, tuning_seconds, "stop measuring after so long"),
    INT("--threads", NULL, threads, 1, "threads per run [all the process may use]"),
    INT("--run-memory", NULL, run_memory, 1, "MiB that a run may hold at a time [no limit]"),
    WORD("--isa", NULL, isa, "<name>", "generic, avx2, avx512, or native-avx512f ... [native]"),
    WORDS("--disable-pass", NULL, disable_pass, "<name> ...", "skip passes of the target"),
    SET("--tf32", NULL, tf32, "products of floats on the GPU may be TF32"),
    WORD("--gemm-provider", NULL, gemm_provider, "<name>", "products on the GPU: own, or a library's name [auto]"),
    SET("--fp16", NULL, fp16, "quantize to half precision"),
    SET("--bf16", NULL, bf16, "quantize to bfloat16"),
    SET("--int8", NULL, int8, "quantize to 8-bit integers"),
    SET("--fp8", NULL, fp8, "quantize to 8-bit floats"),
    SET("--int4-weights", NULL, int4, "quantize weights to 4-bit integers"),
    INT("--int4-block", NULL, int4_block, 1, "weights of one scale [32]"),
    WORDS("--calibration", NULL, calibration, "<path> ...", "samples for --int8 and --fp8: folders, .npz, .npy, .pb, .jpg, .png ..."),
    REAL("--image-scale", NULL, image_scale, "images: pixels are multiplied by this [1/255; 1 for bytes]"),
    WORDS("--image-mean", NULL, image_mean, "<x> ...", "... then less this, of all channels or each [0]"),
    WORDS("--image-std", NULL, image_std, "<x> ...", "... then divided by this [1]"),
    SET("--image-bgr", NULL, image_bgr, "... with blue first"),
    WORD("--calibration-method", NULL, method, "<name>", "max, percentile, entropy, error [max]"),
    REAL("--percentile", NULL, percentile, "of a hundred values, how many percentile keeps [99.99]"),
    SET("--asymmetric", NULL, asymmetric, "activations of int8 get a zero point"),
    SET("--per-tensor", NULL, per_tensor, "one scale for all weights of a product"),
    SET("--smooth", NULL, smooth, "move outliers of activations into the weights"),
    SET("--correct-bias", NULL, correct_bias, "take the mean error of weights off results"),
    WORD("--ranges", NULL, ranges, "<file>", "quantize by ranges found before"),
    WORD("--save-ranges", NULL, save_ranges, "<file>", "write the ranges found"),
    REAL("--budget", NULL, budget, "quantize only as much as this error allows"),
    WORD("--metric", NULL, metric, "<name>", "of the budget: relative, top [relative]"),
    SET("--reckon-time", NULL, reckon, "weigh a budget by multiplications, not by time measured here"),
    END};

const struct flag json_flags[] = {
    HEADING("for scripts"),
    NAME("--json", NULL, format, "json", "print JSON"),
    END};

const struct flag common_flags[] = {
    HEADING("common"),
    SET("--trace-compile", NULL, trace_compile, "as MIGRAPHX_TRACE_COMPILE=1"),
    SET("--trace-passes", NULL, trace_passes, "as MIGRAPHX_TRACE_PASSES=1"),
    SET("--time-passes", NULL, time_passes, "as MIGRAPHX_TIME_PASSES=1"),
    INT("--trace-eval", NULL, trace_eval, 0, "as MIGRAPHX_TRACE_EVAL=N"),
    SET("--help", "-h", help, "this text"),
    WORD("--log-level", NULL, log_level, "<level>", "none, error, warn, info, debug, trace [what came out, in short]"),
    WORDS("--log-file", NULL, log_file, "<file> ...", "append log lines to files too"),
    END};
// clang-format on

// --- suggestions ---

// Edit distance, up to 31 letters; longer words count as far away.
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    const size_t n = strlen(a), m = strlen(b);
    int row[LONGEST];
    if (n >= LONGEST || m >= LONGEST)
        return INT_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = change < row[j] + 1 ? change : row[j] + 1;
            if (row[j - 1] + 1 < row[j])
                row[j] = row[j - 1] + 1;
        }
    }
    return row[m];
}

// How many changes a word may be away: those that a slip of the fingers makes, not another word.
static int near_enough(const char *word)
{
    const size_t letters = strlen(word + strspn(word, "-"));
    return letters < 4 ? 1 : letters < 9 ? 2 : 3;
}

const char *suggest(const char *word, const char *const *list, int count)
{
    const char *best = NULL;
    int least = near_enough(word) + 1;
    for (int i = 0; i < count; i++) {
        const int d = list[i] ? distance(word, list[i]) : INT_MAX;
        if (d < least && d < (int)strlen(word)) {
            least = d;
            best = list[i];
        }
    }
    return best;
}

// --- parsing ---

static const struct flag *find_flag(const struct verb *verb, const char *word)
{
    for (const struct flag *const *table = verb->flags; *table; table++)
        for (const struct flag *f = *table; f->kind != FLAG_END; f++)
            if ((f->name && strcmp(f->name, word) == 0) ||
                (f->other && strcmp(f->other, word) == 0))
                return f;
    return NULL;
}

bool has_flag(const struct verb *verb, const char *word)
{
    return find_flag(verb, word) != NULL;
}

// "--flag=value": the flag, its name in *name (to be freed) and where the value begins; or NULL.
static const struct flag *split(const struct verb *verb, char *word, char **name, char **value)
{
    char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    *name = equals ? strndup(word, (size_t)(equals - word)) : NULL;
    const struct flag *f = *name ? find_flag(verb, *name) : NULL;
    if (!f) {
        free(*name);
        *name = NULL;
    }
    *value = equals ? equals + 1 : NULL;
    return f;
}

// Is it a flag, with or without "=value"?
static bool begins_flag(const struct verb *verb, char *word)
{
    char *name, *value;
    if (find_flag(verb, word))
        return true;
    const bool yes = split(verb, word, &name, &value) != NULL;
    free(name);
    return yes;
}

// Which verbs have a flag that this one has not.
static void say_whose(const struct verb *verb, const char *word)
{
    int count = 0;
    for (const struct verb *const *v = driver_verbs; *v; v++)
        if (*v != verb && find_flag(*v, word))
            fprintf(stderr, "%s%s", count++ ? ", " : "; these have it: ", (*v)->name);
    fprintf(stderr, "\n");
}

static bool unknown_flag(const struct verb *verb, const char *word)
{
    char name[64]; // without "=value"
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (const struct verb *const *v = driver_verbs; *v; v++)
        if (find_flag(*v, name)) {
            fprintf(stderr, "error: '%s' has no flag '%s'", verb->name, name);
            say_whose(verb, name);
            return false;
        }
    const char *list[128];
    int count = 0;
    for (const struct flag *const *table = verb->flags; *table; table++)
        for (const struct flag *f = *table; f->kind != FLAG_END && count < 126; f++) {
            list[count++] = f->name;
            list[count++] = f->other;
        }
    const char *near = suggest(name, list, count);
    fprintf(stderr, "error: unknown flag '%s'", name);
    fprintf(stderr, near ? ", did you mean '%s'?\n" : "\n", near);
    return false;
}

static bool append(struct words *words, const char *word)
{
    const char **items = realloc(words->items, (size_t)(words->count + 1) * sizeof *items);
    if (!items)
        return false;
    words->items = items;
    words->items[words->count++] = word;
    return true;
}

static bool parse_int(const struct flag *f, const char *name, const char *text, int *out)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno || !*text || *end || value < f->least || value > INT_MAX) {
        fprintf(stderr, "error: %s needs a number from %d on, not '%s'\n", name, f->least, text);
        return false;
    }
    *out = (int)value;
    return true;
}

static bool is_end(const char *word)
{
    return strcmp(word, "--") == 0;
}

static bool check_real(const char *name, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (*text && !*end && value == value) // no NaN
        return true;
    fprintf(stderr, "error: %s needs a number, not '%s'\n", name, text);
    return false;
}

// --- models that a flag of many words has taken ---

static bool names_model(const char *word)
{
    static const char *const ends[] = {".onnx", ".pb", ".mxr", ".json", ".py", ".msgpack"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(word, ends[i]))
            return true;
    return false;
}

// The last such word before the end of the command line, and its flag; NULL: there is none.
static const char *find_taken(const struct verb *verb, int argc, char **argv, const char **flag)
{
    const char *found = NULL, *now = NULL;
    for (int i = 0; i < argc; i++) {
        const struct flag *f = find_flag(verb, argv[i]);
        if (f)
            now = f->kind == FLAG_WORDS ? argv[i] : NULL;
        else if (now && names_model(argv[i])) {
            found = argv[i];
            *flag = now;
        }
    }
    return found;
}

static bool say_no_model(const struct verb *verb, int argc, char **argv)
{
    const char *flag = NULL, *word = find_taken(verb, argc, argv, &flag);
    fprintf(stderr, "error: %s needs a file, --test or --model", verb->name);
    if (word)
        fprintf(stderr,
                "; '%s' was taken by %s, which takes all words up to the next flag: write "
                "it before the flag, or behind '--'",
                word, flag);
    fprintf(stderr, "\n");
    return false;
}

// Reads what belongs to the flag at argv[*at] and leaves *at on the last word taken.
static bool take(const struct verb *verb, const struct flag *f, int argc, char **argv, int *at,
                 struct options *o)
{
    void *to = (char *)o + f->offset;
    const char *name = argv[*at];
    switch (f->kind) {
    case FLAG_SET:
        *(bool *)to = true;
        return true;
    case FLAG_TYPE:
        *(enum file_type *)to = f->value;
        return true;
    case FLAG_NAME:
        if (f->word)
            *(const char **)to = f->word;
        return true;
    case FLAG_WORDS: {
        const int first = *at;
        while (*at + 1 < argc && !begins_flag(verb, argv[*at + 1]) && !is_end(argv[*at + 1]))
            if (!append(to, argv[++*at]))
                return false;
        if (*at == first)
            fprintf(stderr, "error: %s needs %s\n", name, f->argument);
        return *at > first;
    }
    default:
        break;
    }
    if (*at + 1 >= argc || begins_flag(verb, argv[*at + 1])) {
        fprintf(stderr, "error: %s needs %s\n", name, f->argument);
        return false;
    }
    const char *word = argv[++*at];
    if (f->kind == FLAG_INT)
        return parse_int(f, name, word, to);
    *(const char **)to = word;
    return f->kind != FLAG_REAL || check_real(name, word);
}

static bool looks_like_flag(const char *word)
{
    return word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]));
}

// "--flag=value" is the flag and this one word, also where many are taken.
static bool take_value(const struct verb *verb, const struct flag *f, char *name, char *value,
                       struct options *o)
{
    int at = 0;
    char *words[] = {name, value};
    if (f->argument && *value)
        return take(verb, f, 2, words, &at, o);
    fprintf(stderr, f->argument ? "error: %s needs %s\n" : "error: %s takes no value\n", name,
            f->argument);
    return false;
}

static bool take_file(const struct verb *verb, const char *word, struct options *o)
{
    if (o->file && verb->two_files && !o->second) {
        o->second = word;
    } else if (o->file) {
        fprintf(stderr, "error: '%s' after '%s': one argument is enough%s\n", word, o->file,
                looks_like_flag(word) ? ", and behind '--' nothing is a flag" : "");
        return false;
    } else
        o->file = word;
    return true;
}

static bool take_word(const struct verb *verb, int argc, char **argv, int *at, struct options *o)
{
    char *name, *value;
    const struct flag *f = find_flag(verb, argv[*at]);
    if (f)
        return take(verb, f, argc, argv, at, o);
    f = split(verb, argv[*at], &name, &value);
    if (f) {
        const bool good = take_value(verb, f, name, value, o);
        free(name);
        return good;
    }
    return looks_like_flag(argv[*at]) ? unknown_flag(verb, argv[*at])
                                      : take_file(verb, argv[*at], o);
}

bool parse_flags(const struct verb *verb, int argc, char **argv, struct options *o)
{
    bool ended = false, good = true;
    for (int i = 0; i < argc && good; i++)
        if (!ended && is_end(argv[i]))
            ended = true;
        else
            good = ended ? take_file(verb, argv[i], o) : take_word(verb, argc, argv, &i, o);
    if (good && verb->needs_model && !o->help && !o->file && !o->test && !o->model)
        return say_no_model(verb, argc, argv);
    return good;
}

void free_options(struct options *o)
{
    struct words *all[] = {&o->input_dim,  &o->dim_param,    &o->dyn_input_dim, &o->output_names,
                           &o->apply_pass, &o->fill0,        &o->fill1,         &o->load_arg,
                           &o->log_file,   &o->disable_pass, &o->expect,        &o->calibration,
                           &o->image_mean, &o->image_std,    &o->forms,         &o->stop};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->items);
}

// --- help ---

void print_help(const struct verb *verb)
{
    printf("usage: migraphx-driver %s %s\n\n%s\n", verb->name, verb->usage, verb->summary);
    for (const struct flag *const *table = verb->flags; *table; table++)
        for (const struct flag *f = *table; f->kind != FLAG_END; f++) {
            if (f->kind == FLAG_HEADING) {
                printf("\n%s:\n", f->help);
                continue;
            }
            char names[80];
            snprintf(names, sizeof names, "%s%s%s%s%s", f->other ? f->other : "",
                     f->other ? ", " : "", f->name, f->argument ? " " : "",
                     f->argument ? f->argument : "");
            printf("  %-32s %s\n", names, f->help);
        }
}
