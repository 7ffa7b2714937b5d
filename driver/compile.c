// SPDX-License-Identifier: MIT
// Compiling, and the inputs of runs.
#include <limits.h>

#include "driver.h"

const char *target_name(const struct options *o)
{
    static const char *const best[] = {"gpu", "cpu", "ref"};
    if (o->target)
        return o->target;
    for (int i = 0; i < 3; i++) {
        size_t count = 0;
        migraphx_get_targets_size(&count);
        for (size_t k = 0; k < count; k++) {
            const char *name = "";
            migraphx_get_target_name_at_index(&name, k);
            if (strcmp(name, best[i]) == 0)
                return best[i];
        }
    }
    return "ref";
}

// Verbs that look at results want them on the host; a program for a card brings them there itself.
static bool copies(const struct options *o, const char *target)
{
    return o->offload_copy || (strcmp(target, "gpu") == 0 && !o->on_card);
}

static void show_tuning(void *data, const char *problem, size_t measured, double seconds,
                        double share)
{
    (void)data, (void)problem, (void)seconds;
    work_share(share);
    work_step((int)measured);
}

static bool set_options(const struct options *o, migraphx_compile_options_t options,
                        const char *target, bool compute_double)
{
    bool good = check_tuning_cache(o) &&
                OK(migraphx_compile_options_set_offload_copy(options, copies(o, target))) &&
                OK(migraphx_compile_options_set_fast_math(options, !o->no_fast_math)) &&
                OK(migraphx_compile_options_set_exhaustive_tune_flag(options, o->exhaustive)) &&
                OK(migraphx_compile_options_set_threads(options, (size_t)o->threads)) &&
                OK(migraphx_compile_options_set_isa(options, o->isa)) &&
                OK(migraphx_compile_options_set_tuning_cache(options, o->tuning_cache)) &&
                OK(migraphx_compile_options_set_tuning_strict(options, o->tuning_strict)) &&
                OK(migraphx_compile_options_set_tf32(options, o->tf32)) &&
                OK(migraphx_compile_options_set_gemm_provider(options, o->gemm_provider)) &&
                OK(migraphx_compile_options_set_tuning_progress(options, show_tuning, NULL)) &&
                OK(migraphx_compile_options_set_tuning_seconds(
                    options, o->tuning_seconds ? strtod(o->tuning_seconds, NULL) : 0)) &&
                OK(migraphx_compile_options_set_compute_double(options, compute_double)) &&
                (!o->cards || OK(migraphx_compile_options_set_device_id(options, (size_t)o->card)));
    for (int i = 0; good && i < o->disable_pass.count; i++) {
        const char *name = pass_name(o->disable_pass.items[i]);
        if (!name)
            log_warn("--disable-pass %s: here this is part of planning", o->disable_pass.items[i]);
        else
            good = OK(migraphx_compile_options_disable_pass(options, name));
    }
    return good;
}

// What explain warns of: measurements that could not be kept, a saved program that is for another
// machine.
static void log_warnings(migraphx_program_t program)
{
    static const char mark[] = "\nwarning: ";
    char *text = NULL;
    if (!OK(migraphx_program_explain(&text, program)))
        return;
    for (char *at = strstr(text, mark); at; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        log_warn("%.*s", (int)strcspn(at, "\n"), at);
    }
    migraphx_string_destroy(text);
}

