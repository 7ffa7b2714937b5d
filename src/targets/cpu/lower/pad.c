// SPDX-License-Identifier: MIT
// pad of every mode and type, cropping too: lines along the result's fastest axis.
//
// Where a position of an axis comes from is a table made ahead of time by the reference's own
// function. A line outside the source is filled; one inside is its border, one memcpy of the
// middle, its border. Cost: the bytes of the result, once.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/pad.h"
#include "targets/cpu/lower/lower.h"

enum { PARALLEL_BYTES = 1 << 16, LONGEST = 1 << 24 }; // positions of an axis that get a table

struct axis {
    int64_t length, step; // of the result; step in bytes
    int64_t *from;        // source offset in bytes of each position, -1 for the value
};

struct pad {
    int outer_count;
    struct axis outer[MGX_MAX_RANK], line;
    int64_t middle, middle_length; // the positions of a line that lie in the source as they are
    int64_t lines;
    size_t size;
    int tasks;
    unsigned char value[16];
};

// The padding value's bytes; false where it is not known ahead of time.
static bool read_value(struct mgx_plan_offer *c, const struct mgx_pad *a, struct pad *p)
{
    assert(p->size <= sizeof p->value);
    const enum mgx_type type = c->out->type;
    if (c->in_count > 2) {
        const struct mgx_tensor *t = c->constant[2];
        if (!t || mgx_shape_elements(&t->shape) != 1)
            return false;
        memcpy(p->value, t->data, p->size);
        return true;
    }
    mgx_pad_store(type, p->value, a->value);
    return true;
}

static const int64_t *read_pads(struct mgx_plan_offer *c, const struct mgx_pad *a)
{
    if (c->in_count < 2)
        return a->pads.count == 2 * c->out->rank ? a->pads.v : NULL;
    const struct mgx_tensor *t = c->constant[1];
    return t && t->shape.type == MGX_INT64 && mgx_shape_is_standard(&t->shape) &&
                   mgx_shape_elements(&t->shape) == 2 * (int64_t)c->out->rank
               ? t->data
               : NULL;
}

static bool make_axis(struct mgx_plan_offer *c, const struct mgx_pad *a, size_t size, int axis,
                      int64_t before, struct axis *out)
{
    assert(axis >= 0 && axis < c->out->rank && size);
    const int64_t n = c->out->lens[axis], in = c->in[0].lens[axis];
    *out = (struct axis){.length = n,
                         .step = c->out->strides[axis] * (int64_t)size,
                         .from = MGX_NEW_ARRAY(c->arena, int64_t, n)};
    for (int64_t i = 0; out->from && i < n; i++) {
        const int64_t at = mgx_pad_source(a->mode, i - before, in);
        assert(before != 0 || i >= in || at == i); // what is not moved stays
        assert(at < in);
        out->from[i] = at < 0 ? -1 : at * c->in[0].strides[axis] * (int64_t)size;
    }
    return out->from || (mgx_fail_memory(c->diag), false);
}

// The axis along which the result runs fastest: the longest of step 1, else the last.
static int fastest(const struct mgx_shape *s)
{
    assert(s->rank > 0);
    int best = s->rank - 1;
    for (int i = 0; i < s->rank; i++)
        if (s->strides[i] == 1 && (s->strides[best] != 1 || s->lens[i] > s->lens[best]))
            best = i;
    return best;
}

// The run of positions that both sides hold at the element's own distance.
static void find_middle(struct pad *p)
{
    assert(p->line.from && !p->middle_length);
    const struct axis *line = &p->line;
    const int64_t size = (int64_t)p->size;
    int64_t at = 0;
    if (line->step != size && line->length > 1)
        return;
    while (at < line->length) {
        int64_t end = at + 1;
        while (line->from[at] >= 0 && end < line->length &&
               line->from[end] == line->from[end - 1] + size)
            end++;
        if (line->from[at] >= 0 && end - at > p->middle_length) {
            p->middle = at;
            p->middle_length = end - at;
        }
        at = end;
    }
}

static bool is_long(const struct mgx_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] > LONGEST)
            return true;
    return false;
}

