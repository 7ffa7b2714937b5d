// SPDX-License-Identifier: MIT
// The parts of a product's text that are written for the instruction: where operands are, their
// values, and the last line, which is the element-wise instruction behind it.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/lower/product.h"

// --- text: the result's index from batch, row, column ---

static void emit_split(struct mgx_str *out, const char *from, const char *name, int first, int last,
                       const int64_t *lens)
{
    mgx_str_printf(out, "    int rest_%s = %s;\n", name, from);
    for (int axis = last; axis >= first; axis--) {
        if (axis == first) {
            mgx_str_printf(out, "    const int x%d = rest_%s;\n", axis, name);
            break;
        }
        mgx_str_printf(out, "    const int x%d = rest_%s %% %" PRId64 ";\n", axis, name,
                       lens[axis]);
        mgx_str_printf(out, "    rest_%s /= %" PRId64 ";\n", name, lens[axis]);
    }
}

static void emit_result_index(struct mgx_str *out, const struct mgx_plan_offer *c,
                              const struct gpu_product *p)
{
    const struct mgx_shape *s = c->out;
    if (gpu_product_is_dot(p)) {
        if (s->rank > 2)
            emit_split(out, "batch", "batch", 0, s->rank - 3, s->lens);
        mgx_str_printf(out, "    const int x%d = row, x%d = column;\n", s->rank - 2, s->rank - 1);
        return;
    }
    mgx_str_printf(out, "    const int x1 = batch * %" PRId64 " + column;\n", p->columns);
    mgx_str_put(out, "    int rest_row = row;\n");
    for (int axis = s->rank - 1; axis >= 2; axis--) {
        mgx_str_printf(out, "    const int x%d = rest_row %% %" PRId64 ";\n", axis, s->lens[axis]);
        mgx_str_printf(out, "    rest_row /= %" PRId64 ";\n", s->lens[axis]);
    }
    mgx_str_put(out, "    const int x0 = rest_row;\n");
}

static void emit_offset(struct mgx_str *out, const char *name, const struct mgx_shape *s)
{
    mgx_str_printf(out, "    const i64 %s = 0", name);
    for (int axis = 0; axis < s->rank; axis++)
        if (s->strides[axis] && s->lens[axis] > 1)
            mgx_str_printf(out, " + (i64)x%d * %" PRId64, axis, s->strides[axis]);
    mgx_str_put(out, ";\n");
}

// --- text: the last line ---

void gpu_product_emit_real(struct mgx_str *out, const struct gpu_product *p)
{
    const bool real = p->tail && gpu_product_is_real(p, p->place);
    mgx_str_put(out, real ? "#define TAKEN float\n" : "#define TAKEN SUM\n");
}

// The tail's operands are v0, v1, ...: the sum in the product's place, the others loaded.
static void emit_tail(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_product *p)
{
    const int count = p->tail ? p->tail->in_count : 1;
    for (int i = 0, e = 0; i < count; i++) {
        if (i == p->place || !p->tail) {
            mgx_str_printf(out, "    const TAKEN v%d = (TAKEN)sum;\n", i);
            continue;
        }
        if (p->given == e + 1) {
            if (p->make)
                mgx_str_put(out, "    float made;\n    make(other, &made);\n");
            mgx_str_printf(out, "    const SUM v%d = %s;\n", i, p->make ? "made" : "other");
            e++;
            continue;
        }
        const struct mgx_shape *s = &c->in[p->extra[e]];
        char at[16], array[16];
        snprintf(at, sizeof at, "at%d", e + 1);
        snprintf(array, sizeof array, "e%d", e++);
        emit_offset(out, at, s);
        mgx_str_printf(out, "    const %s v%d = ",
                       gpu_product_is_real(p, i) ? "float" : gpu_type_value(s->type), i);
        gpu_emit_load(out, s->type, array, at);
        mgx_str_put(out, ";\n");
    }
    if (p->tail)
        gpu_emit_body_call(out, c->out->type, count);
    mgx_str_put(out, "    ");
    gpu_emit_store(out, c->out->type, "out", "at0", p->tail ? "y" : "v0");
    mgx_str_put(out, "\n}\n\n");
}

static void emit_params(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_product *p)
{
    for (int e = 0; e < p->extra_count; e++)
        if (p->given != e + 1)
            mgx_str_printf(out, ", const GLOBAL %s *e%d", gpu_type_memory(c->in[p->extra[e]].type),
                           e);
}

static void emit_args(struct mgx_str *out, const struct gpu_product *p)
{
    for (int e = 0; e < p->extra_count; e++)
        if (p->given != e + 1)
            mgx_str_printf(out, ", e%d", e);
}

void gpu_product_emit_finish(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_product *p)
{
    const char *other = p->given ? "other, " : "", *type = p->given ? "SUM other, " : "";
    gpu_product_emit_real(out, p);
    mgx_str_printf(out, "FUNCTION void finish(GLOBAL %s *out", gpu_type_memory(c->out->type));
    emit_params(out, c, p);
    mgx_str_printf(out, ", SUM sum, %sint batch, int row, int column)\n{\n", type);
    emit_result_index(out, c, p);
    emit_offset(out, "at0", c->out);
    emit_tail(out, c, p);
    mgx_str_put(out, "#define PARAMS ");
    emit_params(out, c, p);
    mgx_str_put(out, "\n#define ARGS ");
    emit_args(out, p);
    mgx_str_printf(out, "\n#define FINISH(sum, %sbatch, row, column) finish(c", other);
    emit_args(out, p);
    mgx_str_printf(out, ", sum, %sbatch, row, column)\n", other);
}

