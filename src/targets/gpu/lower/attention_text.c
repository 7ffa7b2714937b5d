// SPDX-License-Identifier: MIT
// What the texts of attention share; attention.h says more.
#include "targets/gpu/lower/attention.h"

#include <inttypes.h>
#include <stdio.h>

#include "pass/engine/constant.h"
#include "targets/gpu/emit/type.h"

enum { LINE = 16 }; // bytes

// "name(batch)": where the entry of all batch axes together begins.
static void emit_at(struct mgx_str *out, const char *name, const struct mgx_shape *s)
{
    int64_t below = 1;
    mgx_str_printf(out, "FUNCTION i64 %s(int batch)\n{\n    return 0", name);
    for (int i = s->rank - 3; i >= 0; i--) {
        if (s->lens[i] > 1 && s->strides[i])
            mgx_str_printf(out, " + (i64)(batch / %" PRId64 " %% %" PRId64 ") * %" PRId64, below,
                           s->lens[i], s->strides[i]);
        below *= s->lens[i];
    }
    mgx_str_put(out, ";\n}\n");
}

static bool whole_lines(const struct mgx_shape *s, int column)
{
    const int64_t line = LINE / (int64_t)mgx_type_size(s->type);
    bool lines = s->strides[column] == 1;
    for (int i = 0; i < s->rank; i++)
        lines = lines && (i == column || s->lens[i] == 1 || s->strides[i] % line == 0);
    return lines;
}

void gpu_attention_operand(struct mgx_str *out, char letter, const struct mgx_shape *s, int row,
                           int column)
{
    const char name[] = {(char)(letter + 'a' - 'A'), '_', 'a', 't', 0};
    mgx_str_printf(out, "#define %c_ROW %" PRId64 "LL\n#define %c_COLUMN %" PRId64 "LL\n", letter,
                   s->lens[row] > 1 ? s->strides[row] : 0, letter,
                   s->lens[column] > 1 ? s->strides[column] : 1);
    mgx_str_printf(out, "#define %c_LINES %d\n", letter, whole_lines(s, column));
    emit_at(out, name, s);
}

static bool is_number(const struct mgx_plan_offer *c, int input, double *value)
{
    return gpu_type_class(c->in[input].type) == GPU_REAL &&
           mgx_splat_value(c->ins->in[input], value);
}

// Do two neighbouring keys lie in one word, the first one's at an even place?
static bool lies_in_pairs(const struct mgx_shape *s)
{
    bool even = s->strides[s->rank - 1] == 1 && s->lens[s->rank - 1] % 2 == 0;
    for (int i = 0; i < s->rank - 1; i++)
        even = even && (s->lens[i] == 1 || s->strides[i] % 2 == 0);
    return even && mgx_type_size(s->type) == 2;
}

// --- text: what the scores of two neighbouring keys are combined with ---

static bool is_read(const struct mgx_plan_offer *c, const struct gpu_attention *a, int e)
{
    double number;
    return !is_number(c, a->extra[e], &number);
}

static int64_t step_of(const struct mgx_shape *s, int axis)
{
    return s->lens[axis] > 1 ? s->strides[axis] : 0;
}

// struct beside, a member for each operand that is read, as it lies in memory; struct places, where
// they are.
static void emit_beside(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_attention *a)
{
    struct mgx_str places = {0};
    mgx_str_put(out, "struct beside {\n    int none;\n");
    for (int e = 0; e < a->extra_count; e++) {
        const struct mgx_shape *s = &c->in[a->extra[e]];
        if (!is_read(c, a, e))
            continue;
        mgx_str_printf(out, "    union { %s%s one[2]; } o%d;\n",
                       lies_in_pairs(s) ? "u32 both; " : "", gpu_type_memory(s->type), e);
        mgx_str_printf(&places, "    const %s *p%d;\n", gpu_type_memory(s->type), e);
    }
    mgx_str_printf(out, "};\nstruct places {\n    int none;\n%s};\n", mgx_str_text(&places));
    mgx_str_fini(&places);
}

// find_beside(): the places of a row and a key.
static void emit_find(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_attention *a)
{
    for (int e = 0; e < a->extra_count; e++)
        if (is_read(c, a, e)) {
            char name[16];
            snprintf(name, sizeof name, "e%d_at", e);
            emit_at(out, name, &c->in[a->extra[e]]);
        }
    mgx_str_put(out, "FUNCTION struct places find_beside(int batch, int row, int key PARAMS)\n{\n"
                     "    struct places at;\n");
    for (int e = 0; e < a->extra_count; e++) {
        const struct mgx_shape *s = &c->in[a->extra[e]];
        if (is_read(c, a, e))
            mgx_str_printf(out,
                           "    at.p%d = e%d + e%d_at(batch) + (i64)row * %" PRId64
                           " + (i64)key * %" PRId64 ";\n",
                           e, e, e, step_of(s, s->rank - 2), step_of(s, s->rank - 1));
    }
    mgx_str_put(out, "    return at;\n}\n");
}