static bool compile(const struct options *o, migraphx_program_t program, const char *target,
                    bool compute_double)
{
    migraphx_target_t handle = NULL;
    migraphx_compile_options_t options = NULL;
    const bool good = OK(migraphx_target_create(&handle, target)) &&
                      OK(migraphx_compile_options_create(&options)) &&
                      set_options(o, options, target, compute_double) &&
                      OK(migraphx_program_compile(program, handle, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(handle);
    return good;
}

bool compile_quietly(const struct options *o, migraphx_program_t program, const char *target)
{
    return compile(o, program, target, false);
}

bool compile_model(const struct options *o, migraphx_program_t program, const char *target,
                   bool compute_double)
{
    bool compiled = false;
    // Random operators draw the same numbers whenever the driver runs, on every target.
    if (!OK(migraphx_program_is_compiled(&compiled, program)) ||
        !OK(migraphx_program_set_seed(program, 0)) ||
        !OK(migraphx_program_set_run_memory(program, (size_t)o->run_memory << 20)))
        return false;
    if (compiled) {
        log_info("The program is compiled already");
        log_warnings(program);
        return true;
    }
    const double start = now_ms();
    const bool part = work_is_begun(); // of what shows how far it is itself
    if (!part)
        work_begin(o->exhaustive ? "compiling and tuning" : "compiling", 0);
    if (!part && o->exhaustive && o->tuning_seconds)
        work_limit(strtod(o->tuning_seconds, NULL));
    const bool good = compile(o, program, target, compute_double);
    if (!part)
        work_end();
    if (good)
        log_info("Compilation time: %gms", now_ms() - start);
    if (good && o->exhaustive)
        log_warnings(program);
    return good;
}

// --- inputs ---

// FNV-1a of the name: every input has data of its own, the same in every run.
static size_t seed_of(const char *name)
{
    size_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash;
}

static bool has(const struct words *words, const char *name)
{
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->items[i], name) == 0)
            return true;
    return false;
}

// The lengths an input of ranges gets: the batch size where it fits, else the nearest there is.
static bool fix_shape(const struct options *o, const_migraphx_shape_t shape, migraphx_shape_t *out)
{
    enum { MAX_RANK = 16 };
    migraphx_dynamic_dimensions_t dims = NULL;
    migraphx_shape_datatype_t type;
    size_t lens[MAX_RANK], rank = 0;
    const size_t wanted = o->batch ? (size_t)o->batch : 1;
    bool good = OK(migraphx_shape_type(&type, shape)) &&
                OK(migraphx_shape_dyn_dims(&dims, shape)) &&
                OK(migraphx_dynamic_dimensions_size(&rank, dims)) && rank <= MAX_RANK;
    for (size_t i = 0; good && i < rank; i++) {
        const_migraphx_dynamic_dimension_t dim;
        size_t min, max;
        good = OK(migraphx_dynamic_dimensions_get(&dim, dims, i)) &&
               OK(migraphx_dynamic_dimension_range(&min, &max, dim));
        if (good)
            lens[i] = wanted < min ? min : wanted > max ? max : wanted;
    }
    migraphx_dynamic_dimensions_destroy(dims);
    return good && OK(migraphx_shape_create(out, type, lens, rank));
}

static const char *file_of(const struct words *words, const char *name)
{
    for (int i = 0; i + 1 < words->count; i++)
        if (words->items[i][0] == '@' && strcmp(words->items[i] + 1, name) == 0)
            return words->items[i + 1];
    return NULL;
}

// Wide integers are mostly indices: of words, of rows, of classes. 0 and 1 are in range of every
// table worth the name; what the generator gives for them is in range of none.
static bool make_small(migraphx_argument_t argument)
{
    static const size_t width[] = {
        [migraphx_shape_uint16_type] = 2, [migraphx_shape_int16_type] = 2,
        [migraphx_shape_uint32_type] = 4, [migraphx_shape_int32_type] = 4,
        [migraphx_shape_uint64_type] = 8, [migraphx_shape_int64_type] = 8,
    };
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    size_t bytes;
    char *data;
    if (!OK(migraphx_argument_shape(&shape, argument)) || !OK(migraphx_shape_type(&type, shape)) ||
        !OK(migraphx_shape_bytes(&bytes, shape)) || !OK(migraphx_argument_buffer(&data, argument)))
        return false;
    const size_t step = (size_t)type < sizeof width / sizeof *width ? width[type] : 0;
    for (size_t i = 0; step && i + step <= bytes; i += step) {
        data[i] &= 1;
        memset(data + i + 1, 0, step - 1);
    }
    return true;
}

