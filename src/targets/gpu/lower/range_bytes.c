// SPDX-License-Identifier: MIT
// Who makes bytes of floats by a range: the products that read them (wgmma_quantize.gpu), or a kernel that
// pads on its way (kernel/range_bytes.gpu). Both join the range first where nobody else needs it before.
//
// Products read four bytes for each value then, once for every tile beside it and every tap, which the model
// of the card weighs against a launch, what it reads and what it writes.
#include <assert.h>
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/range_bundle.h"

enum { MOST_READERS = 6, MOST_PARTS = 2048, ROOM = 6 }; // ROOM: steps of a bundle besides readers
enum { FAR = 4 };                                       // steps between what belongs together

struct found {                        // what makes bytes of floats by a range
    int made, pad, range;             // steps; pad -1: there is none
    int put;                          // the step that alone reads them, in another order; or made
    int x, share, shift;              // inputs of made
    struct mgx_plan_value *from;      // the floats, before they are padded
    int readers[MOST_READERS], count; // products that alone read the bytes; 0: others do
    bool joins;                       // nobody reads the range before
};

// --- what there is ---

// quantizelinear(x share + shift, 1 / 255): the numbers of its inputs.
static bool read_share(const struct mgx_ins *ins, struct found *f)
{
    double step;
    if (ins->op != &mgx_op_pointwise || ins->shape.type != MGX_UINT8 ||
        mgx_module_result_count(ins->mod[0]) != 1)
        return false;
    const struct mgx_ins *q = mgx_module_result(ins->mod[0], 0);
    if (q->op != &mgx_op_quantizelinear || q->in_count != 2 || q->in[0]->op != &mgx_op_add ||
        !mgx_splat_value(q->in[1], &step) || (float)step != (float)(1 / 255.0))
        return false;
    const int of = q->in[0]->in[0]->op == &mgx_op_mul ? 0 : 1;
    const struct mgx_ins *mul = q->in[0]->in[of];
    f->shift = mgx_parameter_index(q->in[0]->in[1 - of]);
    f->x = mul->op == &mgx_op_mul ? mgx_parameter_index(mul->in[0]) : -1;
    f->share = mul->op == &mgx_op_mul ? mgx_parameter_index(mul->in[1]) : -1;
    return f->shift >= 0 && f->x >= 0 && f->share >= 0;
}

// Is it, everywhere, number i of a range? Which value that is; NULL: no.
static const struct mgx_plan_value *range_of(struct mgx_plan_value *v, int i)
{
    int64_t offset = 0;
    bool one = v->shape.type == MGX_FLOAT;
    for (int axis = 0; axis < v->shape.rank; axis++)
        one = one && (v->shape.lens[axis] == 1 || v->shape.strides[axis] == 0);
    const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    return one && root->ins && root->ins->op == &mgx_op_byte_range &&
                   offset == i * (int64_t)sizeof(float)
               ? root
               : NULL;
}

static bool find_range(const struct gpu_range_plan *p, struct found *f)
{
    const struct mgx_plan_step *made = &p->plan->steps[f->made];
    const struct mgx_plan_value *range = range_of(made->in_value[f->share], 2);
    if (!range || range_of(made->in_value[f->shift], 3) != range)
        return false;
    for (f->range = f->made - 1; f->range >= 0; f->range--)
        if (p->plan->steps[f->range].out_value == range)
            return p->plan->steps[f->range].kernel == &gpu_kernel_byte_range &&
                   gpu_step_is_plain(&p->plan->steps[f->range]);
    return false;
}

// Zeros around an image, and nothing else.
static bool puts_zeros(const struct mgx_ins *pad)
{
    const struct mgx_ints pads = mgx_ins_ints(pad, "pads");
    const int rank = pad->shape.rank;
    bool zeros = pad->in_count == 1 && pads.count == 2 * rank && mgx_ins_int(pad, "mode") == 0 &&
                 mgx_attr_real(pad->op, pad->attr, "value") == 0;
    for (int i = 0; i < 2 * rank && zeros; i++)
        zeros = i % rank < 2 ? pads.v[i] == 0 : pads.v[i] >= 0;
    return zeros;
}

// The step in front that puts zeros around what is quantized, and has no other reader.
static void find_pad(const struct gpu_range_plan *p, struct found *f)
{
    f->from = p->plan->steps[f->made].in_value[f->x];
    f->pad = -1;
    for (int s = f->made - 1; s >= 0 && s >= f->made - FAR; s--) {
        const struct mgx_plan_step *step = &p->plan->steps[s];
        if (step->ins != f->from->ins || step->ins->op != &mgx_op_pad)
            continue;
        if (!gpu_step_is_plain(step) || !mgx_used_once(step->ins) || !puts_zeros(step->ins))
            return;
        f->pad = s;
        f->from = step->in_value[0];
        return;
    }
}

