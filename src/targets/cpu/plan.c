// SPDX-License-Identifier: MIT
// Steps: which kernel computes what, in which order, on whose bytes.
//
// One sweep over the instructions makes the steps (values and layouts exist already); a second
// finds live ranges, lets results take over bytes of inputs that die, and gives dynamic values
// their slots. Places are resolved to plain references once memory is planned.
#include <string.h>

#include "op/op.h"
#include "targets/cpu/cpu.h"

struct cpu_value *cpu_value_of(const struct cpu_plan *plan, const struct mgx_ins *ins)
{
    const bool ours = ins->owner == mgx_program_main(plan->program);
    return ours ? &plan->values[ins->index] : NULL;
}

struct cpu_value *cpu_root(struct cpu_value *v, int64_t *offset)
{
    int64_t sum = v->offset;
    while (v->root != v) {
        v = v->root;
        sum += v->root != v ? v->offset : 0;
    }
    if (offset)
        *offset = sum;
    return v;
}

// --- lists that grow in the arena ---

static bool list_value(struct cpu_plan *plan, struct cpu_value *v)
{
    if (plan->all_count == plan->all_capacity) {
        const int capacity = plan->all_capacity ? 2 * plan->all_capacity : plan->value_count + 64;
        struct cpu_value **grown = MGX_NEW_ARRAY(&plan->arena, struct cpu_value *, capacity);
        if (!grown)
            return false;
        if (plan->all_count)
            memcpy(grown, plan->all, (size_t)plan->all_count * sizeof *grown);
        plan->all = grown;
        plan->all_capacity = capacity;
    }
    plan->all[plan->all_count++] = v;
    return true;
}

static struct cpu_value *new_value(struct cpu_plan *plan, const struct mgx_ins *ins,
                                   const struct mgx_shape *shape)
{
    struct cpu_value *v = MGX_NEW(&plan->arena, struct cpu_value);
    if (!v || !list_value(plan, v))
        return NULL;
    v->ins = ins;
    v->shape = *shape;
    v->root = v;
    return v;
}

static struct cpu_step *new_step(struct cpu_plan *plan, const struct mgx_ins *ins, int in_count)
{
    if (plan->step_count == plan->step_capacity) {
        const int capacity = plan->step_capacity ? 2 * plan->step_capacity : 64;
        struct cpu_step *grown = MGX_NEW_ARRAY(&plan->arena, struct cpu_step, capacity);
        if (!grown)
            return NULL;
        if (plan->step_count)
            memcpy(grown, plan->steps, (size_t)plan->step_count * sizeof *grown);
        plan->steps = grown;
        plan->step_capacity = capacity;
    }
    struct cpu_step *step = &plan->steps[plan->step_count];
    *step =
        (struct cpu_step){.ins = ins, .in_count = in_count, .own_count = in_count, .in_place = -1};
    step->in_value = MGX_NEW_ARRAY(&plan->arena, struct cpu_value *, in_count);
    step->in = MGX_NEW_ARRAY(&plan->arena, struct cpu_ref, in_count);
    step->skip = MGX_NEW_ARRAY(&plan->arena, bool, in_count);
    if (!step->in_value || !step->in || !step->skip)
        return NULL;
    plan->step_count++;
    if (in_count > plan->max_in)
        plan->max_in = in_count;
    return step;
}

// --- copies ---

static enum mgx_status add_copy(struct cpu_plan *plan, const struct mgx_ins *ins,
                                struct cpu_value *from, struct cpu_value *to, struct mgx_diag *diag)
{
    struct cpu_step *step = new_step(plan, ins, 1);
    if (!step)
        return mgx_fail_memory(diag);
    step->in_value[0] = from;
    step->out_value = to;
    step->kernel = &cpu_kernel_copy;
    struct cpu_prepare c = {.plan = plan,
                            .ins = ins,
                            .in = &from->shape,
                            .in_count = 1,
                            .out = &to->shape,
                            .copy_only = true,
                            .diag = diag};
    if (!cpu_kernel_copy.prepare(&c))
        return diag->status != MGX_OK ? diag->status
                                      : mgx_fail(diag, MGX_INTERNAL, "copy was refused");
    step->state = c.state;
    step->detail = c.detail;
    return MGX_OK;
}

