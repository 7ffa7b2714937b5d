// SPDX-License-Identifier: MIT
// Products of 16 rows at most by constant weights, a token of a decoder above all: each weight is read
// once, and nothing else takes time (kernel/few_units.gpu, on cards without its instruction few.gpu).
//
//     dot   x: rows, those of all batch entries together, one stride apart; w: constant
//
// Weights of 2, 4 and 8 bits with scales for blocks (dequantize_blocks) are read as they are; they become
// floats in registers. Those of 16 bits lie as gpu::wgmma's do. x begins at a multiple of 16 bytes.
#include "targets/gpu/lower/few.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "plan/join.h"
#include "targets/gpu/lower/wgmma.h"

enum { KEY = 9 };

// --- what is offered ---

bool gpu_few_supports(const struct mgx_ins *dot)
{
    assert(dot->in_count >= 2);
    const struct mgx_shape *s = &dot->shape;
    return mgx_shape_is_static(s) && s->rank >= 2 &&
           mgx_shape_elements(s) <= GPU_FEW_ROWS * s->lens[s->rank - 1];
}

static const char *read_rows(struct mgx_plan_offer *c, struct gpu_few *f)
{
    const int input = f->p.operand[0];
    const struct mgx_shape *x = &c->in[input];
    const int last = x->rank - 1, values = 16 / (int)mgx_type_size(x->type);
    int axes[MGX_MAX_RANK];
    for (int i = 0; i < last; i++)
        axes[i] = i;
    if (!gpu_wgmma_merge(x, axes, last, &f->pitch) || (x->strides[last] != 1 && f->p.depth > 1)) {
        c->want_in[input] = MGX_PLAN_ROW_MAJOR;
        return "rows that are no lines";
    }
    f->wide = f->p.depth % 8 == 0 && f->pitch % values == 0 &&
              (!c->in_offset || c->in_offset[input] % 16 == 0);
    return NULL;
}

// Weights of blocks, if the operand is all of them, turned.
static bool read_blocks(const struct mgx_plan_offer *c, struct gpu_few_weights *w)
{
    const struct mgx_ins *ins = mgx_plan_join_of(c->store, w->values.data);
    const struct mgx_shape *s = &w->values.shape;
    if (!ins || ins->op != &mgx_op_dequantize_blocks || ins->shape.lens[0] != w->n ||
        ins->shape.lens[1] != w->k || (w->k > 1 && s->strides[s->rank - 2] != 1) ||
        (w->n > 1 && s->strides[s->rank - 1] != w->k))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (!(w->source[i] = ins->in[i]->literal))
            return false;
    if (!mgx_shape_is_standard(&w->source[GPU_FEW_W]->shape))
        return false;
    const enum mgx_type scale = ins->shape.type;
    w->blocks = ins;
    w->bits = (int)mgx_ins_int(ins, "bits");
    w->block = w->source[0]->shape.lens[2] * 8 / w->bits;
    w->blocks_of_row = w->source[0]->shape.lens[1];
    w->zeros = ins->in_count > 2;
    return w->block >= 16 && w->block % 16 == 0 &&
           (mgx_type_is_half_or_bf16(scale) || scale == MGX_FLOAT);
}

static void read_weights(const struct mgx_plan_offer *c, struct gpu_few *f)
{
    struct gpu_few_weights *w = &f->w;
    w->values = *c->constant[f->p.operand[1]];
    w->n = f->p.columns;
    w->k = f->p.depth;
    if (read_blocks(c, w))
        return;
    w->blocks = NULL;
    w->zeros = false;
    w->bits = 8 * (int)mgx_type_size(f->type);
}

// Does the instruction of matrix units take these operands on this card?
static bool has_units(const struct mgx_plan_offer *c, const struct gpu_few *f)
{
    enum { AMPERE = 80 };
    const struct gpu_few_weights *w = &f->w;
    const bool even = w->block >= w->k || (w->block & (w->block - 1)) == 0;
    return gpu_machine(c->machine)->device->properties.version >= AMPERE && f->type != MGX_FLOAT &&
           (!w->blocks || (even && (!w->zeros || gpu_few_zeros_are_numbers(w))));
}

