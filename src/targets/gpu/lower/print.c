// SPDX-License-Identifier: MIT
// A compiled program as MIGraphX prints one: the plan's steps, in their order, with the names that
// its guides explain.
//
//     main:@1 = hip::hip_allocate_memory[shape=int8_type, {N}, {1},id=main:scratch]
//     main:@2 = hip::hip_copy_literal[id=main:@literal:0]        a constant on the card
//     main:@3 = load[offset=0,end=3136](main:@1)                 room for the next result
//     main:@4 = gpu::convolution[...](x,main:@2,main:@3)         a kernel of one operator
//     main:@5 = gpu::code_object[code_object=5104,symbol_name=add_relu_kernel,...](...)   of several
//
// It is for people: what runs is the plan, and programs are saved and read as the plain graph.
#include <string.h>

#include "base/map.h"
#include "op/op.h"
#include "plan/transfer.h"
#include "targets/gpu/lower/lower.h"

struct listing {
    struct mgx_str *out;
    const struct mgx_plan *plan;
    int line, literals;
    int scratch;           // its line; -1: the plan needs none
    struct mgx_map lines;  // root -> its line + 1
    struct mgx_map copied; // results that a copy from the card gives
};

static int begin(struct listing *l)
{
    mgx_str_printf(l->out, "main:@%d = ", l->line);
    return l->line++;
}

static void end(struct listing *l, const struct mgx_shape *shape)
{
    mgx_str_put(l->out, " -> ");
    mgx_shape_print(l->out, shape);
    mgx_str_putc(l->out, '\n');
}

static void remember(struct listing *l, const struct mgx_plan_value *root, int line)
{
    mgx_map_put_pointer(&l->lines, root, (void *)(intptr_t)(line + 1));
}

static const struct mgx_plan_value *root_of(const struct mgx_plan_value *v)
{
    int64_t offset;
    return mgx_plan_root((struct mgx_plan_value *)v, &offset);
}

static void put_name(struct listing *l, const struct mgx_plan_value *v)
{
    const struct mgx_plan_value *root = root_of(v);
    const int line = (int)(intptr_t)mgx_map_find_pointer(&l->lines, root);
    if (line)
        mgx_str_printf(l->out, "main:@%d", line - 1);
    else
        mgx_ins_print_name(l->out, root->ins);
}

// A constant gets its line where it is first read.
static void need_literal(struct listing *l, const struct mgx_plan_value *v)
{
    const struct mgx_plan_value *root = root_of(v);
    if (root->place != MGX_PLAN_CONST || mgx_map_find_pointer(&l->lines, root))
        return;
    remember(l, root, begin(l));
    mgx_str_printf(l->out, "hip::hip_copy_literal[id=main:@literal:%d]", l->literals++);
    end(l, &root->shape);
}

// Room for what the step makes, as it is passed: a piece of the scratch block, or the caller's.
static int make_room(struct listing *l, const struct mgx_plan_step *step)
{
    const struct mgx_plan_ref *ref = &step->out;
    const size_t bytes = (size_t)mgx_shape_space(&step->out_value->shape) *
                         mgx_type_size(step->out_value->shape.type);
    if (ref->place != MGX_PLAN_SCRATCH || ref->side != MGX_PLAN_DEVICE)
        return -1;
    const int line = begin(l);
    mgx_str_printf(l->out, "load[offset=%lld,end=%lld](main:@%d)", (long long)ref->offset,
                   (long long)(ref->offset + (int64_t)bytes), l->scratch);
    end(l, &step->out_value->shape);
    return line;
}

static const struct mgx_plan_result *result_of(const struct listing *l,
                                               const struct mgx_plan_ref *ref)
{
    return ref->place == MGX_PLAN_RESULT ? &l->plan->results[ref->index] : NULL;
}

// --- what a step is called ---

// "mul_add_kernel": the operators of a body, the first few of them.
static void put_symbol(struct mgx_str *out, const struct mgx_ins *ins)
{
    enum { SHOWN = 8 };
    int shown = 0;
    const struct mgx_ins *first = ins->mod_count ? ins->mod[0]->first : NULL;
    for (const struct mgx_ins *i = first; i && shown < SHOWN; i = i->next)
        if (i->op->name[0] != '@')
            mgx_str_printf(out, "%s%s", shown++ ? "_" : "", i->op->name);
    if (!shown)
        mgx_str_put(out, ins->op->name);
    mgx_str_put(out, "_kernel");
}

static void put_code_object(struct mgx_str *out, const struct mgx_plan_step *step)
{
    const struct gpu_call *call = step->state; // the first member of every state here
    const unsigned *g = call->how.grid, *b = call->how.block;
    const size_t local = (size_t)b[0] * b[1] * b[2];
    mgx_str_printf(out,
                   "gpu::code_object[code_object=%zu,symbol_name=", gpu_unit_bytes(call->unit));
    put_symbol(out, step->ins);
    mgx_str_printf(out, ",global=%zu,local=%zu,]", (size_t)g[0] * g[1] * g[2] * local, local);
}

