// SPDX-License-Identifier: MIT
// Several products of bytes of one input, each with an end of its own that makes bytes, are one
// product with one end: queries, keys and values of a quantized attention.
//
//     f(quant_dot(x, u#)), f'(quant_dot(x, v#))   =>  slices of f"(quant_dot(x, concat(u, v)))
//     f(slice(reshape(y))), f'(slice'(reshape(y)))  =>  slices of reshape(f"(y))
//
// f, f' are the same element-wise operators in the same order; their operands are one value or one
// a column, and together one a column. They end with bytes; what follows is read from the slices.
// A reshape may take what a slice reads apart further, into heads.
// Where one ends with bytes and others are made floats and bytes again it goes along, with numbers
// that change nothing.
//
// Holds: weights are literals; slices part the last axis of y, all of it. The joined weights are a
// copy, theirs go. Cost: O(instructions) a product. The GPU target runs it, behind scale_once.
#include <assert.h>
#include <string.h>

#include "ir/tensor.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

enum { MOST = 8, LONGEST = 16, OPERANDS = 4 };

struct joined {
    struct mgx_ins *member[MOST]; // products, or slices, in the order of their columns
    struct mgx_ins *end[MOST];    // the last instruction of each chain
    int64_t first[MOST + 1];      // columns
    int idle[MOST];               // the first step that a member's chain lacks; 0: none
    int count, length;            // members; operators of a chain that are joined
};

// --- chains ---

static struct mgx_ins *reader_of(const struct mgx_ins *ins)
{
    struct mgx_ins *user = mgx_used_once(ins) ? ins->uses->user : NULL;
    const bool fits = user && user->owner == ins->owner && !user->mod_count &&
                      (user->op->flags & MGX_OP_POINTWISE) && mgx_is_pure(user) &&
                      user->in_count <= OPERANDS && mgx_shape_same_lens(&user->shape, &ins->shape);
    return fits ? user : NULL;
}

static int place_of(const struct mgx_ins *reader, const struct mgx_ins *ins)
{
    int place = -1, count = 0;
    for (int i = 0; i < reader->in_count; i++)
        if (reader->in[i] == ins)
            place = i, count++;
    return count == 1 ? place : -1;
}

// The literal behind an operand that is one value, or one for every place of the last axis.
static const struct mgx_tensor *numbers_of(struct mgx_ins *ins)
{
    struct mgx_spread s;
    const bool spread = mgx_spread_of(ins, &s);
    const struct mgx_ins *core = spread ? s.core : ins;
    if (!core->literal || mgx_shape_elements(&core->shape) == 0)
        return NULL;
    for (int d = 0; d < ins->shape.rank; d++) {
        const int from = spread ? s.axis[d] : d;
        if (from >= 0 && core->shape.lens[from] > 1 && d != ins->shape.rank - 1)
            return NULL;
    }
    return core->literal;
}

// Columns of heads side by side have the same numbers, head by head.
static double number_at(const struct mgx_tensor *t, int64_t column)
{
    return mgx_load_double(t->shape.type, t->data,
                           mgx_shape_index(&t->shape, column % mgx_shape_elements(&t->shape)));
}

// A zero point that is not there is 0.
static int operands_of(const struct mgx_ins *ins)
{
    const bool quantizes = ins->op == &mgx_op_quantizelinear || ins->op == &mgx_op_dequantizelinear;
    return quantizes ? 3 : ins->in_count;
}

static bool has_numbers(struct mgx_ins *op, int place)
{
    for (int i = 0; i < op->in_count; i++)
        if (i != place && !numbers_of(op->in[i]))
            return false;
    return true;
}

static bool quantizes(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quantizelinear && mgx_type_bits(ins->shape.type) == 8;
}

// Bytes of either sign are alike on the way: an unsigned one is the signed one and 128.
static bool is_alike(const struct mgx_ins *a, const struct mgx_ins *b)
{
    if (quantizes(a) && quantizes(b))
        return true;
    return a->op == b->op && a->shape.type == b->shape.type && operands_of(a) == operands_of(b) &&
           mgx_attr_equal(a->op, a->attr, b->attr);
}

