// SPDX-License-Identifier: MIT
// convolution, quant_convolution and convolution_backwards, alone or with their epilogue, on the
// kernels of kernel/image/conv.h.
//
// Activations are channels last by strides; weights are packed for the method the plan chose, once
// or, where the run computes them, in every call (conv_weights.h). An input in another order is
// read as it is where the kernels can, so the first layer needs no transpose.
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "pass/engine/region.h"
#include "plan/layout.h"
#include "targets/cpu/lower/conv_weights.h"
#include "targets/cpu/lower/integer.h"
#include "targets/cpu/lower/trial.h"

struct conv {
    struct mgx_conv_plan *plan;
    struct cpu_conv_weights weights;
    struct cpu_epilogue epilogue;
    int x;                      // input, -1 where the feed makes it
    struct cpu_integer integer; // of bytes
    bool raw;                   // the result is the sums themselves
    struct conv *feed;          // of group[tag=expand]; its plan belongs to this one's
};

// Padding before each axis; 2 * n values give both sides, n values the same on both, and the
// automatic modes follow from the sizes, as the shape rule has them.
static bool find_padding(const struct mgx_ins *ins, const struct mgx_shape *x,
                         const struct mgx_shape *w, const struct mgx_shape *y, int64_t *before)
{
    assert(x->rank == w->rank && x->rank == y->rank);
    const struct mgx_window_attr window = mgx_window_of(ins);
    const bool given = window.padding_mode == MGX_PADDING_GIVEN;
    for (int i = 0; i < x->rank - 2; i++)
        before[i] =
            given ? window.padding.v[i]
                  : mgx_window_at(&window, i, x->lens[i + 2], w->lens[i + 2], y->lens[i + 2]).begin;
    return given || ins->op == &mgx_op_convolution || ins->op == &mgx_op_quant_convolution;
}

static void describe_sizes(struct mgx_conv_desc *d, const struct mgx_ins *main,
                           const struct mgx_shape *x, const struct mgx_shape *w,
                           const struct mgx_shape *y)
{
    assert(x->rank - 2 >= 1 && x->rank - 2 <= MGX_CONV_DIMS);
    const struct mgx_window_attr window = mgx_window_of(main);
    const int spatial = x->rank - 2;
    d->groups = window.group;
    d->batch = x->lens[0];
    d->in_channels = x->lens[1];
    d->out_channels = y->lens[1];
    for (int k = 0; k < MGX_CONV_DIMS; k++) {
        const int i = k - (MGX_CONV_DIMS - spatial); // our axis, or negative: not there
        const bool there = i >= 0;
        d->in[k] = there ? x->lens[i + 2] : 1;
        d->out[k] = there ? y->lens[i + 2] : 1;
        d->kernel[k] = there ? w->lens[i + 2] : 1;
        d->stride[k] = there ? window.stride.v[i] : 1;
        d->dilation[k] = there ? window.dilation.v[i] : 1;
        d->x_space[k] = there ? x->strides[i + 2] : 0;
        d->y_space[k] = there ? y->strides[i + 2] : 0;
        d->w_space[k] = there ? w->strides[i + 2] : 0;
    }
    d->x_batch = x->strides[0];
    d->x_channel = x->strides[1];
    d->y_batch = y->strides[0];
}

// Weights are [out][in / groups] for a convolution, [in][out / groups] for its transpose.
static void describe_weights(struct mgx_conv_desc *d, const struct mgx_shape *w)
{
    assert(d->groups > 0);
    if (d->transposed) {
        d->w_in = w->strides[0];
        d->w_out = w->strides[1];
        d->w_group = w->strides[0] * (d->in_channels / d->groups);
    } else {
        d->w_out = w->strides[0];
        d->w_in = w->strides[1];
        d->w_group = w->strides[0] * (d->out_channels / d->groups);
    }
}

static void describe_residual(struct mgx_conv_desc *d, const struct mgx_shape *r)
{
    const int spatial = r->rank - 2;
    assert(spatial >= 1 && spatial <= MGX_CONV_DIMS);
    d->residual_batch = r->strides[0];
    for (int k = 0; k < MGX_CONV_DIMS; k++) {
        const int i = k - (MGX_CONV_DIMS - spatial);
        d->residual_space[k] = i >= 0 ? r->strides[i + 2] : 0;
    }
}

