// SPDX-License-Identifier: MIT
// Operators whose sizes are known only at run time, and those of bodies: a kernel for the sizes
// that came.
//
// All of them are evaluated as the reference does it, on tensors, with one difference: each is
// offered here first. A kernel is chosen once per operator, attributes and shapes (choice.h); what
// no kernel takes, and small work, stays with the reference. Results lie in the order of memory
// that suits the kernel, which everything that reads tensors copes with.
#include "plan/late.h"

#include <assert.h>

#include "base/size.h"
#include "op/op.h"
#include "plan/blocks.h"
#include "plan/choice.h"
#include "plan/plan.h"

enum { SMALL = 512 };

static bool plain(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE &&
           s->type != MGX_STRING;
}

// Views cost nothing; bodies that do not outlive the call cannot be remembered.
static bool suits(const struct mgx_plan_late *late, const struct mgx_compute_call *c)
{
    const bool view =
        (c->op->flags & MGX_OP_VIEW) ||
        ((c->op->flags & MGX_OP_RESHAPE) && c->in_count && mgx_shape_is_standard(&c->in[0]->shape));
    if (view || c->in_count < 1 || c->in_count > MGX_PLAN_CHOICE_INPUTS || c->mod_count > 1 ||
        (c->mod_count && c->mod[0]->program != late->program) || !plain(c->out_shape))
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
static size_t room_of(const struct mgx_plan_choice *k)
{
    size_t bytes = mgx_align64(k->workspace);
    for (int i = 0; i < k->ins.in_count; i++)
        if (k->in[i].pack)
            bytes += mgx_align64(mgx_shape_bytes(&k->in[i].packed) + 4096);
    return bytes;
}

static enum mgx_status pack_inputs(const struct mgx_plan_choice *k,
                                   const struct mgx_plan_machine *machine, void **in,
                                   unsigned char *room, struct mgx_diag *diag)
{
    for (int i = 0; i < k->ins.in_count; i++) {
        if (!k->in[i].pack)
            continue;
        const struct mgx_plan_kernel *kernel = machine->target->copy;
        const struct mgx_plan_step copy = {.kernel = kernel, .state = k->in[i].pack};
        void *from[] = {in[i]};
        const struct mgx_plan_args args = {.in = from, .out = room, .machine = machine};
        assert((uintptr_t)room % 64 == 0);
        TRY(kernel->run(&copy, &args, diag));
        in[i] = room;
        room += mgx_align64(mgx_shape_bytes(&k->in[i].packed) + 4096);
    }
    return MGX_OK;
}

// The result takes over the bytes of an input that goes with this step and is nobody else's.
static bool take_over(const struct mgx_plan_choice *k, unsigned dying, struct mgx_compute_call *c)
{
    const struct mgx_tensor *in = k->in_place >= 0 ? c->in[k->in_place] : NULL;
    if (!in || !(dying >> k->in_place & 1) || !in->storage ||
        atomic_load_explicit(&in->storage->refs, memory_order_acquire) != 1)
        return false;
    *c->out = mgx_tensor_share(in);
    c->out->shape = k->out;
    return true;
}

static bool is_large(const struct mgx_plan_late *late, const struct mgx_shape *shape)
{
    return late->blocks && mgx_shape_bytes(shape) >= MGX_PLAN_BLOCK_BYTES;
}

enum mgx_status mgx_plan_late_create(void *user, const struct mgx_shape *shape,
                                     struct mgx_tensor *out, struct mgx_diag *diag)
{
    const struct mgx_plan_late *late = ((const struct mgx_plan_late_run *)user)->late;
    return is_large(late, shape) ? mgx_plan_block_tensor(late->blocks, shape, 0, out, diag)
                                 : mgx_tensor_create(out, shape, diag);
}

static enum mgx_status make_result(const struct mgx_plan_choice *k, struct mgx_plan_late *late,
                                   struct mgx_compute_call *c)
{
    return is_large(late, &k->out)
               ? mgx_plan_block_tensor(late->blocks, &k->out, 0, c->out, c->diag)
               : mgx_eval_create(c, &k->out);
}

// Memory for the time of one call; the tensor owns it.
static enum mgx_status make_room(const struct mgx_plan_late *late, size_t bytes,
                                 struct mgx_tensor *room, struct mgx_diag *diag)
{
    *room = (struct mgx_tensor){0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)bytes);
    if (!bytes)
        return MGX_OK;
    return is_large(late, &shape) ? mgx_plan_block_tensor(late->blocks, &shape, 0, room, diag)
                                  : mgx_tensor_create(room, &shape, diag);
}

