// SPDX-License-Identifier: MIT
// Steps: which kernel computes what, on whose bytes.
//
// One sweep over the instructions makes the steps; values and layouts exist already. An instruction
// is offered to the candidates in order. The one that takes it decides the side it works on: what
// it reads comes there (transfer.c), and what it makes is at home there, unless it was placed
// inside another value before.
//
// Holds afterwards: a step's operands lie on its own side, but for a transfer's input; steps are in
// an order in which they can run.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/constant.h"
#include "plan/build.h"
#include "plan/join.h"
#include "plan/reference.h"
#include "plan/transfer.h"

// --- copies ---

static enum mgx_plan_side own_side(const struct mgx_build *b)
{
    return b->plan->machine->memory ? MGX_PLAN_DEVICE : MGX_PLAN_HOST;
}

static struct mgx_plan_offer offer_of(struct mgx_build *b, const struct mgx_ins *ins,
                                      struct mgx_diag *diag)
{
    return (struct mgx_plan_offer){.ins = ins,
                                   .arena = &b->plan->store.arena,
                                   .store = &b->plan->store,
                                   .machine = b->plan->machine,
                                   .tuner = &b->tuner,
                                   .diag = diag};
}

static enum mgx_status add_copy(struct mgx_build *b, const struct mgx_ins *ins,
                                struct mgx_plan_value *from, struct mgx_plan_value *to,
                                struct mgx_diag *diag)
{
    const enum mgx_plan_side side = mgx_plan_root(to, NULL)->side;
    assert(from->shape.type == to->shape.type && !from->dynamic && !to->dynamic);
    assert(mgx_shape_elements(&from->shape) == mgx_shape_elements(&to->shape));
    TRY(mgx_plan_build_on(b, ins, from, side, &from, diag));
    struct mgx_plan_step *step = mgx_plan_build_step(b, ins, 1, to);
    if (!step)
        return mgx_fail_memory(diag);
    step->in_value[0] = from;
    step->copies = true;
    step->side = side;
    step->kernel = side == own_side(b) ? b->plan->machine->target->copy : &mgx_plan_host_copy;
    struct mgx_plan_offer c = offer_of(b, ins, diag);
    c.in = &from->shape;
    c.in_count = 1;
    c.out = &to->shape;
    c.copy_only = true;
    if (step->kernel->prepare(&c) != MGX_PLAN_TAKEN)
        return diag->status != MGX_OK ? diag->status
                                      : mgx_fail(diag, MGX_INTERNAL, "copy was refused");
    step->state = c.state;
    step->detail = c.detail;
    return MGX_OK;
}

// A twin of a value in another order of memory, on the side that asks for it.
static enum mgx_status add_packed(struct mgx_build *b, const struct mgx_ins *ins,
                                  struct mgx_plan_value *from, const struct mgx_shape *shape,
                                  enum mgx_plan_side side, struct mgx_plan_value **out,
                                  struct mgx_diag *diag)
{
    *out = mgx_plan_build_value(b, from->ins, shape, side);
    return *out ? add_copy(b, ins, from, *out, diag) : mgx_fail_memory(diag);
}

// --- choosing a kernel ---

struct choice {
    struct mgx_plan_offer c;
    const struct mgx_plan_kernel *kernel;
    struct mgx_plan_value **in;
    struct mgx_str why; // refusals, for the explanation
};

static enum mgx_plan_side side_of(const struct mgx_build *b, const struct mgx_plan_kernel *kernel)
{
    return kernel->host ? MGX_PLAN_HOST : own_side(b);
}

static enum mgx_plan_answer try_kernel(struct choice *x, const struct mgx_plan_kernel *kernel)
{
    x->kernel = kernel;
    const enum mgx_plan_answer answer = mgx_plan_ask(kernel, &x->c);
    if (answer == MGX_PLAN_DECLINED && x->c.why)
        mgx_str_printf(&x->why, "%s%s: %s", x->why.size ? "; " : "", kernel->name, x->c.why);
    return answer;
}

