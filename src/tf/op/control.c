// SPDX-License-Identifier: MIT
// If, Case and While, whose branches and bodies are functions of the model.
#include <string.h>

#include "tf/loop.h"
#include "tf/op/function.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_HANDLES | MGX_TF_COMPLEX)

// --- If, Case ---

static enum mgx_status need_tensors(struct mgx_node *n, struct mgx_ins *const *results, int count)
{
    for (int i = 0; i < count; i++)
        if (!results[i] || mgx_tf_handle_of(n, results[i]))
            return mgx_node_unsupported(n, "result %d of a branch is not a tensor", i);
    return MGX_OK;
}

// One of these branches, to n->out: the first where it is chosen, else one of the later ones. A
// single one is called in place.
static enum mgx_status branch(struct mgx_node *n, struct mgx_tf_body *const *bodies, int index,
                              int count);

// The same in a module of its own.
static enum mgx_status branch_module(const struct mgx_node *n, struct mgx_tf_body *const *bodies,
                                     int index, int count, struct mgx_module **out,
                                     int *result_count)
{
    struct mgx_node inner = *n;
    inner.module = *out = mgx_tf_add_module(&inner, count > 1 ? "else" : "if");
    if (!*out)
        return n->diag->status;
    TRY(branch(&inner, bodies, index, count));
    TRY(need_tensors(&inner, inner.out, inner.out_count));
    *result_count = inner.out_count;
    mgx_add_return(*out, inner.out, inner.out_count);
    return MGX_OK;
}

// An index counts the branches; the condition of an If is not 0 for the first of its two.
static struct mgx_ins *is_first(struct mgx_node *n, int index)
{
    struct mgx_ins *x = n->in[0];
    if (index < 0)
        return mgx_tf_condition(n, x);
    return mgx_tf_condition(n, mgx_build_equal(n, x, mgx_build_like(n, x, index)));
}

static enum mgx_status branch(struct mgx_node *n, struct mgx_tf_body *const *bodies, int index,
                              int count)
{
    struct mgx_module *mod[2];
    int results[2];
    if (count == 1)
        return mgx_tf_call(n, bodies[0], n->module, n->in + 1, n->in_count - 1, &n->out,
                           &n->out_count);
    TRY(branch_module(n, bodies, index, 1, &mod[0], &results[0]));
    TRY(branch_module(n, bodies + 1, index + 1, count - 1, &mod[1], &results[1]));
    if (results[0] != results[1])
        return mgx_node_invalid(n, "the branches have %d and %d results", results[0], results[1]);
    struct mgx_ins *chosen = is_first(n, index);
    struct mgx_ins *y = mgx_build_emit_body(n, &mgx_op_if, NULL, &chosen, 1, mod, 2);
    TRY(mgx_tf_results(n, results[0]));
    for (int i = 0; i < n->out_count; i++)
        n->out[i] = mgx_build_member(n, y, i);
    return MGX_OK;
}

static enum mgx_status import_if(struct mgx_node *n)
{
    struct mgx_tf_body *body[2];
    double condition;
    TRY(mgx_node_need(n, 1, -1));
    TRY(mgx_tf_function(n, "then_branch", &body[0]));
    TRY(mgx_tf_function(n, "else_branch", &body[1]));
    if (mgx_build_constant_double(n, 0, &condition))
        return branch(n, body + (condition == 0), -1, 1);
    return branch(n, body, -1, 2);
}
const struct mgx_tf_op mgx_tf_if = {.name = "If", .import = import_if, .takes = ANY};
const struct mgx_tf_op mgx_tf_stateless_if = {
    .name = "StatelessIf", .import = import_if, .takes = ANY};

// An index that counts no branch means the last one.
static enum mgx_status import_case(struct mgx_node *n)
{
    struct mgx_tf_body **bodies;
    int count, most = n->tf->import->options.limit_depth;
    int64_t index;
    TRY(mgx_node_need(n, 1, -1));
    TRY(mgx_tf_functions(n, "branches", &bodies, &count));
    if (count < 1 || count > most)
        return mgx_node_invalid(n, "%d branches are not from 1 to %d", count, most);
    if (!mgx_build_constant_int(n, 0, &index))
        return branch(n, bodies, 0, count);
    return branch(n, bodies + (index < 0 || index >= count ? count - 1 : index), 0, 1);
}
const struct mgx_tf_op mgx_tf_case = {.name = "Case", .import = import_case, .takes = ANY};
const struct mgx_tf_op mgx_tf_stateless_case = {
    .name = "StatelessCase", .import = import_case, .takes = ANY};

