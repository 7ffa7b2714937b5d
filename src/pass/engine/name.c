// SPDX-License-Identifier: MIT
// Names of groups; see name.h.
//
// An activation is found by what it reads: a run of element-wise instructions around its own
// operator, which ends in a product and reads one value from outside, twice, besides constants:
//
//     x * sigmoid(x)                  silu
//     x * clip(x / 6 + 1/2, 0, 1)     hard_swish
//     x / 2 * (1 + erf(x / sqrt(2)))  gelu, and the form with tanh
#include "pass/engine/name.h"

#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/view.h"

enum { PARTS = 32, LONGEST = 12 };

struct parts {
    const struct mgx_ins *ins[PARTS], *fused[PARTS]; // `fused`: the pointwise whose body holds it
    int count;
};

static void add(struct parts *p, const struct mgx_ins *ins, const struct mgx_ins *fused)
{
    if (p->count == PARTS || ins->op->name[0] == '@' || mgx_is_reshaper(ins))
        return;
    p->ins[p->count] = ins;
    p->fused[p->count++] = fused;
}

static const struct mgx_module *body_of(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise && ins->mod_count == 1 ? ins->mod[0] : NULL;
}

static void collect(struct parts *p, struct mgx_ins *const *ins, int count)
{
    for (int i = 0; i < count; i++) {
        const struct mgx_module *body = body_of(ins[i]);
        if (!body)
            add(p, ins[i], NULL);
        for (const struct mgx_ins *b = body ? body->first : NULL; b; b = b->next)
            add(p, b, ins[i]);
    }
}

// The instruction that makes a value: of a body's parameter the one outside, of a pointwise the
// last one in its body.
static const struct mgx_ins *maker(const struct mgx_ins *value, const struct mgx_ins *fused)
{
    struct mgx_ins *params[LONGEST];
    const int count = fused && fused->in_count <= LONGEST && value->op == &mgx_op_param
                          ? mgx_module_parameters(fused->mod[0], params, LONGEST)
                          : 0;
    for (int i = 0; i < count && i < fused->in_count; i++)
        if (params[i] == value)
            value = fused->in[i];
    const struct mgx_module *body = body_of(value);
    return body && body->last && body->last->in_count == 1 ? body->last->in[0] : value;
}

static bool is_constant(const struct mgx_ins *value)
{
    while (mgx_is_reshaper(value) || value->op == &mgx_op_convert)
        value = value->in[0];
    return value->op == &mgx_op_literal;
}

static bool within(const struct parts *p, int first, int last, const struct mgx_ins *value)
{
    for (int i = first; i <= last; i++)
        if (p->ins[i] == value)
            return true;
    return false;
}

// Does one of the parts at+1..last read the part `at`?
static bool is_read(const struct parts *p, int at, int last)
{
    for (int i = at + 1; i <= last; i++)
        for (int k = 0; k < p->ins[i]->in_count; k++)
            if (maker(p->ins[i]->in[k], p->fused[i]) == p->ins[at])
                return true;
    return false;
}

// Do the parts first..last read one value from outside, more than once, and end in a product that
// all of them go into?
static bool is_activation(const struct parts *p, int first, int last)
{
    const struct mgx_ins *x = NULL;
    int reads = 0;
    for (int i = first; i <= last; i++) {
        if (i < last && !is_read(p, i, last))
            return false;
        for (int k = 0; k < p->ins[i]->in_count; k++) {
            const struct mgx_ins *value = maker(p->ins[i]->in[k], p->fused[i]);
            if (is_constant(value) || within(p, first, last, value))
                continue;
            if (x && x != value)
                return false;
            x = value;
            reads++;
        }
    }
    return reads > 1 && p->ins[last]->op == &mgx_op_mul;
}

static const char *activation_of(const struct mgx_op *op)
{
    return op == &mgx_op_sigmoid                     ? "silu"
           : op == &mgx_op_clip                      ? "hard_swish"
           : op == &mgx_op_erf || op == &mgx_op_tanh ? "gelu"
                                                     : NULL;
}

// A product of the part before with a constant: gelu's half, where it comes last.
static bool scales(const struct parts *p, int at)
{
    const struct mgx_ins *ins = p->ins[at];
    if (ins->op != &mgx_op_mul)
        return false;
    const struct mgx_ins *a = maker(ins->in[0], p->fused[at]), *b = maker(ins->in[1], p->fused[at]);
    return (a == p->ins[at - 1] && is_constant(b)) || (b == p->ins[at - 1] && is_constant(a));
}

// The name of the activation that begins at `first`, and its last part; NULL if none does.
static const char *find_activation(const struct parts *p, int first, int *last)
{
    for (int end = first + 1; end < p->count && end - first < LONGEST; end++) {
        const char *name = NULL;
        for (int i = first; i < end && !name; i++)
            name = activation_of(p->ins[i]->op);
        if (!name || !is_activation(p, first, end))
            continue;
        *last = end;
        while (strcmp(name, "gelu") == 0 && *last + 1 < p->count && scales(p, *last + 1))
            ++*last;
        return name;
    }
    return NULL;
}

static void append(char *out, const char *name)
{
    const size_t used = strlen(out), size = strcspn(name, ":"); // "epilogue:3" is a copy
    if (used + size + 2 > MGX_GROUP_NAME)
        return;
    snprintf(out + used, MGX_GROUP_NAME - used, "%s%.*s", used ? "_" : "", (int)size, name);
}

void mgx_name_group(struct mgx_ins *const *ins, int count, const char *tag,
                    char out[MGX_GROUP_NAME])
{
    struct parts p = {.count = 0};
    out[0] = '\0';
    if (strcmp(tag, "epilogue") == 0 || strcmp(tag, "expand") == 0)
        collect(&p, ins, count);
    else
        append(out, tag);
    for (int i = 0; i < p.count; i++) {
        const char *name = find_activation(&p, i, &i);
        const struct mgx_ins *part = p.ins[i];
        if (!name)
            name =
                part->op == &mgx_op_group && part->mod_count ? part->mod[0]->name : part->op->name;
        append(out, name);
    }
}