// A twin of a value in another order of memory.
static enum mgx_status add_packed(struct cpu_plan *plan, const struct mgx_ins *ins,
                                  struct cpu_value *from, const struct mgx_shape *shape,
                                  struct cpu_value **out, struct mgx_diag *diag)
{
    *out = new_value(plan, from->ins, shape);
    return *out ? add_copy(plan, ins, from, *out, diag) : mgx_fail_memory(diag);
}

// --- choosing a kernel ---

struct choice {
    struct cpu_prepare c;
    const struct cpu_kernel *kernel;
    struct cpu_value **in;
    struct mgx_str why; // refusals, for the explanation
};

static bool try_kernel(struct choice *x, const struct cpu_kernel *kernel)
{
    struct cpu_prepare *c = &x->c;
    c->state = NULL;
    c->workspace = 0;
    c->in_place = -1;
    c->flops = 0;
    c->why = c->detail = NULL;
    memset(c->skip_in, 0, (size_t)c->in_count);
    memset(c->want_in, 0, (size_t)c->in_count);
    x->kernel = kernel;
    if (kernel->prepare(c))
        return true;
    if (c->why)
        mgx_str_printf(&x->why, "%s%s: %s", x->why.size ? "; " : "", kernel->name, c->why);
    return false;
}

// The shape that a kernel wants input i in; false if it has it.
static bool wanted(const struct cpu_prepare *c, int i, struct mgx_shape *shape)
{
    const struct mgx_shape *in = &c->in[i];
    if (c->want_in[i] == CPU_AS_IT_IS)
        return false;
    *shape = mgx_shape_make(in->type, in->rank, in->lens);
    if (c->want_in[i] == CPU_LIKE_RESULT)
        *shape = mgx_shape_like_order(shape, c->out);
    return !mgx_shape_equal(in, shape);
}

// A kernel that would take the instruction if some inputs lay otherwise: copies them and asks
// again.
static enum mgx_status pack_inputs(struct cpu_plan *plan, struct choice *x, bool *changed)
{
    struct cpu_prepare *c = &x->c;
    struct mgx_shape *in = (struct mgx_shape *)c->in, shape;
    *changed = false;
    for (int i = 0; i < c->in_count; i++) {
        if (!wanted(c, i, &shape))
            continue;
        struct cpu_value *packed = NULL;
        TRY(add_packed(plan, c->ins, x->in[i], &shape, &packed, c->diag));
        x->in[i] = packed;
        in[i] = packed->shape;
        *changed = true;
    }
    return MGX_OK;
}

static enum mgx_status choose(struct cpu_plan *plan, struct choice *x)
{
    for (int i = 0; cpu_kernels[i]; i++) {
        if (try_kernel(x, cpu_kernels[i]))
            return MGX_OK;
        if (x->c.diag->status != MGX_OK)
            return x->c.diag->status;
        bool changed = true; // inputs may be copied one after the other
        for (int k = 0; k < x->c.in_count && changed; k++) {
            TRY(pack_inputs(plan, x, &changed));
            if (changed && try_kernel(x, cpu_kernels[i]))
                return MGX_OK;
            if (x->c.diag->status != MGX_OK)
                return x->c.diag->status;
        }
    }
    return mgx_fail(x->c.diag, MGX_INTERNAL, "no kernel takes %s", x->c.ins->op->name);
}

// The value of an operand that is a constant, or a view of one; NULL if it is computed.
static const struct mgx_tensor *constant_of(struct cpu_plan *plan, struct cpu_value *v)
{
    int64_t offset;
    const struct cpu_value *root = cpu_root(v, &offset);
    if (root->place != CPU_CONST)
        return NULL;
    struct mgx_tensor *t = MGX_NEW(&plan->arena, struct mgx_tensor);
    if (!t)
        return NULL;
    *t = mgx_tensor_borrow(&v->shape, (const unsigned char *)root->data + offset);
    const size_t bytes = (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type);
    if (bytes < CPU_WEIGHT_BYTES && !mgx_tensor_is_aligned(t))
        t->data = mgx_arena_memdup(&plan->arena, t->data, bytes);
    return t->data ? t : NULL;
}

