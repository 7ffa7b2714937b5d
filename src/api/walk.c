// SPDX-License-Identifier: MIT
// Walking a program from outside: modules, instructions, what they read and who reads them.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

// --- modules ---

migraphx_status migraphx_modules_size(size_t *out, const_migraphx_modules_t modules)
{
    API_NEED(out);
    API_NEED(modules);
    *out = modules->count;
    return migraphx_status_success;
}

migraphx_status migraphx_modules_get(migraphx_module_t *out, const_migraphx_modules_t modules,
                                     size_t idx)
{
    API_NEED(out);
    API_NEED(modules);
    if (idx >= modules->count)
        return mgx_api_bad("%s: index %zu, but there are %zu modules", __func__, idx,
                           modules->count);
    *out = mgx_api_module_out(modules->items[idx]);
    return migraphx_status_success;
}

migraphx_status migraphx_module_name(const char **out, const_migraphx_module_t module)
{
    API_NEED(out);
    API_NEED(module);
    *out = mgx_api_module(module)->name;
    return migraphx_status_success;
}

migraphx_status migraphx_module_instructions(migraphx_instructions_t *out,
                                             const_migraphx_module_t module)
{
    API_NEED(out);
    API_NEED(module);
    API_DIAG(diag);
    const struct mgx_module *m = mgx_api_module(module);
    struct mgx_ins **items = calloc((size_t)m->count + 1, sizeof *items);
    if (!items)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    size_t count = 0;
    for (struct mgx_ins *ins = m->first; ins && count < (size_t)m->count; ins = ins->next)
        items[count++] = ins;
    const enum mgx_status status = mgx_api_instructions_new(out, items, count, &diag);
    free(items);
    return mgx_api_leave(status, &diag);
}

// --- instructions ---

migraphx_status migraphx_instructions_size(size_t *out, const_migraphx_instructions_t instructions)
{
    API_NEED(out);
    API_NEED(instructions);
    *out = instructions->count;
    return migraphx_status_success;
}

migraphx_status migraphx_instructions_get(migraphx_instruction_t *out,
                                          const_migraphx_instructions_t instructions, size_t idx)
{
    API_NEED(out);
    API_NEED_LIVE(instructions);
    if (idx >= instructions->count)
        return mgx_api_bad("%s: index %zu, but there are %zu instructions", __func__, idx,
                           instructions->count);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_instruction_new(out, instructions->items[idx], &diag), &diag);
}

migraphx_status migraphx_instruction_name(const char **out,
                                          const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    *out = instruction->ins->op->name;
    return migraphx_status_success;
}

migraphx_status migraphx_instruction_shape(migraphx_shape_t *out,
                                           const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_shape_new(out, &instruction->ins->shape, &diag), &diag);
}

migraphx_status migraphx_instruction_operation(migraphx_operation_t *out,
                                               const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    struct migraphx_operation *o = API_NEW(struct migraphx_operation);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    const struct mgx_ins *ins = instruction->ins;
    o->op = ins->op;
    mgx_arena_init(&o->arena);
    const enum mgx_status status = mgx_attr_copy(ins->op, ins->attr, &o->arena, &o->attr, &diag);
    if (status == MGX_OK)
        *out = o;
    else
        migraphx_operation_destroy(o);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_instruction_inputs(migraphx_instructions_t *out,
                                            const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    const struct mgx_ins *ins = instruction->ins;
    return mgx_api_leave(mgx_api_instructions_new(out, ins->in, (size_t)ins->in_count, &diag),
                         &diag);
}

migraphx_status migraphx_instruction_outputs(migraphx_instructions_t *out,
                                             const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    const struct mgx_ins *ins = instruction->ins;
    struct mgx_ins **users = calloc((size_t)mgx_use_count(ins) + 1, sizeof *users);
    if (!users)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    size_t count = 0;
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        size_t i = 0; // few users: a linear search for one seen already
        while (i < count && users[i] != use->user)
            i++;
        if (i == count)
            users[count++] = use->user;
    }
    const enum mgx_status status = mgx_api_instructions_new(out, users, count, &diag);
    free(users);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_instruction_modules(migraphx_modules_t *out,
                                             const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    const struct mgx_ins *ins = instruction->ins;
    return mgx_api_leave(mgx_api_modules_new(out, ins->mod, (size_t)ins->mod_count, &diag), &diag);
}

migraphx_status migraphx_instruction_literal(migraphx_argument_t *out,
                                             const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    if (!instruction->ins->literal)
        return mgx_api_bad("%s: %s is not a literal", __func__, instruction->ins->op->name);
    API_DIAG(diag);
    struct mgx_tensor share;
    if (mgx_tensor_align(&share, instruction->ins->literal, &diag) != MGX_OK)
        return mgx_api_leave(diag.status, &diag);
    return mgx_api_leave(mgx_api_argument_new(out, &share, &diag), &diag);
}

migraphx_status migraphx_instruction_to_string(char **out, const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    struct mgx_str text = {0};
    mgx_ins_print(&text, instruction->ins);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

migraphx_status migraphx_instruction_nodes(char **out, const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED_LIVE(instruction);
    API_DIAG(diag);
    struct mgx_str text = {0};
    const struct mgx_strings *origin = &instruction->ins->origin;
    for (int i = 0; i < origin->count; i++)
        mgx_str_printf(&text, "%s%s", i ? "; " : "", origin->v[i]);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

migraphx_status migraphx_instruction_equal(bool *out, const_migraphx_instruction_t instruction,
                                           const_migraphx_instruction_t x)
{
    API_NEED(out);
    API_NEED(instruction);
    API_NEED(x);
    *out = instruction->ins == x->ins;
    return migraphx_status_success;
}

migraphx_status migraphx_instruction_hash(size_t *out, const_migraphx_instruction_t instruction)
{
    API_NEED(out);
    API_NEED(instruction);
    *out = (size_t)mgx_hash_bytes(&instruction->ins, sizeof instruction->ins, 0);
    return migraphx_status_success;
}
