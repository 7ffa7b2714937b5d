// SPDX-License-Identifier: MIT
// The time that a product saves in 8 bits: measured alone where the runner has a clock, else
// reckoned from its multiplications.
//
//     on processors   y = dot(x, w)                      beside  y = dot(dq(q(x)), dq(w'))
//     on cards        y = dot(x, w), all three of half   beside  y = convert[half](dot(dq(x'), dq(w')))
//
// On a card float's rival is not float: half costs a product next to nothing and is as fast as it
// can be else, so bytes are worth only what they are faster than that (runner->halves). There x' is
// a parameter of bytes, for in a chain of narrow products whoever makes x leaves bytes at no more
// cost, and what follows leaves 16 bits or less.
//
// Products of the same operator, attributes, shapes and types are timed once. Cost: two
// compilations and some runs for each kind of product.
#include "quant/gain.h"

#include <math.h>

#include "pass/engine/emit.h"
#include "quant/weights.h"

// --- alone ---

// The type that the wide product is timed in.
static enum mgx_type rival_of(const struct mgx_quant_clock *c, const struct mgx_site *site)
{
    const enum mgx_type type = site->ins->shape.type;
    return c->runner->halves && !mgx_type_is_half_or_bf16(type) ? MGX_HALF : type;
}

static enum mgx_status lone_constant(struct mgx_module *m, const struct mgx_site *site, int input,
                                     struct mgx_ins **out, struct mgx_diag *diag)
{
    struct mgx_weights w;
    enum mgx_status status = mgx_weights_open(&w, site, input, diag);
    if (status == MGX_OK) {
        struct mgx_tensor share = mgx_tensor_share(&w.value);
        struct mgx_weights there = w;
        there.at = mgx_add_return(m, NULL, 0); // literals go to the front, views before it
        struct mgx_ins *core = there.at ? mgx_weights_literal(&there, &share, diag) : NULL;
        *out = core ? mgx_weights_dress(&there, core) : NULL;
        status = *out ? MGX_OK : mgx_fail_memory(diag);
    }
    mgx_weights_close(&w);
    return status;
}

// A program of one product of `type`: its activations are parameters, its weights as they are.
static enum mgx_status lone_input(struct mgx_module *m, const struct mgx_site *site, int input,
                                  enum mgx_type type, struct mgx_ins **out, struct mgx_diag *diag)
{
    const struct mgx_shape *s = &site->ins->in[input]->shape;
    const struct mgx_shape plain = mgx_shape_make(type, s->rank, s->lens);
    if (!site->constant[input])
        *out = mgx_add_parameter(m, input ? "y" : "x", &plain);
    else
        TRY(lone_constant(m, site, input, out, diag));
    return mgx_program_status(m->program, diag);
}

static enum mgx_status lone_product(const struct mgx_site *site, enum mgx_type type,
                                    struct mgx_program **out, struct mgx_diag *diag)
{
    struct mgx_ins *in[2] = {NULL, NULL};
    TRY(mgx_program_create(out, &mgx_ops, diag));
    struct mgx_module *m = mgx_program_main(*out);
    for (int i = 0; i < 2; i++)
        TRY(lone_input(m, site, i, type, &in[i], diag));
    struct mgx_ins *end = mgx_add_return(m, NULL, 0);
    for (int i = 0; i < 2; i++)
        in[i] = mgx_emit_convert(end, in[i], type);
    struct mgx_ins *y = mgx_insert(m, end, site->ins->op, site->ins->attr, in, 2, NULL, 0);
    mgx_add_return(m, &y, 1);
    return mgx_program_status(*out, diag);
}

static enum mgx_status narrow_lone(const struct mgx_quant_clock *c,
                                   const struct mgx_recipe_entry *e, struct mgx_program *p)
{
    struct mgx_recipe one = *c->recipe;
    struct mgx_recipe_entry entry = *e;
    struct mgx_sites sites;
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    one.v = &entry;
    one.count = 1;
    enum mgx_status status = mgx_sites_find(p, NULL, 0, &arena, &sites, c->diag);
    if (status == MGX_OK && sites.count == 1)
        status = mgx_recipe_apply(&one, &sites, false, c->diag);
    mgx_arena_fini(&arena);
    return status;
}

