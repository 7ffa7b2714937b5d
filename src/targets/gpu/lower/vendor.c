// SPDX-License-Identifier: MIT
// Products by a library of the card's maker, where measuring, a word kept or the caller prefers it:
//
//     whole   the library does what follows too, and writes the result
//     bare    it leaves the product in the workspace, a kernel of ours makes the result of it
//
// Who is asked: with the setting `gemm_provider` "own" nobody; with a library's name that one, for
// every product; else all that the card has, but only with exhaustive_tune, or where the tuning
// cache or a saved program names one. So an ordinary compilation opens no library. Whatever goes
// wrong on the way leaves our own kernel, and the plan says why.
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "plan/contest.h"
#include "plan/kernel.h"
#include "targets/gpu/lower/vendor.h"
#include "targets/gpu/lower/wgmma.h"

struct step {
    struct gpu_call base; // first: the kernel behind a bare product; without a unit there is none
    struct gpu_vendor_call *call;
    int a, b, add, bias; // numbers of inputs
    bool whole;
    size_t product_bytes;
    unsigned alignment;
};

// --- the step ---

static const void *input_of(const struct mgx_plan_args *args, int input)
{
    return input < 0 ? NULL : args->in[input];
}

// A caller's address may be anything.
static enum mgx_status check_addresses(const struct step *s, const struct gpu_vendor_args *a,
                                       struct mgx_diag *diag)
{
    const void *const all[] = {a->a, a->b, a->add, a->bias, a->out};
    for (int i = 0; i < MGX_COUNT(all); i++)
        if ((uintptr_t)all[i] % s->alignment)
            return mgx_fail(diag, MGX_INVALID,
                            "an operand lies at %p: %s was asked for multiples of %u bytes", all[i],
                            s->call->library->vendor->title, s->alignment);
    return MGX_OK;
}

static enum mgx_status run_tail(const struct step *s, const struct mgx_plan_args *args,
                                void *product, struct mgx_diag *diag)
{
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 2] = {{&args->out, sizeof(void *), true},
                                                {&product, sizeof(void *), true}};
    for (int i = 0; i < s->base.in_count; i++)
        list[i + 2] = (struct gpu_arg){&args->in[s->base.in[i]], sizeof(void *), true};
    return d->api->launch(d, gpu_queue_stream(args->queue), s->base.kernel, &s->base.how, list,
                          s->base.in_count + 2, diag);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct step *s = step->state;
    unsigned char *work = (unsigned char *)gpu_vendor_rounded((uintptr_t)args->workspace);
    const struct gpu_vendor_args call = {.a = input_of(args, s->a),
                                         .b = input_of(args, s->b),
                                         .add = input_of(args, s->add),
                                         .bias = input_of(args, s->bias),
                                         .out = s->whole ? args->out : work,
                                         .workspace = work + s->product_bytes,
                                         .stream = gpu_queue_stream(args->queue)};
    TRY(check_addresses(s, &call, diag));
    TRY(gpu_vendor_run(s->call, &call, diag));
    return s->whole ? MGX_OK : run_tail(s, args, work, diag);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct step *s = step->state;
    (void)plan;
    return s->base.unit ? gpu_unit_kernel(s->base.unit, "run", 0, &s->base.kernel, diag) : MGX_OK;
}

// --- planning ---

static void note(const struct mgx_plan_offer *c, const char **why, const char *said)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text, "%s%s%s", *why ? *why : "", *why ? "; " : "", said);
    *why = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
}

static int rank(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                const struct gpu_vendor_library *library, bool whole,
                struct gpu_vendor_entry *entries, const char **why)
{
    struct gpu_vendor_choice choices[GPU_VENDOR_CHOICES];
    struct mgx_diag quiet = {.status = MGX_OK};
    int count = 0;
    if (gpu_vendor_rank(library, whole ? &v->whole : &v->bare, choices, &count, &quiet) != MGX_OK)
        note(c, why, quiet.text);
    for (int i = 0; i < count; i++)
        entries[i] = (struct gpu_vendor_entry){library, choices[i], whole};
    return count;
}

