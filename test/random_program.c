// SPDX-License-Identifier: MIT
// Growing and judging random programs; see random_program.h. What is drawn stands in
// random_candidates.c.
#include "random_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "random_builder.h"

enum { MAX_ELEMENTS = 4096 };

// --- numbers ---

uint64_t random_next(struct random_builder *b) // splitmix64
{
    uint64_t z = b->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int random_below(struct random_builder *b, int bound)
{
    return (int)(random_next(b) % (uint64_t)bound);
}

bool random_chance(struct random_builder *b, int percent)
{
    return random_below(b, 100) < percent;
}

double random_real(struct random_builder *b, double low, double high)
{
    return low + (high - low) * (double)(random_next(b) >> 11) * 0x1p-53;
}

// --- judging ---

static double epsilon(enum mgx_type type)
{
    switch (type) {
    case MGX_DOUBLE:
        return 0x1p-53;
    case MGX_FLOAT:
        return 0x1p-24;
    case MGX_HALF:
        return 0x1p-11;
    case MGX_BF16:
        return 0x1p-8;
    default:
        return mgx_type_is_float(type) ? 0x1p-3 : 0;
    }
}

// Relative steps for measuring sensitivity: far above rounding, far below the values.
static double nudge_of(enum mgx_type type)
{
    switch (type) {
    case MGX_DOUBLE:
        return 1e-7;
    case MGX_FLOAT:
        return 1e-4;
    case MGX_HALF:
        return 1e-2;
    default:
        return 5e-2;
    }
}

static bool is_number(const struct mgx_shape *s)
{
    return mgx_type_is_number(s->type);
}

static double *as_doubles(const struct mgx_tensor *t)
{
    double *v = malloc((size_t)(mgx_shape_elements(&t->shape) + 1) * sizeof *v);
    if (v)
        mgx_tensor_to_doubles(t, v);
    return v;
}

// Largest magnitude; infinity if anything is not finite.
static double scale_of(const struct mgx_tensor *t)
{
    double *v = as_doubles(t), scale = 0;
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int64_t i = 0; v && i < count; i++)
        scale = isfinite(v[i]) ? fmax(scale, fabs(v[i])) : INFINITY;
    free(v);
    return v ? scale : INFINITY;
}

static double difference(const struct mgx_tensor *a, const struct mgx_tensor *b)
{
    if (a->shape.type != b->shape.type || !mgx_shape_same_lens(&a->shape, &b->shape))
        return INFINITY;
    double *x = as_doubles(a), *y = as_doubles(b), most = x && y ? 0 : INFINITY;
    const int64_t count = mgx_shape_elements(&a->shape);
    for (int64_t i = 0; x && y && i < count; i++) {
        const double d = x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ? 0 : fabs(x[i] - y[i]);
        most = isnan(d) ? INFINITY : fmax(most, d);
    }
    free(x);
    free(y);
    return most;
}

struct call { // one evaluation of a candidate
    const struct mgx_op *op;
    const void *attr;
    struct mgx_module *const *mod;
    int mod_count;
};

static bool evaluate(struct random_builder *b, const struct call *c, const struct mgx_tensor *in,
                     int in_count, struct mgx_tensor *out)
{
    const struct mgx_tensor *list[RANDOM_IN];
    struct mgx_diag diag = {0};
    for (int i = 0; i < in_count; i++)
        list[i] = &in[i];
    *out = (struct mgx_tensor){0};
    for (int i = 0; i < c->mod_count; i++)
        mgx_module_number(c->mod[i]);
    return mgx_eval_op(&b->eval, c->op, c->attr, list, in_count, c->mod, c->mod_count, NULL, out,
                       &diag) == MGX_OK;
}

// The inputs, each element of a float moved by its tensor's scale times the nudge.
static bool nudged(struct random_builder *b, const int *in, int in_count, int direction,
                   struct mgx_tensor *out)
{
    struct mgx_diag diag = {0};
    bool ok = true;
    for (int i = 0; i < in_count; i++) {
        const struct random_value *v = &b->pool[in[i]];
        out[i] = (struct mgx_tensor){0};
        if (!mgx_type_is_float(v->tensor.shape.type) || v->ins->literal) {
            out[i] = mgx_tensor_share(&v->tensor);
            continue;
        }
        ok = ok && mgx_tensor_clone(&out[i], &v->tensor, &diag) == MGX_OK;
        if (!ok)
            continue;
        const enum mgx_type type = out[i].shape.type;
        const int64_t count = mgx_shape_elements(&out[i].shape);
        for (int64_t j = 0; j < count; j++) {
            const double way = direction ? direction : random_real(b, -1, 1);
            mgx_store_double(type, out[i].data, j,
                             mgx_load_double(type, out[i].data, j) +
                                 way * nudge_of(type) * v->scale);
        }
    }
    return ok;
}

