// SPDX-License-Identifier: MIT
// Lists of steps and what they come to; see end.h.
#include "targets/cpu/kernel/end/end.h"

#include <assert.h>

#include "base/str.h"
#include "targets/cpu/kernel/move/convert.h"

static bool is_spare(const struct mgx_end_step *clamp)
{
    return clamp->kind == MGX_END_CLAMP && clamp->clamp.spare;
}

static enum mgx_end_form form_of(const struct mgx_end *end)
{
    const struct mgx_end_step *step = end->step, *last = &end->step[end->count - 1];
    if (step->kind != MGX_END_CLAMP || step->clamp.divisor != 1)
        return MGX_END_ANY;
    if (end->count == 3 && step[1].kind == MGX_END_ROUND && last->kind == MGX_END_SCALE)
        return MGX_END_GRID;
    if (!mgx_end_makes_bytes(end))
        return MGX_END_ANY;
    if (end->count == 2)
        return !is_spare(step) ? MGX_END_ANY : last->byte.table ? MGX_END_LOOKUP : MGX_END_PLAIN;
    step += step[1].kind == MGX_END_ROUND;
    return step + 4 == last + 1 && step[1].kind == MGX_END_MIX && step[1].mix.reads &&
                   !step[1].mix.term && is_spare(step + 2) && !last->byte.table
               ? MGX_END_MIXED
               : MGX_END_ANY;
}

// Whether registers do this step, which comes behind those that there are: an addition before all
// else, and an activation that is a clamp.
static bool takes_in_registers(const struct mgx_end *end, const struct mgx_end_step *step)
{
    return end->in_registers == end->count &&
           ((step->kind == MGX_END_ADD && !end->count) ||
            (step->kind == MGX_END_ACT && step->act.act <= MGX_ACT_CLIP));
}

void mgx_end_then(struct mgx_end *end, struct mgx_end_step step)
{
    assert(end->count < MGX_END_STEPS && !mgx_end_makes_bytes(end));
    if (takes_in_registers(end, &step))
        end->in_registers++;
    end->step[end->count++] = step;
    if (step.kind < MGX_END_CLAMP && end->bytes == end->count - 1)
        end->bytes = end->count;
    if (step.kind <= MGX_END_MULTIPLY || (step.kind == MGX_END_MIX && step.mix.reads))
        end->reader = end->count;
    end->has_block |= step.kind == MGX_END_BLOCK;
    end->form = form_of(end);
}

void mgx_end_drop_block(struct mgx_end *end)
{
    const struct mgx_end all = *end;
    *end = (struct mgx_end){.count = 0};
    for (int i = 0; i < all.count; i++)
        if (all.step[i].kind != MGX_END_BLOCK)
            mgx_end_then(end, all.step[i]);
}

void mgx_end_to_byte(float scale, int zero, bool is_signed, struct mgx_end_step step[2])
{
    const float low = (float)((is_signed ? -128 : 0) - zero);
    step[0] = (struct mgx_end_step){.kind = MGX_END_CLAMP,
                                    .clamp = {.divisor = scale, .low = low, .high = low + 255}};
    step[1] =
        (struct mgx_end_step){.kind = MGX_END_BYTE, .byte = {.is_signed = is_signed, .zero = zero}};
}

enum mgx_act mgx_end_act(const struct mgx_end *end)
{
    for (const struct mgx_end_step *s = end->step; s < end->step + end->count; s++)
        if (s->kind == MGX_END_ACT)
            return s->act.act;
    return MGX_ACT_NONE;
}

void mgx_end_print(const struct mgx_end *end, struct mgx_str *out)
{
    static const char *const names[] = {"add",   "multiply", "act", "columns", "block", "clamp",
                                        "round", "table",    "mix", "scale",   "byte"};
    for (const struct mgx_end_step *s = end->step; s < end->step + end->count; s++)
        mgx_str_printf(out, "%s%s", s == end->step ? "" : ", ",
                       s->kind == MGX_END_ACT ? mgx_act_name(s->act.act) : names[s->kind]);
}

// --- in memory ---

// Floats in the tile to what they are stored as.
static void store_tile(mgx_isa isa, const struct mgx_tile *tile, const struct mgx_end_place *place)
{
    const mgx_convert_fn convert = mgx_convert(isa, MGX_KERNEL_F32, place->type);
    for (int i = 0; i < tile->rows; i++)
        convert(tile->data + i * tile->stride, (char *)place->out + i * place->out_row, tile->cols);
}

void mgx_end_tile(const struct mgx_end *end, int first, int last,
                  const struct mgx_end_kernel *kernel, const struct mgx_tile *tile,
                  const struct mgx_end_place *place)
{
    assert(first >= 0 && first <= last && last <= end->count && tile->cols > 0);
    assert(place->out || last < end->count || !mgx_end_makes_bytes(end));
    const bool converts = place->out && !mgx_kernel_is_plain(place->type) && !place->rounds &&
                          !mgx_end_makes_bytes(end);
    struct mgx_end_rows rows = {.from = tile->data,
                                .from_row = tile->stride,
                                .rows = tile->rows,
                                .cols = tile->cols,
                                .col = tile->col,
                                .operand = place->operand,
                                .operand_row = place->operand_row};
    for (int i = end->has_block ? first : last;; i++) {
        const bool all = i == last, leaves = all && place->out && !converts;
        if (!all && end->step[i].kind != MGX_END_BLOCK)
            continue;
        rows.to = leaves ? place->out : (char *)tile->data;
        rows.to_row = leaves ? place->out_row : tile->stride * (int64_t)sizeof *tile->data;
        rows.rounds = leaves && place->rounds;
        if (i > first || leaves)
            kernel->run(end->step + first, i - first, &rows);
        if (all)
            break;
        end->step[i].block(place->hook_user, tile);
        first = i + 1;
    }
    if (converts)
        store_tile(kernel->base.needs, tile, place);
}
