// SPDX-License-Identifier: MIT
// Macros: a name and options that stand for several instructions. A name that no macro has is an
// operator's, which then stands for itself.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "onnx/op/macro.h"

struct migraphx_macro {
    const struct mgx_macro *macro; // NULL: the operator alone
    const struct mgx_op *op;       // whose fields the options have
    void *options;
    struct mgx_arena arena; // of the options
};

// --- handles ---

static enum mgx_status macro_init(struct migraphx_macro *out, const char *name, const char *text,
                                  struct mgx_diag *diag)
{
    out->macro = mgx_macro_find(name);
    out->op =
        out->macro ? &out->macro->options : mgx_api_ops.find(&mgx_api_ops, name, strlen(name));
    if (!out->op || (out->op->flags & MGX_OP_BUILTIN))
        return mgx_fail(diag, MGX_NOT_FOUND, "no macro and no operator is named %s", name);
    return mgx_api_attributes(out->op, text, &out->arena, &out->options, diag);
}

migraphx_status migraphx_macro_destroy(migraphx_macro_t macro)
{
    if (macro)
        mgx_arena_fini(&macro->arena);
    free(macro);
    return migraphx_status_success;
}

migraphx_status migraphx_macro_create(migraphx_macro_t *out, const char *name, const char *options)
{
    API_NEED(out);
    API_NEED(name);
    API_DIAG(diag);
    struct migraphx_macro *macro = API_NEW(struct migraphx_macro);
    if (!macro)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    mgx_arena_init(&macro->arena);
    const enum mgx_status status = macro_init(macro, name, options, &diag);
    if (status == MGX_OK)
        *out = macro;
    else
        migraphx_macro_destroy(macro);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_macro_name(const char **out, const_migraphx_macro_t macro)
{
    API_NEED(out);
    API_NEED(macro);
    *out = macro->op->name;
    return migraphx_status_success;
}

migraphx_status migraphx_macro_options(char **out, const_migraphx_macro_t macro)
{
    API_NEED(out);
    API_NEED(macro);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_attr_print_json(&text, macro->op, macro->options);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

// --- which there are ---

migraphx_status migraphx_get_macros_size(size_t *out)
{
    API_NEED(out);
    *out = (size_t)mgx_macro_count();
    return migraphx_status_success;
}

migraphx_status migraphx_get_macro_name_at_index(const char **out, size_t index)
{
    API_NEED(out);
    if (index >= (size_t)mgx_macro_count())
        return mgx_api_bad("%s: index %zu, but there are %d macros", __func__, index,
                           mgx_macro_count());
    *out = mgx_macro_name((int)index);
    return migraphx_status_success;
}

// --- adding ---

static enum mgx_status insert_op(const struct migraphx_macro *macro, struct mgx_module *m,
                                 struct mgx_ins *before, const struct migraphx_instructions *args,
                                 const struct migraphx_modules *mods, struct mgx_ins **out,
                                 struct mgx_diag *diag)
{
    void *attr = NULL;
    TRY(mgx_attr_copy(macro->op, macro->options, &m->program->arena, &attr, diag));
    *out = mgx_insert(m, before, macro->op, attr, args->items, (int)args->count, mods->items,
                      (int)mods->count);
    const enum mgx_status status = mgx_program_status(m->program, diag);
    mgx_diag_clear(&m->program->diag);
    return status;
}

// What is inserted may read only what stands before it.
static enum mgx_status require_earlier(const struct mgx_module *m, const struct mgx_ins *before,
                                       const struct migraphx_instructions *args,
                                       struct mgx_diag *diag)
{
    assert(m && args);
    if (before && before->owner != m)
        return mgx_fail(diag, MGX_INVALID, "the place is in another module");
    for (const struct mgx_ins *ins = before; ins; ins = ins->next)
        for (size_t i = 0; i < args->count; i++)
            if (args->items[i] == ins)
                return mgx_fail(diag, MGX_INVALID, "argument %zu (%s) comes after the place", i,
                                ins->op->name);
    return MGX_OK;
}

static enum mgx_status insert(migraphx_instructions_t *out, struct mgx_module *m,
                              struct mgx_ins *before, const struct migraphx_macro *macro,
                              const struct migraphx_instructions *args,
                              const struct migraphx_modules *mods, struct mgx_diag *diag)
{
    struct mgx_ins *made[MGX_MACRO_RESULTS];
    int count = 1;
    TRY(mgx_api_require_open(m, diag));
    TRY(mgx_api_require_inputs(m, args, diag));
    TRY(mgx_api_require_modules(m, mods, diag));
    TRY(require_earlier(m, before, args, diag));
    if (macro->macro)
        TRY(mgx_macro_add(macro->macro, macro->options, m, before, args->items, (int)args->count,
                          made, &count, diag));
    else
        TRY(insert_op(macro, m, before, args, mods, &made[0], diag));
    m->program->by_hand = true;
    return mgx_api_instructions_new(out, made, (size_t)count, diag);
}

static const struct migraphx_modules no_modules;

migraphx_status migraphx_module_add_macro(migraphx_instructions_t *out, migraphx_module_t module,
                                          const_migraphx_macro_t macro,
                                          migraphx_instructions_t args,
                                          migraphx_modules_t module_refs)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(macro);
    API_NEED_LIVE(args);
    API_DIAG(diag);
    return mgx_api_leave(insert(out, mgx_api_module(module), NULL, macro, args,
                                module_refs ? module_refs : &no_modules, &diag),
                         &diag);
}

migraphx_status migraphx_module_insert_macro(migraphx_instructions_t *out, migraphx_module_t module,
                                             const_migraphx_instruction_t before,
                                             const_migraphx_macro_t macro,
                                             migraphx_instructions_t args,
                                             migraphx_modules_t module_refs)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED_LIVE(before);
    API_NEED(macro);
    API_NEED_LIVE(args);
    API_DIAG(diag);
    return mgx_api_leave(insert(out, mgx_api_module(module), before->ins, macro, args,
                                module_refs ? module_refs : &no_modules, &diag),
                         &diag);
}
