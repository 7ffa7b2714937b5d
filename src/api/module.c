// SPDX-License-Identifier: MIT
// Building modules. The builders of the IR are sticky; here every call reports its own failure and
// leaves the program as it was, so that a caller may try and go on.
//
// A module from migraphx_module_create is the main module of a program of its own, which is known
// by its operator set.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "ir/link.h"
#include "op/op.h"

// --- handles ---

static void instruction_fini(struct migraphx_instruction *i)
{
    (void)i;
}

static enum mgx_status instruction_copy(struct migraphx_instruction *out,
                                        const struct migraphx_instruction *in,
                                        struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(instruction)

static void instructions_fini(struct migraphx_instructions *list)
{
    free(list->items);
}

static enum mgx_status instructions_copy(struct migraphx_instructions *out,
                                         const struct migraphx_instructions *in,
                                         struct mgx_diag *diag)
{
    out->items = calloc(in->count + 1, sizeof *out->items);
    if (!out->items)
        return mgx_fail_memory(diag);
    if (in->count)
        memcpy(out->items, in->items, in->count * sizeof *out->items);
    out->count = in->count;
    out->epoch = in->epoch;
    return MGX_OK;
}

API_HANDLE(instructions)

static void modules_fini(struct migraphx_modules *list)
{
    free(list->items);
}

static enum mgx_status modules_copy(struct migraphx_modules *out, const struct migraphx_modules *in,
                                    struct mgx_diag *diag)
{
    out->items = calloc(in->count + 1, sizeof *out->items);
    if (!out->items)
        return mgx_fail_memory(diag);
    if (in->count)
        memcpy(out->items, in->items, in->count * sizeof *out->items);
    out->count = in->count;
    return MGX_OK;
}

API_HANDLE(modules)

static struct mgx_api_epoch epoch_of(const struct mgx_ins *ins)
{
    struct mgx_program *p = ins->owner->program;
    p->handed_out = true;
    return (struct mgx_api_epoch){p, p->generation};
}

enum mgx_status mgx_api_instruction_new(migraphx_instruction_t *out, struct mgx_ins *ins,
                                        struct mgx_diag *diag)
{
    assert(out && ins);
    struct migraphx_instruction *handle = API_NEW(struct migraphx_instruction);
    if (!handle)
        return mgx_fail_memory(diag);
    *handle = (struct migraphx_instruction){ins, epoch_of(ins)};
    *out = handle;
    return MGX_OK;
}

enum mgx_status mgx_api_instructions_new(migraphx_instructions_t *out, struct mgx_ins *const *items,
                                         size_t count, struct mgx_diag *diag)
{
    assert(out && (items || !count));
    struct migraphx_instructions lent = {.items = (struct mgx_ins **)items, .count = count};
    if (count)
        lent.epoch = epoch_of(items[0]);
    struct migraphx_instructions *list = API_NEW(struct migraphx_instructions);
    const enum mgx_status status =
        list ? instructions_copy(list, &lent, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        *out = list;
    else
        free(list);
    return status;
}

enum mgx_status mgx_api_modules_new(migraphx_modules_t *out, struct mgx_module *const *items,
                                    size_t count, struct mgx_diag *diag)
{
    assert(out && (items || !count));
    const struct migraphx_modules lent = {(struct mgx_module **)items, count};
    struct migraphx_modules *list = API_NEW(struct migraphx_modules);
    const enum mgx_status status = list ? modules_copy(list, &lent, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        *out = list;
    else
        free(list);
    return status;
}

migraphx_status migraphx_instructions_create(migraphx_instructions_t *out,
                                             const const_migraphx_instruction_t *ptr, size_t size)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    for (size_t i = 0; i < size; i++) {
        API_NEED_LIVE(ptr[i]);
        if (ptr[i]->epoch.program != ptr[0]->epoch.program)
            return mgx_api_bad("%s: instruction %zu is of another program than the first", __func__,
                               i);
    }
    API_DIAG(diag);
    struct mgx_ins **items = calloc(size + 1, sizeof *items);
    if (!items)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    for (size_t i = 0; i < size; i++)
        items[i] = ptr[i]->ins;
    const enum mgx_status status = mgx_api_instructions_new(out, items, size, &diag);
    free(items);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_modules_create(migraphx_modules_t *out, migraphx_module_t *ptr,
                                        size_t size)
{
    API_NEED(out);
    if (size)
        API_NEED(ptr);
    for (size_t i = 0; i < size; i++)
        API_NEED(ptr[i]);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_modules_new(out, (struct mgx_module *const *)ptr, size, &diag),
                         &diag);
}

// --- modules without a program ---

static const struct mgx_op *find_loose(const struct mgx_op_set *set, const char *name, size_t size)
{
    (void)set;
    return mgx_api_ops.find(&mgx_api_ops, name, size);
}

static const struct mgx_op_set loose_ops = {.find = find_loose};

migraphx_status migraphx_module_create(migraphx_module_t *out, char *name)
{
    API_NEED(out);
    API_NEED(name);
    API_DIAG(diag);
    struct mgx_program *p = NULL;
    enum mgx_status status = mgx_program_create(&p, &loose_ops, &diag);
    if (status == MGX_OK) {
        struct mgx_module *m = mgx_program_main(p);
        m->name = mgx_arena_strdup(&p->arena, name);
        if (m->name)
            *out = mgx_api_module_out(m);
        else {
            mgx_program_destroy(p);
            status = mgx_fail_memory(&diag);
        }
    }
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_module_destroy(migraphx_module_t module)
{
    if (!module)
        return migraphx_status_success;
    struct mgx_module *m = mgx_api_module(module);
    if (m->program->ops != &loose_ops)
        return mgx_api_bad("%s: module \"%s\" belongs to a program", __func__, m->name);
    mgx_program_destroy(m->program);
    return migraphx_status_success;
}

// --- adding instructions ---

// What a builder left in the program's diagnosis becomes this call's failure.
static enum mgx_status report(struct mgx_program *p, const struct mgx_ins *made,
                              struct mgx_diag *diag)
{
    if (made && p->diag.status == MGX_OK)
        return MGX_OK;
    *diag = p->diag;
    mgx_diag_clear(&p->diag);
    return diag->status == MGX_OK ? mgx_fail_memory(diag) : diag->status;
}

static enum mgx_status hand_out(migraphx_instruction_t *out, struct mgx_module *m,
                                struct mgx_ins *ins, struct mgx_diag *diag)
{
    TRY(report(m->program, ins, diag));
    m->program->by_hand = true;
    return mgx_api_instruction_new(out, ins, diag);
}

enum mgx_status mgx_api_require_open(const struct mgx_module *m, struct mgx_diag *diag)
{
    assert(m && m->program);
    if (m->program->executable)
        return mgx_fail(diag, MGX_INVALID, "module \"%s\" cannot change: its program is compiled",
                        m->name);
    if (m != mgx_program_main(m->program) && mgx_program_find_module(m->program, m->name) != m)
        return mgx_fail(diag, MGX_INVALID, "the module was removed from its program by a pass");
    return MGX_OK;
}

enum mgx_status mgx_api_require_inputs(const struct mgx_module *m,
                                       const struct migraphx_instructions *args,
                                       struct mgx_diag *diag)
{
    for (size_t i = 0; i < args->count; i++) {
        if (args->items[i]->owner->program != m->program)
            return mgx_fail(diag, MGX_INVALID, "argument %zu is an instruction of another program",
                            i);
        if (args->items[i]->op == &mgx_op_return)
            return mgx_fail(diag, MGX_INVALID, "argument %zu is a @return, which has no value", i);
        if (!mgx_is_linked(args->items[i]))
            return mgx_fail(diag, MGX_INVALID,
                            "argument %zu (%s) was removed from its program by a pass", i,
                            args->items[i]->op->name);
    }
    return MGX_OK;
}

enum mgx_status mgx_api_require_modules(const struct mgx_module *m,
                                        const struct migraphx_modules *mods, struct mgx_diag *diag)
{
    for (size_t i = 0; i < mods->count; i++)
        if (mods->items[i]->program != m->program || mods->items[i] == m)
            return mgx_fail(diag, MGX_INVALID,
                            "module \"%s\" is not a submodule of this program (see "
                            "migraphx_program_create_module)",
                            mods->items[i]->name);
    return MGX_OK;
}

static enum mgx_status add(migraphx_instruction_t *out, struct mgx_module *m,
                           const struct migraphx_operation *op,
                           const struct migraphx_instructions *args,
                           const struct migraphx_modules *mods, struct mgx_diag *diag)
{
    TRY(mgx_api_require_open(m, diag));
    TRY(mgx_api_require_inputs(m, args, diag));
    TRY(mgx_api_require_modules(m, mods, diag));
    void *attr = NULL;
    TRY(mgx_attr_copy(op->op, op->attr, &m->program->arena, &attr, diag));
    struct mgx_ins *ins = mgx_insert(m, NULL, op->op, attr, args->items, (int)args->count,
                                     mods->items, (int)mods->count);
    return hand_out(out, m, ins, diag);
}

migraphx_status migraphx_module_add_instruction(migraphx_instruction_t *out,
                                                migraphx_module_t module, migraphx_operation_t op,
                                                migraphx_instructions_t args)
{
    static const struct migraphx_modules none = {0};
    API_NEED(out);
    API_NEED(module);
    API_NEED(op);
    API_NEED_LIVE(args);
    API_DIAG(diag);
    return mgx_api_leave(add(out, mgx_api_module(module), op, args, &none, &diag), &diag);
}

migraphx_status migraphx_module_add_instruction_with_mod_args(migraphx_instruction_t *out,
                                                              migraphx_module_t module,
                                                              migraphx_operation_t op,
                                                              migraphx_instructions_t args,
                                                              migraphx_modules_t module_refs)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(op);
    API_NEED_LIVE(args);
    API_NEED(module_refs);
    API_DIAG(diag);
    return mgx_api_leave(add(out, mgx_api_module(module), op, args, module_refs, &diag), &diag);
}

// The bytes with the strides they come with.
static enum mgx_status copy_bytes(struct mgx_tensor *out, const struct mgx_tensor *from,
                                  struct mgx_diag *diag)
{
    if (from->shape.type == MGX_STRING)
        return mgx_tensor_clone(out, from, diag);
    TRY(mgx_tensor_create(out, &from->shape, diag));
    if (mgx_shape_bytes(&from->shape))
        memcpy(out->data, from->data, mgx_shape_bytes(&from->shape));
    return MGX_OK;
}

static enum mgx_status add_literal(migraphx_instruction_t *out, struct mgx_module *m,
                                   const struct mgx_tensor *value, struct mgx_diag *diag)
{
    TRY(mgx_api_require_open(m, diag));
    struct mgx_tensor own = {0};
    TRY(copy_bytes(&own, value, diag));
    struct mgx_ins *ins = mgx_add_literal(m, &own);
    mgx_tensor_release(&own);
    return hand_out(out, m, ins, diag);
}

migraphx_status migraphx_module_add_literal(migraphx_instruction_t *out, migraphx_module_t module,
                                            const_migraphx_shape_t shape, const char *buffer)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(shape);
    if (!mgx_shape_is_static(&shape->value) || shape->value.sub)
        return mgx_api_bad("%s: a literal needs a static shape", __func__);
    if (mgx_shape_elements(&shape->value))
        API_NEED(buffer);
    if (shape->value.type == MGX_STRING && mgx_shape_bytes(&shape->value))
        return mgx_api_bad("%s: bytes of string_type are the engine's own: "
                           "migraphx_module_add_literal_argument takes an argument of texts",
                           __func__);
    API_DIAG(diag);
    const struct mgx_tensor lent = mgx_tensor_borrow(&shape->value, buffer);
    return mgx_api_leave(add_literal(out, mgx_api_module(module), &lent, &diag), &diag);
}

migraphx_status migraphx_module_add_literal_argument(migraphx_instruction_t *out,
                                                     migraphx_module_t module,
                                                     const_migraphx_argument_t value)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(value);
    if (mgx_api_argument_value(value)->sub)
        return mgx_api_bad("%s: a literal is a tensor, not a tuple or sequence", __func__);
    API_DIAG(diag);
    return mgx_api_leave(
        add_literal(out, mgx_api_module(module), mgx_api_argument_value(value), &diag), &diag);
}

