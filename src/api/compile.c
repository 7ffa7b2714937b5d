// SPDX-License-Identifier: MIT
// Compiling: options from the handle, completed by the environment, and the traces of passes.
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "targets/sizes.h"

// --- options ---

static void compile_options_fini(struct migraphx_compile_options *o)
{
    mgx_arena_fini(&o->arena);
}

static enum mgx_status add_disabled(struct mgx_arena *arena, struct mgx_pass_options *pass,
                                    const char *name, struct mgx_diag *diag)
{
    const char **list = MGX_NEW_ARRAY(arena, const char *, pass->disabled_count + 1);
    char *copy = mgx_arena_strdup(arena, name);
    if (!list || !copy)
        return mgx_fail_memory(diag);
    for (int i = 0; i < pass->disabled_count; i++)
        list[i] = pass->disabled[i];
    list[pass->disabled_count++] = copy;
    pass->disabled = list;
    return MGX_OK;
}

static enum mgx_status compile_options_copy(struct migraphx_compile_options *out,
                                            const struct migraphx_compile_options *in,
                                            struct mgx_diag *diag)
{
    *out = *in;
    mgx_arena_init(&out->arena);
    out->values.tune.cache = mgx_arena_strdup(&out->arena, in->values.tune.cache);
    out->values.pass.disabled = NULL;
    out->values.pass.disabled_count = 0;
    const bool good = mgx_settings_copy(&out->values.own, &out->arena, &in->values.own);
    enum mgx_status status = !good || out->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
    for (int i = 0; i < in->values.pass.disabled_count && status == MGX_OK; i++)
        status = add_disabled(&out->arena, &out->values.pass, in->values.pass.disabled[i], diag);
    if (status != MGX_OK)
        compile_options_fini(out);
    return status;
}

API_HANDLE(compile_options)

// compile_options.hpp shows C++ programs what a handle begins with.
static_assert(!offsetof(struct migraphx_compile_options, values) &&
                  !offsetof(struct mgx_compile_options, offload_copy) &&
                  offsetof(struct mgx_compile_options, fast_math) == 1 &&
                  offsetof(struct mgx_compile_options, exhaustive_tune) == 2,
              "a handle begins with offload_copy, fast_math and exhaustive_tune");

migraphx_status migraphx_compile_options_create(migraphx_compile_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_compile_options *o = API_NEW(struct migraphx_compile_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    mgx_arena_init(&o->arena);
    o->values.fast_math = true;
    *out = o;
    return migraphx_status_success;
}

#define FLAG(name, member)                                                                         \
    migraphx_status migraphx_compile_options_set_##name(                                           \
        migraphx_compile_options_t compile_options, bool value)                                    \
    {                                                                                              \
        API_NEED(compile_options);                                                                 \
        compile_options->values.member = value;                                                    \
        return migraphx_status_success;                                                            \
    }
FLAG(offload_copy, offload_copy)
FLAG(fast_math, fast_math)
FLAG(exhaustive_tune_flag, exhaustive_tune)
FLAG(tuning_strict, tune.strict)

migraphx_status migraphx_compile_options_set_threads(migraphx_compile_options_t compile_options,
                                                     size_t value)
{
    API_NEED(compile_options);
    if (value > 4096)
        return mgx_api_bad("%s: %zu threads are too many", __func__, value);
    compile_options->values.threads = (int)value;
    return migraphx_status_success;
}

migraphx_status
migraphx_compile_options_set_tuning_seconds(migraphx_compile_options_t compile_options,
                                            double seconds)
{
    API_NEED(compile_options);
    if (!(seconds >= 0))
        return mgx_api_bad("%s: %g seconds", __func__, seconds);
    compile_options->values.tune.seconds = seconds;
    return migraphx_status_success;
}

migraphx_status
migraphx_compile_options_set_tuning_progress(migraphx_compile_options_t compile_options,
                                             migraphx_tuning_callback_t callback, void *data)
{
    API_NEED(compile_options);
    compile_options->values.tune.progress = (struct mgx_tuning_progress){callback, data};
    return migraphx_status_success;
}

