// SPDX-License-Identifier: MIT
// See cache.h.
#include "targets/gpu/lower/cache.h"

#include <assert.h>
#include <inttypes.h>

#include "targets/gpu/emit/type.h"

bool gpu_cache_computes(enum mgx_type type)
{
    return mgx_type_is_half_or_bf16(type) || type == MGX_FLOAT;
}

void gpu_emit_cache_type(struct mgx_str *out, enum mgx_type type)
{
    assert(gpu_cache_computes(type));
    mgx_str_printf(out, "#define A_TYPE %s\n", gpu_type_memory(type));
    mgx_str_put(out,
                type == MGX_HALF   ? "#define LOAD(p, i) load_half(p, i)\n"
                                     "#define STORE(p, i, x) store_half(p, i, x)\n"
                                     "#define WIDEN(x) of_half(x)\n#define NARROW(x) to_half(x)\n"
                : type == MGX_BF16 ? "#define LOAD(p, i) load_bf16(p, i)\n"
                                     "#define STORE(p, i, x) store_bf16(p, i, x)\n"
                                     "#define WIDEN(x) of_bf16(x)\n#define NARROW(x) to_bf16(x)\n"
                                   : "#define LOAD(p, i) (p)[i]\n"
                                     "#define STORE(p, i, x) (p)[i] = (x)\n"
                                     "#define WIDEN(x) (x)\n#define NARROW(x) (x)\n");
}

void gpu_emit_cache_row(struct mgx_str *out, const char *name, const struct mgx_shape *s)
{
    assert(s->rank >= 3);
    mgx_str_printf(out,
                   "#define %s(b, h, t) ((i64)(b) * %" PRId64 " + (i64)(h) * %" PRId64
                   " + (i64)(t) * %" PRId64 ")\n",
                   name, s->strides[0], s->strides[1], s->strides[2]);
}

// The function position_of(at, b, t): of token t of an entry, where `at` is {batch}, the ends, or
// {batch, tokens}, the positions; and P_TYPE.
static void emit_position(struct mgx_str *out, const struct mgx_shape *at, int64_t tokens)
{
    assert(gpu_cache_reads_ends(at) && at->rank <= 2);
    const char *type = gpu_type_memory(at->type);
    mgx_str_printf(
        out,
        "#define P_TYPE %s\nFUNCTION i64 position_of(const GLOBAL %s *at, i64 b, int t)\n"
        "{\n",
        type, type);
    if (at->rank == 2)
        mgx_str_printf(out,
                       "    const i64 given = (i64)at[b * %" PRId64 " + t * %" PRId64 "];\n"
                       "    return given > 0 ? given : 0;\n}\n",
                       at->strides[0], at->strides[1]);
    else
        mgx_str_printf(out,
                       "    const i64 end = (i64)at[b * %" PRId64 "];\n"
                       "    return (end > %" PRId64 " ? end - %" PRId64 " : 0) + t;\n}\n",
                       at->strides[0], tokens, tokens);
}

void gpu_emit_cache_turn(struct mgx_str *out, const struct mgx_shape *cosines,
                         const struct mgx_shape *sines, const struct mgx_shape *at, int64_t tokens,
                         bool interleaved)
{
    assert(cosines->rank == 2 && mgx_shape_same_lens(cosines, sines));
    emit_position(out, at, tokens);
    mgx_str_printf(out,
                   "#define HALF %" PRId64 "\n#define ROWS %" PRId64 "\n#define COSINE_ROW %" PRId64
                   "\n#define SINE_ROW %" PRId64 "\n#define INTERLEAVED %d\n",
                   cosines->lens[1], cosines->lens[0], cosines->strides[0], sines->strides[0],
                   interleaved);
}

void gpu_cache_strides(const struct mgx_shape *s, int64_t stride[3])
{
    assert(s->rank >= 3);
    for (int i = 0; i < 3; i++)
        stride[i] = s->strides[i];
}

bool gpu_cache_reads_ends(const struct mgx_shape *s)
{
    return s->type == MGX_INT64 || s->type == MGX_INT32;
}

bool gpu_cache_wishes(struct mgx_plan_offer *c, unsigned mask)
{
    assert(mask); // of inputs that may be missing too
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_shape *s = &c->in[i];
        if (!(mask >> i & 1) || s->strides[s->rank - 1] == 1 || s->lens[s->rank - 1] <= 1)
            continue;
        (void)mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "rows are in pieces");
        return true;
    }
    return false;
}
