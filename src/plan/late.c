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
#include "op/rule/rule.h"
#include "plan/blocks.h"
#include "plan/choice.h"
#include "plan/join.h"
#include "plan/plan.h"

enum { SMALL = 64 };

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

// Inputs as the kernel reads them: constants that were moved, copies in `room`.
static enum mgx_status prepare_inputs(const struct mgx_plan_choice *k,
                                      const struct mgx_plan_machine *machine, void **in,
                                      unsigned char *room, struct mgx_diag *diag)
{
    for (int i = 0; i < k->ins.in_count; i++) {
        if (k->in[i].aligned)
            in[i] = (void *)(uintptr_t)k->in[i].aligned;
        if (!k->in[i].pack)
            continue;
        const struct mgx_plan_kernel *kernel = machine->target->copy;
        const struct mgx_plan_step copy = {.kernel = kernel, .state = k->in[i].pack};
        void *from[] = {in[i]};
        const struct mgx_plan_args args = {.in = from, .out = room, .machine = machine};
        assert((uintptr_t)room % 64 == 0);
        TRY(kernel->run(&copy, &args, diag));
        in[i] = room;
        room += mgx_align64(mgx_shape_bytes(k->in[i].packed) + MGX_PLAN_CHOICE_BEHIND);
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
    return is_large(late, shape) ? mgx_plan_block_tensor(late->blocks, shape, out, diag)
                                 : mgx_tensor_create(out, shape, diag);
}

// The shape was looked at when the kernel was chosen.
static enum mgx_status make_result(const struct mgx_plan_choice *k, struct mgx_plan_late *late,
                                   struct mgx_compute_call *c)
{
    assert(k->out_bytes == mgx_shape_bytes(&k->out));
    TRY(mgx_eval_count(c, k->out_bytes));
    if (late->blocks && k->out_bytes >= MGX_PLAN_BLOCK_BYTES)
        return mgx_plan_block_tensor(late->blocks, &k->out, c->out, c->diag);
    struct mgx_storage *storage = mgx_storage_create(NULL, k->out_bytes);
    if (!storage)
        return mgx_fail(c->diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes",
                        k->out_bytes);
    *c->out = (struct mgx_tensor){.shape = k->out, .data = storage->data, .storage = storage};
    return MGX_OK;
}

// Memory for the time of one call; the tensor owns it.
static enum mgx_status make_room(const struct mgx_plan_late *late, size_t bytes,
                                 struct mgx_tensor *room, struct mgx_diag *diag)
{
    *room = (struct mgx_tensor){0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)bytes);
    if (!bytes)
        return MGX_OK;
    return is_large(late, &shape) ? mgx_plan_block_tensor(late->blocks, &shape, room, diag)
                                  : mgx_tensor_create(room, &shape, diag);
}

// The kernel's work, into `out`.
static enum mgx_status compute(const struct mgx_plan_choice *k, const struct mgx_plan_late *late,
                               const struct mgx_compute_call *c, void *out)
{
    void *in[MGX_PLAN_CHOICE_INPUTS];
    struct mgx_tensor room;
    const struct mgx_plan_machine *machine = late->store->machine;
    assert(c->in_count <= MGX_PLAN_CHOICE_INPUTS && k->kernel);
    TRY(make_room(late, k->room, &room, c->diag));
    for (int i = 0; i < c->in_count; i++)
        in[i] = c->in[i]->data;
    const struct mgx_plan_step step = {
        .kernel = k->kernel, .ins = &k->ins, .state = k->state, .workspace = k->workspace};
    const struct mgx_plan_args args = {
        .in = in, .out = out, .workspace = room.data, .machine = machine};
    unsigned char *packed =
        room.data ? (unsigned char *)room.data + mgx_align64(k->workspace) : NULL;
    enum mgx_status status = k->prepares ? prepare_inputs(k, machine, in, packed, c->diag) : MGX_OK;
    if (status == MGX_OK)
        status = k->kernel->run(&step, &args, c->diag);
    mgx_tensor_release(&room);
    return status;
}

static enum mgx_status run_choice(const struct mgx_plan_choice *k, struct mgx_plan_late *late,
                                  unsigned dying, struct mgx_compute_call *c)
{
    TRY(take_over(k, dying, c) ? MGX_OK : make_result(k, late, c));
    assert(c->out->data || !mgx_shape_bytes(&c->out->shape));
    const enum mgx_status status = compute(k, late, c, c->out->data);
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
        if (!k->in[i].value)
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

static bool shows_input(const struct mgx_op *op)
{
    return op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE);
}