// --- While ---

struct functions {
    struct mgx_tf_body *test, *step;
};

static enum mgx_status while_test(struct mgx_tf_loop *l, struct mgx_module *m,
                                  struct mgx_ins *const *values, struct mgx_ins **out)
{
    const struct functions *f = l->context;
    struct mgx_ins **results;
    int count;
    TRY(mgx_tf_call(l->n, f->test, m, values, l->count, &results, &count));
    if (count != 1 || !results[0])
        return mgx_node_invalid(l->n, "the condition has %d results", count);
    *out = results[0];
    return MGX_OK;
}

static enum mgx_status while_step(struct mgx_tf_loop *l, struct mgx_module *m,
                                  struct mgx_ins *const *values, struct mgx_ins **next)
{
    const struct functions *f = l->context;
    struct mgx_ins **results;
    int count;
    TRY(mgx_tf_call(l->n, f->step, m, values, l->count, &results, &count));
    if (count != l->count)
        return mgx_node_invalid(l->n, "the body has %d results for %d values", count, l->count);
    for (int i = 0; i < count; i++)
        if (!(next[i] = results[i]))
            return mgx_node_invalid(l->n, "result %d of the body is dead", i);
    return MGX_OK;
}

// The argument that a result is, through any number of Identity; -1 if it is none.
static enum mgx_status argument_of(struct mgx_node *n, const struct mgx_tf_body *body,
                                   struct mgx_slice reference, int64_t *out)
{
    enum { CHAIN = 1000 };
    *out = -1;
    for (int i = 0; i < CHAIN; i++) {
        const int64_t place = mgx_tf_place(body, mgx_tf_reference_of(reference).name);
        if (place >= body->nodes.count)
            *out = place - body->nodes.count;
        if (place < 0 || place >= body->nodes.count)
            return MGX_OK;
        struct mgx_tf_node_def def;
        TRY(mgx_tf_read_node(body->nodes.v[place], n->scratch, &def, n->diag));
        if (!mgx_slice_is(def.op, "Identity") || !def.in.count)
            return MGX_OK;
        reference = def.in.v[0];
    }
    return MGX_OK;
}

// Which values the body hands through.
static enum mgx_status find_fixed(struct mgx_node *n, const struct mgx_tf_body *body, bool *fixed)
{
    const struct mgx_tf_function_def *f = body->function;
    for (int i = 0; i < f->outputs.count && i < n->in_count; i++) {
        const struct mgx_slice name = mgx_tf_text_field(f->outputs.v[i], 1);
        struct mgx_wire value;
        int64_t argument = -1;
        TRY(mgx_tf_find_entry(&f->results, name, &value, n->diag));
        if (value.p)
            TRY(argument_of(
                n, body, (struct mgx_slice){(const char *)value.p, (size_t)(value.end - value.p)},
                &argument));
        fixed[i] = argument == i;
    }
    return MGX_OK;
}

static enum mgx_status import_while(struct mgx_node *n)
{
    struct functions f;
    TRY(mgx_tf_function(n, "cond", &f.test));
    TRY(mgx_tf_function(n, "body", &f.step));
    TRY(mgx_tf_results(n, n->in_count));
    memcpy(n->out, n->in, (size_t)n->in_count * sizeof *n->out);
    struct mgx_tf_loop l = {.n = n,
                            .count = n->in_count,
                            .values = n->out,
                            .fixed = MGX_NEW_ARRAY(n->scratch, bool, n->in_count),
                            .test = while_test,
                            .step = while_step,
                            .context = &f};
    if (!l.fixed)
        return mgx_fail_memory(n->diag);
    TRY(find_fixed(n, f.step, l.fixed));
    return mgx_tf_loop_import(&l);
}
const struct mgx_tf_op mgx_tf_stateless_while = {
    .name = "StatelessWhile", .import = import_while, .takes = ANY};
const struct mgx_tf_op mgx_tf_while = {.name = "While", .import = import_while, .takes = ANY};