static void note_none(const struct mgx_plan_offer *c, const char **why,
                      const struct gpu_vendor *vendor)
{
    char text[80];
    snprintf(text, sizeof text, "%s has no algorithm for this product", vendor->title);
    note(c, why, text);
}

// What one library has: the whole where it can, else the product alone.
static int find_in(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                   const struct gpu_vendor *vendor, struct gpu_vendor_entry *entries,
                   const char **why)
{
    const struct gpu_vendor_library *library;
    struct mgx_diag quiet = {.status = MGX_OK};
    const char *before = *why;
    int count = 0;
    if (vendor->windows ? !v->whole.window.axes : !v->whole.matrices)
        return 0;
    if (gpu_vendor_open(vendor, gpu_machine(c->machine)->device, &library, &quiet) != MGX_OK) {
        note(c, why, quiet.text);
        return 0;
    }
    if (!v->why && (v->whole.last & ~vendor->last) == 0)
        count = rank(c, v, library, true, entries, why);
    if (count == 0 && v->p.tail)
        count = rank(c, v, library, false, entries, why);
    if (count == 0 && *why == before)
        note_none(c, why, vendor);
    return count;
}

static bool is_asked(const struct gpu_machine *m, const struct gpu_vendor *vendor)
{
    return m->provider ? strcmp(m->provider, vendor->name) == 0 : vendor->api == m->device->api;
}

static int find_entries(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                        struct gpu_vendor_entry *entries, const char **why)
{
    const struct gpu_machine *m = gpu_machine(c->machine);
    int count = 0;
    *why = NULL;
    for (int i = 0; gpu_vendors[i] && count + GPU_VENDOR_CHOICES <= GPU_VENDOR_ENTRIES; i++) {
        const struct gpu_vendor *vendor = gpu_vendors[i];
        if (is_asked(m, vendor))
            count += find_in(c, v, vendor, entries + count, why);
    }
    return count;
}

static void destroy(void *call)
{
    gpu_vendor_destroy(call);
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                                 const struct gpu_vendor_entry *e, const char *said)
{
    struct step *s = MGX_NEW(c->arena, struct step);
    struct mgx_str text = {0};
    struct gpu_launch how;
    if (!s)
        return mgx_plan_no_memory(c);
    *s = (struct step){.a = v->p.operand[0],
                       .b = v->p.operand[1],
                       .add = e->whole ? v->add : -1,
                       .bias = e->whole ? v->bias : -1,
                       .whole = e->whole,
                       .product_bytes = gpu_vendor_product_bytes(v, e),
                       .alignment = v->whole.alignment};
    struct mgx_diag quiet = {.status = MGX_OK};
    if (gpu_vendor_make(e->library, e->whole ? &v->whole : &v->bare, &e->choice, &s->call,
                        &quiet) != MGX_OK)
        return gpu_decline(c, mgx_arena_strdup(c->arena, quiet.text));
    if (!mgx_plan_at_end(c->store, destroy, s->call, c->diag))
        return MGX_PLAN_FAILED;
    c->workspace = gpu_vendor_workspace(v, e);
    mgx_str_printf(&text, "%s%s%s%s", e->choice.name,
                   !v->p.tail ? ""
                   : e->whole ? ", with its tail"
                              : ", element-wise tail behind it",
                   said ? "; " : "", said ? said : "");
    c->detail = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    c->flops = 2.0 * (double)v->whole.rows * (double)v->whole.columns * (double)v->whole.depth *
               (double)v->whole.batches;
    c->state = s;
    if (e->whole)
        return MGX_PLAN_TAKEN;
    const char *why = gpu_vendor_emit_tail(&text, c, v, &how);
    if (!why)
        return gpu_take_call(c, &s->base, &text, &how, v->p.extra, v->p.extra_count);
    mgx_str_fini(&text);
    return gpu_decline(c, why);
}

