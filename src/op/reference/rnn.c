// SPDX-License-Identifier: MIT
// Recurrent cells; see rnn.h.
//
// Per direction: all x W' + bias at once as one matrix product, then step by step h R' + bias as
// another and the cell row by row. A row whose sequence has ended keeps its state; in reverse every
// row begins with its own last step.
#include "op/reference/rnn.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/reference/gemm.h"
#include "op/reference/lanes.h"
#include "op/reference/rnn_func.h"

enum input { X, W, R, BIAS, LENGTHS, H0, C0, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

static int directions(int64_t direction)
{
    assert(direction >= MGX_RNN_FORWARD && direction <= MGX_RNN_BIDIRECTIONAL);
    return direction == MGX_RNN_BIDIRECTIONAL ? 2 : 1;
}

int mgx_rnn_func_at(int given, int once, int i)
{
    assert(given > 0 && once > 0 && i >= 0);
    while (given <= i / once * once)
        i -= once;
    return i < given ? i : given - 1;
}

// Activations of all directions.
static enum mgx_status find_funcs(const char *op, const struct mgx_rnn_attr *a,
                                  const struct mgx_rnn_cell *cell, struct mgx_rnn_func *funcs,
                                  struct mgx_diag *diag)
{
    assert(cell->funcs > 0 && cell->funcs <= MGX_RNN_MAX_FUNCS);
    const int once = cell->funcs, all = once * directions(a->direction);
    const int given = a->actv_func.count < all ? a->actv_func.count : all;
    if (given < 1)
        return mgx_fail(diag, MGX_INVALID, "%s: 0 activation functions where %d are needed", op,
                        once);
    struct mgx_doubles alphas = a->actv_alpha, betas = a->actv_beta;
    for (int i = 0; i < given; i++)
        if (!mgx_rnn_func_find(a->actv_func.v[i], &alphas, &betas, &funcs[i]))
            return mgx_fail(diag, MGX_INVALID, "%s: activation function \"%s\" is unknown", op,
                            a->actv_func.v[i]);
    for (int i = given; i < all; i++)
        funcs[i] = funcs[mgx_rnn_func_at(given, once, i)];
    return MGX_OK;
}

// --- shape ---

static bool present(const struct mgx_shape_call *c, int input)
{
    assert(input >= 0);
    return input < c->in_count && !mgx_shape_is_absent(c->in[input]);
}

static enum mgx_status check_states(struct mgx_shape_call *c, int input, int64_t dirs,
                                    struct mgx_dim *batch, int64_t hidden)
{
    assert(dirs == 1 || dirs == 2);
    TRY(mgx_require_rank(c, input, 3, 3));
    TRY(mgx_require_fixed(c, input, 0, dirs));
    TRY(mgx_require_length(c, input, 1, batch));
    return mgx_require_fixed(c, input, 2, hidden);
}

static enum mgx_status check_required(struct mgx_shape_call *c, int64_t dirs, int64_t rows,
                                      int64_t hidden)
{
    assert(dirs == 1 || dirs == 2);
    for (int i = X; i <= R; i++)
        TRY(mgx_require_rank(c, i, 3, 3));
    struct mgx_dim in = mgx_shape_dim(c->in[X], 2);
    TRY(mgx_require_length(c, W, 2, &in));
    const struct mgx_dim r = mgx_shape_dim(c->in[R], 2), d = mgx_shape_dim(c->in[R], 0);
    if (hidden < r.min || hidden > r.max)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: hidden size mismatch in attribute (%" PRId64 ") and input (%" PRId64
                        ")",
                        c->op->name, hidden, r.max);
    if (dirs < d.min || dirs > d.max)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: num_direction does not match the direction attribute: %" PRId64
                        " in the weights, %" PRId64 " by the attribute",
                        c->op->name, d.max, dirs);
    TRY(mgx_require_fixed(c, W, 0, dirs));
    TRY(mgx_require_fixed(c, W, 1, rows));
    return mgx_require_fixed(c, R, 1, rows);
}

