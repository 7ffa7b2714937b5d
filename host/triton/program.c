// SPDX-License-Identifier: MIT
// From a model's file to programs that run.
//
// A model whose batch is open is one program, compiled with a plan for each size of `batches`;
// other sizes get theirs beside the runs, when they come again. A TensorFlow graph, which is read
// with fixed sizes, is a program for each of them, and smaller batches are filled up.
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

enum { MOST_BATCHES = 16 };

// --- reading ---

static TritonError *read_tf(const struct model *m, size_t rows, migraphx_program_t *out)
{
    migraphx_tf_options_t o = NULL;
    migraphx_status status = migraphx_tf_options_create(&o);
    if (!status)
        status = migraphx_tf_options_set_nhwc(o, m->options.nhwc);
    if (!status && rows)
        status = migraphx_tf_options_set_default_dim_value(o, rows);
    if (!status)
        status = migraphx_parse_tf(out, m->path, o);
    migraphx_tf_options_destroy(o);
    return status ? pass_on(m->path, status) : NULL;
}

static TritonError *read_file(const struct model *m, const char *path, const char *target,
                              migraphx_program_t *out)
{
    migraphx_file_options_t o = NULL;
    migraphx_status status = migraphx_file_options_create(&o);
    if (!status && target)
        status = migraphx_file_options_set_target(o, target);
    if (!status)
        status = migraphx_load(out, path, o);
    migraphx_file_options_destroy(o);
    return status ? pass_on(m->path, status) : NULL;
}

// Sizes of the first axis; sorted, each once.
static size_t list_batches(const struct model *m, size_t *out)
{
    size_t count = 0;
    const char *at = m->options.batches;
    for (char *end; *at && count + 2 < MOST_BATCHES; at = end + (*end == ',')) {
        const size_t size = strtoull(at, &end, 10);
        if (end == at)
            break;
        if (size && size < m->most)
            out[count++] = size;
    }
    if (!count && m->most > 1)
        out[count++] = 1;
    out[count++] = m->most;
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j && out[j - 1] > out[j]; j--) {
            const size_t other = out[j];
            out[j] = out[j - 1];
            out[j - 1] = other;
        }
    return count;
}

static migraphx_status set_first(migraphx_onnx_options_t o, const struct value *v,
                                 const_migraphx_dynamic_dimension_t first)
{
    migraphx_dynamic_dimension_t own[MOST_RANK] = {0};
    migraphx_dynamic_dimensions_t dims = NULL;
    migraphx_status status = migraphx_status_success;
    for (size_t i = 1; !status && i < v->rank; i++)
        status = migraphx_dynamic_dimension_create_min_max(
            &own[i], v->lens[i] < 0 ? 0 : (size_t)v->lens[i],
            v->lens[i] < 0 ? (size_t)1 << 40 : (size_t)v->lens[i]);
    const_migraphx_dynamic_dimension_t all[MOST_RANK];
    for (size_t i = 0; i < v->rank; i++)
        all[i] = i ? own[i] : first;
    if (!status)
        status = migraphx_dynamic_dimensions_create(&dims, all, v->rank);
    if (!status)
        status = migraphx_onnx_options_set_dyn_input_parameter_shape(o, v->name, dims);
    migraphx_dynamic_dimensions_destroy(dims);
    for (size_t i = 1; i < v->rank; i++)
        migraphx_dynamic_dimension_destroy(own[i]);
    return status;
}

// Names the sizes that are worth plans.
static migraphx_status set_batch(const struct model *m, migraphx_onnx_options_t o)
{
    size_t sizes[MOST_BATCHES];
    migraphx_optimals_t optimals = NULL;
    migraphx_dynamic_dimension_t dim = NULL;
    const size_t count = list_batches(m, sizes);
    migraphx_status status = migraphx_optimals_create(&optimals, sizes, count);
    if (!status)
        status = migraphx_dynamic_dimension_create_min_max_optimals(&dim, 1, m->most, optimals);
    for (size_t i = 0; !status && i < m->input_count; i++)
        status = m->inputs[i].axis ? migraphx_onnx_options_set_dim_param(o, m->inputs[i].axis, dim)
                                   : set_first(o, &m->inputs[i], dim);
    migraphx_dynamic_dimension_destroy(dim);
    migraphx_optimals_destroy(optimals);
    return status;
}

// First axes are not the batch's then.
static bool joins(const struct model *m)
{
    for (size_t i = 0; i < m->input_count; i++)
        if (value_is_joined(&m->inputs[i]) || m->inputs[i].batch_kind)
            return true;
    return false;
}