// Where operands should lie otherwise for our kernel, it says so before it is measured.
static bool has_wish(const struct mgx_plan_offer *c)
{
    struct gpu_wgmma_product g;
    bool wish = false;
    if (!gpu_wgmma_read((struct mgx_plan_offer *)c, &g))
        return false;
    for (int i = 0; i < c->in_count; i++)
        wish = wish || c->want_in[i] != MGX_PLAN_AS_IT_IS;
    return wish;
}

// A library convolves images whose channels are innermost with weights that lie so too: constants are
// put in that order once, where there is such a library at all.
static bool wish_weights(struct mgx_plan_offer *c, const struct gpu_vendor_view *v)
{
    const struct gpu_machine *m = gpu_machine(c->machine);
    const struct gpu_vendor_window *w = &v->whole.window;
    const int input = v->p.operand[1];
    bool open = false;
    if (!w->axes || !c->constant[input] || w->image.strides[1] != 1 || w->result.strides[1] != 1 ||
        w->weights.strides[1] == 1 || w->weights.lens[1] == 1)
        return false;
    for (int i = 0; gpu_vendors[i]; i++) {
        const struct gpu_vendor_library *library;
        struct mgx_diag quiet = {.status = MGX_OK};
        open = open || (gpu_vendors[i]->windows && is_asked(m, gpu_vendors[i]) &&
                        gpu_vendor_open(gpu_vendors[i], m->device, &library, &quiet) == MGX_OK);
    }
    if (open)
        c->want_in[input] = MGX_PLAN_LIKE_RESULT;
    return open;
}

// Operands in lines are what every library takes.
static enum mgx_plan_answer decline_product(struct mgx_plan_offer *c,
                                            const struct gpu_vendor_view *v, const char *why)
{
    const bool named = gpu_machine(c->machine)->provider != NULL;
    if (named && v->whole.rows)
        for (int i = 0; i < 2; i++)
            if (!mgx_shape_is_standard(&c->in[v->p.operand[i]]))
                c->want_in[v->p.operand[i]] = MGX_PLAN_ROW_MAJOR;
    return gpu_decline(c, named ? why : NULL);
}

static const char *join(const struct mgx_plan_offer *c, const char *said, const char *reason)
{
    struct mgx_str text = {0};
    if (!said || !reason)
        return said ? said : reason;
    mgx_str_printf(&text, "%s: %s", said, reason);
    const char *both = mgx_arena_strdup(c->arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return both;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const struct gpu_machine *m = gpu_machine(c->machine);
    const bool tunes = c->tuner && c->tuner->exhaustive;
    struct gpu_vendor_view v;
    struct gpu_vendor_entry entries[GPU_VENDOR_ENTRIES];
    const char *said = NULL, *reason = NULL;
    int choice = -1;
    if (m->own_products || (m->device->api != &gpu_api_cuda && m->device->api != &gpu_api_hip))
        return gpu_decline(c, NULL);
    const char *why = gpu_vendor_see(c, &v);
    if (why)
        return decline_product(c, &v, why);
    if (!m->provider && !tunes && !gpu_vendor_is_kept(c, &v))
        return gpu_decline(c, NULL);
    if ((!m->provider && has_wish(c)) || wish_weights(c, &v))
        return gpu_decline(c, NULL);
    const int count = find_entries(c, &v, entries, &reason);
    if (gpu_vendor_choose(c, &v, entries, count, &choice, &said) != MGX_OK)
        return MGX_PLAN_FAILED;
    if (choice >= 0)
        return take(c, &v, &entries[choice], said);
    return gpu_decline(c, join(c, said, count ? NULL : reason));
}

static const struct gpu_family family = {finish};

const struct mgx_plan_kernel gpu_kernel_vendor = {
    .name = "gpu::vendor", .prepare = prepare, .run = run, .more = &family};