// Constants are copied once, here, on the host, from where a card gets its own; NULL where input i
// is none.
static enum mgx_status repack(struct mgx_build *b, struct choice *x, int i,
                              const struct mgx_shape *shape, struct mgx_plan_value **out)
{
    struct mgx_plan_offer *c = &x->c;
    const struct mgx_tensor **constant = (const struct mgx_tensor **)&c->constant[i];
    *out = NULL;
    if (!*constant)
        return MGX_OK;
    if (!mgx_plan_repack_constant(c->store, shape, constant, c->diag))
        return MGX_NO_MEMORY;
    *out = mgx_plan_build_value(b, x->in[i]->ins, shape, MGX_PLAN_HOST);
    if (!*out)
        return mgx_fail_memory(c->diag);
    (*out)->place = MGX_PLAN_CONST;
    (*out)->data = (*constant)->data;
    return MGX_OK;
}

// A kernel that would take the instruction if some inputs lay otherwise: copies them.
static enum mgx_status pack_inputs(struct mgx_build *b, struct choice *x, bool *changed)
{
    struct mgx_plan_offer *c = &x->c;
    struct mgx_shape *in = (struct mgx_shape *)c->in, shape;
    *changed = false;
    for (int i = 0; i < c->in_count; i++) {
        if (!mgx_plan_wanted(c, i, &shape))
            continue;
        struct mgx_plan_value *packed = NULL;
        TRY(repack(b, x, i, &shape, &packed));
        if (!packed)
            TRY(add_packed(b, c->ins, x->in[i], &shape, side_of(b, x->kernel), &packed, c->diag));
        assert(mgx_shape_equal(&packed->shape, &shape) && packed->root == packed);
        x->in[i] = packed;
        in[i] = packed->shape;
        ((int64_t *)c->in_offset)[i] = 0;
        *changed = true;
    }
    return MGX_OK;
}

// Asks one kernel, and again with inputs as it wants them, one after the other.
static enum mgx_status ask(struct mgx_build *b, struct choice *x,
                           const struct mgx_plan_kernel *kernel, enum mgx_plan_answer *answer)
{
    *answer = try_kernel(x, kernel);
    bool changed = true;
    for (int k = 0; k < x->c.in_count && changed && *answer == MGX_PLAN_DECLINED; k++) {
        TRY(pack_inputs(b, x, &changed));
        if (changed)
            *answer = try_kernel(x, kernel);
    }
    return *answer == MGX_PLAN_FAILED ? x->c.diag->status : MGX_OK;
}

static enum mgx_status choose(struct mgx_build *b, struct choice *x)
{
    const struct mgx_plan_kernel *const *kernels = b->plan->machine->target->kernels;
    for (int i = 0; kernels[i]; i++) {
        enum mgx_plan_answer answer;
        TRY(ask(b, x, kernels[i], &answer));
        if (answer == MGX_PLAN_TAKEN)
            return MGX_OK;
    }
    return mgx_fail(x->c.diag, MGX_INTERNAL, "no kernel takes %s", x->c.ins->op->name);
}

// A copy of a small constant at an address that suits its type, known by the same name.
static bool align_constant(struct mgx_plan_store *store, struct mgx_tensor *t, size_t bytes)
{
    const void *given = t->data;
    t->data = mgx_arena_memdup(&store->arena, given, bytes);
    return t->data && mgx_plan_note_copy(store, t->data, bytes, given);
}

// The value of an operand that is a constant, or a view of one; NULL if it is computed.
static const struct mgx_tensor *constant_of(struct mgx_plan *plan, struct mgx_plan_value *v)
{
    int64_t offset;
    const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    if (root->place != MGX_PLAN_CONST)
        return NULL;
    assert(mgx_plan_is_there(root) && mgx_plan_lies_inside(v));
    struct mgx_tensor *t = MGX_NEW(&plan->store.arena, struct mgx_tensor);
    assert(root->side == MGX_PLAN_HOST);
    if (!t)
        return NULL;
    *t = mgx_tensor_borrow(&v->shape, mgx_behind(root->data, offset));
    const size_t bytes = (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type);
    if (bytes < MGX_PLAN_WEIGHT_BYTES && !mgx_tensor_is_aligned(t))
        return align_constant(&plan->store, t, bytes) ? t : NULL;
    return t;
}

