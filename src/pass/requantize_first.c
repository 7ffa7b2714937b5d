// SPDX-License-Identifier: MIT
// Pieces of one value that are quantized each by steps of its own, and put together again, are
// quantized before they are cut.
//
//     concat(f(x[a ..]), g(x[.. a]), ...)  =>  concat(y[a ..], y[.. a], ...)      y = h(x)
//     f(concat(x[a ..], x[.. a]))          =>  concat(y[a ..], y[.. a])           y = f(x)
//     f(x[a ..]), g(x[.. a]), ...          =>  y[a ..], y[.. a], ...      y = h(x), a product's x
//     f(r(x)[a ..]), g(r(x)[.. a]), ...    =>  r(y)[a ..], r(y)[.. a], ...             r a reshape
//
// f, g: chains of quantizelinear and dequantizelinear by known steps, or nothing; floats that are
// multiplied with one number in between have another step. h is the longest of them with a step for
// each place along the axis; where a shorter one has ended, bytes become floats and the same bytes
// again.
//
// An image that is pushed around its edges (Swin) and quantized on the way is one gather then
// (gather_rolls), and what quantizes is done by what made x: a product, for its queries and keys.
// Every rounding stays.
//
// Holds: the pieces are all of x, each once, and nobody else reads what lies between. Cost:
// O(places) for a concat. The GPU target runs it.
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"
#include "pass/engine/walk.h"

enum { MOST = 16, LONGEST = 8, OPERANDS = 3 };

struct piece {
    const struct mgx_ins *slice;
    const struct mgx_ins *step[LONGEST]; // from the slice on
    double factor[LONGEST];              // what floats are multiplied with behind a step
    int count;
    int64_t first, last; // places of x
};

struct pieces {
    struct mgx_ins *x;
    struct piece piece[MOST]; // as the concat has them
    int count, axis, longest; // longest: the piece with most steps
};

// Where all places are quantized: x, or what is x in other axes. Each `run` places of `axis` are
// one of x, and `period` of those all of x, over and over.
struct whole {
    struct mgx_ins *x;
    int axis;
    int64_t run, period;
};

// --- what is cut and put together ---

static bool is_step(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_quantizelinear || ins->op == &mgx_op_dequantizelinear;
}

// What comes from a slice along the axis alone, in bytes of the concat's type.
static bool read_piece(const struct mgx_ins *concat, const struct mgx_ins *end, struct pieces *p)
{
    const struct mgx_ins *chain[LONGEST];
    struct piece *piece = &p->piece[p->count];
    int count = 0;
    for (; is_step(end); end = end->in[0]) {
        const bool quantizes = end->op == &mgx_op_quantizelinear;
        if (count == LONGEST || !mgx_used_once(end) || !mgx_has_splats(end, 1) ||
            (quantizes && end->shape.type != concat->shape.type) ||
            (!quantizes && end->in[0]->shape.type != concat->shape.type))
            return false;
        chain[count++] = end;
    }
    if (end->op != &mgx_op_slice || end->in_count != 1 || !mgx_used_once(end))
        return false;
    const struct mgx_ints axes = mgx_ins_ints(end, "axes");
    if (axes.count != 1 || mgx_wrap_axis(axes.v[0], end->shape.rank) != p->axis)
        return false;
    *piece = (struct piece){.slice = end, .count = count};
    piece->first = mgx_ins_ints(end, "starts").v[0];
    piece->last = piece->first + end->shape.lens[p->axis];
    for (int i = 0; i < count; i++)
        piece->step[i] = chain[count - 1 - i], piece->factor[i] = 1;
    return true;
}

// Does every place of x belong to one piece?
static bool covers(const struct pieces *p)
{
    int64_t at = 0;
    for (int found = 0; found < p->count; found++) {
        int next = -1;
        for (int i = 0; i < p->count && next < 0; i++)
            if (p->piece[i].first == at && p->piece[i].last > at)
                next = i;
        if (next < 0)
            return false;
        at = p->piece[next].last;
    }
    return at == p->x->shape.lens[p->axis];
}