// One value per channel of a single image, side by side.
static bool is_factor(const struct mgx_shape *s)
{
    assert(s->rank >= 3);
    if (s->type != MGX_FLOAT || s->lens[0] != 1 || (s->strides[1] != 1 && s->lens[1] != 1))
        return false;
    for (int i = 2; i < s->rank; i++)
        if (s->lens[i] != 1 && s->strides[i] != 0)
            return false;
    return true;
}

// Do the convolution's images, channels, groups and taps go from end to end of image, weights and
// result?
__attribute__((unused)) static bool covers(const struct mgx_conv_desc *d, const struct mgx_shape *x,
                                           const struct mgx_shape *w, const struct mgx_shape *y)
{
    const int64_t in = d->in_channels / d->groups, out = d->out_channels / d->groups;
    return cpu_reaches(x, cpu_reach(&d->batch, &d->x_batch, 1) +
                              (d->in_channels - 1) * d->x_channel +
                              cpu_reach(d->in, d->x_space, MGX_CONV_DIMS)) &&
           cpu_reaches(w, (d->groups - 1) * d->w_group + (in - 1) * d->w_in + (out - 1) * d->w_out +
                              cpu_reach(d->kernel, d->w_space, MGX_CONV_DIMS)) &&
           cpu_reaches(y, cpu_reach(&d->batch, &d->y_batch, 1) + d->out_channels - 1 +
                              cpu_reach(d->out, d->y_space, MGX_CONV_DIMS));
}

static bool is_float(const struct mgx_plan_offer *c, const struct conv *v)
{
    return c->in[v->x].type == MGX_FLOAT && c->in[v->weights.input].type == MGX_FLOAT &&
           (c->out->type == MGX_FLOAT || c->out->type == MGX_BF16);
}

static bool is_narrow(const struct mgx_plan_offer *c, const struct conv *v)
{
    return c->in[v->x].type == MGX_BF16 && c->in[v->weights.input].type == MGX_BF16 &&
           (c->out->type == MGX_FLOAT || c->out->type == MGX_BF16);
}

static bool suits_sizes(struct mgx_plan_offer *c, const struct conv *v)
{
    const struct mgx_shape *x = &c->in[v->x], *w = &c->in[v->weights.input], *y = c->out;
    if (x->rank < 3 || x->rank - 2 > MGX_CONV_DIMS)
        return mgx_plan_unfit(c, "not 1 to 3 spatial axes");
    if (!is_float(c, v) && !is_narrow(c, v) && !v->epilogue.integer)
        return mgx_plan_unfit(c, "neither float nor bfloat16");
    if (!mgx_shape_elements(x) || !mgx_shape_elements(w) || !mgx_shape_elements(y))
        return mgx_plan_unfit(c, "empty");
    return true;
}

// Whether operands and result are as the kernels can have them.
static bool suits(struct mgx_plan_offer *c, const struct conv *v)
{
    if (!suits_sizes(c, v))
        return false;
    if (c->out->strides[1] != 1 && c->out->lens[1] != 1)
        return mgx_plan_unfit(c, "channels of the result are not contiguous");
    if (v->epilogue.factor >= 0 && !is_factor(&c->in[v->epilogue.factor]))
        return mgx_plan_unfit(c, "the input's factor is not one value per channel");
    if (v->epilogue.integer && v->integer.zero_in >= 0 &&
        (!c->constant[v->weights.input] ||
         !mgx_shape_is_standard(&c->constant[v->weights.input]->shape)))
        return mgx_plan_unfit(c, "weights lie in another order");
    return true;
}

static bool describe_types(const struct mgx_plan_offer *c, const struct conv *v,
                           struct mgx_conv_desc *d)
{
    d->type = is_float(c, v) ? MGX_KERNEL_F32 : is_narrow(c, v) ? MGX_KERNEL_BF16 : MGX_KERNEL_S8;
    return cpu_kernel_type(c->in[v->x].type, &d->x_type) &&
           cpu_kernel_type(c->in[v->weights.input].type, &d->w_type) &&
           cpu_kernel_type(c->out->type, &d->y_type);
}

static bool is_transposed(const struct mgx_ins *main)
{
    return main->op == &mgx_op_convolution_backwards ||
           main->op == &mgx_op_quant_convolution_backwards;
}