static enum mgx_status init_choice(struct mgx_build *b, struct choice *x, const struct mgx_ins *ins,
                                   const struct mgx_plan_value *out, struct mgx_diag *diag)
{
    const int count = ins->in_count;
    struct mgx_arena *arena = &b->plan->store.arena;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(arena, struct mgx_shape, count);
    const struct mgx_tensor **constant = MGX_NEW_ARRAY(arena, const struct mgx_tensor *, count);
    int64_t *offset = MGX_NEW_ARRAY(arena, int64_t, count);
    x->c = offer_of(b, ins, diag);
    x->c.skip_in = MGX_NEW_ARRAY(arena, bool, count);
    x->c.want_in = MGX_NEW_ARRAY(arena, unsigned char, count);
    x->in = MGX_NEW_ARRAY(arena, struct mgx_plan_value *, count);
    if (!shapes || !constant || !offset || !x->c.skip_in || !x->c.want_in || !x->in)
        return mgx_fail_memory(diag);
    for (int i = 0; i < count; i++) {
        x->in[i] = mgx_plan_value_of(b->plan, ins->in[i]);
        shapes[i] = x->in[i]->shape;
        constant[i] = constant_of(b->plan, x->in[i]);
        mgx_plan_root(x->in[i], &offset[i]);
    }
    x->c.in = shapes;
    x->c.in_count = count;
    x->c.in_offset = offset;
    x->c.constant = constant;
    x->c.out = &out->shape;
    return MGX_OK;
}

// --- captures: what an instruction's bodies read of the main module ---

// A body that many instructions share is looked at once. `heights` has how many modules are nested
// in each, itself included.
struct captures {
    struct mgx_map found, heights;
};

static enum mgx_status find_captures(struct mgx_build *b, const struct mgx_module *m, int depth,
                                     struct captures *c, struct mgx_diag *diag)
{
    intptr_t height = (intptr_t)mgx_map_find_pointer(&c->heights, m);
    if (depth + height - (height > 0) > MGX_EVAL_MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "modules are nested deeper than %d", MGX_EVAL_MAX_DEPTH);
    if (height)
        return MGX_OK;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        for (int k = 0; k < ins->in_count; k++)
            if (mgx_plan_value_of(b->plan, ins->in[k]) &&
                !mgx_map_put_pointer(&c->found, ins->in[k], ins->in[k]))
                return mgx_fail_memory(diag);
        for (int i = 0; i < ins->mod_count; i++) {
            TRY(find_captures(b, ins->mod[i], depth + 1, c, diag));
            height = mgx_max_i64(height, (intptr_t)mgx_map_find_pointer(&c->heights, ins->mod[i]));
        }
    }
    return mgx_map_put_pointer(&c->heights, m, (void *)(height + 1)) ? MGX_OK
                                                                     : mgx_fail_memory(diag);
}

// --- steps ---

// Brings what the step reads to its side. Bodies read what they capture on the host.
static enum mgx_status bring_inputs(struct mgx_build *b, struct choice *x,
                                    const struct mgx_map *captures, struct mgx_plan_value **in)
{
    const enum mgx_plan_side side = side_of(b, x->kernel);
    assert(!captures->count || side == MGX_PLAN_HOST);
    for (int i = 0; i < x->c.in_count; i++) {
        in[i] = x->in[i];
        if (x->c.skip_in[i])
            continue;
        TRY(mgx_plan_build_on(b, x->c.ins, x->in[i], side, &in[i], x->c.diag));
        assert(mgx_shape_equal(&in[i]->shape, &x->c.in[i])); // what the kernel was shown
    }
    for (uint32_t i = 0; i < captures->count; i++)
        TRY(mgx_plan_build_on(b, x->c.ins, mgx_plan_value_of(b->plan, captures->entries[i].value),
                              side, &in[x->c.in_count + (int)i], x->c.diag));
    return MGX_OK;
}

// Where the step writes: the value itself, which is at home there from now on, or, where that has
// its place elsewhere already, a stand-in to be copied from.
static enum mgx_status find_home(struct mgx_build *b, struct choice *x, struct mgx_plan_value *out,
                                 struct mgx_plan_value **at)
{
    const enum mgx_plan_side side = side_of(b, x->kernel);
    struct mgx_plan_value *root = mgx_plan_root(out, NULL);
    *at = out;
    if (root == out && !root->writes)
        root->side = side;
    if (root->side != side)
        *at = mgx_plan_build_value(b, out->ins, &out->shape, side);
    if (*at && *at != out) { // packed, in the order that was planned
        const struct mgx_shape packed =
            mgx_shape_make(out->shape.type, out->shape.rank, out->shape.lens);
        (*at)->shape = mgx_shape_like_order(&packed, &out->shape);
    }
    assert(!*at || mgx_plan_root(*at, NULL)->side == side);
    return *at ? MGX_OK : mgx_fail_memory(x->c.diag);
}