static bool read_pieces(const struct mgx_ins *concat, struct pieces *p)
{
    *p = (struct pieces){.count = 0};
    if (concat->op != &mgx_op_concat || concat->in_count < 2 || concat->in_count > MOST)
        return false;
    p->axis = mgx_wrap_axis(mgx_ins_int(concat, "axis"), concat->shape.rank);
    for (int i = 0; i < concat->in_count; i++, p->count++) {
        if (!read_piece(concat, concat->in[i], p))
            return false;
        struct mgx_ins *x = p->piece[i].slice->in[0];
        if (i && x != p->x)
            return false;
        p->x = x;
        p->longest = p->piece[i].count > p->piece[p->longest].count ? i : p->longest;
    }
    return mgx_shape_is_static(&p->x->shape) && covers(p);
}

static struct mgx_ins *put_together(struct mgx_ins *at, const struct pieces *p, struct mgx_ins *y)
{
    struct mgx_ins *in[MOST];
    for (int i = 0; i < p->count && y; i++)
        if (!(in[i] = mgx_emit_slice(at, y, p->axis, p->piece[i].first, p->piece[i].last)))
            return NULL;
    return y ? mgx_emit_concat(at, in, p->count, p->axis) : NULL;
}

// --- pieces with steps of their own ---

// A chain that has ended takes bytes to floats and back by steps of 1.
static double number(const struct piece *piece, int step, int operand)
{
    double value = operand == 1;
    if (step < piece->count) {
        value = 0;
        if (operand < piece->step[step]->in_count)
            mgx_splat_value(piece->step[step]->in[operand], &value);
        value *= operand == 1 ? piece->factor[step] : 1;
    }
    return value;
}

static int piece_at(const struct pieces *p, int64_t place)
{
    int found = 0;
    while (place < p->piece[found].first || place >= p->piece[found].last)
        found++;
    return found;
}