static bool is_seen_through(const struct mgx_ins *ins)
{
    return ins->op->flags & MGX_OP_VIEW || ins->op == &mgx_op_reshape;
}

// The length of the innermost axis that has one, if neighbours lie beside each other and lines are whole
// words of four; 0: they do not.
static int64_t line_of(const struct mgx_shape *s)
{
    int last = s->rank - 1;
    while (last > 0 && s->lens[last] == 1)
        last--;
    bool lines = last >= 0 && s->strides[last] == 1 && s->lens[last] % 4 == 0;
    for (int axis = 0; axis < last; axis++)
        lines = lines && (s->lens[axis] == 1 || s->strides[axis] % 4 == 0);
    return lines ? s->lens[last] : 0;
}

// Can the kernel find the floats of what the step makes of the bytes?
static bool can_move(const struct gpu_range_plan *p, const struct found *f, int s)
{
    const struct mgx_plan_step *step = &p->plan->steps[s];
    const struct mgx_plan_value *bytes = p->plan->steps[f->made].out_value;
    struct mgx_shape floats = f->from->shape;
    int64_t begin = 0;
    floats.type = bytes->shape.type;
    return step->kernel == &gpu_kernel_copy && gpu_step_is_plain(step) && step->in_count == 1 &&
           mgx_plan_root(step->out_value, NULL) == step->out_value &&
           mgx_plan_root(step->in_value[0], &begin) == bytes && begin % 4 == 0 &&
           line_of(&step->in_value[0]->shape) && mgx_shape_is_standard(&step->out_value->shape) &&
           mgx_shape_equal(&floats, &bytes->shape) && mgx_shape_is_packed(&floats);
}

// The step that alone reads the bytes, to put them in another order: the kernel does so on its way.
static void find_copy(const struct gpu_range_plan *p, struct found *f)
{
    const struct mgx_ins *ins = p->plan->steps[f->made].ins;
    f->put = f->made;
    while (f->pad < 0 && mgx_used_once(ins)) {
        ins = ins->uses->user;
        const int s = gpu_range_step_of(p, ins, f->made, f->made + FAR);
        if (s && can_move(p, f, s))
            f->put = s;
        if (s || !is_seen_through(ins))
            return;
    }
}

// A product of bytes by constants whose left operand, and nothing else, they are.
static bool is_reader(const struct mgx_plan_step *step, const struct mgx_plan_value *bytes)
{
    if (step->kernel != &gpu_kernel_wgmma || !gpu_step_is_plain(step))
        return false;
    const struct gpu_wgmma_product *g = &((const struct gpu_wgmma_call *)step->state)->g;
    bool good = gpu_product_is_bytes(&g->p) && !g->p.make && !g->p.pad;
    for (int i = 0; i < step->in_count && good; i++)
        if (!step->skip[i])
            good = (mgx_plan_root(step->in_value[i], NULL) == bytes) == (i == g->p.operand[0]);
    return good &&
           (gpu_product_is_dot(&g->p) || mgx_ints_all(mgx_ins_ints(g->p.ins, "padding"), 0));
}

// All that read the instruction, through views.
static bool find_readers(const struct gpu_range_plan *p, const struct mgx_ins *ins, struct found *f)
{
    const struct mgx_plan *plan = p->plan;
    const int end = f->made + MGX_PLAN_BUNDLE_MOST - ROOM;
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const int r = gpu_range_step_of(p, use->user, f->made, end);
        if (!r && is_seen_through(use->user)) {
            if (!find_readers(p, use->user, f))
                return false;
            continue;
        }
        if (!r)
            return false;
        if (p->actions[r].how == GPU_RANGE_LEFT_OUT)
            continue;
        if (f->count == MOST_READERS || !is_reader(&plan->steps[r], plan->steps[f->made].out_value))
            return false;
        f->readers[f->count++] = r;
    }
    return f->count > 0;
}

static int first_of(const struct found *f)
{
    int first = f->readers[0];
    for (int i = 1; i < f->count; i++)
        first = f->readers[i] < first ? f->readers[i] : first;
    return first;
}

