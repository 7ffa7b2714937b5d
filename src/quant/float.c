// SPDX-License-Identifier: MIT
// Quantization to half and bfloat16.
//
//     normalize_ops, optimize_module      constants are folded while they have all their digits
//     eliminate_data_type                 float and double: op(x) => convert(op(convert[half](x)))
//     optimize_module                     conversions that meet go, literals become half
//
// What only moves values keeps its type; the conversions around it move along. Numbers beyond the
// narrow type become its largest ones: as infinities, masks would make NaN of rows that are masked
// out. isinf keeps its type, since it asks for just that.
#include <string.h>

#include "pass/data_type.h"
#include "quant/quant.h"

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0 || strcmp(names[i], "all") == 0)
            return true;
    return count == 0;
}

// The operators that are not asked for; ends with NULL. NULL when out of memory.
static const struct mgx_op *const *others(struct mgx_arena *arena, const char *const *names,
                                          size_t count)
{
    int all, kept = 0;
    const struct mgx_op *const *ops = mgx_op_all(&all);
    const struct mgx_op **list = MGX_NEW_ARRAY(arena, const struct mgx_op *, all + 1);
    for (int i = 0; list && i < all; i++)
        if (!is_named(names, count, ops[i]->name) || ops[i] == &mgx_op_isinf)
            list[kept++] = ops[i];
    return list;
}

static enum mgx_status narrow(struct mgx_pass_call *c, const struct mgx_data_types *types)
{
    for (int i = 0; i < c->program->module_count; i++)
        if (!c->program->modules[i]->bypass)
            TRY(mgx_eliminate_data_type(c, c->program->modules[i], types));
    return mgx_program_status(c->program, c->diag);
}

enum mgx_status mgx_quantize_float(struct mgx_program *p, enum mgx_type type,
                                   const char *const *names, size_t count, struct mgx_diag *diag)
{
    static const struct mgx_pass *const before[] = {&mgx_pass_normalize_ops,
                                                    &mgx_pass_optimize_module, NULL};
    static const struct mgx_pass *const after[] = {&mgx_pass_optimize_module,
                                                   &mgx_pass_dead_code_elimination, NULL};
    static const struct mgx_pass_options options = {.fast_math = false};
    struct mgx_arena scratch;
    mgx_arena_init(&scratch);
    const struct mgx_data_types types = {.types =
                                             MGX_TYPE_BIT(MGX_FLOAT) | MGX_TYPE_BIT(MGX_DOUBLE),
                                         .target = type,
                                         .keep = others(&scratch, names, count),
                                         .saturate = true};
    struct mgx_pass_call call = {
        .program = p, .scratch = &scratch, .options = &options, .diag = diag};
    enum mgx_status status =
        types.keep ? mgx_run_passes(p, before, &options, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = narrow(&call, &types);
    if (status == MGX_OK)
        status = mgx_run_passes(p, after, &options, diag);
    if (status == MGX_OK)
        status = mgx_program_check_files(p, diag);
    mgx_arena_fini(&scratch);
    return status;
}