static bool make_input(const struct options *o, const char *name, const_migraphx_shape_t shape,
                       migraphx_argument_t *out)
{
    const char *file = file_of(&o->load_arg, name);
    migraphx_shape_t fixed = NULL;
    bool dynamic = false, good;
    if (file)
        return load_tensor(file, name, out);
    if (!OK(migraphx_shape_dynamic(&dynamic, shape)) || (dynamic && !fix_shape(o, shape, &fixed)))
        return false;
    if (has(&o->fill0, name))
        good = OK(migraphx_argument_fill(out, dynamic ? fixed : shape, 0));
    else if (has(&o->fill1, name))
        good = OK(migraphx_argument_fill(out, dynamic ? fixed : shape, 1));
    else
        good = OK(migraphx_argument_generate(out, dynamic ? fixed : shape, seed_of(name))) &&
               make_small(*out);
    migraphx_shape_destroy(fixed);
    return good;
}

// Room that the program is given for a result: it is compiled for a card, without copies.
static bool is_room(const char *name)
{
    return strncmp(name, "main:#output_", strlen("main:#output_")) == 0;
}

// Numbers of a known shape: what a card can hold.
static bool fits_card(const_migraphx_shape_t shape)
{
    migraphx_shape_datatype_t type;
    const char *name = "";
    bool dynamic = true;
    if (!OK(migraphx_shape_dynamic(&dynamic, shape)) || !OK(migraphx_shape_type(&type, shape)))
        return false;
    migraphx_type_name(&name, type);
    return !dynamic && strcmp(name, "string_type") != 0 && strcmp(name, "tuple_type") != 0 &&
           strcmp(name, "sequence_type") != 0;
}

static bool make_on_card(const struct options *o, const char *name, const_migraphx_shape_t shape,
                         migraphx_argument_t *out)
{
    migraphx_argument_t host = NULL;
    char number[16]; // of the driver's cards
    snprintf(number, sizeof number, ":%d", o->card);
    const char *card = o->cards ? number : NULL;
    if (!fits_card(shape))
        return make_input(o, name, shape, out);
    if (is_room(name))
        return OK(migraphx_device_allocate(out, shape, card));
    const bool good =
        make_input(o, name, shape, &host) && OK(migraphx_device_copy(out, host, card));
    migraphx_argument_destroy(host);
    return good;
}

// `card`: the program takes them, and room for its results, in a card's memory.
static bool add_inputs(const struct options *o, migraphx_program_parameter_shapes_t shapes,
                       const char *const *names, size_t count, bool card,
                       migraphx_program_parameters_t params)
{
    for (size_t i = 0; i < count; i++) {
        const_migraphx_shape_t shape;
        migraphx_argument_t argument = NULL;
        const bool good = OK(migraphx_program_parameter_shapes_get(&shape, shapes, names[i])) &&
                          (card ? make_on_card(o, names[i], shape, &argument)
                                : make_input(o, names[i], shape, &argument)) &&
                          OK(migraphx_program_parameters_add(params, names[i], argument));
        migraphx_argument_destroy(argument);
        if (!good)
            return false;
    }
    return true;
}

// The first length of an input as it is fed; 0 where it has no axes.
static size_t first_length(const struct options *o, const_migraphx_shape_t shape)
{
    migraphx_shape_t fixed = NULL;
    const size_t *lens;
    size_t rank = 0, shown = 0, first = 0; // a scalar shows itself as one axis
    bool dynamic = false;
    if (!OK(migraphx_shape_dynamic(&dynamic, shape)) || (dynamic && !fix_shape(o, shape, &fixed)))
        return 0;
    const_migraphx_shape_t fed = dynamic ? fixed : shape;
    if (OK(migraphx_shape_rank(&rank, fed)) && rank > 0 &&
        OK(migraphx_shape_lengths(&lens, &shown, fed)))
        first = lens[0];
    migraphx_shape_destroy(fixed);
    return first;
}

int model_batch(const struct options *o, migraphx_program_t program)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0, batch = 0;
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    const char **names = good ? calloc(count + 1, sizeof *names) : NULL;
    good = names && OK(migraphx_program_parameter_shapes_names(names, shapes));
    for (size_t i = 0; good && i < count; i++) {
        const_migraphx_shape_t shape;
        if (is_room(names[i]))
            continue;
        good = OK(migraphx_program_parameter_shapes_get(&shape, shapes, names[i]));
        const size_t first = good ? first_length(o, shape) : 0;
        good = good && (!batch || !first || first == batch) && first <= INT_MAX;
        batch = first ? first : batch;
    }
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    return good && batch ? (int)batch : 1;
}