static enum mgx_status check_optional(struct mgx_shape_call *c, int64_t dirs, int64_t rows,
                                      int64_t hidden, struct mgx_dim *batch)
{
    if (present(c, BIAS)) {
        TRY(mgx_require_rank(c, BIAS, 2, 2));
        TRY(mgx_require_fixed(c, BIAS, 0, dirs));
        TRY(mgx_require_fixed(c, BIAS, 1, 2 * rows));
    }
    if (present(c, LENGTHS)) {
        TRY(mgx_require_number(c, LENGTHS));
        TRY(mgx_require_rank(c, LENGTHS, 1, 1));
        TRY(mgx_require_length(c, LENGTHS, 0, batch));
    }
    if (present(c, H0))
        TRY(check_states(c, H0, dirs, batch, hidden));
    if (present(c, C0))
        TRY(check_states(c, C0, dirs, batch, hidden));
    if (present(c, PEEPHOLES)) {
        TRY(mgx_require_rank(c, PEEPHOLES, 2, 2));
        TRY(mgx_require_fixed(c, PEEPHOLES, 0, dirs));
        TRY(mgx_require_fixed(c, PEEPHOLES, 1, 3 * hidden));
    }
    return MGX_OK;
}

// Input i is of the type of input `like`.
static enum mgx_status check_type(struct mgx_shape_call *c, int i, int like)
{
    if (c->in[i]->type == c->in[like]->type)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: Types do not match: input %d is %s, input %d is %s",
                    c->op->name, like, mgx_type_name(c->in[like]->type), i,
                    mgx_type_name(c->in[i]->type));
}

static enum mgx_status check_types(struct mgx_shape_call *c, const struct mgx_rnn_cell *cell)
{
    for (int i = 0; i < c->in_count; i++) {
        const bool byte = cell->bytes && (i == W || i == R || i == W_ZERO || i == R_ZERO);
        if (i == LENGTHS || !present(c, i))
            continue;
        if (!byte)
            TRY(mgx_require_float(c, i));
        else if (!mgx_type_is_byte(c->in[i]->type))
            return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is %s, not of bytes", c->op->name,
                            i, mgx_type_name(c->in[i]->type));
        TRY(check_type(c, i, byte && i == W_ZERO ? W : byte && i == R_ZERO ? R : byte ? i : X));
    }
    return MGX_OK;
}

// What bytes stand for: one for every direction, or for every row of it.
static enum mgx_status check_bytes(struct mgx_shape_call *c, int64_t dirs, int64_t rows)
{
    for (int i = W_SCALE; i <= R_ZERO; i++) {
        const bool scale = i == W_SCALE || i == R_SCALE;
        if (scale && !present(c, i))
            return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is required", c->op->name, i);
        if (!present(c, i))
            continue;
        TRY(mgx_require_rank(c, i, 2, 2));
        TRY(mgx_require_fixed(c, i, 0, dirs));
        const struct mgx_dim each = mgx_shape_dim(c->in[i], 1);
        if (each.min > 1 || each.max < 1)
            TRY(mgx_require_fixed(c, i, 1, rows));
    }
    return MGX_OK;
}

static enum mgx_status check_attr(struct mgx_shape_call *c, const struct mgx_rnn_attr *a,
                                  const struct mgx_rnn_cell *cell)
{
    struct mgx_rnn_func funcs[2 * MGX_RNN_MAX_FUNCS];
    if (a->direction < MGX_RNN_FORWARD || a->direction > MGX_RNN_BIDIRECTIONAL)
        return mgx_fail(c->diag, MGX_INVALID, "%s: direction %" PRId64 " is unknown", c->op->name,
                        a->direction);
    if (a->hidden_size < 0 || a->hidden_size > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID, "%s: hidden_size %" PRId64 " is out of range 0..%d",
                        c->op->name, a->hidden_size, INT32_MAX);
    if (!(a->clip >= 0))
        return mgx_fail(c->diag, MGX_INVALID, "%s: clip %g is negative", c->op->name, a->clip);
    TRY(find_funcs(c->op->name, a, cell, funcs, c->diag));
    return check_types(c, cell);
}

