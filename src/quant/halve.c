// SPDX-License-Identifier: MIT
// Products that stay in 16 bits while others become bytes:
//
//     dot(x, w)    =>   convert[t](dot(convert[half](x), convert[half](w)))
//
// That is what quantize_fp16 makes of them, so that it finds nothing to do there if it comes after.
// O(instructions).
#include "pass/data_type.h"
#include "quant/apply.h"

// The products in question, by address; false when out of memory.
static bool gather(const struct mgx_recipe *r, const struct mgx_sites *sites, struct mgx_map *out)
{
    bool good = true;
    for (int64_t i = 0; i < r->count && good; i++)
        good =
            r->v[i].type != MGX_HALF || mgx_map_put_pointer(out, sites->v[i].ins, sites->v[i].ins);
    return good;
}

static enum mgx_status halve(struct mgx_program *p, const struct mgx_map *products,
                             struct mgx_diag *diag)
{
    static const struct mgx_pass *const after[] = {&mgx_pass_optimize_module,
                                                   &mgx_pass_dead_code_elimination, NULL};
    static const struct mgx_pass_options options = {.fast_math = false};
    const struct mgx_data_types types = {.types =
                                             MGX_TYPE_BIT(MGX_FLOAT) | MGX_TYPE_BIT(MGX_DOUBLE),
                                         .target = MGX_HALF,
                                         .only = products,
                                         .saturate = true};
    struct mgx_arena scratch;
    mgx_arena_init(&scratch);
    struct mgx_pass_call call = {
        .program = p, .scratch = &scratch, .options = &options, .diag = diag};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < p->module_count && status == MGX_OK; i++)
        if (!p->modules[i]->bypass)
            status = mgx_eliminate_data_type(&call, p->modules[i], &types);
    mgx_arena_fini(&scratch);
    // Weights are halves then.
    return status == MGX_OK ? mgx_run_passes(p, after, &options, diag) : status;
}

enum mgx_status mgx_recipe_halve(const struct mgx_recipe *r, const struct mgx_sites *sites,
                                 struct mgx_diag *diag)
{
    struct mgx_map products = {0};
    enum mgx_status status = MGX_OK;
    if (!gather(r, sites, &products))
        status = mgx_fail_memory(diag);
    else if (products.count)
        status = halve(sites->v[0].ins->owner->program, &products, diag);
    mgx_map_fini(&products);
    return status;
}