// How much the result moves per nudge of the inputs; infinity when it jumps.
static double sensitivity(struct random_builder *b, const struct call *c, const int *in,
                          int in_count, const struct mgx_tensor *result)
{
    double most = 0;
    for (int direction = -1; direction <= 1; direction++) {
        struct mgx_tensor moved[RANDOM_IN] = {0}, out = {0};
        if (nudged(b, in, in_count, direction, moved) && evaluate(b, c, moved, in_count, &out))
            most = fmax(most, difference(result, &out));
        else
            most = INFINITY;
        mgx_tensor_release(&out);
        for (int i = 0; i < in_count; i++)
            mgx_tensor_release(&moved[i]);
    }
    return most;
}

enum { ROUNDINGS = 16 }; // of one instruction's own, counting what a pass may split it into

// The error of the result, or infinity if the candidate is no good: not finite, too large, too
// sensitive.
static double judge(struct random_builder *b, const struct call *c, const int *in, int in_count,
                    const struct mgx_tensor *result)
{
    const double scale = scale_of(result);
    const enum mgx_type type = result->shape.type;
    double relative = 0, nudge = 0;
    bool inexact = false;
    if (!(scale < (mgx_type_is_float(type) ? 1e4 : 1e18)))
        return INFINITY;
    for (int i = 0; i < in_count; i++) {
        const struct random_value *v = &b->pool[in[i]];
        if (!mgx_type_is_float(v->tensor.shape.type) || v->ins->literal)
            continue;
        inexact = true;
        nudge = fmax(nudge, nudge_of(v->tensor.shape.type));
        if (v->scale > 0)
            relative = fmax(relative, v->error / v->scale);
    }
    if (!inexact)
        return ROUNDINGS * epsilon(type) * scale;
    const double moved = sensitivity(b, c, in, in_count, result);
    const double own = ROUNDINGS * epsilon(type) * fmax(scale, 1e-3);
    if (!(moved <= 64 * nudge * fmax(scale, 1)) || relative > nudge / 4)
        return INFINITY;
    // Roundings inside may act on more than the result shows: at least what an input carries.
    return own + 4 * moved / nudge * (relative + epsilon(type));
}

// --- the pool ---

const struct mgx_shape *random_shape(const struct random_builder *b, int value)
{
    return &b->pool[value].tensor.shape;
}

static int add_value(struct random_builder *b, struct mgx_ins *ins, struct mgx_tensor *take,
                     double error)
{
    if (!ins || b->count == RANDOM_POOL) {
        mgx_tensor_release(take);
        return -1;
    }
    struct random_value *v = &b->pool[b->count];
    *v = (struct random_value){.ins = ins, .tensor = *take, .error = error};
    if (is_number(&take->shape))
        v->scale = scale_of(take);
    mgx_program_pin(b->program, take->storage); // the program keeps the bytes, the pool borrows
    mgx_tensor_release(take);
    return b->count++;
}

int random_pick(struct random_builder *b, bool (*fits)(const struct mgx_shape *s))
{
    for (int tries = 0; tries < 24 && b->count; tries++) {
        // Recent values are likelier, so that programs grow deep as well as wide.
        const int back = random_chance(b, 60) ? random_below(b, 4) : random_below(b, b->count);
        const int at = b->count - 1 - back;
        if (at >= 0 && (!fits || fits(random_shape(b, at))))
            return at;
    }
    return -1;
}

int random_pick_like(struct random_builder *b, const struct mgx_shape *s, int but)
{
    const int start = random_below(b, b->count);
    for (int i = 0; i < b->count; i++) {
        const int at = (start + i) % b->count;
        const struct mgx_shape *have = random_shape(b, at);
        if (at != but && have->type == s->type && have->rank == s->rank &&
            mgx_shape_same_lens(have, s))
            return at;
    }
    return -1;
}

static void fill(struct random_builder *b, struct mgx_tensor *t, double low, double high)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    const enum mgx_type type = t->shape.type;
    for (int64_t i = 0; i < count; i++) {
        double v = random_real(b, low, high);
        if (!mgx_type_is_float(type))
            v = floor(v);
        if (type == MGX_BOOL)
            v = random_below(b, 2);
        mgx_store_double(type, t->data, i, v);
    }
}

int random_literal(struct random_builder *b, const struct mgx_shape *s, double low, double high)
{
    struct mgx_diag diag = {0};
    struct mgx_tensor t = {0};
    const struct mgx_shape plain = mgx_shape_retype(s, s->type);
    if (mgx_tensor_create(&t, &plain, &diag) != MGX_OK)
        return -1;
    fill(b, &t, low, high);
    return add_value(b, mgx_add_literal(b->module, &t), &t, 0);
}