static TritonError *read_onnx(const struct model *m, migraphx_program_t *out)
{
    migraphx_onnx_options_t o = NULL;
    migraphx_status status = migraphx_onnx_options_create(&o);
    if (!status)
        status = migraphx_onnx_options_set_dynamic_dims(o, true);
    if (!status && m->opens && m->most > 1 && !joins(m))
        status = set_batch(m, o);
    if (!status)
        status = migraphx_parse_onnx(out, m->path, o);
    migraphx_onnx_options_destroy(o);
    return status ? pass_on(m->path, status) : NULL;
}

TritonError *program_read(const struct model *m, size_t rows, migraphx_program_t *out)
{
    switch (m->form) {
    case FORM_ONNX:
        return read_onnx(m, out);
    case FORM_TF:
        return read_tf(m, rows, out);
    default:
        return read_file(m, m->path, *m->options.target ? m->options.target : NULL, out);
    }
}

// --- compiling ---

static TritonError *quantize_by_ranges(const struct model *m, migraphx_program_t program,
                                       migraphx_target_t target)
{
    char path[2 * PATH_ROOM], *text = NULL;
    size_t size = 0;
    const bool whole = *m->options.int8 == '/';
    snprintf(path, sizeof path, "%s%s%s", whole ? "" : m->folder, whole ? "" : "/",
             m->options.int8);
    FILE *file = fopen(path, "r");
    const ssize_t got = file ? getdelim(&text, &size, '\0', file) : -1;
    if (file)
        fclose(file);
    if (got < 0) {
        free(text);
        return fail(TRITON_NOT_FOUND,
                    "migraphx: model %s: parameter int8 names a file of ranges (migraphx-driver "
                    "quantize), and %s is none",
                    m->name, path);
    }
    migraphx_quantize_options_t o = NULL;
    migraphx_status status = migraphx_quantize_options_create(&o);
    if (!status)
        status = migraphx_quantize_options_set_ranges(o, text, (size_t)got);
    if (!status)
        status = migraphx_quantize(NULL, program, target, o);
    migraphx_quantize_options_destroy(o);
    free(text);
    return status ? pass_on(path, status) : NULL;
}

static TritonError *quantize(const struct model *m, migraphx_program_t program,
                             migraphx_target_t target)
{
    const struct options *o = &m->options;
    if (*o->int8)
        TRY(quantize_by_ranges(m, program, target));
    if (o->int4_weights)
        ENGINE_TRY(m->name, migraphx_quantize_int4_weights(program, o->int4_weights, false));
    if (o->fp16)
        ENGINE_TRY(m->name, migraphx_quantize_fp16(program));
    if (o->bf16)
        ENGINE_TRY(m->name, migraphx_quantize_bf16(program));
    return NULL;
}

// Instances on the processor share it.
static size_t threads_of(const struct model *m)
{
    cpu_set_t set;
    if (m->options.threads || m->groups < 2 || sched_getaffinity(0, sizeof set, &set) != 0)
        return m->options.threads;
    const size_t each = (size_t)CPU_COUNT(&set) / m->groups;
    return each ? each : 1;
}

migraphx_status program_options(const struct model *m, bool card, int device,
                                migraphx_compile_options_t c)
{
    const struct options *o = &m->options;
    migraphx_status status = migraphx_compile_options_set_fast_math(c, o->fast_math);
    if (!status)
        status = migraphx_compile_options_set_exhaustive_tune_flag(c, o->exhaustive_tune);
    if (!status)
        status = migraphx_compile_options_set_threads(c, threads_of(m));
    if (!status) // no run ever waits for a plan
        status = migraphx_compile_options_set_specialise(
            c, o->specialise ? migraphx_specialise_background : migraphx_specialise_never);
    if (!status && *o->isa)
        status = migraphx_compile_options_set_isa(c, o->isa);
    if (!status && *o->tuning_cache)
        status = migraphx_compile_options_set_tuning_cache(c, o->tuning_cache);
    if (!status && *o->gemm_provider)
        status = migraphx_compile_options_set_gemm_provider(c, o->gemm_provider);
    if (!status && o->tf32)
        status = migraphx_compile_options_set_tf32(c, true);
    if (!status && card)
        status = migraphx_compile_options_set_offload_copy(c, true);
    if (!status && card && device >= 0)
        status = migraphx_compile_options_set_device_id(c, (size_t)device);
    return status;
}

