// SPDX-License-Identifier: MIT
// An import: its options with their defaults and limits, its memory, and giving all of that back;
// see graph.h.
#include "onnx/graph.h"

enum {
    DEFAULT_NODES = 10000000,
    DEFAULT_DEPTH = 64,
};
#define DEFAULT_TENSOR_BYTES ((size_t)4 << 30)
#define SCRATCH_BYTES ((size_t)1 << 30)

// --- limits ---

static struct mgx_onnx_options with_defaults(const struct mgx_onnx_options *given)
{
    struct mgx_onnx_options o = given ? *given : (struct mgx_onnx_options){0};
    if (o.max_loop_iterations <= 0)
        o.max_loop_iterations = MGX_ONNX_DEFAULT_LOOP;
    if (o.limit_loop_iterations <= 0)
        o.limit_loop_iterations = MGX_ONNX_LIMIT_LOOP;
    if (o.limit_nodes <= 0)
        o.limit_nodes = DEFAULT_NODES;
    if (o.limit_depth <= 0)
        o.limit_depth = DEFAULT_DEPTH;
    return o;
}

static enum mgx_status check_options(const struct mgx_onnx_options *o, struct mgx_diag *diag)
{
    const bool range =
        o->default_dyn_dim.max > 0 && !(o->default_dyn_dim.min == 1 && o->default_dyn_dim.max == 1);
    if (o->default_dim_value < 0)
        return mgx_fail(diag, MGX_INVALID, "default_dim_value %lld is negative",
                        (long long)o->default_dim_value);
    if (o->default_dim_value > 0 && range)
        return mgx_fail(diag, MGX_INVALID,
                        "default_dim_value and default_dyn_dim_value are both set");
    for (int i = 0; i < o->input_count; i++)
        if (o->inputs[i].count < 0 || o->inputs[i].count > MGX_MAX_RANK)
            return mgx_fail(diag, MGX_INVALID, "rank %d of input \"%s\" is not from 0 to %d",
                            o->inputs[i].count, o->inputs[i].name, MGX_MAX_RANK);
    return MGX_OK;
}

enum mgx_status mgx_onnx_check_time(struct mgx_onnx_import *import)
{
    return mgx_fold_check_time(&import->fold, import->diag);
}

enum mgx_status mgx_onnx_spend(struct mgx_onnx_import *import, size_t bytes, const char *what)
{
    return mgx_fold_spend(&import->fold, bytes, what, import->diag);
}

// --- begin and end ---

enum mgx_status mgx_onnx_begin(struct mgx_onnx_import *import,
                               const struct mgx_onnx_options *options, struct mgx_diag *diag)
{
    *import = (struct mgx_onnx_import){.options = with_defaults(options)};
    import->diag = diag ? diag : &import->own_diag;
    mgx_fold_init(&import->fold, import->options.limit_bytes, import->options.limit_seconds);
    if (!import->options.limit_bytes)
        import->options.limit_bytes = DEFAULT_TENSOR_BYTES;
    import->missing.arena = &import->arena;
    mgx_arena_init(&import->arena);
    mgx_arena_init(&import->scratch);
    import->scratch.limit = SCRATCH_BYTES; // a rule may ask for what the model's sizes say
    return check_options(&import->options, import->diag);
}

void mgx_onnx_end(struct mgx_onnx_import *import)
{
    mgx_source_fini(&import->source);
    mgx_map_fini(&import->functions);
    mgx_fold_fini(&import->fold, import->program);
    mgx_missing_fini(&import->missing);
    mgx_arena_fini(&import->scratch);
    mgx_arena_fini(&import->arena);
}
