// SPDX-License-Identifier: MIT
// See body.h.
#include "pass/engine/body.h"

#include <assert.h>
#include <stdio.h>

#include "base/size.h"

bool mgx_body_begin(struct mgx_body *b, struct mgx_program *p, const char *name)
{
    assert(!b->module && !b->in_count);
    b->module = mgx_program_add_module(p, name);
    if (!b->module) {
        mgx_fail_memory(&p->diag);
        return false;
    }
    b->module->bypass = true;
    return true;
}

void mgx_body_end(struct mgx_body *b)
{
    mgx_map_fini(&b->to);
}

struct mgx_ins *mgx_body_note(struct mgx_body *b, const struct mgx_ins *from, struct mgx_ins *to)
{
    assert(b->module && (!to || to->owner == b->module));
    if (!to || mgx_map_put_pointer(&b->to, from, to))
        return to;
    mgx_fail_memory(&b->module->program->diag);
    return NULL;
}

struct mgx_ins *mgx_body_param(struct mgx_body *b, struct mgx_ins *in,
                               const struct mgx_shape *shape)
{
    char name[16];
    assert(b->in_count < MGX_BODY_INPUTS);
    snprintf(name, sizeof name, "x%d", b->in_count);
    b->in[b->in_count++] = in;
    return mgx_body_note(b, in, mgx_add_parameter(b->module, name, shape));
}

struct mgx_ins *mgx_body_scalar(struct mgx_body *b, const struct mgx_tensor *constant)
{
    assert(mgx_shape_elements(&constant->shape) > 0);
    const struct mgx_shape scalar = mgx_shape_scalar(constant->shape.type);
    struct mgx_tensor value = mgx_tensor_view(constant, &scalar, 0);
    struct mgx_ins *literal = mgx_add_literal(b->module, &value);
    mgx_tensor_release(&value);
    return literal;
}

struct mgx_ins *mgx_body_copy(struct mgx_body *b, const struct mgx_ins *ins)
{
    struct mgx_ins *in[MGX_BODY_INPUTS];
    assert(ins->in_count <= MGX_BODY_INPUTS);
    for (int k = 0; k < ins->in_count; k++) {
        in[k] = mgx_map_find_pointer(&b->to, ins->in[k]);
        if (!in[k] && b->make)
            in[k] = b->make(b, ins->in[k]);
        if (!in[k])
            return NULL;
    }
    return mgx_body_note(b, ins,
                         mgx_insert(b->module, NULL, ins->op, ins->attr, in, ins->in_count,
                                    ins->mod, ins->mod_count));
}

bool mgx_body_has(struct mgx_ins *const *list, int count, const struct mgx_ins *ins)
{
    assert(count >= 0);
    for (int i = 0; i < count; i++)
        if (list[i] == ins)
            return true;
    return false;
}

bool mgx_body_keeps(struct mgx_ins *const *list, int count, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (!mgx_body_has(list, count, use->user))
            return false;
    return true;
}

// Reads it nothing of list[from..count)?
static bool is_ready(struct mgx_ins *const *list, int from, int count, const struct mgx_ins *ins)
{
    assert(from >= 0 && from <= count);
    for (int k = 0; k < ins->in_count; k++)
        if (mgx_body_has(list + from, count - from, ins->in[k]))
            return false;
    return true;
}

void mgx_body_sort(struct mgx_ins **list, int count)
{
    for (int done = 0; done < count; done++) {
        int i = done;
        while (i < count && !is_ready(list, done, count, list[i]))
            i++;
        assert(i < count); // instructions that read each other in a circle
        struct mgx_ins *next = list[i];
        for (; i > done; i--)
            list[i] = list[i - 1];
        list[done] = next;
    }
}