static TritonError *compile(const struct model *m, const char *target, int device,
                            migraphx_program_t program)
{
    migraphx_target_t t = NULL;
    migraphx_compile_options_t c = NULL;
    ENGINE_TRY(m->name, migraphx_target_create(&t, target));
    TritonError *error = quantize(m, program, t);
    migraphx_status status = error ? migraphx_status_success : migraphx_compile_options_create(&c);
    if (!error && !status)
        status = program_options(m, strcmp(target, "gpu") == 0, device, c);
    if (!error && !status)
        status = migraphx_program_compile(program, t, c);
    if (status)
        error = pass_on(m->name, status);
    migraphx_compile_options_destroy(c);
    migraphx_target_destroy(t);
    return error;
}

// --- the compiled form on disk ---

static bool load_kept(const struct model *m, const char *path, const char *target,
                      migraphx_program_t *out)
{
    bool compiled = false;
    FILE *file = *path ? fopen(path, "r") : NULL;
    if (!file)
        return false;
    fclose(file);
    TritonError *error = read_file(m, path, target, out);
    if (!error && !migraphx_program_is_compiled(&compiled, *out) && compiled)
        return true;
    drop(error);
    migraphx_program_destroy(*out);
    *out = NULL;
    return false;
}

// What cannot be kept is compiled again next time, which is no failure.
static void keep(const_migraphx_program_t program, const char *path)
{
    if (*path && migraphx_save((migraphx_program_t)program, path, NULL))
        say(TRITON_LOG_WARNING, "migraphx: %s is not written: %s", path, migraphx_last_error());
}

static TritonError *make_plan(const struct model *m, const char *target, int device, size_t rows,
                              struct plan *out)
{
    char base[PATH_ROOM], path[PATH_ROOM + 32];
    bool compiled = false;
    const uint64_t begin = now();
    out->rows = rows;
    TRY(files_compiled(m, target, device, base, sizeof base));
    snprintf(path, sizeof path, rows && *base ? "%s.%zu" : "%s", base, rows);
    const bool kept = load_kept(m, path, target, &out->program);
    if (!kept) {
        TRY(program_read(m, rows, &out->program));
        ENGINE_TRY(m->name, migraphx_program_is_compiled(&compiled, out->program));
        if (!compiled)
            TRY(compile(m, target, device, out->program));
        if (!compiled)
            keep(out->program, path);
    }
    if (m->options.run_memory)
        ENGINE_TRY(m->name, migraphx_program_set_run_memory(out->program, m->options.run_memory));
    say(TRITON_LOG_INFO, "migraphx: model %s for %s is %s in %.3f s", m->name, target,
        kept       ? "read as it was compiled before"
        : compiled ? "read as it is compiled"
                   : "compiled",
        (double)(now() - begin) / 1e9);
    return NULL;
}

// --- engines ---

static void engine_destroy(struct engine *e)
{
    for (size_t i = 0; i < e->count; i++)
        migraphx_program_destroy(e->plans[i].program);
    free(e->plans);
    free(e);
}

void engines_destroy(struct model *m)
{
    while (m->engines) {
        struct engine *next = m->engines->next;
        engine_destroy(m->engines);
        m->engines = next;
    }
}

static TritonError *engine_fill(const struct model *m, struct engine *e)
{
    size_t sizes[MOST_BATCHES] = {m->form == FORM_TF ? 1 : 0}, count = 1;
    if (m->form == FORM_TF && m->most > 1)
        count = list_batches(m, sizes);
    e->plans = calloc(count, sizeof *e->plans);
    if (!e->plans)
        return no_memory();
    for (; e->count < count; e->count++) {
        TritonError *error =
            make_plan(m, e->target, e->device, sizes[e->count], &e->plans[e->count]);
        if (error) {
            migraphx_program_destroy(e->plans[e->count].program);
            return error;
        }
    }
    return NULL;
}

static TritonError *engine_make(struct model *m, const char *target, int device,
                                struct engine **out)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return no_memory();
    snprintf(e->target, sizeof e->target, "%s", target);
    e->device = device;
    TritonError *error = engine_fill(m, e);
    if (error) {
        engine_destroy(e);
        return error;
    }
    e->next = m->engines;
    m->engines = e;
    *out = e;
    return NULL;
}

TritonError *engine_require(struct model *m, const char *target, int device,
                            const struct engine **out)
{
    TritonError *error = NULL;
    pthread_mutex_lock(&m->lock);
    struct engine *e = m->engines;
    while (e && (strcmp(e->target, target) != 0 || e->device != device))
        e = e->next;
    if (!e)
        error = engine_make(m, target, device, &e);
    pthread_mutex_unlock(&m->lock);
    *out = e;
    return error;
}

const struct plan *engine_plan(const struct engine *e, size_t rows)
{
    for (size_t i = 0; i < e->count; i++)
        if (!e->plans[i].rows || rows <= e->plans[i].rows)
            return &e->plans[i];
    return NULL;
}