static bool multiplies_matrices(const struct mgx_ins *ins)
{
    const struct mgx_ins *i = ins->mod_count ? ins->mod[0]->first : ins;
    while (i && i != ins && i->op != &mgx_op_dot)
        i = i->next;
    return i != NULL;
}

static void put_operator(struct mgx_str *out, const struct mgx_plan_step *step)
{
    const struct mgx_ins *ins = step->ins;
    if (mgx_plan_is_transfer(step))
        mgx_str_put(out,
                    step->out.side == MGX_PLAN_DEVICE ? "hip::copy_to_gpu" : "hip::copy_from_gpu");
    else if (step->side == MGX_PLAN_HOST)
        mgx_op_print(out, ins->op, ins->attr);
    else if (step->kernel == &gpu_kernel_copy)
        mgx_str_put(out, "gpu::contiguous");
    else if (step->kernel == &gpu_kernel_vendor && (ins->mod_count || ins->op == &mgx_op_dot))
        mgx_str_put(out, multiplies_matrices(ins) ? "gpu::gemm" : "gpu::convolution");
    else if (ins->mod_count || step->kernel == &gpu_kernel_pointwise)
        put_code_object(out, step);
    else if (ins->op == &mgx_op_dot)
        mgx_str_put(out, "gpu::gemm");
    else {
        mgx_str_put(out, "gpu::");
        mgx_op_print(out, ins->op, ins->attr);
    }
}

static void print_step(struct listing *l, const struct mgx_plan_step *step)
{
    for (int i = 0; i < step->own_count; i++)
        need_literal(l, step->in_value[i]);
    const int room = make_room(l, step), line = begin(l);
    const struct mgx_plan_result *result = result_of(l, &step->out);
    put_operator(l->out, step);
    mgx_str_putc(l->out, '(');
    for (int i = 0; i < step->own_count; i++) {
        mgx_str_put(l->out, i ? "," : "");
        put_name(l, step->in_value[i]);
    }
    if (room >= 0)
        mgx_str_printf(l->out, "%smain:@%d", step->own_count ? "," : "", room);
    else if (result && result->param >= 0)
        mgx_str_printf(l->out, "%s%s", step->own_count ? "," : "",
                       mgx_parameter_name(l->plan->params[result->param]));
    mgx_str_putc(l->out, ')');
    end(l, &step->out_value->shape);
    remember(l, root_of(step->out_value), line);
    if (mgx_plan_is_transfer(step) && step->out.side == MGX_PLAN_HOST)
        mgx_map_put_pointer(&l->copied, root_of(step->out_value), (void *)l);
}

// --- the whole ---

static void print_head(struct listing *l)
{
    const struct mgx_plan *plan = l->plan;
    const size_t bytes = plan->block[MGX_PLAN_DEVICE].bytes;
    mgx_str_put(l->out, "module: \"main\"\n");
    begin(l);
    mgx_str_put(l->out, "check_context::migraphx::gpu::context -> float_type, {}, {}\n");
    l->scratch = bytes ? begin(l) : -1;
    if (bytes)
        mgx_str_printf(l->out,
                       "hip::hip_allocate_memory[shape=int8_type, {%zu}, {1},id=main:scratch] -> "
                       "int8_type, {%zu}, {1}\n",
                       bytes, bytes);
    for (int i = plan->param_count - 1; i >= 0; i--, l->line++) {
        const struct mgx_ins *param = plan->params[i];
        mgx_str_printf(l->out, "%s = @param:%s", mgx_parameter_name(param),
                       mgx_parameter_name(param));
        end(l, &param->shape);
    }
}

// What was copied from the card is there when the stream is done.
static void print_tail(struct listing *l)
{
    const struct mgx_plan *plan = l->plan;
    for (int k = 0; k < plan->result_count; k++) {
        const struct mgx_plan_value *v = plan->results[k].value;
        need_literal(l, v);
        if (!mgx_map_find_pointer(&l->copied, root_of(v)))
            continue;
        const int line = begin(l);
        mgx_str_put(l->out, "hip::sync_stream(");
        put_name(l, v);
        mgx_str_putc(l->out, ')');
        end(l, &plan->results[k].shape);
        remember(l, root_of(v), line);
    }
    begin(l);
    mgx_str_put(l->out, "@return(");
    for (int k = 0; k < plan->result_count; k++) {
        mgx_str_put(l->out, k ? "," : "");
        put_name(l, plan->results[k].value);
    }
    mgx_str_put(l->out, ")\n\n");
}

void gpu_print_program(const struct mgx_program *p, struct mgx_str *out)
{
    struct listing l = {.out = out, .plan = (const struct mgx_plan *)p->executable};
    print_head(&l);
    for (int s = 0; s < l.plan->step_count; s++)
        print_step(&l, &l.plan->steps[s]);
    print_tail(&l);
    mgx_map_fini(&l.lines);
    mgx_map_fini(&l.copied);
}
