// SPDX-License-Identifier: MIT
// Instructions by what they depend on, and the values between the two parts.
#include "generate/beforehand.h"

#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"

// What an instruction depends on: constants, given inputs as they come, products of them, or more.
enum depends { CONSTANT, GIVEN, WORK, MORE };

static bool is_given(const struct mgx_ins *param, const char *const *given, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(mgx_parameter_name(param), given[i]) == 0)
            return true;
    return false;
}

static enum depends depends_of(const struct mgx_ins *ins)
{
    int64_t most = CONSTANT;
    if (ins->literal)
        return CONSTANT;
    for (int i = 0; i < ins->in_count; i++)
        most = mgx_max_i64(most, ins->in[i]->mark);
    if (ins->mod_count || ins->shape.unranked || !mgx_is_pure(ins))
        return MORE;
    return most == GIVEN && mgx_is_product(ins) ? WORK : (enum depends)most;
}

static void mark(struct mgx_module *m, const char *const *given, int count)
{
    MGX_EACH (ins, m)
        ins->mark = ins->op != &mgx_op_param      ? (int64_t)depends_of(ins)
                    : is_given(ins, given, count) ? GIVEN
                                                  : MORE;
}

static bool is_told(const struct mgx_ins *ins)
{
    if (ins->mark != WORK || !mgx_type_is_float(ins->shape.type))
        return false;
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->mark == MORE)
            return true;
    return false;
}

static int find_told(struct mgx_module *m, struct mgx_ins **told)
{
    int count = 0;
    struct mgx_ins *end = mgx_module_return(m);
    if (end)
        end->mark = MORE;
    MGX_EACH (ins, m)
        if (is_told(ins))
            told[count++] = ins;
    return count;
}

// --- what lengths.h shares ---

enum mgx_status mgx_copy_for(struct mgx_program *p, struct mgx_ins *const *results, int count,
                             struct mgx_program **out, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    const int old = mgx_module_result_count(m);
    struct mgx_ins **own = MGX_NEW_ARRAY(&p->arena, struct mgx_ins *, old + 1);
    if (!own)
        return mgx_fail_memory(diag);
    for (int i = 0; i < old; i++)
        own[i] = mgx_module_result(m, i);
    mgx_add_return(m, results, count);
    TRY(mgx_program_status(p, diag));
    TRY(mgx_program_clone(out, p, diag));
    (*out)->output_names.count = 0;
    mgx_add_return(m, own, old);
    return mgx_program_status(p, diag);
}

enum mgx_status mgx_make_inputs(struct mgx_program *p, const char *prefix,
                                struct mgx_ins *const *values, int count, struct mgx_diag *diag)
{
    for (int i = 0; i < count; i++) {
        const char *name = mgx_arena_printf(&p->arena, "%s:%d", prefix, i);
        struct mgx_ins *param =
            name ? mgx_add_parameter(mgx_program_main(p), name, &values[i]->shape) : NULL;
        if (param)
            mgx_replace_uses(values[i], param);
    }
    return mgx_program_status(p, diag);
}

void mgx_drop_unread(struct mgx_module *m)
{
    MGX_EACH (ins, m)
        if (ins->op == &mgx_op_param && !ins->uses)
            mgx_remove(ins);
}

enum mgx_status mgx_tidy(struct mgx_program *p, struct mgx_diag *diag)
{
    static const struct mgx_pass *const passes[] = {
        &mgx_pass_normalize_ops, &mgx_pass_eliminate_identity,    &mgx_pass_propagate_constant,
        &mgx_pass_inline_module, &mgx_pass_dead_code_elimination, NULL};
    TRY(mgx_program_status(p, diag));
    TRY(mgx_run_passes(p, passes, NULL, diag));
    mgx_drop_unread(mgx_program_main(p));
    return mgx_program_drop_literals(p, diag);
}

// --- taking it out ---

enum mgx_status mgx_take_beforehand(struct mgx_program *decoder, const char *const *given,
                                    int given_count, struct mgx_program **before, int *count,
                                    struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(decoder);
    struct mgx_arena scratch;
    mgx_arena_init(&scratch);
    struct mgx_ins **told = MGX_NEW_ARRAY(&scratch, struct mgx_ins *, m->count + 1);
    enum mgx_status status = told ? MGX_OK : mgx_fail_memory(diag);
    *before = NULL;
    *count = 0;
    if (status == MGX_OK) {
        mark(m, given, given_count);
        *count = find_told(m, told);
    }
    if (status == MGX_OK && *count)
        status = mgx_copy_for(decoder, told, *count, before, diag);
    if (status == MGX_OK && *count)
        status = mgx_make_inputs(decoder, "told", told, *count, diag);
    mgx_arena_fini(&scratch);
    return status;
}
