// SPDX-License-Identifier: MIT
// Programs: making, asking, printing, compiling.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "format/format.h"
#include "format/mxr.h"
#include "quant/recipe.h"
#include "targets/sizes.h"

static void program_fini(struct migraphx_program *program)
{
    mgx_program_destroy(program->p);
}

// A copy is not compiled: the executable belongs to the original.
static enum mgx_status program_copy(struct migraphx_program *out, const struct migraphx_program *in,
                                    struct mgx_diag *diag)
{
    TRY(mgx_api_prove(in->p, diag));
    if (in->p->carry) {
        mgx_carry_mark_literals(in->p->carry);
        TRY(mgx_carry_check(in->p->carry, diag));
    }
    out->manner = in->manner;
    return mgx_program_clone(&out->p, in->p, diag);
}

API_HANDLE(program)

enum mgx_status mgx_api_program_new(migraphx_program_t *out, struct mgx_program *take,
                                    struct mgx_diag *diag)
{
    assert(out && take);
    struct migraphx_program *handle = API_NEW(struct migraphx_program);
    if (!handle) {
        mgx_program_destroy(take);
        return mgx_fail_memory(diag);
    }
    handle->p = take;
    *out = handle;
    return MGX_OK;
}

migraphx_status migraphx_program_create(migraphx_program_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    enum mgx_status status = mgx_program_create(&p, &mgx_api_ops, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_get_main_module(migraphx_module_t *out, migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    *out = mgx_api_module_out(mgx_program_main(program->p));
    return migraphx_status_success;
}

migraphx_status migraphx_program_create_module(migraphx_module_t *out, migraphx_program_t program,
                                               const char *name)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(name);
    API_DIAG(diag);
    if (program->p->executable)
        return mgx_api_bad("%s: the program is compiled", __func__);
    if (mgx_program_find_module(program->p, name))
        return mgx_api_bad("%s: there is a module \"%s\" already", __func__, name);
    struct mgx_module *m = mgx_program_add_module(program->p, name);
    if (!m)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = mgx_api_module_out(m);
    return migraphx_status_success;
}

migraphx_status migraphx_program_modules(migraphx_modules_t *out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    API_DIAG(diag);
    return mgx_api_leave(
        mgx_api_modules_new(out, program->p->modules, (size_t)program->p->module_count, &diag),
        &diag);
}

// --- parameters and results ---

enum mgx_status mgx_api_parameter_shapes(migraphx_program_parameter_shapes_t *out,
                                         const struct mgx_module *m, struct mgx_diag *diag)
{
    const int count = mgx_module_parameters(m, NULL, 0);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_ins **params = MGX_NEW_ARRAY(&arena, struct mgx_ins *, count);
    const char **names = MGX_NEW_ARRAY(&arena, const char *, count);
    const struct mgx_shape **shapes = MGX_NEW_ARRAY(&arena, const struct mgx_shape *, count);
    enum mgx_status status = arena.failed ? mgx_fail_memory(diag) : MGX_OK;
    if (status == MGX_OK) {
        mgx_module_parameters(m, params, count);
        for (int i = 0; i < count; i++) {
            names[i] = mgx_parameter_name(params[i]);
            shapes[i] = &params[i]->shape;
        }
        status = mgx_api_named_shapes_new(out, names, shapes, (size_t)count, diag);
    }
    mgx_arena_fini(&arena);
    return status;
}

migraphx_status migraphx_program_get_parameter_shapes(migraphx_program_parameter_shapes_t *out,
                                                      migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_parameter_shapes(out, mgx_program_main(program->p), &diag), &diag);
}

// Results leave row-major, whatever views made them: also what an uncompiled program says of them.
static struct mgx_shape as_it_leaves(const struct mgx_shape *s)
{
    const bool packs =
        s->type != MGX_TUPLE && s->type != MGX_SEQUENCE && mgx_shape_is_static(s) && s->rank;
    return packs ? mgx_shape_make(s->type, s->rank, s->lens) : *s;
}