int random_splat(struct random_builder *b, const struct mgx_shape *like, double value)
{
    const struct mgx_shape scalar = mgx_shape_scalar(like->type);
    const int at = random_literal(b, &scalar, value, value);
    return at < 0 ? at
                  : random_emit(b, &mgx_op_multibroadcast,
                                MGX_ATTRS(mgx_ints("out_lens", like->lens, like->rank)), &at, 1);
}

int random_operand(struct random_builder *b, const struct mgx_shape *like, int but)
{
    static const double numbers[] = {0, 1, 2, 3, -1, 0.5, -0.5, 4};
    struct mgx_shape s = mgx_shape_retype(like, like->type);
    const int way = random_below(b, 10);
    if (way < 5) {
        const int at = random_pick_like(b, like, but);
        if (at >= 0)
            return at;
    }
    if (way < 7)
        return random_splat(b, like, numbers[random_below(b, MGX_COUNT(numbers))]);
    if (way == 7)
        return random_literal(b, &s, -2, 3);
    bool cut = false;
    for (int d = 0; d < s.rank; d++)
        if (random_chance(b, 60)) {
            cut |= s.lens[d] != 1;
            s.lens[d] = 1;
        }
    if (!cut || !mgx_shape_elements(like))
        return random_literal(b, like, -2, 3);
    const int at = random_literal(b, &s, -2, 3);
    return at < 0 ? at
                  : random_emit(b, &mgx_op_multibroadcast,
                                MGX_ATTRS(mgx_ints("out_lens", like->lens, like->rank)), &at, 1);
}

// --- emitting ---

int random_emit_bodies(struct random_builder *b, const struct mgx_op *op,
                       const struct mgx_attr *attrs, const int *in, int in_count,
                       struct mgx_module *const *mod, int mod_count)
{
    struct mgx_tensor list[RANDOM_IN], result;
    struct mgx_ins *ins[RANDOM_IN];
    struct call c = {op, NULL, mod, mod_count};
    void *attr = NULL;
    struct mgx_diag diag = {0};
    for (int i = 0; i < in_count; i++) {
        if (in[i] < 0)
            return -1;
        list[i] = b->pool[in[i]].tensor;
        ins[i] = b->pool[in[i]].ins;
    }
    if (b->count == RANDOM_POOL ||
        mgx_attr_make(op, attrs, &b->program->arena, &attr, &diag) != MGX_OK)
        return -1;
    c.attr = attr;
    if (!evaluate(b, &c, list, in_count, &result))
        return -1;
    double error = 0;
    if (is_number(&result.shape)) {
        error = mgx_shape_elements(&result.shape) <= MAX_ELEMENTS
                    ? judge(b, &c, in, in_count, &result)
                    : INFINITY;
    }
    if (!isfinite(error)) {
        mgx_tensor_release(&result);
        return -1;
    }
    return add_value(b, mgx_insert(b->module, NULL, op, attr, ins, in_count, mod, mod_count),
                     &result, error);
}

int random_emit(struct random_builder *b, const struct mgx_op *op, const struct mgx_attr *attrs,
                const int *in, int in_count)
{
    return random_emit_bodies(b, op, attrs, in, in_count, NULL, 0);
}

// --- a program ---

static void draw_type(struct random_builder *b)
{
    static const enum mgx_type types[] = {MGX_DOUBLE, MGX_DOUBLE, MGX_DOUBLE, MGX_DOUBLE,
                                          MGX_DOUBLE, MGX_FLOAT,  MGX_FLOAT,  MGX_INT32,
                                          MGX_INT64,  MGX_INT8,   MGX_UINT8,  MGX_HALF};
    b->type = types[random_below(b, MGX_COUNT(types))];
    if (b->options->fixed_type)
        b->type = b->options->type;
}

static void add_parameter(struct random_builder *b)
{
    char name[8];
    struct mgx_diag diag = {0};
    struct mgx_tensor t = {0};
    struct mgx_shape s = {.type = b->type, .rank = random_below(b, 5)};
    if (random_chance(b, 60))
        s.rank = 4 - random_below(b, 2);
    if (s.rank == 4 && random_chance(b, 70)) { // an image
        for (int d = 0; d < 4; d++)
            s.lens[d] = b->dims[d];
    } else {
        for (int d = 0; d < s.rank; d++)
            s.lens[d] = b->dims[random_below(b, 5)];
    }
    if (!b->options->no_empty && s.rank && random_chance(b, 2))
        s.lens[random_below(b, s.rank)] = 0;
    s = mgx_shape_make(s.type, s.rank, s.lens);
    if (mgx_tensor_create(&t, &s, &diag) != MGX_OK)
        return;
    fill(b, &t, mgx_type_is_unsigned(b->type) ? 0 : -3, 4);
    snprintf(name, sizeof name, "p%d", b->out->arg_count);
    b->out->args[b->out->arg_count++] = mgx_tensor_share(&t);
    add_value(b, mgx_add_parameter(b->module, name, &s), &t, 0);
}