static enum mgx_status init_choice(struct cpu_plan *plan, struct choice *x,
                                   const struct mgx_ins *ins, struct cpu_value *out,
                                   struct mgx_diag *diag)
{
    const int count = ins->in_count;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(&plan->arena, struct mgx_shape, count);
    const struct mgx_tensor **constant =
        MGX_NEW_ARRAY(&plan->arena, const struct mgx_tensor *, count);
    bool *flags = MGX_NEW_ARRAY(&plan->arena, bool, count);
    unsigned char *want = MGX_NEW_ARRAY(&plan->arena, unsigned char, count);
    x->in = MGX_NEW_ARRAY(&plan->arena, struct cpu_value *, count);
    if (!shapes || !constant || !flags || !want || !x->in)
        return mgx_fail_memory(diag);
    for (int i = 0; i < count; i++) {
        x->in[i] = cpu_value_of(plan, ins->in[i]);
        shapes[i] = x->in[i]->shape;
        constant[i] = constant_of(plan, x->in[i]);
    }
    x->c = (struct cpu_prepare){.plan = plan,
                                .ins = ins,
                                .in = shapes,
                                .in_count = count,
                                .constant = constant,
                                .out = &out->shape,
                                .skip_in = flags,
                                .want_in = want,
                                .diag = diag};
    return MGX_OK;
}

// --- captures: what an instruction's bodies read of the main module ---

static enum mgx_status find_captures(struct cpu_plan *plan, const struct mgx_ins *ins, int depth,
                                     struct mgx_map *found, struct mgx_diag *diag)
{
    if (depth > MGX_EVAL_MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "modules are nested deeper than %d", MGX_EVAL_MAX_DEPTH);
    for (int i = 0; i < ins->mod_count; i++)
        for (const struct mgx_ins *body = ins->mod[i]->first; body; body = body->next) {
            for (int k = 0; k < body->in_count; k++)
                if (cpu_value_of(plan, body->in[k]) &&
                    !mgx_map_put_pointer(found, body->in[k], body->in[k]))
                    return mgx_fail_memory(diag);
            TRY(find_captures(plan, body, depth + 1, found, diag));
        }
    return MGX_OK;
}

// --- steps ---

static enum mgx_status fill_step(struct cpu_plan *plan, struct choice *x, struct cpu_value *out,
                                 const struct mgx_map *captures)
{
    struct cpu_step *step = new_step(plan, x->c.ins, x->c.in_count + (int)captures->count);
    if (!step)
        return mgx_fail_memory(x->c.diag);
    step->own_count = x->c.in_count;
    for (int i = 0; i < x->c.in_count; i++) {
        step->in_value[i] = x->in[i];
        step->skip[i] = x->c.skip_in[i];
    }
    for (uint32_t i = 0; i < captures->count; i++)
        step->in_value[x->c.in_count + (int)i] = cpu_value_of(plan, captures->entries[i].value);
    step->kernel = x->kernel;
    step->state = x->c.state;
    step->workspace = x->c.workspace;
    step->in_place = x->c.in_place;
    step->detail = x->c.detail;
    step->flops = x->c.flops;
    step->why = x->why.size ? mgx_arena_strdup(&plan->arena, mgx_str_text(&x->why)) : NULL;
    step->out_value = out;
    return plan->arena.failed ? mgx_fail_memory(x->c.diag) : MGX_OK;
}

static bool any_dynamic(const struct cpu_plan *plan, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->in_count; i++)
        if (cpu_value_of(plan, ins->in[i])->dynamic)
            return true;
    return cpu_value_of(plan, ins)->dynamic;
}

static enum mgx_status try_dynamic(struct choice *x)
{
    x->c.dynamic = true;
    return try_kernel(x, &cpu_kernel_ref) ? MGX_OK : x->c.diag->status;
}

static enum mgx_status add_instruction(struct cpu_plan *plan, const struct mgx_ins *ins,
                                       struct cpu_value *out, struct mgx_diag *diag)
{
    struct choice x = {0};
    struct mgx_map captures = {0};
    enum mgx_status status = init_choice(plan, &x, ins, out, diag);
    if (status == MGX_OK)
        status = find_captures(plan, ins, 0, &captures, diag);
    if (status == MGX_OK && any_dynamic(plan, ins))
        status = try_dynamic(&x);
    else if (status == MGX_OK)
        status = choose(plan, &x);
    if (status == MGX_OK)
        status = fill_step(plan, &x, out, &captures);
    mgx_map_fini(&captures);
    mgx_str_fini(&x.why);
    return status;
}