static bool is_one_type(const struct joined *j, struct mgx_ins *const *at)
{
    bool one = true;
    for (int m = 1; m < j->count; m++)
        one = one && at[m]->shape.type == at[0]->shape.type;
    return one;
}

// Does a value between bytes stay what it is where another one goes through this, with numbers of
// its own? From a byte to a float, and to a byte again of which 1 stands for the highest.
static bool can_idle(const struct mgx_ins *op, int place)
{
    double scale, zero = 0;
    if (op->op == &mgx_op_quantizelinear)
        return op->shape.type == MGX_UINT8 && mgx_splat_value(op->in[1], &scale) &&
               scale == (float)(1.0 / UINT8_MAX) &&
               (op->in_count < 3 || mgx_splat_value(op->in[2], &zero)) && zero == 0;
    return op->op == &mgx_op_mul || op->op == &mgx_op_add ||
           (op->op == &mgx_op_dequantizelinear && place == 0);
}

// The readers of a step; a chain that ends with unsigned bytes before others do may wait for them.
static bool step_on(struct joined *j, int step, struct mgx_ins **at)
{
    struct mgx_ins *next[MOST] = {NULL};
    const struct mgx_ins *model = NULL;
    int place = -1;
    for (int m = 0; m < j->count; m++) {
        struct mgx_ins *reader = j->idle[m] ? NULL : reader_of(at[m]);
        const int own = reader ? place_of(reader, at[m]) : -1;
        const bool fits = own >= 0 && has_numbers(reader, own) &&
                          (!model || (own == place && is_alike(model, reader)));
        if (!fits && !j->idle[m] && at[m]->shape.type != MGX_UINT8)
            return false;
        if (!fits) {
            j->idle[m] = j->idle[m] ? j->idle[m] : step;
            continue;
        }
        next[m] = reader;
        place = own;
        model = model ? model : reader;
    }
    for (int m = 0; m < j->count && model; m++)
        if (!next[m] && !can_idle(model, place))
            return false;
    for (int m = 0; m < j->count && model; m++)
        at[m] = next[m] ? next[m] : at[m];
    return model != NULL;
}

// As far as all chains are alike, up to the last byte.
static void follow(struct joined *j)
{
    struct mgx_ins *at[MOST];
    memcpy(at, j->member, sizeof at);
    memcpy(j->end, j->member, sizeof j->end);
    j->length = 0;
    for (int step = 1; step <= LONGEST && step_on(j, step, at); step++) {
        bool bytes = is_one_type(j, at);
        for (int m = 0; m < j->count; m++)
            bytes = bytes && mgx_type_bits(at[m]->shape.type) == 8;
        if (!bytes)
            continue;
        j->length = step;
        memcpy(j->end, at, sizeof at);
    }
}

// --- the joined chain ---

// One operator of all chains.
struct step {
    struct mgx_ins *op[MOST]; // NULL: the chain has ended, its bytes stay what they are
    const struct mgx_ins *model;
    int place;  // of the chain among its operands
    bool mixed; // bytes of either sign are made, or read
};

// Of `y`, which all have become until here: where members that have ended are unsigned bytes it may
// be of another type than what the others were.
static struct step step_of(const struct joined *j, int number, struct mgx_ins *const *last,
                           const struct mgx_ins *y)
{
    struct step s = {.place = -1};
    for (int m = 0; m < j->count; m++) {
        if (j->idle[m] && number >= j->idle[m])
            continue;
        s.op[m] = last[m]->uses->user;
        if (!s.model) {
            s.model = s.op[m];
            s.place = place_of(s.model, last[m]);
        }
        s.mixed = s.mixed || last[m]->shape.type != y->shape.type ||
                  s.op[m]->shape.type != s.model->shape.type;
    }
    return s;
}