migraphx_status migraphx_module_add_parameter(migraphx_instruction_t *out, migraphx_module_t module,
                                              const char *name, const_migraphx_shape_t shape)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(name);
    API_NEED(shape);
    API_DIAG(diag);
    struct mgx_module *m = mgx_api_module(module);
    enum mgx_status status = mgx_api_require_open(m, &diag);
    if (status == MGX_OK && mgx_find_parameter(m, name))
        status =
            mgx_fail(&diag, MGX_INVALID, "module \"%s\" has a parameter %s already", m->name, name);
    if (status == MGX_OK)
        status = hand_out(out, m, mgx_add_parameter(m, name, &shape->value), &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_module_add_return(migraphx_instruction_t *out, migraphx_module_t module,
                                           migraphx_instructions_t args)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED_LIVE(args);
    API_DIAG(diag);
    struct mgx_module *m = mgx_api_module(module);
    enum mgx_status status = mgx_api_require_open(m, &diag);
    if (status == MGX_OK)
        status = mgx_api_require_inputs(m, args, &diag);
    if (status == MGX_OK)
        status = hand_out(out, m, mgx_add_return(m, args->items, (int)args->count), &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_module_add_allocation(migraphx_instruction_t *out,
                                               migraphx_module_t module, const_migraphx_shape_t s)
{
    API_NEED(out);
    API_NEED(module);
    API_NEED(s);
    API_DIAG(diag);
    struct mgx_module *m = mgx_api_module(module);
    const struct mgx_op *allocate = mgx_op_find("allocate");
    enum mgx_status status = mgx_api_require_open(m, &diag);
    if (status == MGX_OK && !allocate)
        status = mgx_fail(&diag, MGX_NOT_FOUND, "Operator not found: allocate");
    if (status == MGX_OK) {
        const struct mgx_ins_list none = {NULL, 0};
        struct mgx_ins *ins =
            mgx_emit(m, allocate, MGX_ATTRS(mgx_shape_attr("shape", &s->value)), none);
        status = hand_out(out, m, ins, &diag);
    }
    return mgx_api_leave(status, &diag);
}

// --- text ---

migraphx_status migraphx_module_to_string(char **out, const_migraphx_module_t module)
{
    API_NEED(out);
    API_NEED(module);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_module_print(&text, mgx_api_module(module));
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}
