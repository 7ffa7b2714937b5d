// SPDX-License-Identifier: MIT
// Groups; see group.h.
#include "pass/engine/region.h"

#include <assert.h>
#include <stdio.h>

#include "op/op.h"
#include "pass/engine/name.h"

bool mgx_is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || (ins->op->flags & MGX_OP_POINTWISE);
}

static bool contains(const struct mgx_region *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < r->count; i++)
        if (r->ins[i] == ins)
            return true;
    return false;
}

bool mgx_region_add(struct mgx_region *r, struct mgx_ins *ins)
{
    if (contains(r, ins))
        return true;
    if (r->count == MGX_REGION_INS)
        return false;
    r->ins[r->count++] = ins;
    return true;
}

// Producers before readers: at most 16 instructions, so insertion by search is cheap.
static void sort(struct mgx_region *r)
{
    for (int done = 0; done < r->count; done++)
        for (int i = done; i < r->count; i++) {
            bool ready = true;
            for (int k = 0; k < r->ins[i]->in_count; k++)
                for (int j = done; j < r->count; j++)
                    ready &= r->ins[j] != r->ins[i]->in[k];
            if (!ready)
                continue;
            struct mgx_ins *t = r->ins[done];
            r->ins[done] = r->ins[i];
            r->ins[i] = t;
            break;
        }
}

bool mgx_region_closed(struct mgx_region *r)
{
    sort(r);
    const struct mgx_ins *inputs[MGX_REGION_INPUTS];
    int count = 0;
    for (int i = 0; i < r->count; i++) {
        for (const struct mgx_use *use = r->ins[i]->uses; use && i + 1 < r->count; use = use->next)
            if (!contains(r, use->user))
                return false;
        for (int k = 0; k < r->ins[i]->in_count; k++) {
            bool known = contains(r, r->ins[i]->in[k]);
            for (int j = 0; j < count && !known; j++)
                known = inputs[j] == r->ins[i]->in[k];
            if (!known && count == MGX_REGION_INPUTS)
                return false;
            if (!known)
                inputs[count++] = r->ins[i]->in[k];
        }
    }
    return true;
}

struct body {
    struct mgx_module *module;
    struct mgx_ins *in[MGX_REGION_INPUTS], *param[MGX_REGION_INPUTS];
    int in_count;
    struct mgx_ins *copy[MGX_REGION_INS];
};

static struct mgx_ins *inside(struct body *b, const struct mgx_region *r, int upto,
                              struct mgx_ins *in)
{
    for (int i = 0; i < upto; i++)
        if (r->ins[i] == in)
            return b->copy[i];
    for (int i = 0; i < b->in_count; i++)
        if (b->in[i] == in)
            return b->param[i];
    if (b->in_count == MGX_REGION_INPUTS)
        return NULL;
    char name[8];
    snprintf(name, sizeof name, "x%d", b->in_count);
    b->in[b->in_count] = in;
    b->param[b->in_count] = mgx_add_parameter(b->module, name, &in->shape);
    return b->param[b->in_count++];
}

static struct mgx_ins *copy(struct body *b, const struct mgx_region *r, int i)
{
    const struct mgx_ins *ins = r->ins[i];
    struct mgx_ins *in[MGX_REGION_INPUTS];
    if (ins->in_count > MGX_REGION_INPUTS)
        return NULL;
    for (int k = 0; k < ins->in_count; k++) {
        in[k] = inside(b, r, i, ins->in[k]);
        if (!in[k])
            return NULL;
    }
    b->copy[i] = mgx_insert(b->module, NULL, ins->op, ins->attr, in, ins->in_count, ins->mod,
                            ins->mod_count);
    mgx_copy_origin(b->copy[i], ins);
    return b->copy[i];
}

enum mgx_status mgx_region_group(struct mgx_pass_call *c, struct mgx_region *r, const char *tag)
{
    char name[MGX_GROUP_NAME];
    mgx_name_group(r->ins, r->count, tag, name);
    struct body b = {.module = mgx_program_add_module(c->program, name)};
    if (!b.module)
        return mgx_fail_memory(c->diag);
    b.module->bypass = true;
    for (int i = 0; i < r->count; i++)
        if (!copy(&b, r, i)) {
            TRY(mgx_program_status(c->program, c->diag));
            return mgx_fail(c->diag, MGX_INTERNAL, "a group of %d instructions could not be copied",
                            r->count);
        }
    struct mgx_ins *last = r->ins[r->count - 1];
    void *attr = NULL;
    mgx_add_return(b.module, &b.copy[r->count - 1], 1);
    TRY(mgx_attr_make(&mgx_op_group, MGX_ATTRS(mgx_text("tag", tag)), &c->program->arena, &attr,
                      c->diag));
    struct mgx_ins *group =
        mgx_insert(last->owner, last, &mgx_op_group, attr, b.in, b.in_count, &b.module, 1);
    TRY(mgx_program_status(c->program, c->diag));
    for (int i = 0; i < r->count; i++)
        mgx_copy_origin(group, r->ins[i]);
    mgx_replace_uses(last, group);
    for (int i = r->count; i-- > 0;)
        mgx_remove(r->ins[i]);
    c->changed = true;
    return MGX_OK;
}

enum mgx_status mgx_region_fuse(struct mgx_pass_call *c, struct mgx_region *r, const char *tag)
{
    const struct mgx_pass_options *options = c->options;
    assert(r->count > 0 && mgx_region_closed(r));
    if (options->supports && !options->supports(options->supports_user, tag, r))
        return MGX_OK;
    return mgx_region_group(c, r, tag);
}