// --- text: loads ---

// "find_a(batch, row, k)": where a value is, -1 for a zero beside the image.
static void emit_find_head(struct mgx_str *out, char letter, const char *indices)
{
    mgx_str_printf(out, "FUNCTION i64 find_%c(int batch, %s)\n{\n", letter, indices);
}

// "load_a(p, batch, row, k)": its value.
static void emit_load(struct mgx_str *out, char letter, enum mgx_type type, const char *first,
                      const char *second, const struct gpu_product *p)
{
    const bool made = letter == 'a' && p->make;
    mgx_str_printf(out,
                   "FUNCTION SUM load_%c(const GLOBAL %s *p, int batch, int %s, int %s)\n{\n"
                   "    const i64 at = find_%c(batch, %s, %s);\n    const %s v = ",
                   letter, gpu_type_memory(type), first, second, letter, first, second,
                   made ? gpu_type_value(type) : "SUM");
    gpu_emit_load(out, type, "p", "(at < 0 ? 0 : at)"); // not a branch: loads go side by side
    mgx_str_put(out, ";\n");
    if (made)
        mgx_str_printf(out, "    %s y;\n    make(v, &y);\n", gpu_type_value(p->make->shape.type));
    mgx_str_printf(out, "    return at < 0 ? (SUM)%d : (SUM)%s;\n}\n\n",
                   letter == 'a' ? gpu_product_beside(p) : 0, made ? "y" : "v");
}

static void emit_dot_load(struct mgx_str *out, char letter, const struct mgx_shape *s,
                          const char *first, const char *second, const struct gpu_product *p)
{
    char indices[64];
    snprintf(indices, sizeof indices, "int %s, int %s", first, second);
    emit_find_head(out, letter, indices);
    if (s->rank > 2)
        emit_split(out, "batch", "batch", 0, s->rank - 3, s->lens);
    mgx_str_printf(out, "    const int x%d = %s, x%d = %s;\n", s->rank - 2, first, s->rank - 1,
                   second);
    emit_offset(out, "at", s);
    mgx_str_put(out, "    return at;\n}\n\n");
    emit_load(out, letter, s->type, first, second, p);
}

// Depth is taps in order, channels innermost: "x1" the channel, "t<axis>" the tap.
static void emit_taps(struct mgx_str *out, const struct mgx_shape *w, int64_t channels)
{
    mgx_str_printf(out, "    const int ch = k %% %" PRId64 ";\n", channels);
    mgx_str_printf(out, "    int tap = k / %" PRId64 ";\n", channels);
    for (int axis = w->rank - 1; axis >= 2; axis--) {
        mgx_str_printf(out, "    const int t%d = tap %% %" PRId64 ";\n", axis, w->lens[axis]);
        mgx_str_printf(out, "    tap /= %" PRId64 ";\n", w->lens[axis]);
    }
}

static void emit_image_load(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_product *p)
{
    const struct mgx_shape *x = &c->in[p->operand[0]], *w = &c->in[p->operand[1]];
    const struct mgx_window_attr a = mgx_window_of(p->ins);
    const int64_t channels = gpu_product_channels(c, p);
    emit_find_head(out, 'a', "int row, int k");
    emit_taps(out, w, channels);
    mgx_str_put(out, "    int place = row;\n    bool in = true;\n");
    for (int axis = x->rank - 1; axis >= 2; axis--) {
        const int i = axis - 2;
        mgx_str_printf(out,
                       "    const int x%d = place %% %" PRId64 " * %" PRId64 " - %" PRId64
                       " + t%d * %" PRId64 ";\n",
                       axis, c->out->lens[axis], a.stride.v[i], gpu_product_before(p, i), axis,
                       a.dilation.v[i]);
        mgx_str_printf(out, "    place /= %" PRId64 ";\n", c->out->lens[axis]);
        mgx_str_printf(out, "    in = in && x%d >= 0 && x%d < %" PRId64 ";\n", axis, axis,
                       x->lens[axis]);
    }
    mgx_str_printf(out, "    const int x0 = place, x1 = batch * %" PRId64 " + ch;\n", channels);
    emit_offset(out, "at", x);
    mgx_str_put(out, "    return in ? at : -1;\n}\n\n");
    emit_load(out, 'a', x->type, "row", "k", p);
}

static void emit_weight_load(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_product *p)
{
    const struct mgx_shape *w = &c->in[p->operand[1]];
    emit_find_head(out, 'b', "int k, int column");
    emit_taps(out, w, gpu_product_channels(c, p));
    for (int axis = 2; axis < w->rank; axis++)
        mgx_str_printf(out, "    const int x%d = t%d;\n", axis, axis);
    mgx_str_printf(out,
                   "    const int x0 = batch * %" PRId64 " + column, x1 = ch %% %" PRId64 ";\n",
                   p->columns, w->lens[1]);
    emit_offset(out, "at", w);
    if (p->together)
        mgx_str_printf(out,
                       "    if (ch / %" PRId64 " != column / %" PRId64 ")\n        return -1;\n",
                       w->lens[1], p->columns / p->together);
    mgx_str_put(out, "    return at;\n}\n\n");
    emit_load(out, 'b', w->type, "k", "column", p);
}

void gpu_product_emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_product *p)
{
    if (gpu_product_is_dot(p)) {
        emit_dot_load(out, 'a', &c->in[p->operand[0]], "row", "k", p);
        emit_dot_load(out, 'b', &c->in[p->operand[1]], "k", "column", p);
    } else {
        emit_image_load(out, c, p);
        emit_weight_load(out, c, p);
    }
}