// Of a chain that has ended, so that nothing changes.
static double neutral(const struct step *s, int i)
{
    if (i == 1 &&
        (s->model->op == &mgx_op_quantizelinear || s->model->op == &mgx_op_dequantizelinear))
        return (float)(1.0 / UINT8_MAX);
    return s->model->op == &mgx_op_mul;
}

// Of a member; a zero point of a signed byte that becomes an unsigned one.
static double number(const struct step *s, int m, int i, int64_t column)
{
    enum { ZERO = 2, TURN = 128 };
    const struct mgx_ins *op = s->op[m];
    if (!op)
        return neutral(s, i);
    const enum mgx_type byte = quantizes(op) ? op->shape.type : op->in[s->place]->shape.type;
    const double value = i < op->in_count ? number_at(numbers_of(op->in[i]), column) : 0;
    return value + (s->mixed && i == ZERO && byte == MGX_INT8 ? TURN : 0);
}

static bool has(const struct step *s, int m, int i)
{
    return s->op[m] && i < s->op[m]->in_count;
}

static bool is_single(const struct step *s, const struct joined *j, int i)
{
    bool same = true;
    for (int m = 0; m < j->count; m++)
        same = same && number(s, m, i, 0) == number(s, 0, i, 0) &&
               (!has(s, m, i) || mgx_shape_elements(&numbers_of(s->op[m]->in[i])->shape) == 1);
    return same;
}

static enum mgx_type type_of(const struct step *s, const struct joined *j, int i)
{
    enum mgx_type type = MGX_UINT8;
    for (int m = 0; m < j->count; m++)
        if (has(s, m, i))
            type = s->op[m]->in[i]->shape.type;
    return s->mixed && mgx_type_bits(type) == 8 ? MGX_UINT8 : type;
}

// Operand `i` of all members: one value where it is the same, else one a column.
static struct mgx_ins *operand(struct mgx_ins *at, const struct joined *j, const struct step *s,
                               int i, const struct mgx_shape *like)
{
    const enum mgx_type type = type_of(s, j, i);
    if (is_single(s, j, i))
        return mgx_emit_multibroadcast(at, mgx_literal_double(at->owner, type, number(s, 0, i, 0)),
                                       like->lens, like->rank);
    const struct mgx_shape vector = mgx_shape_vector(type, j->first[j->count]);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &vector, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int m = 0; m < j->count; m++)
        for (int64_t c = j->first[m]; c < j->first[m + 1]; c++)
            mgx_store_double(type, t.data, c, number(s, m, i, c - j->first[m]));
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    return mgx_emit_spread(at, literal, like->rank - 1, like);
}

// A zero point of 0 for all needs no operand.
static int count_of(const struct step *s, const struct joined *j)
{
    bool lacks = operands_of(s->model) == 3;
    for (int m = 0; m < j->count; m++)
        lacks = lacks && !has(s, m, 2);
    return lacks && !s->mixed ? 2 : operands_of(s->model);
}

// The operator for all: of unsigned bytes where there are both.
static const struct mgx_ins *model_of(const struct step *s, const struct joined *j)
{
    const struct mgx_ins *model = s->model;
    for (int m = 0; m < j->count && s->mixed; m++)
        if (s->op[m] && s->op[m]->shape.type == MGX_UINT8)
            model = s->op[m];
    return model;
}

static struct mgx_ins *chain(struct mgx_ins *at, const struct joined *j, struct mgx_ins *y)
{
    struct mgx_ins *last[MOST];
    memcpy(last, j->member, sizeof last);
    for (int step = 1; step <= j->length && y; step++) {
        struct mgx_ins *in[OPERANDS];
        const struct mgx_shape like = y->shape;
        const struct step s = step_of(j, step, last, y);
        const int count = count_of(&s, j);
        for (int i = 0; i < count; i++)
            if (!(in[i] = i == s.place ? y : operand(at, j, &s, i, &like)))
                return NULL;
        y = mgx_insert(at->owner, at, s.model->op, model_of(&s, j)->attr, in, count, NULL, 0);
        for (int m = 0; m < j->count; m++)
            last[m] = s.op[m] ? s.op[m] : last[m];
    }
    return y;
}

