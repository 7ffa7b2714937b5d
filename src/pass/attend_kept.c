// SPDX-License-Identifier: MIT
// Attention to a cache in few bits reads it as it lies, and no floats of all of it are made before.
//
//     cache_attention(q, (k - zero) s, (v - zero) t, ends, ..)
//         =>  cache_attention[kept](q, k, v, ends, .., s, t)
//
// k and v are int8 and zero 0; or both are numbers of 4 bits, unpacked, and zero is 8. Scales are
// one for all, or one for each place of a head.
//
// Runs only where it is named, for a target whose kernels take that ("cache"). Holds: sizes are
// static.
#include "op/op.h"
#include "op/rule/cache.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/rewrite.h"

enum { Q, K, V, ENDS, MORE, MOST = 8 };
enum { HALF_BYTE = 8 }; // what is added to a number of 4 bits

struct kept {
    int64_t bits;
    struct mgx_ins *cache, *scale; // scale NULL: `value`
    double value;
};

static bool is_to_float(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_convert && ins->shape.type == MGX_FLOAT;
}

// (convert(unpack(cache)) - 8) or convert(cache): which cache, of which bits.
static bool read_numbers(struct mgx_ins *x, int64_t size, struct kept *out)
{
    double zero;
    const bool less = x->op == &mgx_op_sub && mgx_splat_value(x->in[1], &zero) && zero == HALF_BYTE;
    struct mgx_ins *wide = less ? x->in[0] : x;
    if (!is_to_float(wide))
        return false;
    x = wide->in[0];
    if (!less) {
        out->bits = 8;
        out->cache = x;
        return x->shape.type == MGX_INT8;
    }
    if (x->op == &mgx_op_slice) // of a head of odd size
        x = x->in[0];
    out->bits = 4;
    out->cache = x->op == &mgx_op_unpack_nbits ? x->in[0] : NULL;
    return out->cache && mgx_ins_int(x, "bits") == 4 && out->cache->shape.lens[3] == (size + 1) / 2;
}

static bool read_scale(struct mgx_ins *s, const struct mgx_shape *x, struct kept *out)
{
    out->scale = NULL;
    if (mgx_splat_value(s, &out->value))
        return true;
    if (s->op != &mgx_op_multibroadcast || s->in[0]->shape.rank != 4)
        return false;
    const int64_t *l = s->in[0]->shape.lens;
    out->scale = s->in[0];
    return l[0] == 1 && l[2] == 1 && l[1] == x->lens[1] && l[3] == x->lens[3];
}

// What an operand is made of, of attention in this type.
static bool read_operand(struct mgx_ins *x, enum mgx_type type, struct kept *out)
{
    if (x->op == &mgx_op_convert && type != MGX_FLOAT && x->in[0]->shape.type == MGX_FLOAT)
        x = x->in[0];
    if (x->op != &mgx_op_mul || x->shape.type != MGX_FLOAT || x->shape.rank != 4)
        return false;
    for (int i = 0; i < 2; i++)
        if (read_numbers(x->in[i], x->shape.lens[3], out) &&
            read_scale(x->in[1 - i], &x->shape, out))
            return true;
    return false;
}

static struct mgx_ins *emit_scale(struct mgx_ins *at, const struct kept *k)
{
    const struct mgx_shape one = mgx_shape_make(MGX_FLOAT, 1, (int64_t[]){1});
    if (!k->scale)
        return mgx_emit_splat(at, &one, k->value);
    const int64_t *l = k->scale->shape.lens;
    return mgx_emit_reshape(at, k->scale, (int64_t[]){l[1], l[3]}, 2);
}

static struct mgx_ins *attend(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    const struct mgx_cache_attention *a = ins->attr;
    struct kept both[2];
    struct mgx_ins *in[MOST];
    (void)m;
    for (int i = 0; i < ins->in_count; i++)
        in[i] = ins->in[i];
    for (int i = 0; i < 2; i++)
        if (a->kept || !read_operand(ins->in[K + i], ins->shape.type, &both[i]))
            return NULL;
    if (both[0].bits != both[1].bits || (both[0].scale == NULL) != (both[1].scale == NULL))
        return NULL;
    for (int i = 0; i < 2; i++) {
        in[K + i] = both[i].cache;
        in[ins->in_count + i] = emit_scale(ins, &both[i]);
        if (!in[ins->in_count + i])
            return NULL; // sticky
    }
    struct mgx_ins *y = mgx_emit_before(
        ins, &mgx_op_cache_attention,
        MGX_ATTRS(mgx_real("scale", a->scale), mgx_real("cap", a->cap),
                  mgx_int("window", a->window), mgx_int("kept", both[0].bits),
                  mgx_int("bias", a->bias), mgx_int("sink", a->sink), mgx_int("whole", a->whole)),
        (struct mgx_ins_list){in, ins->in_count + 2});
    return mgx_region_keeps(r->call, y, "cache") ? y : NULL;
}

static const struct mgx_rule rules[] = {
    {"cache_attention ~> cache_attention[kept] of numbers and scales", MGX_IF_STATIC,
     .rewrite = attend},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    return mgx_apply_rules(c, m, rules, MGX_COUNT(rules));
}

const struct mgx_pass mgx_pass_attend_kept = {
    .name = "attend_kept",
    .meaning = "attention to a cache in few bits reads it as it lies",
    .module = run,
    .by_size = true,
};