static const char *refuses(const struct mgx_plan_offer *c, const int64_t *pads, bool has_value)
{
    return c->dynamic                                   ? "sizes are known at run time"
           : !pads                                      ? "pads come from an input"
           : !has_value                                 ? "the value comes from an input"
           : !c->out->rank || c->out->type == MGX_FP4X2 ? "a scalar, or elements of odd size"
           : is_long(c->out)                            ? "an axis is too long for a table"
           : !mgx_shape_elements(c->out) || !mgx_shape_elements(&c->in[0]) ? "empty"
                                                                           : NULL;
}

static bool fill(struct mgx_plan_offer *c, const struct mgx_pad *a, const int64_t *pads,
                 struct pad *p)
{
    const int rank = c->out->rank, last = fastest(c->out);
    p->lines = 1;
    for (int i = 0; i < rank; i++) {
        struct axis *to = i == last ? &p->line : &p->outer[p->outer_count++];
        if (!make_axis(c, a, p->size, i, pads[i], to))
            return false;
        if (i != last)
            p->lines *= c->out->lens[i];
    }
    assert(p->lines * p->line.length == mgx_shape_elements(c->out));
    find_middle(p);
    const int64_t bytes = p->lines * p->line.length * (int64_t)p->size;
    p->tasks = cpu_tasks(c, bytes, PARALLEL_BYTES, p->lines);
    for (int i = 0; i < c->in_count; i++)
        c->skip_in[i] = i > 0;
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_pad)
        return mgx_plan_refuse(c);
    const struct mgx_pad *a = c->ins->attr;
    struct pad *p = MGX_NEW(c->arena, struct pad);
    if (!p)
        return mgx_plan_no_memory(c);
    *p = (struct pad){.size = mgx_type_size(c->out->type)};
    const int64_t *pads = read_pads(c, a);
    if ((c->why = refuses(c, pads, p->size <= sizeof p->value && read_value(c, a, p))))
        return mgx_plan_refuse(c);
    c->state = p;
    c->detail = a->mode == MGX_PAD_CONSTANT ? "constant" : "repeating";
    return fill(c, a, pads, p) ? MGX_PLAN_TAKEN : mgx_plan_refuse(c);
}

// n elements of the padding value.
static void fill_value(const struct pad *p, unsigned char *to, int64_t step, int64_t n)
{
    assert(n > 0 && step >= 0);
    if (p->size == 4 && step == 4) {
        uint32_t word;
        memcpy(&word, p->value, sizeof word);
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, &word, sizeof word);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * step, p->value, p->size);
}

static void copy_positions(const struct pad *p, const unsigned char *from, unsigned char *to,
                           int64_t begin, int64_t end)
{
    assert(begin >= 0 && begin <= end && end <= p->line.length);
    const struct axis *line = &p->line;
    for (int64_t i = begin; i < end; i++)
        memcpy(to + i * line->step, line->from[i] < 0 ? p->value : from + line->from[i], p->size);
}

static void copy_line(const struct pad *p, const unsigned char *from, unsigned char *to)
{
    const struct axis *line = &p->line;
    const int64_t end = p->middle + p->middle_length;
    assert(p->middle >= 0 && end <= line->length);
    copy_positions(p, from, to, 0, p->middle);
    if (p->middle_length)
        memcpy(to + p->middle * line->step, from + line->from[p->middle],
               (size_t)p->middle_length * p->size);
    copy_positions(p, from, to, end, line->length);
}

struct job {
    const struct pad *p;
    const struct mgx_plan_args *args;
};

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct pad *p = job->p;
    const int64_t end = p->lines * (task + 1) / p->tasks;
    for (int64_t at = p->lines * task / p->tasks; at < end; at++) {
        int64_t index = at, from = 0, to = 0;
        bool inside = true;
        for (int i = p->outer_count - 1; i >= 0; i--) {
            const struct axis *axis = &p->outer[i];
            const int64_t position = index % axis->length;
            inside &= axis->from[position] >= 0;
            from += axis->from[position];
            to += position * axis->step;
            index /= axis->length;
        }
        unsigned char *line = (unsigned char *)job->args->out + to;
        if (inside)
            copy_line(p, (const unsigned char *)job->args->in[0] + from, line);
        else
            fill_value(p, line, p->line.step, p->line.length);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(cpu_pool(args), job.p->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(pad, 140)
const struct mgx_plan_kernel cpu_kernel_pad = {.name = "pad", .prepare = prepare, .run = run};
