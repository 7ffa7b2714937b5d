// SPDX-License-Identifier: MIT
// See take_bytes.h. The parameter stays the instruction it is, under another shape.
#include "quant/take_bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/emit.h"

enum { CHANNELS = 1 }; // the axis of them, as the program has it

static enum mgx_status check(const struct mgx_ins *x, const struct mgx_bytes_input *input,
                             struct mgx_diag *diag)
{
    const struct mgx_shape *s = &x->shape;
    const enum mgx_type type = s->type;
    if (type != MGX_FLOAT && !mgx_type_is_half_or_bf16(type))
        return mgx_fail(diag, MGX_INVALID, "input \"%s\" is %s, not one of floats", input->name,
                        mgx_type_name(type));
    if (s->unranked || (s->rank < 2 && (input->count > 1 || input->channels_last)))
        return mgx_fail(diag, MGX_INVALID, "input \"%s\" has no channels", input->name);
    if (input->count <= 1)
        return MGX_OK;
    const struct mgx_dim d = mgx_shape_dim(s, CHANNELS);
    return mgx_dim_is_fixed(&d) && d.min == input->count
               ? MGX_OK
               : mgx_fail(diag, MGX_INVALID,
                          "%" PRId64 " factors for input \"%s\", which has %" PRId64 " channels",
                          input->count, input->name, mgx_dim_is_fixed(&d) ? d.min : -1);
}

// Of bytes; with channels last their axis comes behind the others.
static void set_shape(struct mgx_ins *x, bool channels_last)
{
    struct mgx_dim dims[MGX_MAX_RANK];
    int64_t lens[MGX_MAX_RANK];
    const struct mgx_shape *s = &x->shape;
    const int rank = s->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = mgx_shape_dim(s, !channels_last || !i ? i : i + 1 < rank ? i + 1 : CHANNELS);
    for (int i = 0; i < rank; i++)
        lens[i] = dims[i].min;
    if (mgx_shape_is_static(s)) {
        x->shape = mgx_shape_make(MGX_UINT8, rank, lens);
        return;
    }
    const struct mgx_dim *kept =
        mgx_arena_memdup(&x->owner->program->arena, dims, (size_t)rank * sizeof *dims);
    if (kept)
        x->shape = mgx_shape_dynamic(MGX_UINT8, rank, kept);
}

static struct mgx_ins *emit_channels_first(struct mgx_ins *at, struct mgx_ins *x)
{
    int permutation[MGX_MAX_RANK];
    const int rank = x->shape.rank;
    for (int i = 0; i < rank; i++)
        permutation[i] = i == 0 ? 0 : i == CHANNELS ? rank - 1 : i - 1;
    return mgx_emit_transpose(at, x, permutation, rank);
}

// A factor for each channel beside x, in float.
static struct mgx_ins *emit_factors(struct mgx_ins *at, struct mgx_ins *x, const double *values,
                                    int64_t count)
{
    int64_t lens[MGX_MAX_RANK];
    struct mgx_tensor t;
    struct mgx_program *p = at->owner->program;
    for (int i = 0; i < x->shape.rank; i++)
        lens[i] = i == CHANNELS ? count : 1;
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, x->shape.rank, lens);
    if (mgx_tensor_create(&t, &shape, &p->diag) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < mgx_shape_elements(&shape); i++)
        ((float *)t.data)[i] = (float)values[i];
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return mgx_emit_before(at, &mgx_op_multibroadcast, NULL, MGX_IN(literal, x));
}

static struct mgx_ins *emit_convert(struct mgx_ins *at, struct mgx_ins *x, enum mgx_type type)
{
    return mgx_emit_before(at, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", type)), MGX_IN(x));
}

static struct mgx_ins *emit_floats(struct mgx_ins *at, struct mgx_ins *x, enum mgx_type type,
                                   const struct mgx_bytes_input *input)
{
    struct mgx_ins *y = input->channels_last ? emit_channels_first(at, x) : x;
    y = y ? emit_convert(at, y, MGX_FLOAT) : NULL;
    if (y && input->scale)
        y = mgx_emit_before(at, &mgx_op_mul, NULL,
                            MGX_IN(y, emit_factors(at, y, input->scale, input->count)));
    if (y && input->offset)
        y = mgx_emit_before(at, &mgx_op_add, NULL,
                            MGX_IN(y, emit_factors(at, y, input->offset, input->count)));
    return y && type != MGX_FLOAT ? emit_convert(at, y, type) : y;
}

enum mgx_status mgx_take_bytes(struct mgx_program *p, const struct mgx_bytes_input *input,
                               struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_find_parameter(m, input->name), *at = m->first;
    assert(!p->executable);
    if (!x)
        return mgx_fail(diag, MGX_NOT_FOUND, "there is no input \"%s\"", input->name);
    TRY(check(x, input, diag));
    while (at && (mgx_is(at, &mgx_op_param) || at->literal))
        at = at->next;
    if (!at || !x->uses)
        return mgx_fail(diag, MGX_INVALID, "nothing reads input \"%s\"", input->name);
    const enum mgx_type type = x->shape.type;
    struct mgx_ins *marked = mgx_emit_before(at, &mgx_op_identity, NULL, MGX_IN(x));
    if (!marked)
        return mgx_program_status(p, diag);
    mgx_replace_uses(x, marked); // but for its own
    set_shape(x, input->channels_last);
    struct mgx_ins *y = emit_floats(marked, x, type, input);
    if (!y)
        return mgx_program_status(p, diag);
    mgx_replace_uses(marked, y);
    mgx_remove(marked);
    return mgx_program_status(p, diag);
}