static bool describe(struct mgx_plan_offer *c, const struct conv *v, const struct mgx_ins *main,
                     struct mgx_conv_desc *d)
{
    const struct mgx_shape *x = &c->in[v->x], *w = &c->in[v->weights.input], *y = c->out;
    if (!suits(c, v))
        return false;
    if (is_transposed(main) && v->epilogue.integer && v->integer.zero_in >= 0)
        return mgx_plan_unfit(c, "a zero point known in the run alone");
    *d = (struct mgx_conv_desc){
        .isa = cpu_offered(c)->isa,
        .x_zero = v->epilogue.integer ? v->integer.zero : 0,
        .w_zero = v->integer.b_zero,
        .weights = v->epilogue.integer ? cpu_integer_weights(c, v->weights.input) : NULL,
        .threads = c->machine->threads,
        .x_scaled = v->epilogue.factor >= 0,
        .exact = !cpu_offered(c)->fast_math,
        .transposed = is_transposed(main),
        .end = cpu_epilogue_list(&v->epilogue)};
    if (!describe_types(c, v, d))
        return false;
    describe_sizes(d, main, x, w, y);
    describe_weights(d, w);
    assert(d->in_channels % d->groups == 0 && d->out_channels % d->groups == 0);
    assert(covers(d, x, w, y));
    if (!find_padding(main, x, w, y, d->pad + MGX_CONV_DIMS - (x->rank - 2)))
        return mgx_plan_unfit(c, "padding mode");
    if (v->epilogue.residual >= 0)
        describe_residual(d, &c->in[v->epilogue.residual]);
    return true;
}

static void destroy(void *plan)
{
    mgx_conv_plan_destroy(plan);
}

// --- choosing the method by measuring ---

struct contest {
    struct mgx_plan_offer *c;
    const struct conv *v;
    struct mgx_conv_desc desc; // without a hook
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    struct mgx_conv_plan *plan;
    struct cpu_trial trial;
    void *weights; // those that a run packs; NULL: constant ones
};

static const char *contestant_name(void *user, int number)
{
    return mgx_conv_method_name(((const struct contest *)user)->choices[number].method);
}

static bool contestant_begin(void *user, int number, struct mgx_diag *diag)
{
    struct contest *t = user;
    if (mgx_conv_plan_create(&t->desc, t->choices[number].method, &t->plan, diag) != MGX_OK ||
        !cpu_trial_init(&t->trial, t->c, &t->v->epilogue, t->desc.out_channels,
                        mgx_conv_packed_bytes(t->plan), mgx_conv_workspace(t->plan), diag))
        return false;
    const struct mgx_tensor *w = t->c->constant[t->v->weights.input];
    t->weights = w ? NULL : mgx_plan_tune_buffer(mgx_shape_bytes(&t->c->in[t->v->weights.input]));
    if (w)
        mgx_conv_pack(t->plan, w->data, t->trial.w);
    return w || t->weights;
}

static void contestant_run(void *user)
{
    const struct contest *t = user;
    const struct cpu_trial *room = &t->trial;
    const struct mgx_conv_args args = {.x = room->x,
                                       .packed = room->w,
                                       .bias = t->v->epilogue.bias >= 0 ? room->bias : NULL,
                                       .scale =
                                           mgx_kernel_is_sums(t->desc.y_type) ? NULL : room->scale,
                                       .x_scale = t->desc.x_scaled ? room->x : NULL,
                                       .residual = room->residual,
                                       .y = room->y,
                                       .workspace = room->workspace};
    if (t->weights)
        mgx_conv_pack(t->plan, t->weights, room->w);
    mgx_conv_run(t->plan, &args, cpu_offered(t->c)->pool);
}

static void contestant_end(void *user)
{
    struct contest *t = user;
    cpu_trial_fini(&t->trial);
    free(t->weights);
    t->weights = NULL;
    mgx_conv_plan_destroy(t->plan);
    t->plan = NULL;
}

static void put_sizes(struct mgx_str *out, const char *name, const int64_t *sizes)
{
    mgx_str_printf(out, " %s%lldx%lldx%lld", name, (long long)sizes[0], (long long)sizes[1],
                   (long long)sizes[2]);
}

