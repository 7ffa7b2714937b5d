// SPDX-License-Identifier: MIT
// quant_lstm on the CPU's kernels against the reference, on random sizes, weights and options.
//
// The two round differently where they compute floats, so now and then a state lies on the edge
// between two bytes and becomes the one here, the other there: a step of 1 / 255 in one of the
// values that weights of at most 1.3 are multiplied by. That is what a few values may be off by;
// all others agree to float's rounding.
#include "check.h"
#include "op/op.h"
#include "targets/cpu/kernel/harness.h"
#include "targets/target.h"

enum { PROGRAMS = 60, INPUTS = 12 };

struct problem {
    int64_t steps, batch, in, hidden, dirs;
    enum mgx_type type;
    bool columns, cell, lengths, states, peepholes, zeros;
    const char *direction;
};

static struct problem draw(struct rng *r)
{
    static const char *const names[] = {"forward", "reverse", "bidirectional"};
    const int direction = rng_below(r, 3);
    return (struct problem){.steps = 1 + rng_below(r, 5),
                            .batch = 1 + rng_below(r, 3),
                            .in = 1 + rng_below(r, 40),
                            .hidden = 1 + rng_below(r, 40),
                            .dirs = direction == 2 ? 2 : 1,
                            .type = rng_below(r, 2) ? MGX_INT8 : MGX_UINT8,
                            .columns = rng_below(r, 2),
                            .cell = rng_below(r, 3) == 0,
                            .lengths = rng_below(r, 2),
                            .states = rng_below(r, 2),
                            .peepholes = rng_below(r, 3) == 0,
                            .zeros = rng_below(r, 2),
                            .direction = names[direction]};
}

// A literal of random values; of bytes any, of floats from `low` to `high`.
static struct mgx_ins *literal(struct mgx_module *m, struct rng *r, enum mgx_type type, int rank,
                               const int64_t *lens, float low, float high)
{
    const struct mgx_shape shape = mgx_shape_make(type, rank, lens);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, NULL) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < mgx_shape_elements(&shape); i++)
        if (type == MGX_FLOAT)
            ((float *)t.data)[i] = low + (high - low) * (float)rng_below(r, 1001) / 1000;
        else
            ((uint8_t *)t.data)[i] = (uint8_t)rng_below(r, 256);
    struct mgx_ins *ins = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return ins;
}

static void add_layer(struct mgx_module *m, const struct problem *o, uint64_t seed)
{
    struct rng r = {seed};
    const int64_t gates = 4 * o->hidden, each = o->columns ? gates : 1;
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){o->steps, o->batch, o->in}),
                           lengths = mgx_shape_make(MGX_INT32, 1, (int64_t[]){o->batch});
    struct mgx_ins *none = mgx_emit(m, &mgx_op_undefined, NULL, (struct mgx_ins_list){NULL, 0});
    const int64_t state[] = {o->dirs, o->batch, o->hidden}, scale[] = {o->dirs, each};
    struct mgx_ins *in[INPUTS] = {
        mgx_add_parameter(m, "x", &x),
        literal(m, &r, o->type, 3, (int64_t[]){o->dirs, gates, o->in}, 0, 0),
        literal(m, &r, o->type, 3, (int64_t[]){o->dirs, gates, o->hidden}, 0, 0),
        literal(m, &r, MGX_FLOAT, 2, (int64_t[]){o->dirs, 2 * gates}, -0.2F, 0.2F),
        o->lengths ? mgx_add_parameter(m, "lengths", &lengths) : none,
        o->states ? literal(m, &r, MGX_FLOAT, 3, state, -1, 1) : none,
        o->states ? literal(m, &r, MGX_FLOAT, 3, state, -1, 1) : none,
        o->peepholes ? literal(m, &r, MGX_FLOAT, 2, (int64_t[]){o->dirs, 3 * o->hidden}, -1, 1)
                     : none};
    for (int i = 8; i < INPUTS; i += 2) {
        in[i] = literal(m, &r, MGX_FLOAT, 2, scale, 0.002F, 0.005F);
        in[i + 1] = o->zeros ? literal(m, &r, o->type, 2, scale, 0, 0) : none;
    }
    struct mgx_ins *y =
        mgx_emit(m, o->cell ? &mgx_op_quant_lstm_last_cell : &mgx_op_quant_lstm,
                 MGX_ATTRS(mgx_int("hidden_size", o->hidden), mgx_text("direction", o->direction)),
                 (struct mgx_ins_list){in, INPUTS});
    mgx_add_return(m, &y, 1);
}

static bool is_taken(const struct mgx_program *p)
{
    struct mgx_str plan = {0};
    mgx_target_cpu.explain(p, &plan);
    const bool good =
        strstr(mgx_str_text(&plan), ": rnn ->") && !strstr(mgx_str_text(&plan), "copy");
    mgx_str_fini(&plan);
    return good;
}

static bool run(const char *target, const struct problem *o, uint64_t seed, struct mgx_tensor *out)
{
    struct mgx_program *p;
    struct mgx_diag diag = {0};
    struct rng r = {seed + 1};
    float x[5 * 3 * 40];
    int32_t lengths[3];
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        return false;
    add_layer(mgx_program_main(p), o, seed);
    for (int i = 0; i < 5 * 3 * 40; i++)
        x[i] = (float)(rng_below(&r, 2001) - 900) / 1000;
    for (int i = 0; i < 3; i++)
        lengths[i] = rng_below(&r, (int)o->steps + 1);
    const struct mgx_shape shape =
        mgx_shape_make(MGX_FLOAT, 3, (int64_t[]){o->steps, o->batch, o->in});
    const struct mgx_shape length = mgx_shape_make(MGX_INT32, 1, (int64_t[]){o->batch});
    const struct mgx_named_tensor given[] = {{"x", mgx_tensor_borrow(&shape, x)},
                                             {"lengths", mgx_tensor_borrow(&length, lengths)}};
    struct mgx_run call = {
        .params = given, .param_count = o->lengths ? 2 : 1, .results = out, .result_count = 1};
    const struct mgx_compile_options options = {.offload_copy = true};
    const bool ok = mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK &&
                    (strcmp(target, "cpu") != 0 || is_taken(p)) &&
                    mgx_program_run(p, &call, &diag) == MGX_OK;
    if (!ok)
        printf("%s: %s\n", target, diag.text);
    mgx_program_destroy(p);
    return ok;
}

CASE(agrees_with_the_reference)
{
    struct rng r = {5};
    int64_t values = 0, apart = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct problem o = draw(&r);
        struct mgx_tensor want = {.data = NULL}, got = {.data = NULL};
        if (!run("ref", &o, (uint64_t)i, &want) || !run("cpu", &o, (uint64_t)i, &got)) {
            CHECK_FAIL("program %d does not run on rnn", i);
            continue;
        }
        for (int64_t k = 0; k < mgx_shape_elements(&want.shape); k++, values++) {
            const double off = fabs(((const float *)got.data)[k] - ((const float *)want.data)[k]);
            apart += off > 2e-6;
            if (!(off < 6e-3))
                CHECK_FAIL("program %d, value %lld: off by %g", i, (long long)k, off);
        }
        mgx_tensor_release(&want);
        mgx_tensor_release(&got);
    }
    CHECK(values > 5000 && apart * 50 < values);
}

TEST_MAIN(ROW(agrees_with_the_reference))