static bool check_fills(const struct options *o, migraphx_program_t program)
{
    if (o->load_arg.count % 2 || (o->load_arg.count && o->load_arg.items[0][0] != '@')) {
        log_error("--load-arg needs @<input> and a file");
        return false;
    }
    return check_inputs("--fill0", &o->fill0, "", program) &&
           check_inputs("--fill1", &o->fill1, "", program) &&
           check_inputs("--load-arg", &o->load_arg, "@", program);
}

bool make_inputs(const struct options *o, migraphx_program_t program,
                 migraphx_program_parameters_t *out)
{
    if (!check_fills(o, program))
        return false;
    migraphx_program_parameter_shapes_t shapes = NULL;
    size_t count = 0;
    bool card = false;
    bool good = OK(migraphx_program_get_parameter_shapes(&shapes, program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes)) &&
                OK(migraphx_program_takes_device_data(&card, program)) &&
                OK(migraphx_program_parameters_create(out));
    const char **names = good ? calloc(count + 1, sizeof *names) : NULL;
    good = names && OK(migraphx_program_parameter_shapes_names(names, shapes)) &&
           add_inputs(o, shapes, names, count, card, *out);
    free(names);
    migraphx_program_parameter_shapes_destroy(shapes);
    if (!good) {
        migraphx_program_parameters_destroy(*out);
        *out = NULL;
    }
    return good;
}

// --- the sizes that are fed ---

enum { MOST_INPUTS = 256, MOST_AXES = 16 };

struct fed {
    size_t lens[MOST_INPUTS * MOST_AXES], ranks[MOST_INPUTS], used;
    bool dynamic; // an input has open axes
};

static bool note_fed(const struct options *o, const char *name, const_migraphx_shape_t shape,
                     size_t *rank, struct fed *fed)
{
    migraphx_argument_t argument = NULL;
    const_migraphx_shape_t is;
    const size_t *lens;
    size_t shown = 0;
    bool dynamic = false;
    const bool good =
        OK(migraphx_shape_dynamic(&dynamic, shape)) && make_input(o, name, shape, &argument) &&
        OK(migraphx_argument_shape(&is, argument)) && OK(migraphx_shape_rank(rank, is)) &&
        *rank <= MOST_AXES && OK(migraphx_shape_lengths(&lens, &shown, is));
    if (good)
        memcpy(fed->lens + fed->used, lens, *rank * sizeof *lens);
    fed->used += good ? *rank : 0;
    fed->dynamic = fed->dynamic || dynamic;
    migraphx_argument_destroy(argument);
    return good;
}

static bool note_all_fed(const struct options *o, migraphx_program_parameter_shapes_t shapes,
                         const char **names, size_t count, struct fed *fed)
{
    for (size_t i = 0; i < count; i++) {
        const_migraphx_shape_t shape;
        if (!OK(migraphx_program_parameter_shapes_get(&shape, shapes, names[i])) ||
            !note_fed(o, names[i], shape, &fed->ranks[i], fed))
            return false;
    }
    return true;
}

bool fix_sizes(const struct options *o, migraphx_program_t *program)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    migraphx_program_t fixed = NULL;
    const char *names[MOST_INPUTS];
    size_t count = 0;
    struct fed *fed = calloc(1, sizeof *fed);
    bool good = fed && check_fills(o, *program) &&
                OK(migraphx_program_get_parameter_shapes(&shapes, *program)) &&
                OK(migraphx_program_parameter_shapes_size(&count, shapes));
    if (good && count <= MOST_INPUTS) {
        good = OK(migraphx_program_parameter_shapes_names(names, shapes)) &&
               note_all_fed(o, shapes, names, count, fed);
        // Some targets have no plans for single sizes: their program is measured as it is.
        if (good && fed->dynamic &&
            migraphx_program_specialise(&fixed, *program, names, fed->lens, fed->ranks, count) ==
                migraphx_status_success) {
            log_info("Measuring the plan for the sizes that are fed");
            migraphx_program_destroy(*program);
            *program = fixed;
        }
    }
    migraphx_program_parameter_shapes_destroy(shapes);
    free(fed);
    return good;
}