static void describe_problem(void *user, struct mgx_str *out)
{
    const struct contest *t = user;
    const struct mgx_conv_desc *d = &t->desc;
    mgx_str_printf(out, "conv%s %s n%lld g%lld c%lld>%lld%s", d->transposed ? "_backwards" : "",
                   mgx_kernel_type_name(d->type), (long long)d->batch, (long long)d->groups,
                   (long long)d->in_channels, (long long)d->out_channels,
                   d->x_channel == 1 ? "" : " planar");
    put_sizes(out, "i", d->in);
    put_sizes(out, "o", d->out);
    put_sizes(out, "k", d->kernel);
    put_sizes(out, "s", d->stride);
    put_sizes(out, "d", d->dilation);
    put_sizes(out, "p", d->pad);
    mgx_str_printf(out, " %s%s%s%s%s", mgx_act_name(mgx_end_act(&d->end)),
                   mgx_end_reader(&d->end) ? " residual" : "", d->x_scaled ? " factors" : "",
                   d->exact ? " exact" : "",
                   t->c->constant[t->v->weights.input] ? "" : " computed");
}

// MGX_CONV_METHOD_COUNT: as the cost model has it.
static bool tuned_method(struct mgx_plan_offer *c, const struct conv *v,
                         const struct mgx_conv_desc *desc, enum mgx_conv_method *method)
{
    struct contest t = {.c = c, .v = v, .desc = *desc};
    int choice;
    mgx_end_drop_block(&t.desc.end);
    const struct mgx_plan_contest contest = {
        .describe = describe_problem,
        .name = contestant_name,
        .count = mgx_conv_choices(&t.desc, t.choices),
        .begin = contestant_begin,
        .run = contestant_run,
        .end = contestant_end,
        .user = &t,
    };
    if (mgx_plan_tune(c->tuner, &contest, &choice, c->diag) != MGX_OK)
        return false;
    *method = choice >= 0 ? t.choices[choice].method : MGX_CONV_METHOD_COUNT;
    return true;
}

// --- choosing it where packing takes time that counts ---

static struct cpu_conv_source source_of(const struct conv *v, const struct mgx_conv_desc *d)
{
    return (struct cpu_conv_source){.desc = d, .zero = v->integer.b_zero_source};
}

// The seconds that packing for a method would take. Infinite if it cannot be had.
static double packing_seconds(struct mgx_plan_offer *c, const struct conv *v,
                              const struct mgx_conv_desc *d, enum mgx_conv_method method)
{
    struct mgx_conv_plan *plan;
    struct mgx_diag quiet = {.status = MGX_OK};
    const struct cpu_conv_source source = source_of(v, d);
    if (mgx_conv_plan_create(d, method, &plan, &quiet) != MGX_OK)
        return INFINITY;
    const double seconds = cpu_conv_weights_seconds(c, plan, &source, &v->weights);
    mgx_conv_plan_destroy(plan);
    return seconds;
}

// The method that ends first, packing included: for a plan of one size among others that a run
// waits for, and where every run packs.
static enum mgx_conv_method soonest_method(struct mgx_plan_offer *c, const struct conv *v,
                                           const struct mgx_conv_desc *d)
{
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    const int count = mgx_conv_choices(d, choices);
    double least = INFINITY;
    int best = 0;
    for (int i = 0; i < count && choices[i].seconds < least; i++) {
        const double seconds = choices[i].seconds + packing_seconds(c, v, d, choices[i].method);
        if (seconds < least) {
            least = seconds;
            best = i;
        }
    }
    if (best == 0)
        return MGX_CONV_METHOD_COUNT;
    if (c->constant[v->weights.input]) { // the best one waits
        c->store->makeshift->lost_seconds += choices[best].seconds - choices[0].seconds;
        c->store->makeshift->saved_seconds += packing_seconds(c, v, d, choices[0].method);
    }
    return choices[best].method;
}

// Of channels last, which images are between convolutions.
static struct mgx_shape image_of(const struct mgx_ins *conv, const struct mgx_shape *s)
{
    return mgx_plan_natural_layout(conv, s, NULL, 0);
}