static void add_results(struct random_builder *b)
{
    struct mgx_ins *in[RANDOM_MAX_RESULTS];
    const int want = random_chance(b, 60) ? 1 : 1 + random_below(b, RANDOM_MAX_RESULTS);
    struct random_program *out = b->out;
    for (int i = 0; i < want; i++) {
        const int at = i == 0 ? b->count - 1 : random_pick(b, is_number);
        if (at < 0 || !is_number(random_shape(b, at)))
            continue;
        in[out->result_count] = b->pool[at].ins;
        out->results[out->result_count] = mgx_tensor_share(&b->pool[at].tensor);
        out->tolerance[out->result_count++] = 4 * b->pool[at].error;
    }
    mgx_add_return(b->module, in, out->result_count);
}

enum mgx_status random_program_make(struct random_program *out, uint64_t seed,
                                    const struct random_options *options, struct mgx_diag *diag)
{
    static const struct random_options none;
    *out = (struct random_program){0};
    TRY(mgx_program_create(&out->program, &mgx_ops, diag));
    struct random_builder *b = calloc(1, sizeof *b);
    if (!b)
        return mgx_fail_memory(diag);
    *b = (struct random_builder){.state = seed, .options = options ? options : &none, .out = out};
    b->program = out->program;
    b->module = mgx_program_main(out->program);
    mgx_arena_init(&b->arena);
    mgx_arena_init(&b->strings);
    b->eval = (struct mgx_eval){.strings = &b->strings, .limit_bytes = 1 << 20};
    draw_type(b);
    for (int d = 0; d < 5; d++)
        b->dims[d] = 1 + random_below(b, d == 1 ? 6 : 5);
    for (int i = 1 + random_below(b, 3); i > 0; i--)
        add_parameter(b);
    const int steps = b->options->steps ? b->options->steps : 4 + random_below(b, 20);
    for (int tries = 0; b->count < steps + out->arg_count && tries < 20 * steps; tries++)
        random_step(b);
    add_results(b);
    mgx_arena_fini(&b->arena);
    mgx_arena_fini(&b->strings);
    free(b);
    const enum mgx_status status = mgx_program_status(out->program, diag);
    if (status != MGX_OK)
        random_program_free(out);
    return status;
}

void random_program_free(struct random_program *r)
{
    for (int i = 0; i < r->arg_count; i++)
        mgx_tensor_release(&r->args[i]);
    for (int i = 0; i < r->result_count; i++)
        mgx_tensor_release(&r->results[i]);
    mgx_program_destroy(r->program);
    *r = (struct random_program){0};
}

// --- comparing ---

enum mgx_status random_program_run(struct mgx_program *p, const struct random_program *r,
                                   struct mgx_tensor *results, struct mgx_diag *diag)
{
    struct mgx_arena strings;
    struct mgx_eval eval = {.strings = &strings};
    const struct mgx_module *m = mgx_program_main(p);
    if (mgx_module_result_count(m) != r->result_count)
        return mgx_fail(diag, MGX_INVALID, "%d results, expected %d", mgx_module_result_count(m),
                        r->result_count);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    mgx_arena_init(&strings);
    const enum mgx_status status = mgx_eval_module(&eval, m, r->args, r->arg_count, results, diag);
    mgx_arena_fini(&strings);
    return status;
}

bool random_program_agrees(const struct random_program *r, const struct mgx_tensor *results,
                           char *why, size_t size)
{
    for (int i = 0; i < r->result_count; i++) {
        const struct mgx_shape *want = &r->results[i].shape, *have = &results[i].shape;
        if (want->type != have->type || want->rank != have->rank ||
            !mgx_shape_same_lens(want, have)) {
            struct mgx_str a = {0}, b = {0};
            mgx_shape_print(&a, want);
            mgx_shape_print(&b, have);
            snprintf(why, size, "result %d is %s, expected %s", i, mgx_str_text(&b),
                     mgx_str_text(&a));
            mgx_str_fini(&a);
            mgx_str_fini(&b);
            return false;
        }
        const double d = difference(&r->results[i], &results[i]);
        if (!(d <= r->tolerance[i])) {
            snprintf(why, size, "result %d differs by %g, tolerance %g", i, d, r->tolerance[i]);
            return false;
        }
    }
    return true;
}