// Is step s, but for those that are left out then, the first that reads the range?
static bool reads_first(const struct gpu_range_plan *p, const struct found *f, int s)
{
    const struct mgx_plan_value *range = p->plan->steps[f->range].out_value;
    for (int k = f->range + 1; k < s; k++) {
        const struct mgx_plan_step *step = &p->plan->steps[k];
        if (p->actions[k].how == GPU_RANGE_LEFT_OUT || k == f->made)
            continue;
        for (int i = 0; i < step->in_count; i++)
            if (mgx_plan_root(step->in_value[i], NULL) == range)
                return false;
    }
    return true;
}

// Can step s join the range itself?
static bool joins(const struct gpu_range_plan *p, const struct found *f, int s)
{
    int first;
    const struct gpu_range_action *range = &p->actions[f->range];
    return range->how == GPU_RANGE_JOINED && reads_first(p, f, s) &&
           gpu_range_parts(p, f->range, &first) <= MOST_PARTS;
}

// Do the floats lie where the card's copy engine, and words of 16 bytes, find them?
static bool lies_well(const struct found *f)
{
    int64_t begin = 0;
    const struct mgx_plan_value *root = mgx_plan_root(f->from, &begin);
    return begin % 16 == 0 && root->place == MGX_PLAN_SCRATCH && root->side == MGX_PLAN_DEVICE;
}

static bool find(const struct gpu_range_plan *p, int s, struct found *f)
{
    const struct mgx_plan_step *step = &p->plan->steps[s];
    *f = (struct found){.made = s};
    if (step->kernel != &gpu_kernel_pointwise || !gpu_step_is_plain(step) ||
        !read_share(step->ins, f) || !find_range(p, f) ||
        mgx_plan_root(step->out_value, NULL) != step->out_value)
        return false;
    find_pad(p, f);
    find_copy(p, f);
    if (f->put != f->made || !find_readers(p, step->ins, f))
        f->count = 0;
    return lies_well(f);
}

// --- products that make them ---

// The floats as a product finds them in place of its bytes; false: they lie otherwise.
static bool floats_of(const struct mgx_plan *plan, const struct found *f, int reader,
                      struct mgx_shape *x)
{
    const struct mgx_plan_step *step = &plan->steps[reader];
    const struct gpu_wgmma_call *call = step->state;
    const struct mgx_shape *bytes = &plan->steps[f->made].out_value->shape;
    struct mgx_plan_value *v = step->in_value[call->g.p.operand[0]];
    int64_t at = 0;
    mgx_plan_root(v, &at);
    const bool same = mgx_shape_equal(&v->shape, bytes);
    *x = same ? f->from->shape : v->shape;
    x->type = MGX_FLOAT;
    if (same || at)
        return !at;
    struct mgx_shape floats = f->from->shape;
    floats.type = bytes->type;
    return f->pad < 0 && mgx_shape_equal(&floats, bytes);
}

// Microseconds of the launch that makes bytes.
static double pass_time(const struct mgx_plan *plan, const struct found *f)
{
    static const double launch = 1.6, bytes_a_microsecond = 3e6;
    const double made = (double)mgx_shape_elements(&plan->steps[f->made].out_value->shape);
    return launch + 5 * made / bytes_a_microsecond;
}

// What the product's results read of the range, by number.
static void find_numbers(const struct gpu_range_plan *p, const struct found *f, int reader,
                         struct gpu_wgmma_quantizing *q)
{
    const struct mgx_plan_step *step = &p->plan->steps[reader];
    for (int i = 0; i < step->in_count && i < GPU_CALL_INPUTS; i++) {
        int64_t offset = 0;
        const bool is = !step->skip[i] && mgx_plan_root(step->in_value[i], &offset) ==
                                              p->plan->steps[f->range].out_value;
        q->number[i] = is ? (unsigned char)(1 + offset / (int64_t)sizeof(float)) : 0;
    }
}

static void set_reader(const struct gpu_range_plan *p, const struct found *f, int s,
                       struct gpu_wgmma_call *call)
{
    struct mgx_plan_step *step = &p->plan->steps[s];
    p->actions[s].how = GPU_RANGE_QUANTIZING;
    p->actions[s].product = call;
    p->actions[s].from = f->pad < 0 ? f->made : f->pad;
    p->actions[s].x = f->pad < 0 ? f->x : 0;
    p->actions[s].range = f->range;
    gpu_range_reserve(step, &call->base);
    gpu_range_add(p, s, "makes its bytes of floats");
    if (call->g.summed)
        gpu_range_add(p, s, "sums up its rows");
}

static void leave_out(const struct gpu_range_plan *p, int s, const char *detail)
{
    p->actions[s].how = GPU_RANGE_LEFT_OUT;
    gpu_range_say(p, s, detail);
}