static const char *read(struct mgx_plan_offer *c, struct gpu_few *f)
{
    memset(f, 0, sizeof *f);
    const char *why = gpu_product_read(c, &f->p);
    if (why || f->p.ins->op != &mgx_op_dot || !gpu_product_is_float(&f->p))
        return why ? why : "no dot of floats";
    if (gpu_machine(c->machine)->provider)
        return "a library is named";
    f->rows = f->p.batches * f->p.rows;
    f->type = c->in[f->p.operand[0]].type;
    const struct mgx_shape *b = &c->in[f->p.operand[1]];
    if (f->rows > GPU_FEW_ROWS || f->rows < 1 || f->p.columns < 1 || f->p.depth < 1)
        return "more rows than a few, or none";
    if (b->type != f->type || (!mgx_type_is_half_or_bf16(f->type) && f->type != MGX_FLOAT))
        return "operands that are not both half, both bf16 or both float";
    if (!c->constant[f->p.operand[1]])
        return "a right operand that is computed";
    for (int i = 0; i < b->rank - 2; i++)
        if (b->lens[i] > 1 && b->strides[i])
            return "another right operand for every batch entry";
    why = read_rows(c, f);
    if (why)
        return why;
    read_weights(c, f);
    f->w.units = has_units(c, f);
    return NULL;
}

// --- weights on the card ---

// The first source is the part itself.
static void make_key(const struct gpu_few_weights *w, int part, int64_t desc[KEY],
                     struct mgx_plan_key *key)
{
    const struct mgx_shape *s = w->blocks ? &w->source[part]->shape : &w->values.shape;
    const int64_t all[KEY] = {w->n,
                              w->k,
                              w->bits,
                              w->block,
                              part,
                              w->units && w->blocks,
                              w->row,
                              s->strides[s->rank - 2],
                              s->strides[s->rank - 1]};
    memcpy(desc, all, sizeof all);
    *key = (struct mgx_plan_key){.kernel = "gpu few",
                                 .source = {w->blocks ? w->source[part]->data : w->values.data},
                                 .desc = desc,
                                 .desc_bytes = sizeof all};
}

// At once, so that what other plans find is complete.
static enum mgx_status bring(struct mgx_plan_store *store, const struct gpu_few_weights *w,
                             int part, void *to, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = store->machine->memory;
    struct mgx_queue *queue = memory->queue_create(memory);
    void *host = malloc(w->bytes[part]);
    enum mgx_status status = queue && host ? MGX_OK : mgx_fail_memory(diag);
    if (status == MGX_OK) {
        if (!w->blocks)
            mgx_plan_join_fill(store, w->values.data, false);
        gpu_few_pack(store->machine, w, part, host);
        if (!w->blocks)
            mgx_plan_join_drop(store, w->values.data);
        status = memory->copy_in(queue, to, host, w->bytes[part], diag);
        const enum mgx_status done = memory->wait(queue, diag);
        status = status == MGX_OK ? done : status;
    }
    if (queue)
        memory->queue_destroy(queue);
    free(host);
    return status;
}

// A part's room on the card, filled; where another plan of the model has it, that one. NULL on failure.
static void *place(struct mgx_plan_offer *c, const struct gpu_few_weights *w, int part)
{
    struct mgx_plan_key key;
    int64_t desc[KEY];
    bool fresh;
    make_key(w, part, desc, &key);
    void *room = mgx_plan_device_share(c->store, &key, w->bytes[part], &fresh, c->diag);
    if (room && fresh && bring(c->store, w, part, room, c->diag) != MGX_OK)
        return NULL;
    c->packed_bytes += w->bytes[part];
    return room;
}

void *gpu_few_place_rows(struct mgx_plan_offer *c, const struct mgx_tensor *weights,
                         int64_t columns, int64_t depth)
{
    assert(weights->data && columns > 0 && depth > 0);
    struct gpu_few_weights w = {.bits = 16, .n = columns, .k = depth, .values = *weights};
    gpu_few_size(&w);
    return place(c, &w, GPU_FEW_W);
}

