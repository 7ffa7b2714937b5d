// SPDX-License-Identifier: MIT
// The pass manager: runs a pipeline and does the housekeeping around every pass.
//
//   for each pass:  skip it if disabled or spared (history.h)
//                   run it over each module, bodies first, or the program
//                   changed?  remove dead code, bring shapes up to date
//                   debug or asked?  verify, and name the pass in the failure
//                   rewind its scratch arena, report to the trace
//
// Holds: a module pass never sees modules marked `bypass` (bodies of fused kernels). Costs
// O(instructions) a pass beyond the pass itself.
#include <assert.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "pass/engine/history.h"
#include "pass/engine/rewrite.h"
#include "pass/engine/walk.h"

#define DEFAULT_FOLD_LIMIT ((size_t)64 << 20)
#define DEFAULT_FOLD_TOTAL ((size_t)256 << 20)

static bool is_disabled(const struct mgx_pass_options *o, const char *name)
{
    assert(name);
    for (int i = 0; i < o->disabled_count; i++)
        if (strcmp(o->disabled[i], name) == 0)
            return true;
    return false;
}

static enum mgx_status run_modules(struct mgx_pass_call *c, const struct mgx_pass *pass)
{
    assert(!pass->module != !pass->rules.count && !pass->program);
    int count = 0;
    struct mgx_module **modules = mgx_modules_bodies_first(c->program, c->scratch, &count);
    if (!modules)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++) {
        if (modules[i]->bypass)
            continue;
        const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
        TRY(pass->module ? pass->module(c, modules[i])
                         : mgx_apply_rules(c, modules[i], pass->rules.v, pass->rules.count));
        if (c->scratch->failed)
            return mgx_fail_memory(c->diag);
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

// After a change: what died goes, literals with their bytes, and shapes downstream of changed
// strides follow.
static enum mgx_status tidy(struct mgx_pass_call *c, const struct mgx_pass *pass)
{
    assert(c->changed);
    if (pass->program != mgx_remove_dead)
        TRY(mgx_remove_dead(c));
    TRY(mgx_program_drop_literals(c->program, c->diag));
    return mgx_refresh_shapes(c->program, c->scratch, c->diag);
}

static bool should_verify(const struct mgx_pass_options *o)
{
#ifdef NDEBUG
    return o->verify;
#else
    (void)o;
    return true;
#endif
}

// What who watches is told of a pass that is through.
static void report(struct mgx_pass_call *c, const char *pass, enum mgx_status status, bool changed,
                   double elapsed)
{
    const struct mgx_pass_options *o = c->options;
    if (status != MGX_OK && status != MGX_CANCELLED && o->failed)
        o->failed(o->trace_user, pass, c->program, c->diag ? c->diag->text : "");
    if (status != MGX_OK)
        mgx_where(c->diag, "pass %s", pass);
    else if (o->trace)
        o->trace(o->trace_user, pass, c->program, changed, elapsed);
}

static enum mgx_status apply(struct mgx_pass_call *c, const struct mgx_pass *pass)
{
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    const bool outer_changed = c->changed;
    const double start = mgx_clock_seconds();
    c->changed = false;
    enum mgx_status status = pass->program ? pass->program(c) : run_modules(c, pass);
    if (status == MGX_OK)
        status = mgx_program_status(c->program, c->diag);
    if (status == MGX_OK)
        status = mgx_cancel_check(c->diag);
    const bool changed = c->changed;
    if (status == MGX_OK && changed)
        status = tidy(c, pass);
    const double elapsed = 1e6 * (mgx_clock_seconds() - start);
    if (status == MGX_OK && changed && should_verify(c->options))
        status = mgx_program_verify(c->program, c->diag);
    mgx_arena_rewind(c->scratch, mark);
    c->changed = outer_changed || changed;
    report(c, pass->name, status, changed, elapsed);
    return status;
}

enum mgx_status mgx_pass_apply(struct mgx_pass_call *c, const struct mgx_pass *pass)
{
    assert(pass->name);
    struct mgx_pass_trail *trail = c->options->trail;
    const bool outer_changed = c->changed;
    if (!trail)
        return apply(c, pass);
    if (mgx_trail_spares(trail, pass, c->program))
        return MGX_OK;
    struct mgx_pass_event *const noted = mgx_trail_begin(trail, pass, c->program);
    c->changed = false;
    const enum mgx_status status = apply(c, pass);
    mgx_trail_end(trail, noted, c->changed);
    c->changed |= outer_changed;
    return status;
}

enum mgx_status mgx_pass_apply_all(struct mgx_pass_call *c, const struct mgx_pass *const *passes)
{
    for (; *passes; passes++)
        if (!is_disabled(c->options, (*passes)->name))
            TRY(mgx_pass_apply(c, *passes));
    return MGX_OK;
}

// Folding so much leaves a heap of holes, which goes back to the system. After less the heap is
// kept: a plan for one more size is made in some milliseconds, and pages that come back cost one.
enum { MUCH = 1 << 20 };

enum mgx_status mgx_run_passes(struct mgx_program *p, const struct mgx_pass *const *passes,
                               const struct mgx_pass_options *options, struct mgx_diag *diag)
{
    struct mgx_pass_options o = options ? *options : (struct mgx_pass_options){0};
    if (!o.fold_limit_bytes)
        o.fold_limit_bytes = DEFAULT_FOLD_LIMIT;
    if (!o.fold_total_bytes)
        o.fold_total_bytes = DEFAULT_FOLD_TOTAL;
    struct mgx_arena scratch;
    mgx_arena_init(&scratch);
    struct mgx_rule_cache rules;
    mgx_rule_cache_init(&rules);
    struct mgx_pass_call call = {
        .program = p, .scratch = &scratch, .options = &o, .rules = &rules, .diag = diag};
    mgx_cancel_enter();
    const enum mgx_status status = mgx_pass_apply_all(&call, passes);
    mgx_cancel_leave();
    mgx_rule_cache_fini(&rules);
    mgx_arena_fini(&scratch);
    if (call.folded_bytes >= MUCH)
        mgx_memory_trim();
    return status;
}