// For each place; one value where all are the same.
static struct mgx_ins *for_places(struct mgx_ins *at, const struct pieces *p, const struct whole *w,
                                  int step, int operand, enum mgx_type type)
{
    const int64_t length = w->x->shape.lens[w->axis];
    const struct mgx_shape vector = mgx_shape_vector(type, length);
    const struct mgx_shape like = mgx_shape_retype(&w->x->shape, type);
    struct mgx_tensor values;
    bool same = true;
    for (int i = 1; i < p->count; i++)
        same = same && number(&p->piece[i], step, operand) == number(&p->piece[0], step, operand);
    if (same)
        return mgx_emit_splat(at, &like, number(&p->piece[0], step, operand));
    if (mgx_tensor_create(&values, &vector, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t k = 0; k < length; k++)
        mgx_store_double(type, values.data, k,
                         number(&p->piece[piece_at(p, k / w->run % w->period)], step, operand));
    struct mgx_ins *literal = mgx_add_literal(at->owner, &values);
    mgx_tensor_release(&values);
    return mgx_emit_spread(at, literal, w->axis, &like);
}

static struct mgx_ins *quantize_all(struct mgx_ins *at, const struct pieces *p,
                                    const struct whole *w, enum mgx_type type)
{
    const struct piece *longest = &p->piece[p->longest];
    struct mgx_ins *y = w->x;
    for (int step = 0; step < longest->count && y; step++) {
        const struct mgx_ins *model = longest->step[step];
        struct mgx_ins *in[OPERANDS] = {y};
        in[1] = for_places(at, p, w, step, 1, model->in[1]->shape.type);
        in[2] = for_places(at, p, w, step, 2, type);
        y = in[1] && in[2] ? mgx_emit_again(at, model, in, OPERANDS) : NULL;
    }
    return y;
}

// Of bytes, or of floats that all pieces quantize first.
static bool go_together(const struct pieces *p, enum mgx_type type)
{
    const struct piece *longest = &p->piece[p->longest];
    bool fits = longest->count > 0 && (p->x->shape.type == type || p->x->shape.type == MGX_FLOAT);
    for (int i = 0; i < p->count && p->x->shape.type != type; i++)
        fits = fits && p->piece[i].count > 0;
    for (int step = 0; step < longest->count && fits; step++)
        fits = longest->step[step]->in[1]->shape.type == MGX_FLOAT;
    return fits;
}

static struct mgx_ins *quantize_whole(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    struct pieces p;
    (void)r, (void)m;
    if (!ins->uses || !mgx_type_is_byte(ins->shape.type) || !read_pieces(ins, &p) ||
        !go_together(&p, ins->shape.type))
        return NULL;
    const struct whole all = {p.x, p.axis, 1, p.x->shape.lens[p.axis]};
    return put_together(ins, &p, quantize_all(ins, &p, &all, ins->shape.type));
}

// --- what all pieces go through ---

// Is it the only reader that anyone reads?
static bool reads_alone(const struct mgx_ins *reader, const struct mgx_ins *x)
{
    for (const struct mgx_use *use = x->uses; use; use = use->next)
        if (use->user != reader && use->user->uses)
            return false;
    return true;
}

static bool is_alike_along(struct mgx_ins *operand, int axis)
{
    double value;
    bool alike = mgx_splat_value(operand, &value);
    for (int d = 0; d < operand->shape.rank && !alike; d++)
        alike = d != axis && mgx_is_along(operand, d);
    return alike;
}

static struct mgx_ins *quantize_before(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    struct mgx_ins *in[OPERANDS];
    struct pieces p;
    (void)r, (void)m;
    if (!ins->uses || !reads_alone(ins, ins->in[0]) || !read_pieces(ins->in[0], &p) ||
        p.piece[p.longest].count > 0)
        return NULL;
    for (int i = 1; i < ins->in_count; i++)
        if (!is_alike_along(in[i] = ins->in[i], p.axis))
            return NULL;
    in[0] = p.x;
    return put_together(ins, &p, mgx_emit_again(ins, ins, in, ins->in_count));
}

// --- pieces of what a product leaves ---

// What a factor makes of it, where it is read by nothing else.
static struct mgx_ins *multiplied(struct mgx_ins *ins, double *factor)
{
    double value;
    while (mgx_used_once(ins) && ins->uses->user->op == &mgx_op_mul &&
           mgx_splat_value(ins->uses->user->in[!ins->uses->slot], &value)) {
        *factor *= value;
        ins = ins->uses->user;
    }
    return ins;
}

// The steps behind a slice up to the last byte, and what they end with.
static struct mgx_ins *follow(struct mgx_ins *slice, struct piece *piece)
{
    const enum mgx_type type = slice->shape.type;
    struct mgx_ins *at = slice, *end = slice;
    for (int i = 0; i < LONGEST && mgx_used_once(at); i++) {
        struct mgx_ins *reader = at->uses->user;
        if (!is_step(reader) || at->uses->slot != 0 || !mgx_has_splats(reader, 1) ||
            reader->in[1]->shape.type != MGX_FLOAT ||
            (reader->op == &mgx_op_quantizelinear && reader->shape.type != type))
            break;
        piece->step[i] = at = reader;
        piece->factor[i] = 1;
        if (at->shape.type == type)
            end = at, piece->count = i + 1;
        else
            at = multiplied(at, &piece->factor[i]);
    }
    return end;
}

// Are all readers slices along one axis? One whose bytes a concat gathers is made in place there.
static bool read_slices(struct mgx_ins *x, struct pieces *p, struct mgx_ins **end)
{
    *p = (struct pieces){.x = x};
    for (const struct mgx_use *use = x->uses; use; use = use->next, p->count++) {
        struct mgx_ins *slice = use->user;
        if (slice->op != &mgx_op_slice || slice->in_count != 1 || slice->owner != x->owner ||
            p->count == MOST || mgx_ins_ints(slice, "axes").count != 1)
            return false;
        const int axis = mgx_wrap_axis(mgx_ins_ints(slice, "axes").v[0], x->shape.rank);
        struct piece *piece = &p->piece[p->count];
        *piece = (struct piece){.slice = slice};
        piece->first = mgx_ins_ints(slice, "starts").v[0];
        piece->last = piece->first + slice->shape.lens[axis];
        end[p->count] = follow(slice, piece);
        if ((p->count && axis != p->axis) ||
            (piece->count &&
             (!end[p->count]->uses || end[p->count]->uses->user->op == &mgx_op_concat)))
            return false;
        p->axis = axis;
        p->longest = piece->count > p->piece[p->longest].count ? p->count : p->longest;
    }
    return p->count > 1 && p->piece[p->longest].count > 0 && covers(p);
}

// What is x in other axes, of which one knows its place along the axis.
static struct whole whole_of(const struct pieces *p)
{
    const struct mgx_shape *s = &p->x->shape;
    const struct whole itself = {p->x, p->axis, 1, s->lens[p->axis]};
    const int64_t behind = mgx_product(s->lens + p->axis + 1, s->rank - p->axis - 1);
    if (!(p->x->op->flags & MGX_OP_REGROUP) || p->x->in_count != 1)
        return itself;
    const struct mgx_shape *y = &p->x->in[0]->shape;
    int64_t inner = 1;
    for (int d = y->rank - 1; d >= 0; inner *= y->lens[d--])
        if (behind % inner == 0 && inner * y->lens[d] % (behind * s->lens[p->axis]) == 0)
            return (struct whole){p->x->in[0], d, behind / inner, s->lens[p->axis]};
    return itself;
}

// Element-wise work that nobody else reads lies between at most; slices read y itself.
static bool is_made_by_product(const struct mgx_ins *y)
{
    enum { DEEP = 12 };
    for (int i = 0; i < DEEP && (y->op->flags & MGX_OP_POINTWISE) && y->in_count > 0; i++) {
        y = y->in[0];
        if (!mgx_used_once(y))
            return false;
    }
    return y->op == &mgx_op_quant_dot || y->op == &mgx_op_quant_convolution;
}

static enum mgx_status quantize_slices(struct mgx_pass_call *c, struct mgx_ins *x)
{
    struct mgx_ins *end[MOST], *at = x;
    struct pieces p;
    if (!mgx_type_is_byte(x->shape.type) || !mgx_shape_is_static(&x->shape) ||
        !read_slices(x, &p, end))
        return MGX_OK;
    const struct whole w = whole_of(&p);
    if ((w.x != x && !mgx_used_once(w.x)) || !is_made_by_product(w.x))
        return MGX_OK;
    while (at == x || at->op != &mgx_op_slice || at->in[0] != x)
        at = at->next;
    struct mgx_ins *y = quantize_all(at, &p, &w, x->shape.type);
    y = y && w.x != x ? mgx_emit_again(at, x, &y, 1) : y;
    for (int i = 0; i < p.count && y; i++) {
        struct mgx_ins *part = mgx_emit_slice(at, y, p.axis, p.piece[i].first, p.piece[i].last);
        if (part)
            mgx_replace_uses(end[i], part);
    }
    c->changed = true;
    return mgx_program_status(c->program, c->diag);
}

static const struct mgx_rule rules[] = {
    {"concat ~> concat(slice(h(x))...), of concat(f(slice(x))...)", MGX_IF_STATIC,
     .rewrite = quantize_whole},
    {"quantizelinear|dequantizelinear ~> concat(slice(f(x))...), of a concat", MGX_IF_STATIC,
     .rewrite = quantize_before},
};

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    TRY(mgx_apply_rules(c, m, rules, MGX_COUNT(rules)));
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        TRY(quantize_slices(c, ins));
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_requantize_first = {
    .name = "requantize_first",
    .meaning = "pieces that are quantized each by its own steps are quantized before they are cut",
    .module = run,
};
