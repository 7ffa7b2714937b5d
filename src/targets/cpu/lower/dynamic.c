// SPDX-License-Identifier: MIT
// Operators whose sizes are known only at run time, and those of bodies: a kernel for the sizes
// that came.
//
// All of them are evaluated as the reference does it, on tensors, with one difference: each is
// offered here first. A kernel is chosen once per operator, attributes and shapes (choice.h); what
// no kernel takes, and small work, stays with the reference. Results lie in the order of memory
// that suits the kernel, which everything that reads tensors copes with.
#include "targets/cpu/lower/dynamic.h"

#include "op/op.h"
#include "targets/cpu/blocks.h"
#include "targets/cpu/choice.h"

enum { SMALL = 512 };

static bool plain(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE &&
           s->type != MGX_STRING;
}

// Views cost nothing; bodies that do not outlive the call cannot be remembered.
static bool suits(const struct cpu_plan *plan, const struct mgx_compute_call *c)
{
    const bool view =
        (c->op->flags & MGX_OP_VIEW) ||
        ((c->op->flags & MGX_OP_RESHAPE) && c->in_count && mgx_shape_is_standard(&c->in[0]->shape));
    if (view || c->in_count < 1 || c->in_count > CPU_CHOICE_INPUTS || c->mod_count > 1 ||
        (c->mod_count && c->mod[0]->program != plan->program) || !plain(c->out_shape))
        return false;
    int64_t elements = mgx_shape_elements(c->out_shape);
    for (int i = 0; i < c->in_count; i++) {
        if (!plain(&c->in[i]->shape))
            return false;
        elements += mgx_shape_elements(&c->in[i]->shape);
    }
    return elements >= SMALL;
}

// Room for the kernel's workspace and for inputs that are copied first.
static size_t room_of(const struct cpu_choice *k)
{
    size_t bytes = (k->workspace + 63) / 64 * 64;
    for (int i = 0; i < k->ins.in_count; i++)
        if (k->in[i].pack)
            bytes += (mgx_shape_bytes(&k->in[i].packed) + 4096 + 63) / 64 * 64;
    return bytes;
}

static enum mgx_status pack_inputs(const struct cpu_choice *k, struct cpu_context *x, void **in,
                                   unsigned char *room, struct mgx_diag *diag)
{
    for (int i = 0; i < k->ins.in_count; i++) {
        if (!k->in[i].pack)
            continue;
        const struct cpu_step copy = {.kernel = &cpu_kernel_copy, .state = k->in[i].pack};
        void *from[] = {in[i]};
        const struct cpu_args args = {.in = from, .out = room, .context = x};
        TRY(cpu_kernel_copy.run(&copy, &args, diag));
        in[i] = room;
        room += (mgx_shape_bytes(&k->in[i].packed) + 4096 + 63) / 64 * 64;
    }
    return MGX_OK;
}

// The result takes over the bytes of an input that goes with this step and is nobody else's.
static bool take_over(const struct cpu_choice *k, unsigned dying, struct mgx_compute_call *c)
{
    const struct mgx_tensor *in = k->in_place >= 0 ? c->in[k->in_place] : NULL;
    if (!in || !(dying >> k->in_place & 1) || !in->storage ||
        atomic_load_explicit(&in->storage->refs, memory_order_acquire) != 1)
        return false;
    *c->out = mgx_tensor_share(in);
    c->out->shape = k->out;
    return true;
}

enum mgx_status cpu_dynamic_create(void *context, const struct mgx_shape *shape,
                                   struct mgx_tensor *out, struct mgx_diag *diag)
{
    const struct cpu_context *x = context;
    return mgx_shape_bytes(shape) < CPU_BLOCK_BYTES || !x->plan->blocks
               ? mgx_tensor_create(out, shape, diag)
               : cpu_block_tensor(x->plan->blocks, shape, 0, out, diag);
}

static enum mgx_status make_result(const struct cpu_choice *k, struct cpu_context *x,
                                   struct mgx_compute_call *c)
{
    return mgx_shape_bytes(&k->out) < CPU_BLOCK_BYTES || !x->plan->blocks
               ? mgx_eval_create(c, &k->out)
               : cpu_dynamic_create(x, &k->out, c->out, c->diag);
}

// Memory for the time of one call; the tensor owns it.
static enum mgx_status make_room(struct cpu_context *x, size_t bytes, struct mgx_tensor *room,
                                 struct mgx_diag *diag)
{
    *room = (struct mgx_tensor){0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)bytes);
    return bytes ? cpu_dynamic_create(x, &shape, room, diag) : MGX_OK;
}