enum mgx_status mgx_rnn_shape(struct mgx_shape_call *c, const struct mgx_rnn_attr *a,
                              const struct mgx_rnn_cell *cell, enum mgx_rnn_gives gives,
                              struct mgx_shape *out)
{
    TRY(check_attr(c, a, cell));
    const int64_t dirs = directions(a->direction), rows = cell->gates * a->hidden_size;
    TRY(check_required(c, dirs, rows, a->hidden_size));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[X], 4);
    if (!dims)
        return MGX_NO_MEMORY;
    struct mgx_dim batch = dims[1];
    TRY(check_optional(c, dirs, rows, a->hidden_size, &batch));
    if (cell->bytes)
        TRY(check_bytes(c, dirs, rows));
    dims[1] = (struct mgx_dim){.min = dirs, .max = dirs};
    dims[2] = batch;
    dims[3] = (struct mgx_dim){.min = a->hidden_size, .max = a->hidden_size};
    if (gives == MGX_RNN_STATES) // one step more, which is another length than the input's
        dims[0] = (struct mgx_dim){.min = dims[0].min + 1,
                                   .max = dims[0].max + (dims[0].max < MGX_DIM_ANY)};
    const bool last = gives == MGX_RNN_LAST_CELL;
    *out = mgx_shape_from_dims(c->in[X]->type, last ? 3 : 4, last ? dims + 1 : dims);
    return MGX_OK;
}

// --- compute ---

struct walk {
    struct mgx_compute_call *c;
    struct mgx_rnn r;
    int64_t direction, steps, batch, in;
    double *x;           // {steps * batch, in}
    int64_t *lengths;    // per batch row
    double *from, *back; // {steps * batch, rows}, {batch, rows}
    double *h, *cell;    // {batch, hidden}
    double *multiplied;  // of bytes: what stands for h, likewise
    double *result;      // {steps, dirs, batch, hidden}, or {dirs, batch, hidden}, or both
    double *last_cells;  // where in it these begin, or NULL
};

static int64_t rows_of(const struct walk *k)
{
    return k->r.cell->gates * k->r.hidden;
}

static bool given(const struct mgx_compute_call *c, int input)
{
    assert(input >= 0);
    return input < c->in_count && !mgx_shape_is_absent(&c->in[input]->shape);
}

static enum mgx_status read_lengths(struct walk *k)
{
    if (given(k->c, LENGTHS)) {
        k->lengths = mgx_scratch_ints(k->c, k->c->in[LENGTHS]);
    } else {
        k->lengths = MGX_NEW_ARRAY(k->c->scratch, int64_t, k->batch);
        for (int64_t b = 0; k->lengths && b < k->batch; b++)
            k->lengths[b] = k->steps;
    }
    if (!k->lengths)
        return mgx_fail_memory(k->c->diag);
    for (int64_t b = 0; b < k->batch; b++)
        if (k->lengths[b] < 0 || k->lengths[b] > k->steps)
            return mgx_fail(k->c->diag, MGX_INVALID,
                            "%s: sequence length %" PRId64 " is out of range 0..%" PRId64,
                            k->c->op->name, k->lengths[b], k->steps);
    return MGX_OK;
}

// --- bytes ---

// What DynamicQuantizeLinear finds, in float as it does.
struct range {
    float low, high;
};

static void widen(struct range *r, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        r->low = fminf(r->low, (float)x[i]);
        r->high = fmaxf(r->high, (float)x[i]);
    }
}

// Every x becomes what its byte stands for.
static void snap(const struct range *r, double *x, int64_t n)
{
    const float step = (r->high - r->low) / 255, scale = step == 0 ? 1 : step;
    const float zero = fminf(fmaxf(nearbyintf(-r->low / scale), 0), 255);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)fminf(fmaxf(nearbyintf((float)x[i] / scale), -zero), 255 - zero) * scale;
}

static void snap_input(struct walk *k)
{
    struct range r = {0, 0};
    int64_t steps = 0;
    for (int64_t b = 0; b < k->batch; b++)
        steps = k->lengths[b] > steps ? k->lengths[b] : steps;
    widen(&r, k->x, steps * k->batch * k->in);
    snap(&r, k->x, k->steps * k->batch * k->in);
}