// --- products ---

static const struct mgx_ins *matrix_of(const struct mgx_ins *b)
{
    while (b->op == &mgx_op_multibroadcast && b->in_count == 1)
        b = b->in[0];
    return b->literal && b->shape.rank >= 2 ? b : NULL;
}

static bool is_product(const struct mgx_ins *ins)
{
    const struct mgx_ins *w =
        ins->op == &mgx_op_quant_dot && ins->in_count == 2 ? matrix_of(ins->in[1]) : NULL;
    return w && mgx_type_bits(w->shape.type) == 8 && mgx_shape_is_static(&ins->shape) &&
           mgx_shape_elements(&w->shape) ==
               w->shape.lens[w->shape.rank - 1] * w->shape.lens[w->shape.rank - 2];
}

static bool same_but_columns(const struct mgx_shape *a, const struct mgx_shape *b)
{
    bool same = a->rank == b->rank && a->type == b->type;
    for (int d = 0; d < a->rank - 1 && same; d++)
        same = a->lens[d] == b->lens[d];
    return same;
}

static void add(struct joined *j, struct mgx_ins *member, int64_t columns)
{
    j->first[j->count + 1] = j->first[j->count] + columns;
    j->member[j->count++] = member;
}

// Products of the same input, in the order of the program.
static bool find_products(struct mgx_ins *first, struct joined *j)
{
    const struct mgx_ins *w = matrix_of(first->in[1]);
    *j = (struct joined){.count = 0};
    for (struct mgx_ins *ins = first; ins; ins = ins->next) {
        if (ins->op != &mgx_op_quant_dot || ins->in[0] != first->in[0] || !is_product(ins))
            continue;
        const struct mgx_ins *v = matrix_of(ins->in[1]);
        if (same_but_columns(&ins->shape, &first->shape) && v->shape.type == w->shape.type &&
            v->shape.lens[v->shape.rank - 2] == w->shape.lens[w->shape.rank - 2] && j->count < MOST)
            add(j, ins, ins->shape.lens[ins->shape.rank - 1]);
    }
    return j->count > 1;
}

// All weights side by side.
static struct mgx_ins *weights(struct mgx_ins *at, const struct joined *j)
{
    const struct mgx_ins *w = matrix_of(at->in[1]);
    const int64_t depth = w->shape.lens[w->shape.rank - 2], columns = j->first[j->count];
    const struct mgx_shape shape =
        mgx_shape_make(w->shape.type, 2, (const int64_t[]){depth, columns});
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int m = 0; m < j->count; m++) {
        const struct mgx_tensor *from = matrix_of(j->member[m]->in[1])->literal;
        const int r = from->shape.rank;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t c = 0; c < j->first[m + 1] - j->first[m]; c++)
                ((uint8_t *)t.data)[k * columns + j->first[m] + c] =
                    ((const uint8_t *)from
                         ->data)[k * from->shape.strides[r - 2] + c * from->shape.strides[r - 1]];
    }
    struct mgx_ins *literal = mgx_add_literal(at->owner, &t);
    mgx_tensor_release(&t);
    int64_t lens[MGX_MAX_RANK];
    const int rank = at->in[1]->shape.rank;
    memcpy(lens, at->in[1]->shape.lens, (size_t)rank * sizeof *lens);
    lens[rank - 1] = columns;
    return mgx_emit_multibroadcast(at, literal, lens, rank);
}