// A part that is not there has the address of another, for no kernel reads it.
static bool place_all(struct mgx_plan_offer *c, struct gpu_few_call *k)
{
    for (int part = 0; part < GPU_FEW_PARTS; part++) {
        k->packed[part] = k->packed[0];
        if (k->f.w.bytes[part] && !(k->packed[part] = place(c, &k->f.w, part)))
            return false;
    }
    return true;
}

// --- the step ---

int gpu_few_weight_args(const struct gpu_few_weights *w, void *const *packed, struct gpu_arg *list,
                        int count)
{
    assert(count >= 0);
    for (int part = 0; part < (w->blocks ? GPU_FEW_PARTS : 1); part++)
        list[count++] = (struct gpu_arg){&packed[part], sizeof(void *), true};
    return count;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct gpu_few_call *k = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[2 + GPU_FEW_PARTS + GPU_CALL_INPUTS];
    void *const *x = &args->in[k->f.p.operand[0]];
    int count = 0;
    if (k->f.w.units && k->f.wide && (uintptr_t)*x % 16)
        return mgx_fail(diag, MGX_INVALID,
                        "the left operand lies at %p: this card wants multiples of 16 bytes", *x);
    list[count++] = (struct gpu_arg){&args->out, sizeof(void *), true};
    list[count++] = (struct gpu_arg){x, sizeof(void *), true};
    count = gpu_few_weight_args(&k->f.w, k->packed, list, count);
    for (int i = 0; i < k->base.in_count; i++)
        list[count++] = (struct gpu_arg){&args->in[k->base.in[i]], sizeof(void *), true};
    return d->api->launch(d, gpu_queue_stream(args->queue), k->base.kernel, &k->base.how, list,
                          count, diag);
}

static const char *detail_of(const struct mgx_plan_offer *c, const struct gpu_few *f)
{
    struct mgx_str text = {0};
    if (f->w.blocks)
        mgx_str_printf(&text, "weights of %d bits, ", f->w.bits);
    if (f->w.units)
        mgx_str_printf(&text, "matrix units, %d parts", f->parts);
    else
        mgx_str_put(&text, "a warp for a few columns");
    mgx_str_put(&text, f->p.tail ? ", element-wise tail" : "");
    const char *detail = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return detail;
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, const struct gpu_few *f,
                                 struct mgx_str *text)
{
    struct gpu_few_call *k = MGX_NEW(c->arena, struct gpu_few_call);
    if (!k) {
        mgx_str_fini(text);
        return mgx_plan_no_memory(c);
    }
    k->f = *f;
    if (!place_all(c, k)) {
        mgx_str_fini(text);
        return MGX_PLAN_FAILED;
    }
    const struct gpu_launch how = gpu_few_launch(f);
    const enum mgx_plan_answer answer =
        gpu_take_call(c, &k->base, text, &how, f->p.extra, f->p.extra_count);
    c->skip_in[f->p.operand[1]] = answer == MGX_PLAN_TAKEN;
    return answer;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_few f;
    struct mgx_str text = {0};
    const char *why = read(c, &f);
    if (why)
        return gpu_decline(c, why);
    gpu_few_size(&f.w);
    gpu_few_divide(&f, gpu_machine(c->machine)->device);
    why = gpu_few_emit(&text, c, &f);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    c->flops = 2.0 * (double)f.rows * (double)f.p.columns * (double)f.p.depth;
    c->detail = detail_of(c, &f);
    return take(c, &f, &text);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct gpu_few_call *k = step->state;
    (void)plan;
    return gpu_unit_stream_kernel(k->base.unit, "run", k->base.how.shared, &k->base.kernel, diag);
}

static const struct gpu_family family = {finish};

const struct mgx_plan_kernel gpu_kernel_few = {
    .name = "gpu::few", .prepare = prepare, .run = run, .more = &family};