// Inputs that were not computed in place are copied into their slices.
static enum mgx_status add_concat(struct cpu_plan *plan, const struct mgx_ins *ins,
                                  struct cpu_value *out, struct mgx_diag *diag)
{
    int64_t axis = mgx_ins_int(ins, "axis"), at = 0;
    axis += axis < 0 ? ins->shape.rank : 0;
    for (int i = 0; i < ins->in_count; i++) {
        struct cpu_value *from = cpu_value_of(plan, ins->in[i]);
        const int64_t offset =
            at * out->shape.strides[axis] * (int64_t)mgx_type_size(out->shape.type);
        at += from->shape.lens[axis];
        int64_t x, y;
        if (!mgx_shape_elements(&from->shape) ||
            (from->bound && cpu_root(from, &x) == cpu_root(out, &y) && x == y + offset))
            continue;
        struct mgx_shape shape = from->shape;
        memcpy(shape.strides, out->shape.strides, sizeof shape.strides);
        struct cpu_value *slice = new_value(plan, ins, &shape);
        if (!slice)
            return mgx_fail_memory(diag);
        slice->root = out;
        slice->offset = offset;
        TRY(add_copy(plan, ins, from, slice, diag));
    }
    return MGX_OK;
}

static enum mgx_status add_step(struct cpu_plan *plan, struct mgx_ins *ins, struct mgx_diag *diag)
{
    struct cpu_value *v = &plan->values[ins->index];
    if (!list_value(plan, v))
        return mgx_fail_memory(diag);
    if (ins->op == &mgx_op_param) {
        v->place = CPU_PARAM;
        return MGX_OK;
    }
    if (ins->op == &mgx_op_literal) {
        v->place = CPU_CONST;
        v->data = ins->literal->data;
        return MGX_OK;
    }
    if (ins->op == &mgx_op_return || ins->op == &mgx_op_comment)
        return MGX_OK;
    if (cpu_is_join(ins)) {
        v->place = CPU_CONST;
        v->data = cpu_join(plan, ins, &v->shape, diag);
        return v->data ? MGX_OK : diag->status;
    }
    if (ins->op == &mgx_op_concat && !any_dynamic(plan, ins))
        return add_concat(plan, ins, v, diag);
    const bool view = v->root != v && !v->bound;
    return view ? MGX_OK : add_instruction(plan, ins, v, diag);
}

// --- results ---

static enum mgx_status add_result(struct cpu_plan *plan, int k, struct mgx_diag *diag)
{
    struct mgx_ins *ins = mgx_module_result(mgx_program_main(plan->program), k);
    struct cpu_value *v = &plan->values[ins->index];
    struct cpu_result *result = &plan->results[k];
    result->value = v;
    result->shape = v->shape;
    if (v->dynamic)
        return MGX_OK;
    result->shape = mgx_shape_make(ins->shape.type, ins->shape.rank, ins->shape.lens);
    if (v->root == v && v->place == CPU_SCRATCH && mgx_shape_equal(&v->shape, &result->shape)) {
        v->place = CPU_RESULT;
        v->index = k;
        return MGX_OK;
    }
    result->value = new_value(plan, ins, &result->shape);
    if (!result->value)
        return mgx_fail_memory(diag);
    result->value->place = CPU_RESULT;
    result->value->index = k;
    return add_copy(plan, ins, v, result->value, diag);
}

// --- live ranges ---

static void touch(struct cpu_value *v, int step)
{
    v = cpu_root(v, NULL);
    if (v->first > step)
        v->first = step;
    if (v->last < step)
        v->last = step;
}

static void find_ranges(struct cpu_plan *plan)
{
    for (int i = 0; i < plan->all_count; i++) {
        plan->all[i]->first = plan->step_count;
        plan->all[i]->last = -1;
    }
    for (int s = 0; s < plan->step_count; s++) {
        const struct cpu_step *step = &plan->steps[s];
        touch(step->out_value, s);
        for (int i = 0; i < step->in_count; i++)
            if (!step->skip[i])
                touch(step->in_value[i], s);
    }
    for (int k = 0; k < plan->result_count; k++)
        if (plan->results[k].value->dynamic)
            touch(plan->results[k].value, plan->step_count);
}