// What the kernel's prepare said.
static void take_answer(const struct choice *x, struct mgx_arena *arena, struct mgx_plan_step *step)
{
    step->kernel = x->kernel;
    step->state = x->c.state;
    step->workspace = x->c.workspace;
    step->detail = x->c.detail;
    step->flops = x->c.flops;
    step->weight = x->c.weight;
    step->packed_bytes = x->c.packed_bytes;
    step->why = x->why.size ? mgx_arena_strdup(arena, mgx_str_text(&x->why)) : NULL;
}

static enum mgx_status fill_step(struct mgx_build *b, struct choice *x, struct mgx_plan_value *out,
                                 const struct mgx_map *captures)
{
    struct mgx_arena *arena = &b->plan->store.arena;
    const int count = x->c.in_count + (int)captures->count;
    struct mgx_plan_value **in = MGX_NEW_ARRAY(arena, struct mgx_plan_value *, count), *at;
    if (!in)
        return mgx_fail_memory(x->c.diag);
    TRY(bring_inputs(b, x, captures, in));
    TRY(find_home(b, x, out, &at));
    struct mgx_plan_step *step = mgx_plan_build_step(b, x->c.ins, count, at);
    if (!step)
        return mgx_fail_memory(x->c.diag);
    for (int i = 0; i < count; i++) {
        step->in_value[i] = in[i];
        step->skip[i] = i < x->c.in_count && x->c.skip_in[i];
    }
    step->own_count = x->c.in_count;
    step->side = side_of(b, x->kernel);
    step->in_place = at == out ? x->c.in_place : -1;
    take_answer(x, arena, step);
    if (at != out)
        TRY(add_copy(b, x->c.ins, at, out, x->c.diag));
    return arena->failed ? mgx_fail_memory(x->c.diag) : MGX_OK;
}

static bool any_dynamic(const struct mgx_plan *plan, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++)
        if (mgx_plan_value_of(plan, ins->in[i])->dynamic)
            return true;
    return mgx_plan_value_of(plan, ins)->dynamic;
}

static enum mgx_status try_dynamic(struct choice *x)
{
    x->c.dynamic = true;
    if (try_kernel(x, &mgx_plan_hand_on) == MGX_PLAN_TAKEN)
        return MGX_OK;
    return try_kernel(x, &mgx_plan_reference) == MGX_PLAN_TAKEN ? MGX_OK : x->c.diag->status;
}

static enum mgx_status add_instruction(struct mgx_build *b, const struct mgx_ins *ins,
                                       struct mgx_plan_value *out, struct mgx_diag *diag)
{
    struct choice x = {0};
    struct captures captures = {0};
    enum mgx_status status = init_choice(b, &x, ins, out, diag);
    for (int i = 0; i < ins->mod_count && status == MGX_OK; i++)
        status = find_captures(b, ins->mod[i], 1, &captures, diag);
    if (status == MGX_OK && any_dynamic(b->plan, ins))
        status = try_dynamic(&x);
    else if (status == MGX_OK)
        status = choose(b, &x);
    if (status == MGX_OK)
        status = fill_step(b, &x, out, &captures.found);
    mgx_map_fini(&captures.found);
    mgx_map_fini(&captures.heights);
    mgx_str_fini(&x.why);
    return status;
}

// Would a copy of `from` to this offset of `out` write over what it reads?
__attribute__((unused)) static bool overlaps(struct mgx_plan_value *from,
                                             struct mgx_plan_value *out, int64_t offset)
{
    int64_t x, y;
    if (mgx_plan_root(from, &x) != mgx_plan_root(out, &y))
        return false;
    const int64_t apart = x - (y + offset), run = from->shape.strides[from->shape.rank - 1];
    return apart != 0 && run == 1 && out->shape.strides[out->shape.rank - 1] == 1 &&
           (apart < 0 ? -apart : apart) <
               from->shape.lens[from->shape.rank - 1] * (int64_t)mgx_type_size(from->shape.type);
}

// Is this input of a concat where it belongs, computed there or a view of what was?
static bool is_in_place(struct mgx_plan_value *from, struct mgx_plan_value *out, int64_t offset)
{
    int64_t x, y;
    for (int i = 0; i < from->shape.rank; i++)
        if (from->shape.lens[i] > 1 && from->shape.strides[i] != out->shape.strides[i])
            return false;
    return mgx_plan_root(from, &x) == mgx_plan_root(out, &y) && x == y + offset;
}

