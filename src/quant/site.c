// SPDX-License-Identifier: MIT
// Finding the products of a program; see site.h.
#include "quant/site.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/constant.h"

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

// Behind views, a value that was quantized before?
static bool is_quantized(const struct mgx_ins *ins)
{
    while (ins->in_count && (ins->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)))
        ins = ins->in[0];
    return ins->op == &mgx_op_dequantizelinear;
}

static bool can_be_quantized(const struct mgx_ins *ins)
{
    for (int i = 0; i < 2; i++) {
        const struct mgx_shape *s = &ins->in[i]->shape;
        if ((s->type != MGX_FLOAT && s->type != MGX_HALF && s->type != MGX_DOUBLE &&
             s->type != MGX_BF16) ||
            s->unranked || is_quantized(ins->in[i]))
            return false;
    }
    return true;
}

static bool add_site(struct mgx_ins *ins, int number, struct mgx_arena *arena,
                     struct mgx_sites *out)
{
    const bool dot = ins->op == &mgx_op_dot;
    const char *name = mgx_arena_printf(arena, "%s:%s:%d", ins->owner->name, ins->op->name, number);
    return name &&
           MGX_PUSH(out, arena,
                    (struct mgx_site){.ins = ins,
                                      .name = name,
                                      .origin = ins->origin.count ? ins->origin.v[0] : NULL,
                                      .axis = {dot ? ins->in[0]->shape.rank - 1 : 1,
                                               dot ? ins->shape.rank - 1 : 1},
                                      .constant = {mgx_is_constant(ins->owner, ins->in[0]),
                                                   mgx_is_constant(ins->owner, ins->in[1])}});
}

static bool find_in(struct mgx_module *m, const char *const *names, size_t count,
                    struct mgx_arena *arena, struct mgx_sites *out)
{
    const struct mgx_op *const ops[] = {&mgx_op_dot, &mgx_op_convolution};
    int numbers[2] = {0, 0};
    mgx_mark_constants(m);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        for (int i = 0; i < 2; i++) {
            if (ins->op != ops[i])
                continue;
            const int number = numbers[i]++;
            if (is_named(names, count, ins->op->name) && can_be_quantized(ins) &&
                !add_site(ins, number, arena, out))
                return false;
        }
    return true;
}

enum mgx_status mgx_sites_find(struct mgx_program *p, const char *const *names, size_t count,
                               struct mgx_arena *arena, struct mgx_sites *out,
                               struct mgx_diag *diag)
{
    assert(names || !count);
    *out = (struct mgx_sites){0};
    for (int i = 0; i < p->module_count; i++)
        if (!p->modules[i]->bypass && !find_in(p->modules[i], names, count, arena, out))
            return mgx_fail_memory(diag);
    return MGX_OK;
}