// Does another operand of this step lie in the same root?
static bool shared(const struct cpu_step *step, int slot, const struct cpu_value *root)
{
    for (int i = 0; i < step->in_count; i++)
        if (i != slot && !step->skip[i] && cpu_root(step->in_value[i], NULL) == root)
            return true;
    return false;
}

static void take_over(struct cpu_plan *plan, int s)
{
    const struct cpu_step *step = &plan->steps[s];
    struct cpu_value *out = step->out_value, *in = step->in_value[step->in_place];
    int64_t offset;
    struct cpu_value *root = cpu_root(in, &offset);
    if (in->dynamic || out->dynamic || out->root != out || out->place != CPU_SCRATCH ||
        root->place != CPU_SCRATCH || root->last != s || offset != 0 ||
        mgx_shape_bytes(&root->shape) != mgx_shape_bytes(&out->shape) ||
        shared(step, step->in_place, root) || out == root || out->first != s)
        return;
    root->last = out->last;
    out->root = root;
    out->offset = 0;
}

static void give_slots(struct cpu_plan *plan)
{
    for (int i = 0; i < plan->all_count; i++) {
        struct cpu_value *v = plan->all[i];
        v->bytes = v->dynamic ? 0 : mgx_shape_bytes(&v->shape);
        if (v->dynamic && v->place == CPU_SCRATCH) {
            v->place = CPU_DYNAMIC;
            v->index = plan->dynamic_count++;
        }
    }
}

static enum mgx_status find_drops(struct cpu_plan *plan, struct mgx_diag *diag)
{
    int *count = MGX_NEW_ARRAY(&plan->arena, int, plan->step_count + 1);
    if (!count)
        return mgx_fail_memory(diag);
    for (int i = 0; i < plan->all_count; i++)
        if (plan->all[i]->place == CPU_DYNAMIC && plan->all[i]->last >= 0 &&
            plan->all[i]->last < plan->step_count)
            count[plan->all[i]->last]++;
    for (int s = 0; s < plan->step_count; s++)
        if (count[s] && !(plan->steps[s].drop = MGX_NEW_ARRAY(&plan->arena, int, count[s])))
            return mgx_fail_memory(diag);
    for (int i = 0; i < plan->all_count; i++) {
        const struct cpu_value *v = plan->all[i];
        if (v->place == CPU_DYNAMIC && v->last >= 0 && v->last < plan->step_count)
            plan->steps[v->last].drop[plan->steps[v->last].drop_count++] = v->index;
    }
    return MGX_OK;
}

static void number_params(struct cpu_plan *plan)
{
    for (int i = 0; i < plan->param_count; i++)
        plan->values[plan->params[i]->index].index = i;
}

enum mgx_status cpu_build_steps(struct cpu_plan *plan, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(plan->program);
    plan->param_count = mgx_module_parameters(m, NULL, 0);
    plan->params = MGX_NEW_ARRAY(&plan->arena, struct mgx_ins *, plan->param_count);
    plan->result_count = mgx_module_result_count(m);
    plan->results = MGX_NEW_ARRAY(&plan->arena, struct cpu_result, plan->result_count);
    if (!plan->params || !plan->results)
        return mgx_fail_memory(diag);
    mgx_module_parameters(m, plan->params, plan->param_count);
    number_params(plan);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        const enum mgx_status status = add_step(plan, ins, diag);
        if (status != MGX_OK) {
            mgx_where(diag, "planning %s%s%s", ins->op->name, ins->origin.count ? " of node " : "",
                      ins->origin.count ? ins->origin.v[0] : "");
            return status;
        }
    }
    for (int k = 0; k < plan->result_count; k++)
        TRY(add_result(plan, k, diag));
    TRY(cpu_schedule(plan, diag));
    give_slots(plan);
    find_ranges(plan);
    for (int s = 0; s < plan->step_count; s++)
        if (plan->steps[s].in_place >= 0)
            take_over(plan, s);
    TRY(find_drops(plan, diag));
    return plan->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}