static enum mgx_status run_choice(const struct cpu_choice *k, struct cpu_context *x, unsigned dying,
                                  struct mgx_compute_call *c)
{
    void *in[CPU_CHOICE_INPUTS];
    struct mgx_tensor room;
    TRY(make_room(x, room_of(k), &room, c->diag));
    for (int i = 0; i < c->in_count; i++)
        in[i] = k->in[i].aligned ? (void *)(uintptr_t)k->in[i].aligned : c->in[i]->data;
    enum mgx_status status = take_over(k, dying, c) ? MGX_OK : make_result(k, x, c);
    if (status != MGX_OK) {
        mgx_tensor_release(&room);
        return status;
    }
    const struct cpu_step step = {.kernel = k->kernel, .ins = &k->ins, .state = k->state};
    const struct cpu_args args = {
        .in = in, .out = c->out->data, .workspace = room.data, .context = x};
    unsigned char *packed =
        room.data ? (unsigned char *)room.data + (k->workspace + 63) / 64 * 64 : NULL;
    status = pack_inputs(k, x, in, packed, c->diag);
    if (status == MGX_OK)
        status = k->kernel->run(&step, &args, c->diag);
    mgx_tensor_release(&room);
    if (status != MGX_OK)
        mgx_tensor_release(c->out);
    return status;
}

// --- operators that expand ---

static enum mgx_status run_program(const struct cpu_choice *k, struct mgx_compute_call *c)
{
    const struct mgx_module *m = mgx_program_main(k->program);
    const int count = mgx_module_result_count(m);
    struct mgx_tensor *args = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    struct mgx_tensor *results = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, count);
    int arg_count = 0;
    if (!args || !results)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++)
        if (!k->in[i].value.storage)
            args[arg_count++] = *c->in[i];
    TRY(mgx_eval_module(c->eval, m, args, arg_count, results, c->diag));
    if (c->out_shape->type == MGX_TUPLE)
        return mgx_tensor_group(c->out, results, count, false, c->diag);
    *c->out = results[0];
    return MGX_OK;
}

static bool suits_expansion(const struct mgx_compute_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (!plain(&c->in[i]->shape))
            return false;
    return c->mod_count == 0;
}

static enum mgx_status run_expanded(struct cpu_plan *plan, struct mgx_compute_call *c, bool *done)
{
    struct cpu_choice *k = NULL;
    if (!suits_expansion(c))
        return MGX_OK;
    TRY(cpu_choice_require(plan, c, false, &k, c->diag));
    if (k->wants_value) {
        cpu_choice_release(plan, k);
        TRY(cpu_choice_require(plan, c, true, &k, c->diag));
    }
    const enum mgx_status status = k->program ? run_program(k, c) : MGX_OK;
    *done = k->program && status == MGX_OK;
    cpu_choice_release(plan, k);
    return status;
}

// --- the offer ---

static enum mgx_status run_sized(const struct cpu_plan *plan, struct mgx_compute_call *c,
                                 bool *done)
{
    if (c->op == &mgx_op_concat)
        return cpu_concat_append(plan, c, done);
    if (c->op == &mgx_op_topk)
        return cpu_topk(plan, c, done);
    if (c->op == &mgx_op_nonzero)
        return cpu_nonzero(plan, c, done);
    if (c->op == &mgx_op_nonmaxsuppression)
        return cpu_nonmaxsuppression(plan, c, done);
    return MGX_OK;
}

bool cpu_dynamic_knows(void *context, const struct mgx_tensor *t)
{
    const struct cpu_context *x = context;
    return mgx_map_find_pointer(&x->plan->literals, t->data) != NULL;
}

static bool all_aligned(const struct mgx_compute_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (!mgx_tensor_is_aligned(c->in[i]))
            return false;
    return true;
}

enum mgx_status cpu_dynamic_offer(void *context, struct mgx_compute_call *c, bool *done)
{
    struct cpu_context *x = context;
    struct cpu_plan *plan = x->plan;
    const unsigned dying = x->dying;
    x->dying = 0; // of this step's own operator, not of what it may evaluate
    *done = false;
    if (c->op->expand)
        return run_expanded(plan, c, done);
    if (all_aligned(c))
        TRY(run_sized(plan, c, done));
    if (*done || !suits(plan, c))
        return MGX_OK;
    struct cpu_choice *k = NULL;
    TRY(cpu_choice_require(plan, c, false, &k, c->diag));
    enum mgx_status status = MGX_OK;
    if (k->kernel) {
        status = run_choice(k, x, dying, c);
        *done = status == MGX_OK;
    }
    cpu_choice_release(plan, k);
    return status;
}