// What is quantized comes as bytes, and the result leaves in `type`.
static enum mgx_status join_chain(struct mgx_program *p, enum mgx_type type, struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_dead_code_elimination, NULL};
    static const char *const names[] = {"x bytes", "y bytes"};
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *end = mgx_module_return(m);
    int count = 0;
    for (struct mgx_ins *ins = m->first, *next; ins && count < 2; ins = next) {
        next = ins->next;
        if (ins->op != &mgx_op_quantizelinear)
            continue;
        const struct mgx_shape *s = &ins->shape;
        const struct mgx_shape plain = mgx_shape_make(s->type, s->rank, s->lens);
        struct mgx_ins *x = mgx_add_parameter(m, names[count++], &plain);
        if (x)
            mgx_replace_uses(ins, x);
    }
    struct mgx_ins *y = mgx_emit_convert(end, end->in[0], type);
    if (y)
        mgx_set_input(end, 0, y);
    TRY(mgx_program_status(p, diag));
    return mgx_run_passes(p, passes, NULL, diag);
}

// --- timing ---

static enum mgx_status time_wide(const struct mgx_quant_clock *c, const struct mgx_site *site,
                                 double *seconds)
{
    struct mgx_program *p = NULL;
    enum mgx_status status = lone_product(site, rival_of(c, site), &p, c->diag);
    if (status == MGX_OK)
        status = c->runner->time(c->runner->user, p, seconds, c->diag);
    mgx_program_destroy(p);
    return status;
}

static enum mgx_status time_narrow(const struct mgx_quant_clock *c, const struct mgx_site *site,
                                   const struct mgx_recipe_entry *e, double *seconds)
{
    struct mgx_program *p = NULL;
    enum mgx_status status = lone_product(site, site->ins->shape.type, &p, c->diag);
    if (status == MGX_OK)
        status = narrow_lone(c, e, p);
    if (status == MGX_OK && c->runner->halves)
        status = join_chain(p, rival_of(c, site), c->diag);
    if (status == MGX_OK)
        status = c->runner->time(c->runner->user, p, seconds, c->diag);
    mgx_program_destroy(p);
    return status;
}

// All that decides what it takes; of ranges their signs alone.
static void put_key(struct mgx_str *out, const struct mgx_site *site,
                    const struct mgx_recipe_entry *e)
{
    mgx_op_print(out, site->ins->op, site->ins->attr);
    mgx_str_printf(out, " %s %d", mgx_type_name(e->type), e->smooth.count);
    for (int i = 0; i < 2; i++) {
        mgx_str_printf(out, " %d %d ", site->constant[i], e->in[i].low >= 0);
        mgx_shape_print(out, &site->ins->in[i]->shape);
    }
}

static enum mgx_status measure_gain(struct mgx_quant_clock *c, const struct mgx_site *site,
                                    const struct mgx_recipe_entry *e, const char *key, double *gain)
{
    double wide = 0, narrow = 0;
    double *kept = MGX_NEW(c->arena, double);
    const char *own = mgx_arena_strdup(c->arena, key);
    TRY(time_wide(c, site, &wide));
    TRY(time_narrow(c, site, e, &narrow));
    *gain = (wide - narrow) * 1e6;
    if (!kept || !own || !mgx_map_put(&c->times, own, kept))
        return mgx_fail_memory(c->diag);
    *kept = *gain;
    return MGX_OK;
}

// --- reckoning ---

// Of lengths that may vary the least.
static double least_elements(const struct mgx_shape *s)
{
    double count = 1;
    for (int i = 0; i < s->rank; i++)
        count *= fmax(1, (double)mgx_shape_dim(s, i).min);
    return count;
}

// Without a clock: two thirds of what the multiplications take at 25 G a second.
static double reckon_gain(const struct mgx_site *site)
{
    const struct mgx_shape *w = &site->ins->in[1]->shape;
    const bool dot = site->ins->op == &mgx_op_dot;
    const double axis = fmax(1, (double)mgx_shape_dim(w, dot ? w->rank - 2 : 0).min);
    const double terms = dot ? axis : least_elements(w) / axis;
    return least_elements(&site->ins->shape) * terms / 25e9 * 1e6 * 2 / 3;
}

enum mgx_status mgx_quant_gain(struct mgx_quant_clock *c, const struct mgx_site *site,
                               const struct mgx_recipe_entry *e, double *gain)
{
    const bool fixed = mgx_shape_is_static(&site->ins->in[0]->shape) &&
                       mgx_shape_is_static(&site->ins->in[1]->shape);
    struct mgx_str key = {0};
    enum mgx_status status = MGX_OK;
    *gain = reckon_gain(site);
    if (!c->runner->time || !fixed)
        return MGX_OK;
    put_key(&key, site, e);
    const double *known = key.failed ? NULL : mgx_map_find(&c->times, mgx_str_text(&key));
    if (known)
        *gain = *known;
    else
        status = key.failed ? mgx_fail_memory(c->diag)
                            : measure_gain(c, site, e, mgx_str_text(&key), gain);
    mgx_str_fini(&key);
    return status;
}