// The states of sequences that have step s, as they are multiplied; 0 of others.
static void snap_states(struct walk *k, int64_t s)
{
    struct range r = {0, 0};
    const int64_t hidden = k->r.hidden;
    memset(k->multiplied, 0, (size_t)(k->batch * hidden) * sizeof *k->multiplied);
    for (int64_t b = 0; b < k->batch; b++)
        if (s < k->lengths[b]) {
            memcpy(k->multiplied + b * hidden, k->h + b * hidden, (size_t)hidden * sizeof *k->h);
            widen(&r, k->h + b * hidden, hidden);
        }
    snap(&r, k->multiplied, k->batch * hidden);
}

static enum mgx_status start(struct walk *k)
{
    struct mgx_compute_call *c = k->c;
    const int64_t rows = rows_of(k);
    k->x = mgx_scratch_doubles(c, c->in[X]);
    TRY(read_lengths(k));
    k->from = MGX_NEW_ARRAY(c->scratch, double, k->steps * k->batch * rows);
    k->back = MGX_NEW_ARRAY(c->scratch, double, k->batch *rows);
    k->h = MGX_NEW_ARRAY(c->scratch, double, k->batch * k->r.hidden);
    k->cell = MGX_NEW_ARRAY(c->scratch, double, k->batch * k->r.hidden);
    k->multiplied =
        k->r.cell->bytes ? MGX_NEW_ARRAY(c->scratch, double, k->batch * k->r.hidden) : k->h;
    k->result = MGX_NEW_ARRAY(c->scratch, double, mgx_shape_elements(&c->out->shape));
    k->r.spare = MGX_NEW_ARRAY(c->scratch, double, k->r.hidden);
    if (!k->x || !k->from || !k->back || !k->h || !k->cell || !k->multiplied || !k->result ||
        !k->r.spare)
        return mgx_fail_memory(c->diag);
    if (k->r.cell->bytes)
        snap_input(k);
    return MGX_OK;
}

// Entry `dir` of an input as packed doubles, its last two axes exchanged if `turn`.
static double *entry(struct walk *k, int input, int dir, bool turn)
{
    const struct mgx_tensor t = mgx_borrow_entry(k->c->in[input], dir);
    const bool along[MGX_MAX_RANK] = {false, turn};
    struct mgx_lanes lanes;
    return mgx_lanes_doubles(k->c, &t, along, &lanes);
}

// Weights as doubles, {depth, rows}.
static const double *weights(struct walk *k, int input, int dir, int64_t depth)
{
    double *w = entry(k, input, dir, true);
    if (!k->r.cell->bytes || !w)
        return w;
    const int at = input == W ? W_SCALE : R_SCALE;
    const int64_t rows = rows_of(k), scales = k->c->in[at]->shape.lens[1];
    const double *scale = entry(k, at, dir, false), *zero = NULL;
    const int64_t zeros = given(k->c, at + 1) ? k->c->in[at + 1]->shape.lens[1] : 0;
    if (!scale || (zeros && !(zero = entry(k, at + 1, dir, false))))
        return NULL;
    for (int64_t i = 0; i < depth * rows; i++) {
        const int64_t j = i % rows;
        w[i] = (w[i] - (zero ? zero[zeros == 1 ? 0 : j] : 0)) * scale[scales == 1 ? 0 : j];
    }
    return w;
}

// Initial state: given, or zeros.
static bool start_state(struct walk *k, int input, int dir, double *state)
{
    const size_t bytes = (size_t)(k->batch * k->r.hidden) * sizeof *state;
    memset(state, 0, bytes);
    if (!given(k->c, input))
        return true;
    const double *v = entry(k, input, dir, false);
    if (v)
        memcpy(state, v, bytes);
    return v;
}

// Loads what belongs to one direction and computes all x W' + bias.
static enum mgx_status start_direction(struct walk *k, int dir)
{
    struct mgx_compute_call *c = k->c;
    const int64_t rows = rows_of(k), all = k->steps * k->batch;
    const double *w = weights(k, W, dir, k->in), *bias = NULL;
    k->r.func = k->r.funcs + dir * k->r.cell->funcs;
    k->r.back_weights = weights(k, R, dir, k->r.hidden);
    bias =
        given(c, BIAS) ? entry(k, BIAS, dir, false) : MGX_NEW_ARRAY(c->scratch, double, 2 * rows);
    k->r.peepholes = given(c, PEEPHOLES) ? entry(k, PEEPHOLES, dir, false) : NULL;
    if (!w || !k->r.back_weights || !bias || (given(c, PEEPHOLES) && !k->r.peepholes) ||
        !start_state(k, H0, dir, k->h) || !start_state(k, C0, dir, k->cell))
        return mgx_fail_memory(c->diag);
    k->r.back_bias = bias + rows;
    for (int64_t i = 0; i < all; i++)
        memcpy(k->from + i * rows, bias, (size_t)rows * sizeof *bias);
    mgx_gemm_doubles(all, rows, k->in, k->x, k->in, w, rows, k->from, rows);
    return MGX_OK;
}