bool cpu_floats_pay(void *user, const struct mgx_ins *product)
{
    static const double share = 0.6; // of the time of floats that bfloat16 takes by the same method
    const struct cpu_floats *u = user;
    struct mgx_conv_choice choices[MGX_CONV_METHOD_COUNT];
    if (product->op != &mgx_op_convolution || product->in[0]->shape.rank != 4 ||
        mgx_ins_int(product, "group") != 1)
        return false;
    const struct mgx_shape x = image_of(product, &product->in[0]->shape),
                           y = image_of(product, &product->shape), *w = &product->in[1]->shape;
    struct mgx_conv_desc d = {.isa = u->isa, .threads = u->threads, .exact = !u->fast_math};
    describe_sizes(&d, product, &x, w, &y);
    describe_weights(&d, w);
    if (!find_padding(product, &x, w, &y, d.pad + MGX_CONV_DIMS - 2))
        return false;
    const int count = mgx_conv_choices(&d, choices);
    double direct = INFINITY;
    for (int i = 0; i < count; i++)
        if (choices[i].method <= MGX_CONV_UNROLLED)
            direct = fmin(direct, choices[i].seconds);
    return count > 0 && choices[0].seconds < share * direct;
}

static double flops_of(const struct mgx_conv_desc *d)
{
    double flops = 2.0 * (double)d->batch * (double)d->out_channels * (double)d->in_channels /
                   (double)d->groups;
    for (int k = 0; k < MGX_CONV_DIMS; k++)
        flops *= (double)d->kernel[k] * (double)(d->transposed ? d->in[k] : d->out[k]);
    return flops;
}

// Weights of an output channel.
static int64_t depth_of(const struct mgx_shape *w)
{
    return mgx_shape_elements(w) / w->lens[0];
}

static bool describe_main(struct mgx_plan_offer *c, struct conv *v, const struct mgx_ins *main,
                          struct mgx_conv_desc *d)
{
    v->x = v->epilogue.main_in[0];
    v->weights.input = v->epilogue.main_in[1];
    return cpu_integer_prepare(c, &v->epilogue, main, c->out->lens[1], &v->integer) &&
           (main->in_count == 2 || v->epilogue.integer) && describe(c, v, main, d);
}

static bool plan_and_pack(struct mgx_plan_offer *c, struct conv *v, enum mgx_conv_method method,
                          const struct mgx_conv_desc *d)
{
    const struct cpu_conv_source source = source_of(v, d);
    return mgx_conv_plan_create(d, method, &v->plan, c->diag) == MGX_OK &&
           mgx_plan_at_end(c->store, destroy, v->plan, c->diag) &&
           cpu_conv_weights_pack(c, v->plan, &source, &v->weights);
}

static bool take_main(struct mgx_plan_offer *c, struct conv *v, const struct mgx_ins *main)
{
    struct mgx_conv_desc desc;
    enum mgx_conv_method method;
    if (!describe_main(c, v, main, &desc) || !tuned_method(c, v, &desc, &method))
        return false;
    const bool tuned = method != MGX_CONV_METHOD_COUNT;
    if (!tuned && (c->store->makeshift || !c->constant[v->weights.input]))
        method = soonest_method(c, v, &desc);
    if (!plan_and_pack(c, v, method, &desc))
        return false;
    c->workspace = mgx_conv_workspace(v->plan);
    cpu_conv_weights_room(c, v->plan, &v->weights);
    if (!cpu_integer_finish(c, &v->epilogue, mgx_conv_plan_kernel(v->plan),
                            depth_of(&c->in[v->weights.input]), 1,
                            depth_of(&c->in[v->weights.input]), &v->integer))
        return false;
    c->flops = flops_of(&desc);
    c->detail =
        cpu_epilogue_detail(c, &desc.end, mgx_conv_method_name(mgx_conv_plan_method(v->plan)));
    if (!v->weights.packed)
        c->detail = mgx_arena_printf(c->arena, "%s, weights packed in the run", c->detail);
    if (tuned)
        c->detail = mgx_arena_printf(c->arena, "%s, tuned", c->detail);
    c->state = v;
    v->raw = c->out->type == MGX_INT32;
    cpu_epilogue_finish(c, &v->epilogue);
    return true;
}

// --- group[tag=expand]: a convolution that feeds a depthwise one ---

// An instruction of the group's body as something to prepare by itself.
struct inner {
    struct mgx_plan_offer c;
    int group_input[MGX_REGION_INPUTS]; // -1: what the other one makes
    struct mgx_shape in[MGX_REGION_INPUTS];
    const struct mgx_tensor *constant[MGX_REGION_INPUTS];
    bool skip_in[MGX_REGION_INPUTS];
    unsigned char want_in[MGX_REGION_INPUTS];
};