migraphx_status migraphx_compile_options_set_specialise(migraphx_compile_options_t compile_options,
                                                        migraphx_specialise_t mode)
{
    API_NEED(compile_options);
    static const enum mgx_specialise_mode modes[] = {
        [migraphx_specialise_auto] = MGX_SPECIALISE_AUTO,
        [migraphx_specialise_never] = MGX_SPECIALISE_NEVER,
        [migraphx_specialise_in_call] = MGX_SPECIALISE_IN_CALL,
        [migraphx_specialise_background] = MGX_SPECIALISE_BACKGROUND};
    if ((unsigned)mode >= MGX_COUNT(modes))
        return mgx_api_bad("%s: there is no mode %d", __func__, (int)mode);
    compile_options->values.specialise = modes[mode];
    return migraphx_status_success;
}

migraphx_status migraphx_compile_options_set_plan_bytes(migraphx_compile_options_t compile_options,
                                                        size_t value)
{
    API_NEED(compile_options);
    compile_options->values.plan_bytes = value;
    return migraphx_status_success;
}

migraphx_status
migraphx_compile_options_set_tuning_cache(migraphx_compile_options_t compile_options,
                                          const char *filename)
{
    API_NEED(compile_options);
    API_DIAG(diag);
    char *copy = mgx_arena_strdup(&compile_options->arena, filename);
    if (filename && !copy)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    compile_options->values.tune.cache = copy;
    return migraphx_status_success;
}

migraphx_status migraphx_compile_options_disable_pass(migraphx_compile_options_t compile_options,
                                                      const char *name)
{
    API_NEED(compile_options);
    API_NEED(name);
    API_DIAG(diag);
    if (!mgx_pass_find(name))
        return mgx_api_leave(mgx_api_no_pass(name, &diag), &diag);
    return mgx_api_leave(
        add_disabled(&compile_options->arena, &compile_options->values.pass, name, &diag), &diag);
}

migraphx_status migraphx_compile_options_set_trace(migraphx_compile_options_t compile_options,
                                                   migraphx_pass_callback_t callback, void *data)
{
    API_NEED(compile_options);
    compile_options->trace = callback;
    compile_options->trace_data = data;
    return migraphx_status_success;
}

// --- what one target reads; the others have no use for it ---

static migraphx_status set_own(migraphx_compile_options_t o, const char *name, const char *value)
{
    API_DIAG(diag);
    if (!mgx_settings_put(&o->values.own, &o->arena, name, value))
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    return migraphx_status_success;
}