// read_beside(): of two keys, the first one `ahead` of the key whose places they are.
static void emit_read(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_attention *a)
{
    mgx_str_put(out,
                "FUNCTION void read_beside(struct beside *o, const struct places *at, bool pairs, "
                "int key, int ahead)\n{\n");
    for (int e = 0; e < a->extra_count; e++) {
        const struct mgx_shape *s = &c->in[a->extra[e]];
        const int64_t step = step_of(s, s->rank - 1);
        if (!is_read(c, a, e))
            continue;
        if (lies_in_pairs(s))
            mgx_str_printf(
                out,
                "    if (pairs)\n        o->o%d.both = *(const u32 *)(at->p%d + ahead);\n"
                "    else\n    ",
                e, e);
        mgx_str_printf(out,
                       "    o->o%d.one[0] = at->p%d[(i64)ahead * %" PRId64 "], o->o%d.one[1] = "
                       "at->p%d[(i64)(key + ahead + 1 < KEYS ? ahead + 1 : ahead) * %" PRId64
                       "];\n",
                       e, e, step, e, e, step);
    }
    mgx_str_put(out, "}\n");
}

// BESIDE: do rows differ? PAIRS: may two keys' operands be read at once?
static void emit_ways(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_attention *a)
{
    int ways = 0;
    mgx_str_put(out, "#define PAIRS (((0");
    for (int e = 0; e < a->extra_count; e++) {
        const struct mgx_shape *s = &c->in[a->extra[e]];
        if (!is_read(c, a, e))
            continue;
        ways = ways == 2 || step_of(s, s->rank - 2) ? 2 : 1;
        if (lies_in_pairs(s))
            mgx_str_printf(out, " | ADDRESS(e%d)", e);
    }
    mgx_str_printf(out, ") & 3) == 0)\n#define BESIDE %d\n", ways);
}

static void emit_operands(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct gpu_attention *a)
{
    emit_beside(out, c, a);
    emit_find(out, c, a);
    emit_read(out, c, a);
    emit_ways(out, c, a);
    mgx_str_put(out, "FUNCTION float between_one(float s, const struct beside *o, int e)\n{\n"
                     "    return between(s");
    for (int e = 0; e < a->extra_count; e++)
        if (is_read(c, a, e)) {
            char element[32];
            snprintf(element, sizeof element, "o->o%d.one[e]", e);
            mgx_str_put(out, ", ");
            gpu_emit_widened(out, c->in[a->extra[e]].type, element);
        }
    mgx_str_put(out, ");\n}\n");
}

// A parameter of f that is a number, or the name of what is read.
static void emit_number(struct mgx_str *out, const struct mgx_plan_offer *c, int input, int e)
{
    double number;
    if (is_number(c, input, &number))
        gpu_emit_real(out, number);
    else
        mgx_str_printf(out, "x%d", e);
}

static void emit_f(struct mgx_str *out, const struct mgx_plan_offer *c,
                   const struct gpu_attention *a, uint64_t real)
{
    struct mgx_str numbers = {0};
    mgx_str_put(out, "FUNCTION float between(");
    for (int i = 0, e = 0; i < a->between->in_count; i++) {
        if (i == a->place) {
            mgx_str_printf(&numbers, "    const float v%d = s;\n", i);
            continue;
        }
        const bool is_real = real >> i & 1;
        mgx_str_printf(&numbers, "    const %s v%d = ",
                       is_real ? "float" : gpu_type_value(c->in[a->extra[e]].type), i);
        emit_number(&numbers, c, a->extra[e], e);
        mgx_str_put(&numbers, ";\n");
        e++;
    }
    mgx_str_put(out, "float s");
    for (int e = 0; e < a->extra_count; e++)
        if (is_read(c, a, e))
            mgx_str_printf(out, ", %s x%d", gpu_type_value(c->in[a->extra[e]].type), e);
    mgx_str_printf(out, ")\n{\n%s", mgx_str_text(&numbers));
    gpu_emit_body_call(out, a->between->shape.type, a->between->in_count);
    mgx_str_put(out, "    return (float)y;\n}\n");
    mgx_str_fini(&numbers);
}

static void emit_parameters(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_attention *a)
{
    mgx_str_put(out, "#define PARAMS");
    for (int e = 0; e < a->extra_count; e++)
        mgx_str_printf(out, ", const GLOBAL %s *e%d", gpu_type_memory(c->in[a->extra[e]].type), e);
    mgx_str_put(out, "\n#define ARGS");
    for (int e = 0; e < a->extra_count; e++)
        mgx_str_printf(out, ", e%d", e);
    mgx_str_put(out, "\n");
}

void gpu_attention_between(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct gpu_attention *a, uint64_t real)
{
    emit_parameters(out, c, a);
    if (a->between)
        emit_f(out, c, a, real);
    else
        mgx_str_put(out, "FUNCTION float between(float s)\n{\n    return s;\n}\n");
    emit_operands(out, c, a);
}

bool gpu_attention_numbers(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct mgx_ins *ins, const struct mgx_ins *value, uint64_t real)
{
    for (int i = 0; i < ins->in_count; i++) {
        double number;
        const enum mgx_type type = ins->in[i]->shape.type;
        const char *name = real >> i & 1 ? "float" : gpu_type_value(type);
        mgx_str_printf(out, "    const %s v%d = ", name, i);
        if (ins->in[i] == value) {
            mgx_str_printf(out, "(%s)s;\n", name);
            continue;
        }
        const int input = mgx_parameter_index(ins->in[i]);
        if (input < 0 || !mgx_splat_value(c->ins->in[input], &number))
            return false;
        if (gpu_type_class(type) == GPU_REAL)
            gpu_emit_real(out, number);
        else
            mgx_str_printf(out, "%" PRId64, (int64_t)number);
        mgx_str_put(out, ";\n");
    }
    return true;
}