// Where a row's step number s, of those it has, lies.
static int64_t time_of(const struct walk *k, int64_t b, int64_t s, bool reverse)
{
    assert(s >= 0 && s < k->lengths[b]);
    return reverse ? k->lengths[b] - 1 - s : s;
}

static void step(struct walk *k, int64_t s, bool reverse)
{
    const int64_t rows = rows_of(k), hidden = k->r.hidden;
    for (int64_t b = 0; b < k->batch; b++)
        memcpy(k->back + b * rows, k->r.back_bias, (size_t)rows * sizeof(double));
    if (k->r.cell->bytes)
        snap_states(k, s);
    mgx_gemm_doubles(k->batch, rows, hidden, k->multiplied, hidden, k->r.back_weights, rows,
                     k->back, rows);
    for (int64_t b = 0; b < k->batch; b++)
        if (s < k->lengths[b])
            k->r.cell->step(&k->r, k->from + (time_of(k, b, s, reverse) * k->batch + b) * rows,
                            k->back + b * rows, k->h + b * hidden, k->cell + b * hidden);
}

static void keep_hidden(struct walk *k, int64_t s, int dir, bool reverse)
{
    const int64_t hidden = k->r.hidden, dirs = directions(k->direction);
    for (int64_t b = 0; b < k->batch; b++)
        if (s < k->lengths[b])
            memcpy(k->result + ((time_of(k, b, s, reverse) * dirs + dir) * k->batch + b) * hidden,
                   k->h + b * hidden, (size_t)hidden * sizeof *k->h);
}

static void keep_last_cell(struct walk *k, int dir)
{
    const int64_t hidden = k->r.hidden;
    double *to = k->last_cells + dir * k->batch * hidden;
    for (int64_t b = 0; b < k->batch; b++, to += hidden)
        if (k->lengths[b] > 0)
            memcpy(to, k->cell + b * hidden, (size_t)hidden * sizeof *to);
}

static enum mgx_status run_direction(struct walk *k, int dir)
{
    TRY(start_direction(k, dir));
    const bool reverse = k->direction == MGX_RNN_REVERSE || dir == 1;
    for (int64_t s = 0; s < k->steps; s++) {
        step(k, s, reverse);
        if (k->last_cells != k->result)
            keep_hidden(k, s, dir, reverse);
    }
    if (k->last_cells)
        keep_last_cell(k, dir);
    return MGX_OK;
}

enum mgx_status mgx_rnn_compute(struct mgx_compute_call *c, const struct mgx_rnn_attr *a,
                                const struct mgx_rnn_cell *cell, enum mgx_rnn_gives gives)
{
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    const struct mgx_shape *x = &c->in[X]->shape;
    struct walk k = {.c = c,
                     .direction = a->direction,
                     .steps = x->lens[0],
                     .batch = x->lens[1],
                     .in = x->lens[2]};
    k.r =
        (struct mgx_rnn){.cell = cell, .attr = c->attr, .clip = a->clip, .hidden = a->hidden_size};
    TRY(find_funcs(c->op->name, a, cell, k.r.funcs, c->diag));
    TRY(start(&k));
    const int64_t hidden = k.steps * directions(a->direction) * k.batch * a->hidden_size;
    if (gives & MGX_RNN_LAST_CELL)
        k.last_cells = k.result + (gives & MGX_RNN_HIDDEN ? hidden : 0);
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    for (int dir = 0; dir < directions(a->direction); dir++) {
        TRY(run_direction(&k, dir));
        mgx_arena_rewind(c->scratch, mark);
    }
    mgx_write_doubles(c->out, k.result);
    return MGX_OK;
}