static bool enter(const struct mgx_plan_offer *c, const struct mgx_ins *ins,
                  const struct mgx_shape *out, struct inner *n)
{
    assert(c->ins->mod_count == 1 && ins->owner == c->ins->mod[0]);
    if (ins->in_count > MGX_REGION_INPUTS || c->in_count > MGX_REGION_INPUTS)
        return false;
    *n = (struct inner){.c = *c};
    n->c.packed_bytes = 0;
    for (int k = 0; k < ins->in_count; k++) {
        const int i = mgx_parameter_index(ins->in[k]);
        n->group_input[k] = i;
        n->in[k] =
            i >= 0 ? c->in[i] : mgx_plan_natural_layout(ins->in[k], &ins->in[k]->shape, NULL, 0);
        n->constant[k] = i >= 0 ? c->constant[i] : NULL;
    }
    n->c.ins = ins;
    n->c.in = n->in;
    n->c.in_count = ins->in_count;
    n->c.constant = n->constant;
    n->c.out = out;
    n->c.skip_in = n->skip_in;
    n->c.want_in = n->want_in;
    return true;
}

// Says to the group's preparation what its part said, and renames the part's inputs.
static void leave(const struct inner *n, struct conv *v, struct mgx_plan_offer *c)
{
    const int *outer = n->group_input;
    struct cpu_epilogue *e = &v->epilogue;
    for (int k = 0; k < n->c.in_count; k++)
        if (outer[k] >= 0) {
            c->skip_in[outer[k]] |= n->skip_in[k];
            if (n->want_in[k])
                c->want_in[outer[k]] = n->want_in[k];
        }
    c->packed_bytes += n->c.packed_bytes;
    c->why = n->c.why ? n->c.why : c->why;
    v->x = outer[v->x];
    assert(v->x >= -1 && v->x < c->in_count);
    v->weights.input = outer[v->weights.input];
    assert(v->weights.input >= 0 && v->weights.input < c->in_count); // the group's own weights
    e->bias = e->bias >= 0 ? outer[e->bias] : -1;
    e->residual = e->residual >= 0 ? outer[e->residual] : -1;
    for (int i = 0; i < e->operand_count; i++)
        if (e->operand[i].input >= 0)
            e->operand[i].input = outer[e->operand[i].input];
}

static bool describe_part(struct inner *n, struct conv *v, struct mgx_conv_desc *d)
{
    const struct mgx_ins *main = NULL;
    if (!cpu_epilogue_match(&n->c, &mgx_op_convolution, &v->epilogue, &main))
        return false;
    v->x = v->epilogue.main_in[0];
    v->weights.input = v->epilogue.main_in[1];
    return main->in_count == 2 && v->epilogue.factor < 0 && describe(&n->c, v, main, d);
}

static bool take_parts(struct mgx_plan_offer *c, struct conv *v, struct inner *wide,
                       struct inner *deep)
{
    struct mgx_conv_desc desc, feed;
    if (!describe_part(wide, v->feed, &feed) || !describe_part(deep, v, &desc))
        return false;
    desc.feed = &feed;
    const struct cpu_conv_source source = source_of(v, &desc), fed = source_of(v->feed, &feed);
    if (mgx_conv_plan_create(&desc, MGX_CONV_DEPTHWISE, &v->plan, c->diag) != MGX_OK ||
        !mgx_plan_at_end(c->store, destroy, v->plan, c->diag) ||
        !cpu_conv_weights_pack(&wide->c, mgx_conv_plan_feed(v->plan), &fed, &v->feed->weights) ||
        !cpu_conv_weights_pack(&deep->c, v->plan, &source, &v->weights))
        return false;
    c->flops = flops_of(&feed) + flops_of(&desc);
    return true;
}