// Inputs that were not computed in place are copied into their slices.
static enum mgx_status add_concat(struct mgx_build *b, const struct mgx_ins *ins,
                                  struct mgx_plan_value *out, struct mgx_diag *diag)
{
    const int axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), ins->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < ins->in_count; i++) {
        struct mgx_plan_value *from = mgx_plan_value_of(b->plan, ins->in[i]);
        const int64_t offset =
            at * out->shape.strides[axis] * (int64_t)mgx_type_size(out->shape.type);
        at += from->shape.lens[axis];
        if (!mgx_shape_elements(&from->shape) || is_in_place(from, out, offset))
            continue;
        assert(!overlaps(from, out, offset));
        struct mgx_shape shape = from->shape;
        memcpy(shape.strides, out->shape.strides, sizeof shape.strides);
        struct mgx_plan_value *slice = mgx_plan_build_slice(b, ins, &shape, out, offset);
        if (!slice)
            return mgx_fail_memory(diag);
        TRY(add_copy(b, ins, from, slice, diag));
    }
    assert(at == out->shape.lens[axis]);
    return MGX_OK;
}

static bool is_bytes(const struct mgx_plan_value *v)
{
    return !v->dynamic && mgx_shape_is_static(&v->shape);
}

static enum mgx_status add_source(struct mgx_build *b, struct mgx_plan_value *v,
                                  struct mgx_diag *diag)
{
    const struct mgx_ins *ins = v->ins;
    if (ins->op == &mgx_op_param) {
        v->place = MGX_PLAN_PARAM;
        v->side = is_bytes(v) && !b->host_ends ? own_side(b) : MGX_PLAN_HOST;
        return MGX_OK;
    }
    v->place = MGX_PLAN_CONST;
    v->side = MGX_PLAN_HOST;
    v->data =
        ins->literal ? ins->literal->data : mgx_plan_join(&b->plan->store, ins, &v->shape, diag);
    if (v->data && !ins->literal && // note_literals (compile.c) has the others
        !mgx_map_put_pointer(&b->plan->late.literals, v->data, (void *)(uintptr_t)v->data))
        return mgx_fail_memory(diag);
    return diag->status;
}

static enum mgx_status add_step(struct mgx_build *b, struct mgx_ins *ins, struct mgx_diag *diag)
{
    struct mgx_plan_value *v = &b->plan->values[ins->index];
    if (!mgx_plan_build_list(b, v))
        return mgx_fail_memory(diag);
    if (ins->op == &mgx_op_param || ins->op == &mgx_op_literal || mgx_is_joined_weights(ins))
        return add_source(b, v, diag);
    if (ins->op == &mgx_op_return || ins->op == &mgx_op_comment)
        return MGX_OK;
    if (ins->op == &mgx_op_concat && !any_dynamic(b->plan, ins))
        return add_concat(b, ins, v, diag);
    const bool view = v->root != v && !v->bound;
    return view ? MGX_OK : add_instruction(b, ins, v, diag);
}

// --- results ---

// The root whose bytes can be the caller's, as they are: v itself, or what v is another shape of.
static struct mgx_plan_value *whole_root(struct mgx_plan_value *v, const struct mgx_shape *result)
{
    int64_t offset;
    struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    const bool whole = offset == 0 && !root->dynamic && root->shape.type == result->type &&
                       mgx_shape_space(&root->shape) == mgx_shape_space(result);
    return mgx_shape_equal(&v->shape, result) && (root == v || whole) ? root : NULL;
}

// A value that is at home with the caller, filled from the one that was computed.
static enum mgx_status fill_result(struct mgx_build *b, const struct mgx_ins *ins,
                                   struct mgx_plan_value *v, struct mgx_plan_value *result,
                                   struct mgx_diag *diag)
{
    const struct mgx_plan_value *root = mgx_plan_root(v, NULL);
    if (root->side == result->side)
        return add_copy(b, ins, v, result, diag);
    struct mgx_plan_value *whole = whole_root(v, &result->shape);
    if (whole)
        v = whole;
    else
        TRY(add_packed(b, ins, v, &result->shape, root->side, &v, diag));
    return mgx_plan_build_transfer(b, ins, v, result, diag);
}