static enum mgx_status join(struct mgx_pass_call *c, struct joined *j)
{
    struct mgx_ins *at = j->member[0];
    struct mgx_ins *w = weights(at, j);
    struct mgx_ins *y = w ? mgx_emit_binary(at, &mgx_op_quant_dot, at->in[0], w) : NULL;
    y = y ? chain(at, j, y) : NULL;
    for (int m = 0; m < j->count && y; m++) {
        struct mgx_ins *part =
            mgx_emit_slice(at, y, y->shape.rank - 1, j->first[m], j->first[m + 1]);
        if (part)
            mgx_replace_uses(j->end[m], part);
    }
    c->changed = true;
    return mgx_program_status(c->program, c->diag);
}

// --- slices ---

// The axis along which all readers of a reshape are slices of one place each, of a part of its
// operand's last axis each, all of it; -1: they are not.
static int parted_axis(const struct mgx_ins *r)
{
    const struct mgx_shape *s = &r->shape;
    const struct mgx_ins *slice = r->uses ? r->uses->user : NULL;
    if (!(r->op->flags & MGX_OP_REGROUP) || r->in_count != 1 || !mgx_shape_is_static(s) ||
        r->in[0]->shape.rank < 1 || !slice || slice->op != &mgx_op_slice || slice->in_count != 1 ||
        mgx_ins_ints(slice, "axes").count != 1)
        return -1;
    const int axis = (int)mgx_ins_ints(slice, "axes").v[0];
    const struct mgx_shape *y = &r->in[0]->shape;
    return axis >= 0 && axis < s->rank - 1 && s->lens[axis] <= MOST &&
                   mgx_product(s->lens + axis, s->rank - axis) == y->lens[y->rank - 1]
               ? axis
               : -1;
}

static bool find_slices(struct mgx_ins *r, struct joined *j, int axis)
{
    const int64_t columns = mgx_product(r->shape.lens + axis + 1, r->shape.rank - axis - 1);
    struct mgx_ins *found[MOST] = {NULL};
    *j = (struct joined){.count = 0};
    for (const struct mgx_use *use = r->uses; use; use = use->next) {
        struct mgx_ins *slice = use->user;
        if (slice->op != &mgx_op_slice || slice->in_count != 1 || slice->owner != r->owner)
            return false;
        const struct mgx_ints axes = mgx_ins_ints(slice, "axes"),
                              starts = mgx_ins_ints(slice, "starts");
        if (axes.count != 1 || axes.v[0] != axis || slice->shape.lens[axis] != 1 ||
            starts.v[0] < 0 || starts.v[0] >= r->shape.lens[axis] || found[starts.v[0]])
            return false;
        found[starts.v[0]] = slice;
    }
    for (int m = 0; m < r->shape.lens[axis]; m++) {
        if (!found[m])
            return false;
        add(j, found[m], columns);
    }
    return j->count > 1;
}

static enum mgx_status join_slices(struct mgx_pass_call *c, struct joined *j, struct mgx_ins *r,
                                   int axis)
{
    struct mgx_ins *y = chain(r, j, r->in[0]);
    y = mgx_emit_reshape(r, y, r->shape.lens, r->shape.rank);
    for (int m = 0; m < j->count && y; m++) {
        struct mgx_ins *part = mgx_emit_slice(r, y, axis, m, m + 1);
        if (part)
            mgx_replace_uses(j->end[m], part);
    }
    c->changed = true;
    return mgx_program_status(c->program, c->diag);
}

static enum mgx_status join_parts(struct mgx_pass_call *c, struct mgx_ins *r)
{
    struct joined j;
    const int axis = parted_axis(r);
    if (axis < 0 || !find_slices(r, &j, axis))
        return MGX_OK;
    follow(&j);
    return j.length > 0 ? join_slices(c, &j, r, axis) : MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (!c->options->target.multiplies_bytes)
        return MGX_OK;
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        struct joined j;
        TRY(join_parts(c, ins));
        if (!is_product(ins) || !ins->uses || !find_products(ins, &j))
            continue;
        follow(&j);
        if (j.length > 0)
            TRY(join(c, &j));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_join_bytes = {
    .name = "join_bytes",
    .meaning = "products of bytes of one input, with alike ends, become one",
    .module = run,
};