static enum mgx_plan_answer prepare_expand(struct mgx_plan_offer *c, struct conv *v)
{
    const struct mgx_ins *last = mgx_module_result(c->ins->mod[0], 0), *first = NULL;
    for (const struct mgx_ins *i = c->ins->mod[0]->first; i && !first; i = i->next)
        first = i != last && !(i->op->flags & MGX_OP_BUILTIN) ? i : NULL;
    struct inner wide, deep;
    v->feed = MGX_NEW(c->arena, struct conv);
    if (!v->feed)
        return mgx_plan_no_memory(c);
    const struct mgx_shape between = mgx_plan_natural_layout(first, &first->shape, NULL, 0);
    if (!enter(c, first, &between, &wide) || !enter(c, last, c->out, &deep))
        return mgx_plan_refuse(c);
    const bool taken = take_parts(c, v, &wide, &deep);
    leave(&wide, v->feed, c);
    leave(&deep, v, c);
    if (!taken)
        return mgx_plan_refuse(c);
    c->workspace = mgx_conv_workspace(v->plan);
    cpu_conv_weights_room(c, mgx_conv_plan_feed(v->plan), &v->feed->weights);
    cpu_conv_weights_room(c, v->plan, &v->weights);
    c->detail = "depthwise, fed by the one before";
    c->state = v;
    cpu_epilogue_finish(c, &v->feed->epilogue);
    cpu_epilogue_finish(c, &v->epilogue);
    return MGX_PLAN_TAKEN;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    static const struct mgx_op *const ops[] = {&mgx_op_convolution, &mgx_op_convolution_backwards};
    const struct mgx_op *op = c->ins->op;
    if (op != ops[0] && op != ops[1] && op != &mgx_op_quant_convolution &&
        op != &mgx_op_quant_convolution_backwards && op != &mgx_op_group)
        return mgx_plan_refuse(c);
    struct conv *v = MGX_NEW(c->arena, struct conv);
    if (!v)
        return mgx_plan_no_memory(c);
    if (c->ins->mod_count == 1 && mgx_is_group(c->ins, "expand"))
        return prepare_expand(c, v);
    for (int i = 0; i < 2; i++) {
        const struct mgx_ins *main = NULL;
        if (cpu_epilogue_match(c, ops[i], &v->epilogue, &main))
            return take_main(c, v, main) ? MGX_PLAN_TAKEN : mgx_plan_refuse(c);
    }
    return mgx_plan_refuse(c);
}

// `integer` is what the arguments point to.
static struct mgx_conv_args args_of(const struct conv *v, const struct mgx_conv_plan *plan,
                                    const struct mgx_plan_args *args,
                                    struct cpu_epilogue_run *epilogue,
                                    struct cpu_integer_run *integer)
{
    assert(v->x < CPU_EPILOGUE_INPUTS + 4);
    cpu_epilogue_start(&v->epilogue, args, epilogue);
    *integer = (struct cpu_integer_run){.bias = epilogue->bias};
    if (v->epilogue.integer)
        cpu_integer_start(&v->integer, epilogue, v->raw, integer);
    return (struct mgx_conv_args){.x = v->x >= 0 ? args->in[v->x] : NULL,
                                  .packed = cpu_conv_weights_ready(&v->weights, plan, args),
                                  .bias = integer->bias,
                                  .scale = integer->scale,
                                  .x_zero = v->epilogue.integer ? &integer->zero : NULL,
                                  .start = integer->start,
                                  .x_scale =
                                      v->epilogue.factor >= 0 ? args->in[v->epilogue.factor] : NULL,
                                  .residual = epilogue->residual,
                                  .y = args->out,
                                  .workspace = args->workspace,
                                  .hook_user = epilogue};
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct conv *v = step->state;
    struct cpu_epilogue_run epilogue, first;
    struct cpu_integer_run integer, before;
    struct mgx_conv_args a = args_of(v, v->plan, args, &epilogue, &integer), feed;
    if (v->feed) {
        feed = args_of(v->feed, mgx_conv_plan_feed(v->plan), args, &first, &before);
        a.feed = &feed;
    }
    a.next = step->next;
    mgx_conv_run(v->plan, &a, cpu_pool(args));
    return MGX_OK;
}

static struct mgx_ahead first_read(const void *state, int thread)
{
    const struct conv *v = state;
    return v->weights.packed ? mgx_conv_first_read(v->plan, v->weights.packed, thread)
                             : (struct mgx_ahead){NULL, 0};
}

static const struct cpu_reader reader = {first_read};

CPU_KERNEL(conv, 20)
const struct mgx_plan_kernel cpu_kernel_conv = {
    .name = "conv", .prepare = prepare, .run = run, .more = &reader};