#define OWN_FLAG(name)                                                                             \
    migraphx_status migraphx_compile_options_set_##name(                                           \
        migraphx_compile_options_t compile_options, bool value)                                    \
    {                                                                                              \
        API_NEED(compile_options);                                                                 \
        return set_own(compile_options, #name, value ? "1" : NULL);                                \
    }
OWN_FLAG(compute_double)
OWN_FLAG(tf32)
OWN_FLAG(tf32_convolutions)

#define OWN_NAME(option)                                                                           \
    migraphx_status migraphx_compile_options_set_##option(                                         \
        migraphx_compile_options_t compile_options, const char *name)                              \
    {                                                                                              \
        API_NEED(compile_options);                                                                 \
        return set_own(compile_options, #option, name);                                            \
    }
OWN_NAME(isa)
OWN_NAME(gemm_provider)

migraphx_status migraphx_compile_options_set_device_id(migraphx_compile_options_t compile_options,
                                                       size_t value)
{
    API_NEED(compile_options);
    if (value > UINT16_MAX)
        return mgx_api_bad("%s: there is no device %zu", __func__, value);
    char text[16];
    snprintf(text, sizeof text, "%d", (int)value);
    return set_own(compile_options, "device_id", text);
}

// --- compiling ---

// One write per pass, so that compilations in several threads do not mix their lines.
static void print_pass(const struct mgx_api_environment *env, const char *pass,
                       const struct mgx_program *p, bool changed, double microseconds)
{
    struct mgx_str text = {0};
    if (env->trace_passes)
        mgx_str_printf(&text, "Pass: %s%s\n", pass, changed ? "" : " (no change)");
    if (env->trace_passes && changed) {
        mgx_program_print(&text, p);
        mgx_str_putc(&text, '\n');
    }
    if (env->time_passes)
        mgx_str_printf(&text, "%s: %gms\n", pass, microseconds / 1000);
    mgx_api_print(mgx_str_text(&text));
    mgx_str_fini(&text);
}

static void trace_pass(void *user, const char *pass, const struct mgx_program *p, bool changed,
                       double microseconds)
{
    const struct migraphx_compile_options *o = user;
    const struct mgx_api_environment *env = mgx_api_environment();
    if (env->trace_passes || env->time_passes)
        print_pass(env, pass, p, changed, microseconds);
    if (o->trace) {
        const struct migraphx_program lent = {(struct mgx_program *)p};
        o->trace(o->trace_data, pass, &lent, changed, microseconds);
    }
}

// What MIGRAPHX_TRACE_PASSES prints of a pass that fails.
static void print_failed(void *user, const char *pass, const struct mgx_program *p, const char *why)
{
    struct mgx_str text = {0};
    (void)user;
    mgx_str_printf(&text, "Pass: %s (failed: %s)\n", pass, why);
    mgx_program_print(&text, p);
    mgx_str_putc(&text, '\n');
    mgx_api_print(mgx_str_text(&text));
    mgx_str_fini(&text);
}

// The environment completes what the caller left open; it never overrides him.
static enum mgx_status complete(struct migraphx_compile_options *o, struct mgx_diag *diag)
{
    const struct mgx_api_environment *env = mgx_api_environment();
    if (!o->values.threads)
        o->values.threads = env->threads;
    if (!o->values.tune.cache)
        o->values.tune.cache = env->tuning_cache;
    const struct mgx_setting own[] = {{"isa", env->isa},
                                      {"device", env->gpu_device},
                                      {"tf32", env->gpu_tf32 ? "1" : NULL},
                                      {"gemm_provider", env->gemm_provider},
                                      {"kernel_folder", env->kernel_folder}};
    for (int i = 0; i < MGX_COUNT(own); i++)
        if (own[i].value && !mgx_setting(&o->values.own, own[i].name) &&
            !mgx_settings_put(&o->values.own, &o->arena, own[i].name, own[i].value))
            return mgx_fail_memory(diag);
    for (int i = 0; i < env->disabled_count; i++)
        TRY(add_disabled(&o->arena, &o->values.pass, env->disabled_passes[i], diag));
    o->values.pass.fast_math = o->values.fast_math;
    if (o->trace || env->trace_passes || env->time_passes) {
        o->values.pass.trace = trace_pass;
        o->values.pass.failed = env->trace_passes ? print_failed : NULL;
        o->values.pass.trace_user = o;
    }
    return MGX_OK;
}

// A target without memory of its own is the one device that it has.
static enum mgx_status check_device(const struct mgx_target *target,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag)
{
    const int device = mgx_setting_int(&options->own, "device_id");
    return !device || target->memory
               ? MGX_OK
               : mgx_fail(diag, MGX_INVALID, "target \"%s\" has one device: there is no device %d",
                          target->name, device);
}

enum mgx_status mgx_api_weigh(struct mgx_program *p, const struct mgx_target *target,
                              mgx_weight_told *tell, void *to, struct mgx_diag *diag)
{
    assert(p && target->weigh);
    static const struct migraphx_compile_options plain = {.values.fast_math = true};
    struct migraphx_compile_options all;
    TRY(compile_options_copy(&all, &plain, diag));
    enum mgx_status status = complete(&all, diag);
    if (status == MGX_OK)
        status = target->weigh(p, &all.values, tell, to, diag);
    compile_options_fini(&all);
    return status;
}

enum mgx_status mgx_api_compile(struct mgx_program *p, const struct mgx_target *target,
                                const struct migraphx_compile_options *options,
                                struct mgx_diag *diag)
{
    assert(p && target);
    static const struct migraphx_compile_options plain = {.values.fast_math = true};
    const bool trace = mgx_api_environment()->trace_compile;
    struct migraphx_compile_options all;
    TRY(compile_options_copy(&all, options ? options : &plain, diag));
    enum mgx_status status = mgx_api_prove(p, diag);
    if (status == MGX_OK)
        status = complete(&all, diag);
    if (status == MGX_OK)
        status = check_device(target, &all.values, diag);
    if (status == MGX_OK && trace)
        mgx_api_print_program(p);
    if (status == MGX_OK)
        status = mgx_program_compile(p, target, &all.values, diag);
    if (status == MGX_OK && trace)
        mgx_api_print_program(p);
    compile_options_fini(&all);
    return status;
}

migraphx_status migraphx_program_compile(migraphx_program_t program, migraphx_target_t target,
                                         migraphx_compile_options_t options)
{
    API_NEED(program);
    API_NEED(target);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_compile(program->p, target->target, options, &diag), &diag);
}