// What begins with the range that is joined, or with the bytes, ends with step `last`.
static void settle(const struct gpu_range_plan *p, const struct found *f, bool joined, int last)
{
    int first = f->pad < 0 ? f->made : f->pad;
    if (f->pad >= 0)
        leave_out(p, f->pad, "done by who reads it");
    if (joined)
        leave_out(p, f->range, "done by who reads it");
    if (joined && f->range < first)
        first = f->range;
    gpu_range_tie(p, first, last);
}

static enum mgx_status quantize(const struct gpu_range_plan *p, const struct found *f, bool *done,
                                struct mgx_diag *diag)
{
    static const double sure = 1.5; // what is expected of products is less than what is measured
    struct gpu_wgmma_call *calls[MOST_READERS];
    double gain = pass_time(p->plan, f);
    int last = f->made;
    const int first = first_of(f);
    for (int i = 0; i < f->count; i++) {
        struct gpu_wgmma_quantizing q = {.pad = f->pad < 0 ? NULL : p->plan->steps[f->pad].ins};
        q.summed = p->actions[f->readers[i]].summed;
        q.zero = p->actions[f->readers[i]].zero;
        if (!floats_of(p->plan, f, f->readers[i], &q.x))
            return MGX_OK;
        find_numbers(p, f, f->readers[i], &q);
        if (f->readers[i] == first && joins(p, f, first))
            q.parts = gpu_range_parts(p, f->range, &q.first_parts);
        TRY(gpu_wgmma_quantize(p->plan, &p->plan->steps[f->readers[i]], &q, &calls[i], diag));
        if (!calls[i])
            return MGX_OK;
        gain += sure * q.saved;
        last = f->readers[i] > last ? f->readers[i] : last;
    }
    if (gain <= 0)
        return MGX_OK;
    const bool joined = joins(p, f, first);
    for (int i = 0; i < f->count; i++)
        set_reader(p, f, f->readers[i], calls[i]);
    leave_out(p, f->made, "done by the products that read it");
    settle(p, f, joined, last);
    *done = true;
    return MGX_OK;
}

// --- a kernel that makes them ---

// find(i) where bytes are put in another order: from chunk i to where `view` has it.
static const char *emit_find_moved(struct mgx_str *out, const struct mgx_shape *view, int64_t begin,
                                   int v)
{
    mgx_str_printf(out, "FUNCTION int find(int i)\n{\n    int rest = i * %d, at = %" PRId64 ";\n",
                   v, begin);
    for (int axis = view->rank - 1; axis >= 0; axis--)
        if (view->lens[axis] > 1)
            mgx_str_printf(
                out, "    at += rest %% %" PRId64 " * %" PRId64 ";\n    rest /= %" PRId64 ";\n",
                view->lens[axis], view->strides[axis], view->lens[axis]);
    mgx_str_put(out, "    return at;\n}\n");
    return NULL;
}

// find(i): from chunk i, V bytes of the result, to floats. Why not; NULL if it can be.
static const char *emit_find(struct mgx_str *out, const struct mgx_shape *x,
                             const struct mgx_shape *y, const struct mgx_ins *pad, int v)
{
    struct mgx_shape floats = *x;
    floats.type = y->type;
    if (!pad) {
        mgx_str_printf(out, "FUNCTION int find(int i)\n{\n    return i * %d;\n}\n", v);
        return mgx_shape_equal(&floats, y) && mgx_shape_is_packed(y) ? NULL : "gaps";
    }
    const struct mgx_ints pads = mgx_ins_ints(pad, "pads");
    int64_t step = y->lens[1];
    bool lines = x->strides[1] == 1 && y->strides[1] == 1;
    mgx_str_printf(out,
                   "FUNCTION int find(int i)\n{\n    const int channel = i %% %" PRId64 " * %d;\n"
                   "    int place = i / %" PRId64 ", at = channel;\n    bool in = true;\n",
                   y->lens[1] / v, v, y->lens[1] / v);
    for (int axis = y->rank - 1; axis != 1; axis = axis == 2 ? 0 : axis - 1) {
        lines = lines && (y->lens[axis] == 1 || y->strides[axis] == step);
        step *= y->lens[axis];
        mgx_str_printf(out,
                       "    const int x%d = place %% %" PRId64 " - %" PRId64 ";\n"
                       "    place /= %" PRId64 ";\n    at += x%d * %" PRId64 ";\n"
                       "    in = in && x%d >= 0 && x%d < %" PRId64 ";\n",
                       axis, y->lens[axis], pads.v[axis], y->lens[axis], axis,
                       x->lens[axis] > 1 ? x->strides[axis] : 0, axis, axis, x->lens[axis]);
        if (axis == 0)
            break;
    }
    mgx_str_put(out, "    return in ? at : -1;\n}\n");
    for (int axis = 0; axis < x->rank; axis++)
        lines = lines && (axis == 1 || x->lens[axis] == 1 || x->strides[axis] % 4 == 0);
    return lines ? NULL : "an image that does not lie channels last";
}