// The parameter that brings the bytes of result k, as MIGraphX names it; -1 if there is none.
static int output_param(const struct mgx_plan *plan, int k)
{
    char name[32];
    snprintf(name, sizeof name, "main:#output_%d", k);
    for (int i = 0; i < plan->param_count; i++)
        if (strcmp(mgx_parameter_name(plan->params[i]), name) == 0)
            return i;
    return -1;
}

static enum mgx_status add_result(struct mgx_build *b, int k, struct mgx_diag *diag)
{
    struct mgx_plan *plan = b->plan;
    struct mgx_ins *ins = mgx_module_result(mgx_program_main(plan->program), k);
    struct mgx_plan_value *v = &plan->values[ins->index];
    struct mgx_plan_result *result = &plan->results[k];
    const enum mgx_plan_side side = b->host_ends ? MGX_PLAN_HOST : own_side(b);
    result->value = v;
    result->shape = v->shape;
    result->param = output_param(plan, k);
    if (v->dynamic)
        return MGX_OK;
    result->shape = mgx_shape_make(ins->shape.type, ins->shape.rank, ins->shape.lens);
    struct mgx_plan_value *root = whole_root(v, &result->shape);
    if (root && root->place == MGX_PLAN_SCRATCH && root->side == side) {
        root->place = MGX_PLAN_RESULT;
        root->index = k;
        result->value = root;
        return MGX_OK;
    }
    result->value = mgx_plan_build_value(b, ins, &result->shape, side);
    if (!result->value)
        return mgx_fail_memory(diag);
    result->value->place = MGX_PLAN_RESULT;
    result->value->index = k;
    return fill_result(b, ins, v, result->value, diag);
}

// --- the sweep ---

// Values are at home with the machine until something says otherwise.
static void set_sides(struct mgx_build *b)
{
    for (int i = 0; i < b->plan->value_count; i++) {
        struct mgx_plan_value *v = &b->plan->values[i];
        v->side = is_bytes(v) ? own_side(b) : MGX_PLAN_HOST;
    }
}

static enum mgx_status find_ends(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(plan->program);
    plan->param_count = mgx_module_parameters(m, NULL, 0);
    plan->params = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_ins *, plan->param_count);
    plan->result_count = mgx_module_result_count(m);
    plan->results = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_plan_result, plan->result_count);
    if (!plan->params || !plan->results)
        return mgx_fail_memory(diag);
    mgx_module_parameters(m, plan->params, plan->param_count);
    for (int i = 0; i < plan->param_count; i++) {
        assert(plan->values[plan->params[i]->index].ins == plan->params[i]);
        plan->values[plan->params[i]->index].index = i;
    }
    return MGX_OK;
}

// Has every step a kernel, and its operands on its own side, but for a transfer's?
__attribute__((unused)) static bool are_whole(const struct mgx_build *b)
{
    for (int s = 0; s < b->plan->step_count; s++) {
        const struct mgx_plan_step *step = &b->plan->steps[s];
        const bool transfer = mgx_plan_is_transfer(step);
        bool good = step->kernel && step->own_count <= step->in_count &&
                    step->in_place < step->own_count &&
                    (transfer || mgx_plan_root(step->out_value, NULL)->side == step->side);
        for (int i = 0; i < step->in_count && good; i++)
            good =
                (step->in_value[i] && (transfer || step->skip[i] ||
                                       mgx_plan_root(step->in_value[i], NULL)->side == step->side));
        if (!good || (step->in_place >= 0 && step->skip[step->in_place]))
            return false;
    }
    return true;
}

enum mgx_status mgx_plan_build_steps(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_plan *plan = b->plan;
    TRY(find_ends(plan, diag));
    set_sides(b);
    for (struct mgx_ins *ins = mgx_program_main(plan->program)->first; ins; ins = ins->next) {
        const enum mgx_status status = add_step(b, ins, diag);
        b->tuner.share = (double)(ins->index + 1) / plan->value_count;
        if (status != MGX_OK) {
            mgx_where(diag, "planning %s%s%s", ins->op->name, ins->origin.count ? " of node " : "",
                      ins->origin.count ? ins->origin.v[0] : "");
            return status;
        }
    }
    for (int k = 0; k < plan->result_count; k++)
        TRY(add_result(b, k, diag));
    assert(are_whole(b) && mgx_plan_twins_are_fresh(b));
    return plan->store.arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}
