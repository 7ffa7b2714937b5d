// SPDX-License-Identifier: MIT
// The certificate of a plan: a small one written by hand has it, and loses it by each thing that
// may be wrong with one, with the rule that is broken in the message.
//
//     step 0: a = f(p)    step 1: b = g(a), in a workspace    step 2: r = h(view of b)
//
// p is a parameter, r a result; a and b lie in a block of 64 bytes at 0 and 16, work at 48.
#include "plan/certify.h"

#include "op/op.h"
#include "plan/plan.h"

#include "check.h"

enum { P, A, B, V, R, VALUES };

struct world {
    struct mgx_build b;
    struct mgx_plan plan;
    struct mgx_plan_machine machine;
    struct mgx_plan_target target;
    struct mgx_ins ins[VALUES];
    struct mgx_plan_value v[VALUES], *all[VALUES], *input[3];
    struct mgx_plan_step step[3];
    struct mgx_plan_ref in[3];
    struct mgx_plan_result result;
    int drop[2];
    bool skip[3];
};

static struct mgx_plan_ref ref_of(struct mgx_plan_value *v)
{
    int64_t offset;
    const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
    if (root->place == MGX_PLAN_SCRATCH)
        offset += (int64_t)root->scratch;
    return (struct mgx_plan_ref){root->place, root->side, root->index, offset, root->data};
}

static void set_value(struct world *w, int i, enum mgx_plan_place place, size_t scratch, int first,
                      int last)
{
    const struct mgx_shape four = mgx_shape_vector(MGX_FLOAT, 4);
    w->ins[i] = (struct mgx_ins){.op = &mgx_op_neg, .shape = four};
    w->v[i] = (struct mgx_plan_value){.ins = &w->ins[i],
                                      .shape = four,
                                      .root = &w->v[i],
                                      .place = place,
                                      .scratch = scratch,
                                      .first = first,
                                      .last = last};
    w->all[i] = &w->v[i];
}

static void set_step(struct world *w, int i, int from, int to)
{
    static const struct mgx_plan_kernel kernel = {.name = "some"};
    w->input[i] = &w->v[from];
    w->in[i] = ref_of(&w->v[from]);
    w->step[i] = (struct mgx_plan_step){.kernel = &kernel,
                                        .ins = &w->ins[to],
                                        .in = &w->in[i],
                                        .in_value = &w->input[i],
                                        .in_count = 1,
                                        .own_count = 1,
                                        .skip = &w->skip[i],
                                        .out = ref_of(&w->v[to]),
                                        .out_value = &w->v[to],
                                        .in_place = -1};
}

static void begin(struct world *w)
{
    memset(w, 0, sizeof *w);
    set_value(w, P, MGX_PLAN_PARAM, 0, -1, 3);
    set_value(w, A, MGX_PLAN_SCRATCH, 0, 0, 1);
    set_value(w, B, MGX_PLAN_SCRATCH, 16, 1, 2);
    set_value(w, V, MGX_PLAN_SCRATCH, 0, 1, 2);
    set_value(w, R, MGX_PLAN_RESULT, 0, 2, 3);
    w->v[V].root = &w->v[B]; // its last two values
    w->v[V].offset = 8;
    w->v[V].shape = w->ins[V].shape = mgx_shape_vector(MGX_FLOAT, 2);
    set_step(w, 0, P, A);
    set_step(w, 1, A, B);
    set_step(w, 2, V, R);
    w->step[1].workspace = 16;
    w->step[1].workspace_scratch = 48;
    w->result.value = &w->v[R];
    w->machine.target = &w->target;
    w->plan.machine = &w->machine;
    w->plan.values = w->v;
    w->plan.value_count = VALUES;
    w->plan.steps = w->step;
    w->plan.step_count = 3;
    w->plan.block[MGX_PLAN_HOST].bytes = 64;
    w->plan.results = &w->result;
    w->plan.result_count = 1;
    w->b.plan = &w->plan;
    w->b.all.v = w->all;
    w->b.all.count = VALUES;
}

// Is that what the certificate says? NULL: all is well.
static bool says(const struct world *w, const char *text)
{
    struct mgx_diag diag = {0};
    const enum mgx_status status = mgx_plan_certify(&w->b, &diag);
    const bool good =
        text ? status == MGX_INTERNAL && strstr(diag.text, text) != NULL : status == MGX_OK;
    if (!good)
        printf("status %d, \"%s\"\n", status, diag.text);
    return good;
}

CASE(a_plan_without_faults_has_it)
{
    struct world w;
    begin(&w);
    CHECK(says(&w, NULL));
    w.step[1].workspace_scratch = 32; // behind both
    CHECK(says(&w, NULL));
    w.v[B].scratch = 0; // takes a's bytes over, which is no longer alive
    w.v[A].last = 0;
    w.skip[1] = true; // nor read
    w.step[1].out = ref_of(&w.v[B]);
    w.in[2] = ref_of(&w.v[V]);
    CHECK(says(&w, NULL));
}

CASE(values_lie_inside_with_their_lengths)
{
    struct world w;
    begin(&w);
    w.v[V].offset = 12;
    CHECK(says(&w, "a value of neg leaves its root"));
#ifdef NDEBUG // an assertion stops builds that have them before
    begin(&w);
    w.v[V].offset = -4;
    CHECK(says(&w, "a value of neg leaves its root"));
#endif
    begin(&w);
    w.v[A].shape.type = MGX_INT32;
    CHECK(says(&w, "a value of neg has other lengths"));
    begin(&w);
    w.v[A].shape.lens[0] = 3;
    CHECK(says(&w, "a value of neg has other lengths"));
    begin(&w);
    w.ins[A].op = &mgx_op_concat; // slices of one share its instruction, but none of the plan's own
    w.v[A].shape.lens[0] = 3;
    CHECK(says(&w, "a value of concat has other lengths"));
}