// --- other sizes ---

static enum mgx_status specialise(migraphx_program_t *out, const struct mgx_program *p,
                                  const char *const *names, const size_t *lens, const size_t *ranks,
                                  size_t count, bool offload_copy, struct mgx_diag *diag)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        if (ranks[i] > MGX_MAX_RANK || !mgx_add_size(total, ranks[i], &total))
            return mgx_fail(diag, MGX_INVALID, "rank %zu is above %d", ranks[i], MGX_MAX_RANK);
    struct mgx_named_lens *given = calloc(count + 1, sizeof *given);
    int64_t *own = calloc(total + 1, sizeof *own);
    struct mgx_program *fixed = NULL;
    enum mgx_status status = given && own ? MGX_OK : mgx_fail_memory(diag);
    for (size_t i = 0, at = 0; i < count && status == MGX_OK; at += ranks[i++]) {
        given[i] = (struct mgx_named_lens){names[i], own + at, (int)ranks[i]};
        for (size_t axis = 0; axis < ranks[i]; axis++)
            own[at + axis] = lens[at + axis] > MGX_DIM_ANY ? -1 : (int64_t)lens[at + axis];
    }
    if (status == MGX_OK)
        status = mgx_program_fix(&fixed, p, given, (int)count, offload_copy, diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, fixed, diag);
    free(given);
    free(own);
    return status;
}

static migraphx_status specialise_named(migraphx_program_t *out, const_migraphx_program_t program,
                                        const char *const *names, const size_t *lens,
                                        const size_t *ranks, size_t count, bool offload_copy)
{
    for (size_t i = 0; i < count; i++)
        API_NEED(names[i]);
    API_DIAG(diag);
    const enum mgx_status status =
        specialise(out, program->p, names, lens, ranks, count, offload_copy, &diag);
    if (status == MGX_OK)
        (*out)->manner = program->manner;
    return mgx_api_leave(status, &diag);
}

#define NEED_LENS(out, program, names, lens, ranks, count)                                         \
    do {                                                                                           \
        API_NEED(out);                                                                             \
        API_NEED(program);                                                                         \
        if (count) {                                                                               \
            API_NEED(names);                                                                       \
            API_NEED(lens);                                                                        \
            API_NEED(ranks);                                                                       \
        }                                                                                          \
        if ((count) > UINT16_MAX)                                                                  \
            return mgx_api_bad("%s: %zu inputs are too many", __func__, (size_t)(count));          \
    } while (0)

migraphx_status migraphx_program_specialise(migraphx_program_t *out,
                                            const_migraphx_program_t program,
                                            const char *const *names, const size_t *lens,
                                            const size_t *ranks, size_t count)
{
    NEED_LENS(out, program, names, lens, ranks, count);
    const struct mgx_executable *e = program->p->executable;
    return specialise_named(out, program, names, lens, ranks, count, e && e->options.offload_copy);
}

migraphx_status migraphx_program_specialise_on_card(migraphx_program_t *out,
                                                    const_migraphx_program_t program,
                                                    const char *const *names, const size_t *lens,
                                                    const size_t *ranks, size_t count)
{
    NEED_LENS(out, program, names, lens, ranks, count);
    return specialise_named(out, program, names, lens, ranks, count, false);
}