static enum mgx_status run_choice(const struct mgx_plan_choice *k, struct mgx_plan_late *late,
                                  unsigned dying, struct mgx_compute_call *c)
{
    void *in[MGX_PLAN_CHOICE_INPUTS];
    struct mgx_tensor room;
    const struct mgx_plan_machine *machine = late->store->machine;
    assert(c->in_count <= MGX_PLAN_CHOICE_INPUTS && k->kernel);
    TRY(make_room(late, room_of(k), &room, c->diag));
    for (int i = 0; i < c->in_count; i++)
        in[i] = k->in[i].aligned ? (void *)(uintptr_t)k->in[i].aligned : c->in[i]->data;
    enum mgx_status status = take_over(k, dying, c) ? MGX_OK : make_result(k, late, c);
    if (status != MGX_OK) {
        mgx_tensor_release(&room);
        return status;
    }
    assert(c->out->data || !mgx_shape_bytes(&c->out->shape));
    const struct mgx_plan_step step = {
        .kernel = k->kernel, .ins = &k->ins, .state = k->state, .workspace = k->workspace};
    const struct mgx_plan_args args = {
        .in = in, .out = c->out->data, .workspace = room.data, .machine = machine};
    unsigned char *packed =
        room.data ? (unsigned char *)room.data + mgx_align64(k->workspace) : NULL;
    status = pack_inputs(k, machine, in, packed, c->diag);
    if (status == MGX_OK)
        status = k->kernel->run(&step, &args, c->diag);
    mgx_tensor_release(&room);
    if (status != MGX_OK)
        mgx_tensor_release(c->out);
    return status;
}

// --- operators that expand ---

static enum mgx_status run_program(const struct mgx_plan_choice *k, struct mgx_compute_call *c)
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
    assert(count >= 1 && arg_count <= c->in_count);
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

static enum mgx_status run_expanded(struct mgx_plan_late *late, struct mgx_compute_call *c,
                                    bool *done)
{
    struct mgx_plan_choice *k = NULL;
    if (!suits_expansion(c))
        return MGX_OK;
    TRY(mgx_plan_choice_require(late, c, false, &k, c->diag));
    if (k->wants_value) {
        mgx_plan_choice_release(late, k);
        TRY(mgx_plan_choice_require(late, c, true, &k, c->diag));
    }
    const enum mgx_status status = k->program ? run_program(k, c) : MGX_OK;
    *done = k->program && status == MGX_OK;
    mgx_plan_choice_release(late, k);
    return status;
}

// --- the offer ---

bool mgx_plan_late_knows(void *user, const struct mgx_tensor *t)
{
    const struct mgx_plan_late *late = ((const struct mgx_plan_late_run *)user)->late;
    return mgx_map_find_pointer(&late->literals, t->data) != NULL;
}

static bool all_aligned(const struct mgx_compute_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (!mgx_tensor_is_aligned(c->in[i]))
            return false;
    return true;
}

// By a kernel that is chosen for these shapes, now or before.
static enum mgx_status run_chosen(struct mgx_plan_late *late, unsigned dying,
                                  struct mgx_compute_call *c, bool *done)
{
    struct mgx_plan_choice *k = NULL;
    TRY(mgx_plan_choice_require(late, c, false, &k, c->diag));
    enum mgx_status status = MGX_OK;
    if (k->kernel) {
        status = run_choice(k, late, dying, c);
        *done = status == MGX_OK;
    }
    mgx_plan_choice_release(late, k);
    return status;
}

enum mgx_status mgx_plan_late_offer(void *user, struct mgx_compute_call *c, bool *done)
{
    struct mgx_plan_late_run *run = user;
    struct mgx_plan_late *late = run->late;
    const struct mgx_plan_target *target = late->store->machine->target;
    const unsigned dying = run->dying;
    run->dying = 0; // of this step's own operator, not of what it may evaluate
    *done = false;
    if (c->op->expand)
        return run_expanded(late, c, done);
    if (target->late && all_aligned(c))
        TRY(target->late(late->store->machine, late->blocks, c, done));
    return *done || !target->late_kernels || !suits(late, c) ? MGX_OK
                                                             : run_chosen(late, dying, c, done);
}

void mgx_plan_late_init(struct mgx_plan_late *late, const struct mgx_program *p,
                        struct mgx_plan_store *store)
{
    assert(!store->parent);
    *late = (struct mgx_plan_late){.program = p, .store = store};
    pthread_mutex_init(&late->lock, NULL);
}

void mgx_plan_late_fini(struct mgx_plan_late *late)
{
    mgx_plan_choices_destroy(late);
    mgx_plan_blocks_close(late->blocks);
    mgx_map_fini(&late->literals);
    pthread_mutex_destroy(&late->lock);
}
