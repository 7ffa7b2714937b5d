// SPDX-License-Identifier: MIT
// What the verbs of migraphx-driver share: options, flags, logging, loading, compiling, inputs.
//
// Results go to stdout, everything said about the work goes to stderr as log lines. The exit code
// is 0 when the work was done, 1 when it was not (a failed verification included), 2 when the
// command line makes no sense, 130 when Ctrl-C ended it.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <migraphx/extensions.h>

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

// --- logging: "2026-01-31 12:00:00.000000 [INFO] [perf.c:12] text", or short (log.c) ---

// LOG_RESULT is info that is shown also without a level: what the work came to.
enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE, LOG_RESULT };

void log_line(enum log_level level, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define log_error(...) log_line(LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define log_result(...) log_line(LOG_RESULT, __FILE__, __LINE__, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
bool log_set_level(const char *name); // "none" ... "trace" or "0" ... "5"
bool log_add_file(const char *path);  // appends to it as well
void log_end(void);

// True when the call succeeded; otherwise logs the interface's text.
#define OK(call) ((call) == migraphx_status_success || (log_last_error(__FILE__, __LINE__), false))
void log_last_error(const char *file, int line);

// --- options ---

struct words {
    const char **items; // point into argv
    int count;
};

enum file_type { FILE_AUTO, FILE_ONNX, FILE_TF, FILE_MXR, FILE_JSON, FILE_TEXT };

struct options {
    // what to load
    const char *file;
    enum file_type type;
    bool test;
    const char *model; // a built-in one
    int batch;
    bool nchw, skip_unknown, debug_symbols, dynamic_dims;
    int trim, trim_size;
    struct words input_dim, dim_param, dyn_input_dim, output_names, apply_pass;
    const char *default_dyn_dim;
    bool optimize, strip_context, trust, replace_literals, mlir;
    // how to write a program
    const char *format; // NULL: text, or binary into a file
    bool brief;
    const char *output;
    // how to compile and what to feed
    struct words fill0, fill1, load_arg, expect;
    const char *target;
    const char *cards; // "0,1"; NULL: the card that is found
    int card;          // with `cards`: which of them
    bool on_card;      // of a verb that leaves inputs and results in a card's memory
    bool offload_copy, no_fast_math, exhaustive, fp16, bf16, int8, fp8, int4, explain;
    struct words calibration, image_mean, image_std;
    const char *image_scale;
    bool image_bgr;
    const char *method, *percentile, *ranges, *save_ranges, *budget, *metric, *check;
    bool asymmetric, per_tensor, correct_bias, smooth, reckon;
    int int4_block;
    int threads;
    int run_memory; // MiB; 0: no limit
    struct words forms;
    const char *isa, *gemm_provider, *tuning_cache, *tuning_seconds;
    bool tuning_strict, tf32;
    struct words disable_pass;
    // what to generate
    const char *prompt, *tokens, *temperature, *top_p, *min_p, *repetition_penalty, *seed;
    const char *sound, *language, *task;
    const char *draft;
    int max_tokens, top_k, guesses;
    bool chat;
    struct words stop;
    // of single verbs
    const char *second, *trace, *html;
    int iterations;
    bool detailed, list, totals;
    const char *rms_tol, *atol, *rtol, *compiled_model;
    bool per_instruction, reduce, bisect, ref_double, print;
    // of all verbs
    const char *command; // the whole line
    bool help, trace_compile, trace_passes, time_passes;
    int trace_eval;
    const char *log_level;
    struct words log_file;
};

// --- flags: tables of rows, put together by each verb ---

enum flag_kind {
    FLAG_END,
    FLAG_HEADING, // a line of the help
    FLAG_SET,     // bool: true
    FLAG_WORD,    // const char *: one word
    FLAG_INT,     // int: one number, `least` or more
    FLAG_REAL,    // const char *: one number, as text
    FLAG_WORDS,   // struct words: all words up to the next flag; repeats append
    FLAG_TYPE,    // enum file_type: `value`
    FLAG_NAME,    // const char *: `name`
};

struct flag {
    enum flag_kind kind;
    const char *name, *other; // "--trim", "-t"; either may be NULL
    size_t offset;            // into struct options
    const char *argument;     // how the help calls it
    const char *help;
    enum file_type value;
    const char *word;
    int least;
};

#define OFFSET(member) offsetof(struct options, member)

extern const struct flag loader_flags[], output_flags[], compile_flags[], json_flags[],
    common_flags[];

struct verb {
    const char *name, *summary, *usage;
    const struct flag *const *flags; // NULL-terminated list of tables
    int (*run)(struct options *o);
    bool needs_model;
    bool two_files; // takes a second one
};

// Fills the options; on nonsense prints why and returns false.
bool parse_flags(const struct verb *verb, int argc, char **argv, struct options *o);
bool has_flag(const struct verb *verb, const char *word);
void print_help(const struct verb *verb);
void free_options(struct options *o);
// The entry of `list` that is spelled most like `word`, or NULL.
const char *suggest(const char *word, const char *const *list, int count);

// --- work ---

bool load_model(const struct options *o, migraphx_program_t *out);
bool is_saved_model(const char *path); // a folder that holds a SavedModel
bool load_python(const struct options *o, migraphx_program_t *out);
// What --test and --model build, by name; NULL after the last index.
const char *builtin_model_name(int index);
bool builtin_model(const char *name, migraphx_program_t *out);
// Optimizes, applies passes, trims: what every verb does after loading.
bool prepare_model(const struct options *o, migraphx_program_t program);
bool quantize_model(const struct options *o, migraphx_program_t program);
// Options of quantization as the flags say, samples included; int8 or fp8.
bool make_quantize_options(const struct options *o, migraphx_program_t program, bool fp8,
                           migraphx_quantize_options_t *out);
// By those options; *ranges gets what was done (migraphx_string_destroy), and --save-ranges too.
bool quantize_products(const struct options *o, migraphx_program_t program, bool fp8,
                       char **ranges);
// Samples of folders and files; docs/precision.md says which. Calls `add` with each, in order.
bool read_samples(const struct options *o, migraphx_program_t program,
                  bool (*add)(void *data, migraphx_program_parameters_t sample), void *data);
const char *target_name(const struct options *o);
bool compile_model(const struct options *o, migraphx_program_t program, const char *target,
                   bool compute_double);
bool compile_quietly(const struct options *o, migraphx_program_t program, const char *target);
// Are the inputs that a flag names with `mark` before them ("@", "") inputs of the program? Says
// which is not.
// --- check.c: names that flags give must exist; each says which do ---
bool check_dim_params(const struct options *o);
bool check_tuning_cache(const struct options *o);
bool check_inputs(const char *flag, const struct words *words, const char *mark,
                  migraphx_program_t program);
// Inputs as the flags say: filled, loaded, or pseudo-random by name.
bool make_inputs(const struct options *o, migraphx_program_t program,
                 migraphx_program_parameters_t *out);
// Of a compiled program with open sizes: the one that its runs with the inputs that make_inputs
// makes come to, in its place.
bool fix_sizes(const struct options *o, migraphx_program_t *program);
// The first length that all inputs have as they are fed; 1 where they differ.
int model_batch(const struct options *o, migraphx_program_t program);

// --- several cards (cards.c) ---

enum { MOST_CARDS = 8 };

struct cards {
    size_t numbers[MOST_CARDS];
    int count;                // 0: --cards was not given
    double alone[MOST_CARDS]; // runs a second of each while the others have nothing to do
    double together;          // of all of them at a time
};

// The flag's numbers; says what is wrong with them.
bool read_cards(const struct options *o, struct cards *out);
// Loads, compiles and runs the model on each.
bool time_cards(const struct options *o, struct cards *cards);

// Writes the program as the flags say.
bool write_program(const struct options *o, migraphx_program_t program);
// To stdout, as text or as --json says.
bool print_program(const struct options *o, migraphx_program_t program);
// "min..max" forms: a number, {min:1,max:4,optimals:[2]} or a list of them in brackets.
// As this engine calls a pass; NULL for one of MIGraphX's that is no pass here.
const char *pass_name(const char *word);
bool parse_dim(const char *text, migraphx_dynamic_dimension_t *out);
bool parse_dims(const char *text, migraphx_dynamic_dimensions_t *out);
double now_ms(void); // of a steady clock

// --- tensors in files (tensor_file.c) ---

// By suffix: .npy, .npz (the array `name`, or the first), .pb (TensorProto), else a saved argument.
bool load_tensor(const char *path, const char *name, migraphx_argument_t *out);
// Calls `each` for every array of a .npz.
bool load_tensors(const char *path,
                  bool (*each)(void *data, const char *name, migraphx_argument_t tensor),
                  void *data);
// The name in a TensorProto; false if it has none.
bool tensor_file_name(const char *path, char *name, size_t room);
// A whole file, to be freed; NULL when it cannot be read.
char *read_whole(const char *path, size_t *size);
bool ends_with(const char *text, const char *suffix);
bool is_folder(const char *path); // NULL is none

// --- long work (work.c) ---

void work_start(void); // before the first work, and after the last
void work_stop(void);
// What is being done and in how many rounds; 0: nobody knows.
void work_begin(const char *what, int total);
void work_limit(double seconds); // that it takes at most
void work_share(double share);   // that is done, where rounds do not say it
bool work_is_begun(void);
bool work_step(int done); // false after Ctrl-C
void work_end(void);
void work_wipe(void);        // the line on the terminal, before other lines
bool work_stopped(void);     // has Ctrl-C been pressed?
void work_finish(void);      // after that: what follows is to be done all the same
bool work_interrupted(void); // has it ever been pressed?

// --- the plan of a compiled program (plan.c) ---

struct plan_row {
    int instruction; // of main
    const char *op, *kernel, *detail, *where, *type, *place, *why, *nodes, *reads;
    double offset, bytes, flops, moved;
    int first, last; // steps between which the result is needed
};

struct plan {
    char *text; // that the rows point into
    struct plan_row *rows;
    int count;
    char *summary; // what explain says below its instructions
};

bool load_plan(migraphx_program_t program, struct plan *out);
void free_plan(struct plan *plan);

// --- the limits of the machine (limits.c) ---

// What numbers products read, for the instructions that multiply them differ.
enum arithmetic { OF_FLOATS, OF_BYTES, OF_BF16, ARITHMETICS };

struct limits { // per second, as measured or as an instruction reached; 0: not known
    double gflops, gbytes;
    double cache_gbytes, cache_bytes;   // of what is no larger than this; 0: as of all else
    double middle_gbytes, middle_bytes; // of what is no larger than this
    double of_kind[ARITHMETICS];        // GFLOP/s; that of floats is gflops
    bool measured[ARITHMETICS];         // else it is that of floats
};

// What an instruction does: operations of each kind that are really done, bytes, and its time.
struct load {
    double flops[ARITHMETICS], bytes, ms;
};

void add_load(struct load *load, const struct plan_row *row);
// Times large products and sums on the same target; of the kinds that the plan has.
bool measure_limits(const struct options *o, const struct plan *plan, struct limits *out);
// An instruction that is faster than a limit shows that the limit lies higher.
void raise_limits(struct limits *limits, const struct load *load);
// How much of the limit is used, in percent; 0: not known.
double share_of_limit(const struct limits *limits, const struct load *load);

// --- JSON, and files that are written whole (write.c) ---

void put_json_text(FILE *file, const char *text);                // with quotes
void put_member(FILE *file, const char *name, const char *text); // of an object
void put_json_number(FILE *file, double value); // null where JSON has no number for it
// Names in a list: a line each, or with --json an array.
void put_name(const struct options *o, const char *name, int number);
void put_names_end(const struct options *o, int count);
FILE *open_new(const char *path, char **temporary); // NULL path: stdout
bool close_new(FILE *file, const char *path, char *temporary, bool good);