bool mgx_plan_late_recurs(const struct mgx_ins *ins, struct mgx_plan_site *site)
{
    const struct mgx_op *op = ins->op;
    const uint32_t sized = op->sized_by ? op->sized_by(ins) : 0;
    site->hash = mgx_plan_choice_site(op, ins->attr, ins->mod, ins->mod_count);
    site->valued = sized ? ~1u : 0; // whatever decides comes behind what is shown
    return ins->in_count >= 1 && ins->in_count <= MGX_PLAN_CHOICE_INPUTS && ins->mod_count <= 1 &&
           !op->expand && !(op->flags & (MGX_OP_IMPURE | MGX_OP_EFFECT)) &&
           (!sized || (shows_input(op) && !ins->mod_count && !(sized & 1)));
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

// Joined weights, for whoever else computes it. A view does not read what it shows.
static void fill_joins(struct mgx_plan_late *late, const struct mgx_compute_call *c)
{
    if (!late->store->joins || (c->op->flags & MGX_OP_VIEW))
        return;
    pthread_mutex_lock(&late->lock);
    for (int i = 0; i < c->in_count; i++)
        mgx_plan_join_fill(late->store, c->in[i]->data, true);
    pthread_mutex_unlock(&late->lock);
}

static enum mgx_status offer(struct mgx_plan_late_run *run, struct mgx_compute_call *c, bool *done)
{
    struct mgx_plan_late *late = run->late;
    const struct mgx_plan_target *target = late->store->machine->target;
    const unsigned dying = run->dying;
    const struct mgx_plan_site *site = run->site;
    run->dying = 0; // of this step's own operator, not of what it may evaluate
    run->site = NULL;
    *done = false;
    if (c->op->expand)
        return run_expanded(late, c, done);
    if (target->late && all_aligned(c))
        TRY(target->late(late->store->machine, late->blocks, c, done));
    if (*done && site && !site->valued && !c->mod_count)
        mgx_plan_choice_note(late, site, c, false);
    return *done || !target->late_kernels || !suits(late, c) ? MGX_OK
                                                             : run_chosen(late, dying, c, done);
}

enum mgx_status mgx_plan_late_offer(void *user, struct mgx_compute_call *c, bool *done)
{
    struct mgx_plan_late_run *run = user;
    TRY(offer(run, c, done));
    if (!*done)
        fill_joins(run->late, c);
    return MGX_OK;
}

// --- sizes that come back ---

static enum mgx_status run_reference(struct mgx_compute_call *c)
{
    TRY(mgx_eval_create(c, c->out_shape));
    (void)!mgx_arena_alloc(c->scratch, 1); // a block that stays for the run
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    const enum mgx_status status = c->op->compute(c);
    mgx_arena_rewind(c->scratch, mark);
    if (status != MGX_OK)
        mgx_tensor_release(c->out);
    return status;
}

// As the call did it before, whose choice is k.
static enum mgx_status run_again(const struct mgx_plan_choice *k, struct mgx_plan_late *late,
                                 unsigned dying, const struct mgx_tensor *place,
                                 struct mgx_compute_call *c, bool *done)
{
    const struct mgx_plan_machine *machine = late->store->machine;
    if (!mgx_shape_may_be(c->declared, &k->out))
        return MGX_OK; // whoever computes it anew will say so
    if (k->way == MGX_PLAN_VIEW) {
        *c->out = mgx_tensor_view(c->in[0], &k->out, k->offset);
        *done = true;
        return MGX_OK;
    }
    c->out_shape = &k->ins.shape;
    if (machine->target->late)
        TRY(machine->target->late(machine, late->blocks, c, done));
    if (*done || k->way == MGX_PLAN_TARGETS || (!k->kernel && c->mod_count))
        return MGX_OK;
    *done = true;
    if (!k->kernel)
        return run_reference(c);
    if (!place || !mgx_shape_equal(&place->shape, &k->out))
        return run_choice(k, late, dying, c);
    *c->out = *place;
    return compute(k, late, c, place->data);
}

enum mgx_status mgx_plan_late_again(struct mgx_plan_late_run *run, const struct mgx_plan_site *site,
                                    unsigned literals, const struct mgx_tensor *place,
                                    struct mgx_compute_call *c, bool *done)
{
    *done = false;
    if (!all_aligned(c))
        return MGX_OK;
    struct mgx_plan_choice *k = mgx_plan_choice_find(run->late, site, c, literals);
    if (!k)
        return MGX_OK;
    const enum mgx_status status = run_again(k, run->late, run->dying, place, c, done);
    mgx_plan_choice_release(run->late, k);
    return status;
}

// What view it is follows from lengths where there is but one input, or others say but lengths too,
// and from values where these are in the key. The rest read where to look.
static bool is_view(const struct mgx_plan_site *site, const struct mgx_compute_call *c)
{
    const bool known = c->in_count == 1 || site->valued || c->op->compute == mgx_compute_view;
    return shows_input(c->op) && known && !c->in[0]->sub && c->out->storage &&
           c->out->storage == c->in[0]->storage && plain(&c->out->shape);
}

void mgx_plan_late_note(struct mgx_plan_late_run *run, const struct mgx_plan_site *site,
                        struct mgx_compute_call *c)
{
    c->out_shape = &c->out->shape;
    if (is_view(site, c))
        mgx_plan_choice_note(run->late, site, c, true);
}

void mgx_plan_late_init(struct mgx_plan_late *late, const struct mgx_program *p,
                        struct mgx_plan_store *store)
{
    assert(!store->parent);
    *late = (struct mgx_plan_late){
        .program = p, .store = store, .choices = {.limit = MGX_PLAN_CHOICE_BYTES}};
    pthread_mutex_init(&late->lock, NULL);
}

void mgx_plan_late_fini(struct mgx_plan_late *late)
{
    mgx_plan_choices_destroy(late);
    mgx_plan_blocks_close(late->blocks);
    mgx_map_fini(&late->literals);
    pthread_mutex_destroy(&late->lock);
}