// Neighbours of a chunk: four, and where a chunk's place takes long to be found and chunks are many, eight.
static int vector_of(int64_t line, int64_t elements)
{
    enum { ENOUGH = 1 << 17 };
    if (line % 4)
        return 0;
    return line < elements && line % 8 == 0 && elements / 8 >= ENOUGH ? 8 : 4;
}

// Chunks that a thread has under way: so few that all are, where four suffice for that.
static int each_of(int64_t chunks, int64_t blocks)
{
    int each = 1;
    while (each < 4 && chunks > blocks * GPU_THREADS * each)
        each *= 2;
    return each;
}

// Blocks that share so many turns of a block's threads, `most` of them at most: as many for each as may be.
static unsigned blocks_of(int64_t turns, int64_t most)
{
    const int64_t rounds = (turns + most - 1) / most;
    return (unsigned)((turns + rounds - 1) / rounds);
}

static enum mgx_status make(const struct gpu_range_plan *p, const struct found *f,
                            struct mgx_diag *diag)
{
    enum { A_UNIT = 4 }; // blocks
    struct gpu_machine *m = gpu_machine(p->plan->machine);
    const struct gpu_properties *card = &m->device->properties;
    const struct mgx_plan_step *put = &p->plan->steps[f->put];
    struct gpu_range_action *action = &p->actions[f->put];
    const bool moved = f->put != f->made;
    const struct mgx_shape *y = moved ? &put->in_value[0]->shape : &put->out_value->shape;
    const struct mgx_ins *pad = f->pad < 0 ? NULL : p->plan->steps[f->pad].ins;
    struct mgx_str text = {0};
    const bool joined = joins(p, f, f->put);
    const int64_t elements = mgx_shape_elements(y);
    const int v = vector_of(moved ? line_of(y) : pad ? y->lens[1] : elements, elements);
    int64_t begin = 0;
    int first = 0;
    const int parts = joined ? gpu_range_parts(p, f->range, &first) : 0;
    if ((!joined && !pad) || !v || elements >= INT32_MAX / 2 ||
        mgx_shape_space(&f->from->shape) >= INT32_MAX)
        return MGX_OK;
    const int most = card->units * A_UNIT, each = each_of(elements / v, most);
    mgx_str_printf(&text,
                   "#define WIDTH %d\n#define PARTS %d\n#define FIRST_PARTS %d\n"
                   "#define COUNT %d\n#define V %d\n#define EACH %d\n",
                   GPU_THREADS, parts, first, (int)(elements / v), v, each);
    mgx_plan_root(moved ? put->in_value[0] : put->out_value, &begin);
    const char *why =
        moved ? emit_find_moved(&text, y, begin, v) : emit_find(&text, &f->from->shape, y, pad, v);
    GPU_PUT(&text, ordered_bits);
    GPU_PUT(&text, extremes);
    GPU_PUT(&text, range_scale);
    GPU_PUT(&text, range_bytes);
    if (why) {
        mgx_str_fini(&text);
        return MGX_OK;
    }
    action->how = GPU_RANGE_BYTES;
    action->from = f->pad < 0 ? f->made : f->pad;
    action->x = f->pad < 0 ? f->x : 0;
    action->range = f->range;
    action->call.how = gpu_launch_for((elements / v + each - 1) / each);
    action->call.how.grid[0] = blocks_of(action->call.how.grid[0], most);
    action->call.how.dependent = card->features & GPU_DEPENDENT;
    action->call.unit = gpu_unit_of(m, "range_bytes", &text);
    mgx_str_fini(&text);
    if (moved)
        leave_out(p, f->made, "done by who reads it");
    gpu_range_say(p, f->put, joined ? "joins the range first" : "by a range");
    settle(p, f, joined, f->put);
    return action->call.unit ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status gpu_range_bytes(const struct gpu_range_plan *p, int s, struct mgx_diag *diag)
{
    struct found f;
    bool done = false;
    assert(s >= 0 && s < p->plan->step_count);
    if (!find(p, s, &f))
        return MGX_OK;
    if (f.count)
        TRY(quantize(p, &f, &done, diag));
    return done ? MGX_OK : make(p, &f, diag);
}