CASE(operands_are_where_addresses_say)
{
    struct world w;
    begin(&w);
    w.in[2].offset += 4;
    CHECK(says(&w, "step 2 (neg by some): an input is not where its address says"));
    begin(&w);
    w.in[0].place = MGX_PLAN_RESULT;
    CHECK(says(&w, "step 0 (neg by some): an input is not where"));
    begin(&w);
    w.in[0].index = 1;
    CHECK(says(&w, "an input is not where"));
    begin(&w);
    w.in[0].data = &w;
    CHECK(says(&w, "an input is not where"));
    begin(&w);
    w.step[1].out.offset = 0;
    CHECK(says(&w, "step 1 (neg by some): its result is not where its address says"));
    begin(&w);
    w.step[2].out.index = 1;
    CHECK(says(&w, "step 2 (neg by some): its result is not where its address says"));
    begin(&w); // an address that is right, beyond the block
    w.v[B].scratch = 52;
    w.step[1].out = ref_of(&w.v[B]);
    CHECK(says(&w, "step 1 (neg by some): its result is not where"));
    begin(&w);
    w.step[0].side = MGX_PLAN_DEVICE;
    CHECK(says(&w, "step 0 (neg by some): its result is on the other side"));
    begin(&w);
    w.v[A].side = MGX_PLAN_DEVICE;
    w.plan.block[MGX_PLAN_DEVICE].bytes = 16;
    w.step[0].out = w.in[1] = ref_of(&w.v[A]);
    w.v[P].side = MGX_PLAN_DEVICE;
    w.in[0] = ref_of(&w.v[P]);
    w.step[0].side = MGX_PLAN_DEVICE;
    CHECK(says(&w, "step 1 (neg by some): an input is on the other side"));
    w.skip[1] = true;
    CHECK(says(&w, NULL));
}

CASE(what_is_touched_is_alive)
{
    struct world w;
    begin(&w);
    w.v[A].last = 0;
    CHECK(says(&w, "step 1 (neg by some): an input is not alive"));
    begin(&w);
    w.v[B].first = 2;
    CHECK(says(&w, "step 1 (neg by some): its result is not alive"));
    begin(&w);
    w.v[B].last = 1;
    CHECK(says(&w, "step 2 (neg by some): an input is not alive"));
    begin(&w);
    w.v[P].first = 1;
    CHECK(says(&w, "step 0 (neg by some): an input is not alive"));
}

static enum mgx_status bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    return plan ? MGX_OK : mgx_fail_memory(diag);
}

CASE(bundles_are_alive_all_the_while)
{
    struct world w;
    static const struct mgx_plan_bundle two = {.count = 2};
    begin(&w);
    w.step[0].bundle = &two;
    CHECK(says(&w, NULL)); // found when values had their places: steps are on their own
    w.target.gather = bundles;
    CHECK(says(&w, "step 1 (neg by some): a value that its bundle touches is not alive"));
    w.v[B].first = 0;
    CHECK(says(&w, NULL));
    w.v[A].last = 0;
    CHECK(says(&w, "is not alive"));
}

CASE(slots_are_dropped_once_and_results_never)
{
    struct world w;
    begin(&w);
    w.plan.dynamic_count = 2;
    w.drop[1] = 1;
    w.step[0].drop = &w.drop[0];
    w.step[0].drop_count = 1;
    w.step[2].drop = &w.drop[1];
    w.step[2].drop_count = 1;
    CHECK(says(&w, NULL));
    w.drop[1] = 0;
    CHECK(says(&w, "step 2 (neg by some): a slot is dropped again"));
    w.drop[1] = 1;
    w.v[R].place = MGX_PLAN_DYNAMIC;
    w.v[R].index = 1;
    w.v[R].dynamic = true;
    w.step[2].out = ref_of(&w.v[R]);
    CHECK(says(&w, "result 0 is dropped by step 2"));
    w.step[2].drop_count = 0;
    CHECK(says(&w, NULL));
}

CASE(nobody_writes_where_others_live)
{
    struct world w;
    begin(&w);
    w.v[B].scratch = 12;
    w.step[1].out = ref_of(&w.v[B]);
    w.in[2] = ref_of(&w.v[V]);
    CHECK(says(&w, "step 1 (neg by some): it writes where another value lives"));
    begin(&w);
    w.step[1].workspace_scratch = 52;
    CHECK(says(&w, "step 1 (neg by some): its workspace leaves the block"));
    begin(&w);
    w.step[1].workspace_scratch = 28;
    CHECK(says(&w, "step 1 (neg by some): its workspace lies where a value lives"));
    begin(&w);
    w.step[1].workspace_scratch = 8; // in what is read
    CHECK(says(&w, "step 1 (neg by some): its workspace lies where a value lives"));
    begin(&w);
    w.step[1].workspace_scratch = 0;
    w.v[A].last = 0; // gone
    w.skip[1] = true;
    CHECK(says(&w, NULL));
}

TEST_MAIN(ROW(a_plan_without_faults_has_it) ROW(values_lie_inside_with_their_lengths)
              ROW(operands_are_where_addresses_say) ROW(what_is_touched_is_alive)
                  ROW(bundles_are_alive_all_the_while) ROW(slots_are_dropped_once_and_results_never)
                      ROW(nobody_writes_where_others_live))