migraphx_status migraphx_program_get_output_shapes(migraphx_shapes_t *out,
                                                   migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    API_DIAG(diag);
    const struct mgx_module *m = mgx_program_main(program->p);
    const int count = mgx_module_result_count(m);
    struct mgx_shape *shapes = calloc((size_t)count + 1, sizeof *shapes);
    if (!shapes)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    for (int i = 0; i < count; i++)
        shapes[i] = as_it_leaves(&mgx_module_result(m, i)->shape);
    const enum mgx_status status = mgx_api_shapes_new(out, shapes, (size_t)count, &diag);
    free(shapes);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_output_names_size(size_t *out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    *out = (size_t)program->p->output_names.count;
    return migraphx_status_success;
}

migraphx_status migraphx_program_output_name(const char **out, const_migraphx_program_t program,
                                             size_t idx)
{
    API_NEED(out);
    API_NEED(program);
    if (idx >= (size_t)program->p->output_names.count)
        return mgx_api_bad("%s: index %zu, but there are %d names", __func__, idx,
                           program->p->output_names.count);
    *out = program->p->output_names.v[idx];
    return migraphx_status_success;
}

migraphx_status migraphx_program_is_compiled(bool *out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    *out = program->p->executable != NULL;
    return migraphx_status_success;
}

migraphx_status migraphx_program_takes_device_data(bool *out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    *out = program->p->executable && program->p->executable->memory;
    return migraphx_status_success;
}

// --- text ---

migraphx_status migraphx_program_to_string(char **out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_program_print(&text, program->p);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

static enum mgx_status format(char **out, const struct mgx_program *p, const char *name,
                              struct mgx_diag *diag)
{
    const bool json = strcmp(name, "json") == 0;
    const struct mgx_format *f = mgx_format_find(name);
    if (!f && !json)
        return mgx_fail(diag, MGX_NOT_FOUND, "Unknown format: %s", name);
    TRY(mgx_api_prove(p, diag));
    struct mgx_str text = {0};
    struct mgx_carry *carry = NULL;
    TRY(mgx_api_carry(p, false, &carry, diag));
    const enum mgx_status status =
        json ? mgx_mxr_save_buffer(p, carry, MGX_FORM_JSON, &text, diag) : f->print(&text, p, diag);
    mgx_carry_destroy(carry);
    if (status == MGX_OK)
        return mgx_api_take_text(&text, out, diag);
    mgx_str_fini(&text);
    return status;
}

migraphx_status migraphx_program_format(char **out, const_migraphx_program_t program,
                                        const char *name)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(name);
    API_DIAG(diag);
    return mgx_api_leave(format(out, program->p, name, &diag), &diag);
}

migraphx_status migraphx_program_parse(migraphx_program_t *out, const char *text, size_t size)
{
    API_NEED(out);
    API_NEED(text);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    enum mgx_status status = mgx_program_parse(&p, &mgx_api_ops, text, size, &diag);
    if (status == MGX_OK)
        status = mgx_api_program_new(out, p, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_sort(migraphx_program_t program)
{
    API_NEED_UNCOMPILED(program);
    API_DIAG(diag);
    const enum mgx_status status = mgx_api_prove(program->p, &diag);
    for (int i = 0; i < program->p->module_count && status == MGX_OK; i++)
        mgx_module_sort(program->p->modules[i]);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_equal(bool *out, const_migraphx_program_t program,
                                       const_migraphx_program_t x)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(x);
    *out = mgx_program_equal(program->p, x->p);
    return migraphx_status_success;
}

migraphx_status migraphx_program_verify(const_migraphx_program_t program)
{
    API_NEED(program);
    API_DIAG(diag);
    return mgx_api_leave(mgx_program_verify(program->p, &diag), &diag);
}

// --- passes ---

enum mgx_status mgx_api_no_pass(const char *name, struct mgx_diag *diag)
{
    struct mgx_str list = {0};
    int count;
    const struct mgx_pass *const *all = mgx_pass_all(&count);
    for (int i = 0; i < count; i++)
        mgx_str_printf(&list, "%s%s", i ? ", " : "", all[i]->name);
    mgx_fail(diag, MGX_NOT_FOUND, "Unknown pass: %.80s; there are %s", name, mgx_str_text(&list));
    mgx_str_fini(&list);
    return MGX_NOT_FOUND;
}

static enum mgx_status run_passes(struct mgx_program *p, const char *const *names, size_t size,
                                  struct mgx_diag *diag)
{
    if (p->executable)
        return mgx_fail(diag, MGX_INVALID, "the program is compiled");
    TRY(mgx_api_prove(p, diag));
    const struct mgx_pass **passes = calloc(size + 1, sizeof *passes);
    enum mgx_status status = passes ? MGX_OK : mgx_fail_memory(diag);
    for (size_t i = 0; i < size && status == MGX_OK; i++) {
        passes[i] = mgx_pass_find(names[i]);
        if (!passes[i])
            status = mgx_api_no_pass(names[i], diag);
    }
    if (status == MGX_OK)
        status = mgx_run_passes(p, passes, NULL, diag);
    free(passes);
    return status;
}

migraphx_status migraphx_program_run_passes(migraphx_program_t program, const char *const *names,
                                            size_t size)
{
    API_NEED(program);
    if (size)
        API_NEED(names);
    for (size_t i = 0; i < size; i++)
        API_NEED(names[i]);
    API_DIAG(diag);
    return mgx_api_leave(run_passes(program->p, names, size, &diag), &diag);
}

migraphx_status migraphx_program_optimize(migraphx_program_t program)
{
    API_NEED_UNCOMPILED(program);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_run_passes(program->p, mgx_pipeline_simplify, NULL, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_trim(migraphx_program_t program, size_t drop, size_t keep)
{
    API_NEED_UNCOMPILED(program);
    if (drop > INT32_MAX || keep > INT32_MAX)
        return mgx_api_bad("%s: there are not that many instructions", __func__);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_program_trim(program->p, (int)drop, (int)keep, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_keep_first(migraphx_program_t program, size_t keep)
{
    API_NEED_UNCOMPILED(program);
    if (keep > INT32_MAX)
        return mgx_api_bad("%s: there are not that many instructions", __func__);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_program_keep_first(program->p, (int)keep, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_program_replace_literals(migraphx_program_t program)
{
    API_NEED_UNCOMPILED(program);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_program_replace_literals(program->p, &diag);
    return mgx_api_leave(status, &diag);
}

// What a compiled program's target says of it.
static migraphx_status say(char **out, const struct mgx_program *p,
                           void (*what)(const struct mgx_program *p, struct mgx_str *out))
{
    API_DIAG(diag);
    struct mgx_str text = {0};
    if (what)
        what(p, &text);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

// Of a program that keeps how it was quantized, and one that does not has nothing to say.
static void explain_quantization(const struct mgx_program *p, struct mgx_str *out)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    struct mgx_recipe recipe;
    if (mgx_recipe_of(&recipe, p, &quiet) != MGX_OK)
        return;
    mgx_recipe_explain(out, &recipe);
    mgx_recipe_fini(&recipe);
}

static void explain(const struct mgx_program *p, struct mgx_str *out)
{
    const struct mgx_executable *executable = p->executable;
    if (executable->target->explain)
        executable->target->explain(p, out);
    if (executable->sizes)
        mgx_sizes_explain(executable->sizes, out);
    explain_quantization(p, out);
}

migraphx_status migraphx_program_explain(char **out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    if (!program->p->executable)
        return mgx_api_bad("%s: the program is not compiled", __func__);
    return say(out, program->p, explain);
}

migraphx_status migraphx_program_plan(char **out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    if (!program->p->executable)
        return mgx_api_bad("%s: the program is not compiled", __func__);
    return say(out, program->p, program->p->executable->target->plan);
}

enum mgx_status mgx_api_carry(const struct mgx_program *p, bool whole, struct mgx_carry **out,
                              struct mgx_diag *diag)
{
    const struct mgx_executable *e = p->executable;
    *out = NULL;
    if (!e)
        return MGX_OK;
    struct mgx_carry *c = *out = mgx_carry_create();
    if (!c)
        return mgx_fail_memory(diag);
    memcpy(c->target, e->target->name, strlen(e->target->name) + 1);
    c->options = e->options;
    const struct mgx_compile_options options = {.own = e->options.own};
    struct mgx_str kind = {0};
    enum mgx_status status = MGX_OK;
    if (whole && e->target->carry)
        status = e->target->carry(p, c, diag);
    if (status == MGX_OK && whole && !c->kind && e->target->kind) // that the target did not say
        status = e->target->kind(&options, &kind, diag);
    if (kind.size)
        c->kind = mgx_arena_strdup(&c->arena, mgx_str_text(&kind));
    mgx_str_fini(&kind);
    if (status == MGX_OK && !c->arena.failed)
        return MGX_OK;
    mgx_carry_destroy(c);
    *out = NULL;
    return status == MGX_OK ? mgx_fail_memory(diag) : status;
}
