// SPDX-License-Identifier: MIT
// tree_ensemble: a row a thread, which walks all trees (kernel/trees.gpu).
//
// Nodes and leaves are tables of the text, in double where the card has it. Ensembles of more than
// MOST numbers, of more than TARGETS targets, with splits that are not finite or with a probit are the
// host's.
#include <inttypes.h>
#include <math.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { MOST = 8192, TARGETS = 32, MEMBER = 6, PROBIT = 4 };

static struct mgx_ints ints(const struct mgx_plan_offer *c, const char *name)
{
    return mgx_ins_ints(c->ins, name);
}

static struct mgx_doubles reals(const struct mgx_plan_offer *c, const char *name)
{
    return mgx_attr_reals(c->ins->op, c->ins->attr, name);
}

enum plain { FINITE, OR_NAN };

static bool all_plain(struct mgx_doubles v, bool wide, enum plain also)
{
    for (int i = 0; i < v.count; i++)
        if (!(isfinite(v.v[i]) || (also == OR_NAN && isnan(v.v[i]))) ||
            (!wide && v.v[i] != (float)v.v[i]))
            return false;
    return true;
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    const bool wide = gpu_has_double(c);
    if (gpu_type_class(c->out->type) != GPU_REAL || !gpu_computes(c, c->out->type) ||
        !gpu_computes(c, c->in[0].type))
        return "a type that kernels do not compute";
    if (ints(c, "nodes_modes").count > MOST || reals(c, "leaf_weights").count > MOST ||
        reals(c, "members").count > MOST || ints(c, "roots").count > MOST ||
        mgx_ins_int(c->ins, "targets") > TARGETS)
        return "an ensemble too large for a text";
    if (mgx_ins_int(c->ins, "post_transform") == PROBIT)
        return "a probit";
    if (!all_plain(reals(c, "nodes_splits"), wide, FINITE) ||
        !all_plain(reals(c, "leaf_weights"), wide, FINITE) ||
        !all_plain(reals(c, "base_values"), wide, FINITE) ||
        !all_plain(reals(c, "members"), wide, OR_NAN))
        return "numbers that a text does not hold";
    return NULL;
}

// --- tables, one number longer than they are, so that none is empty ---

static void put_ints(struct mgx_str *out, const char *name, struct mgx_ints v)
{
    mgx_str_printf(out, "CONSTANT int %s[%d] = {", name, v.count + 1);
    for (int i = 0; i < v.count; i++)
        mgx_str_printf(out, "%" PRId64 ", ", v.v[i]);
    mgx_str_put(out, "0};\n");
}

static void put_reals(struct mgx_str *out, const char *name, struct mgx_doubles v, bool wide)
{
    mgx_str_printf(out, "CONSTANT REAL %s[%d] = {", name, v.count + 1);
    for (int i = 0; i < v.count; i++)
        mgx_str_printf(out, "%.17e%s, ", isnan(v.v[i]) ? 0 : v.v[i], wide ? "" : "f");
    mgx_str_put(out, "0};\n");
}

// A list of members ends with a NaN, or with the table.
static void put_member_ends(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_doubles split = reals(c, "nodes_splits"), members = reals(c, "members");
    const struct mgx_ints mode = ints(c, "nodes_modes");
    mgx_str_printf(out, "CONSTANT int member_end[%d] = {", mode.count + 1);
    for (int i = 0; i < mode.count; i++) {
        int end = mode.v[i] == MEMBER ? (int)split.v[i] : 0;
        while (mode.v[i] == MEMBER && end < members.count && !isnan(members.v[end]))
            end++;
        mgx_str_printf(out, "%d, ", end);
    }
    mgx_str_put(out, "0};\n");
}

// Those that may be left out are as many zeros.
static void put_optional(struct mgx_str *out, const struct mgx_plan_offer *c, int targets)
{
    const struct mgx_ints missing = ints(c, "nodes_missing");
    const struct mgx_doubles base = reals(c, "base_values");
    const bool wide = gpu_has_double(c);
    if (missing.count)
        put_ints(out, "missing", missing);
    else
        mgx_str_printf(out, "CONSTANT int missing[%d] = {0};\n", ints(c, "nodes_modes").count + 1);
    if (base.count)
        put_reals(out, "base", base, wide);
    else
        mgx_str_printf(out, "CONSTANT REAL base[%d] = {0};\n", targets);
}

static void emit_tables(struct mgx_str *out, const struct mgx_plan_offer *c, int targets)
{
    const bool wide = gpu_has_double(c);
    mgx_str_printf(
        out,
        "#define REAL %s\n#define ROOTS %d\n#define TARGETS %d\n#define AGGREGATE %" PRId64
        "\n#define POST %" PRId64 "\n",
        wide ? "double" : "float", ints(c, "roots").count, targets,
        mgx_ins_int(c->ins, "aggregate"), mgx_ins_int(c->ins, "post_transform"));
    put_ints(out, "mode", ints(c, "nodes_modes"));
    put_ints(out, "feature", ints(c, "nodes_features"));
    put_reals(out, "split", reals(c, "nodes_splits"), wide);
    put_ints(out, "yes", ints(c, "nodes_true"));
    put_ints(out, "no", ints(c, "nodes_false"));
    put_ints(out, "root", ints(c, "roots"));
    put_ints(out, "leaf_begin", ints(c, "leaf_begin"));
    put_ints(out, "leaf_target", ints(c, "leaf_targets"));
    put_reals(out, "leaf_weight", reals(c, "leaf_weights"), wide);
    put_reals(out, "members", reals(c, "members"), wide);
    put_member_ends(out, c);
    put_optional(out, c, targets);
    GPU_PUT(out, trees);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int targets)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    emit_tables(out, c, targets);
    gpu_emit_head(out, y->type, &x->type, 1);
    mgx_str_printf(out,
                   "{\n    const i64 row = (i64)BLOCK * THREADS + THREAD;\n    if (row >= %" PRId64
                   ")\n        return;\n    REAL y[TARGETS];\n    u32 seen = 0;\n"
                   "    for (int t = 0; t < TARGETS; t++)\n        y[t] = 0;\n"
                   "    for (int r = 0; r < ROOTS; r++) {\n        int at = root[r];\n"
                   "        while (at >= 0) {\n            const i64 from = row * %" PRId64
                   " + (i64)feature[at] * %" PRId64 ";\n            at = goes_yes(at, (REAL)",
                   x->lens[0], x->strides[0], x->strides[1]);
    gpu_emit_load(out, x->type, "in0", "from");
    mgx_str_printf(out,
                   ") ? yes[at] : no[at];\n        }\n        add_leaf(-1 - at, y, &seen);\n    }\n"
                   "    finish(y);\n    for (int t = 0; t < TARGETS; t++) {\n"
                   "        const i64 to = row * %" PRId64 " + t * %" PRId64 ";\n        ",
                   y->strides[0], y->strides[1]);
    gpu_emit_store(out, y->type, "out", "to", "y[t]");
    mgx_str_put(out, "\n    }\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_tree_ensemble)
        return gpu_decline(c, "no trees");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    emit(&text, c, (int)mgx_ins_int(c->ins, "targets"));
    const struct gpu_launch how = gpu_launch_for(c->in[0].lens[0]);
    c->detail = "a row a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_trees = {
    .name = "gpu::tree_ensemble", .prepare = prepare, .run = gpu_run_call};
