// SPDX-License-Identifier: MIT
// The planner with a memory that the host cannot touch and kernels that run later: who may read
// which bytes when, and what becomes of results, queues and failures.
#include "far/run.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "base/cancel.h"
#include "check.h"
#include "op/op.h"
#include "plan/plan.h"
#include "plan/record.h"
#include "targets/target.h"

enum { SIDE = 8, ELEMENTS = SIDE * SIDE };

// A product with its epilogue, a softmax that only the reference knows, and a reduction.
#define MIXED                                                                                      \
    "module: \"main\"\n"                                                                           \
    "@0 = @param:a -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@1 = @param:b -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@2 = dot(@0, @1) -> float_type, {8, 8}, {8, 1}\n"                                             \
    "@3 = relu(@2) -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@4 = softmax[axis=1](@3) -> float_type, {8, 8}, {8, 1}\n"                                     \
    "@5 = add(@4, @0) -> float_type, {8, 8}, {8, 1}\n"                                             \
    "@6 = reduce_sum[axes={1}](@5) -> float_type, {8, 1}, {1, 1}\n"                                \
    "@7 = @return(@5, @6)\n"
// Two halves, one of the host and one far, side by side; read whole, and one of them alone.
#define HALVES                                                                                     \
    "module: \"main\"\n"                                                                           \
    "@0 = @param:a -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@1 = softmax[axis=1](@0) -> float_type, {8, 8}, {8, 1}\n"                                     \
    "@2 = tanh(@0) -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@3 = concat[axis=1](@1, @2) -> float_type, {8, 16}, {16, 1}\n"                                \
    "@4 = exp(@3) -> float_type, {8, 16}, {16, 1}\n"                                               \
    "@5 = softmax[axis=0](@2) -> float_type, {8, 8}, {8, 1}\n"                                     \
    "@6 = @return(@4, @5)\n"
// One half is read by the host before the other is written, then the whole.
#define TWICE                                                                                      \
    "module: \"main\"\n"                                                                           \
    "@0 = @param:a -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@1 = tanh(@0) -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@2 = softmax[axis=1](@1) -> float_type, {8, 8}, {8, 1}\n"                                     \
    "@3 = exp(@2) -> float_type, {8, 8}, {8, 1}\n"                                                 \
    "@4 = concat[axis=1](@1, @3) -> float_type, {8, 16}, {16, 1}\n"                                \
    "@5 = softmax[axis=0](@4) -> float_type, {8, 16}, {16, 1}\n"                                   \
    "@6 = @return(@5, @2)\n"
// A size known only at run time in the middle.
#define LATE                                                                                       \
    "module: \"main\"\n"                                                                           \
    "@0 = @param:a -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@1 = relu(@0) -> float_type, {8, 8}, {8, 1}\n"                                                \
    "@2 = nonzero(@1) -> dynamic, int64_type, {2, [0..64]}\n"                                      \
    "@3 = convert[target_type=2](@2) -> dynamic, float_type, {2, [0..64]}\n"                       \
    "@4 = reduce_sum[axes={0, 1}](@3) -> float_type, {1, 1}, {1, 1}\n"                             \
    "@5 = multibroadcast[out_lens={8, 8}](@4) -> float_type, {8, 8}, {0, 0}\n"                     \
    "@6 = add(@5, @1) -> float_type, {8, 8}, {8, 1}\n"                                             \
    "@7 = @return(@6)\n"

static struct mgx_program *parse(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK)
        printf("%s\n", diag.text);
    return p;
}

static struct mgx_program *compile(const char *text, const struct mgx_target *target, bool offload)
{
    const struct mgx_compile_options options = {.offload_copy = offload};
    struct mgx_program *p = parse(text);
    struct mgx_diag diag = {0};
    if (p && mgx_program_compile(p, target, &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static struct mgx_tensor square(uint64_t seed)
{
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){SIDE, SIDE});
    struct mgx_tensor t = {.data = NULL};
    if (mgx_tensor_create(&t, &shape, NULL) == MGX_OK)
        mgx_tensor_generate(&t, seed);
    return t;
}

static void release(struct mgx_tensor *t, int count)
{
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&t[i]);
}

// The reference's results.
static bool expect(const char *text, const struct mgx_tensor *args, int count,
                   struct mgx_tensor *results)
{
    struct mgx_program *p = compile(text, mgx_target_find("ref"), true);
    struct mgx_diag diag = {0};
    const bool good = p && far_run(p, true, args, count, results, &diag) == MGX_OK;
    mgx_program_destroy(p);
    return good;
}

static bool agrees(const char *text, int args, int results)
{
    struct mgx_tensor in[2] = {square(1), square(2)}, out[2] = {{.data = NULL}},
                      ref[2] = {{.data = NULL}};
    struct mgx_diag diag = {0};
    struct mgx_program *p = parse(text);
    bool good = p && expect(text, in, args, ref);
    for (int offload = 0; offload < 2 && good; offload++) {
        good = far_try(p, offload, in, args, out, &diag) == MGX_OK;
        for (int i = 0; i < results && good; i++)
            good = mgx_tensor_equal(&out[i], &ref[i], false);
        release(out, 2);
    }
    if (!good)
        printf("%s\n", diag.text);
    mgx_program_destroy(p);
    release(in, 2);
    release(ref, 2);
    return good;
}

CASE(both_sides_work_together)
{
    CHECK(agrees(MIXED, 2, 2));
    CHECK(agrees(HALVES, 1, 2));
    CHECK(agrees(TWICE, 1, 2));
    CHECK(agrees(LATE, 1, 1));
    CHECK_INT(far_memory_live(), 0);
}

// --- what the host may touch ---

static sigjmp_buf back;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

CASE(the_host_cannot_touch_far_memory)
{
    struct sigaction old, mine = {.sa_handler = on_fault};
    volatile bool faulted = false;
    volatile char *bytes = far_memory.allocate(&far_memory, 64);
    CHECK(bytes != NULL);
    sigemptyset(&mine.sa_mask);
    sigaction(SIGSEGV, &mine, &old);
    if (sigsetjmp(back, 1))
        faulted = true;
    else
        (void)bytes[0];
    sigaction(SIGSEGV, &old, NULL);
    far_memory.free(&far_memory, (void *)bytes);
    CHECK(faulted);
}

// --- which kernels, which fusions ---

CASE(few_kernels_and_the_shared_fusions)
{
    struct mgx_program *p = compile(MIXED, &far_target, true);
    struct mgx_str text = {0};
    CHECK(p != NULL);
    far_target.explain(p, &text);
    const char *plan = mgx_str_text(&text);
    CHECK(strstr(plan, "group: far -> ") != NULL); // the product with its relu
    CHECK(strstr(plan, "softmax: ref (reference)") != NULL);
    CHECK(strstr(plan, "softmax: copy_out") != NULL); // brought out for it
    CHECK(strstr(plan, "reduce_sum: far -> ") != NULL);
    CHECK(strstr(plan, "constants on far: ") != NULL);
    mgx_str_fini(&text);
    mgx_program_destroy(p);
}

// --- several runs at once ---

enum { THREADS = 6, RUNS = 40 };

struct worker {
    const struct mgx_program *p;
    bool offload, good;
    uint64_t seed;
};

static void *work(void *user)
{
    struct worker *w = user;
    w->good = true;
    for (int i = 0; i < RUNS && w->good; i++) {
        struct mgx_tensor in[2] = {square(w->seed + (uint64_t)i), square(7)},
                          out[2] = {{.data = NULL}}, ref[2] = {{.data = NULL}};
        struct mgx_diag diag = {0};
        w->good =
            expect(MIXED, in, 2, ref) && far_run(w->p, w->offload, in, 2, out, &diag) == MGX_OK &&
            mgx_tensor_equal(&out[0], &ref[0], false) && mgx_tensor_equal(&out[1], &ref[1], false);
        release(in, 2);
        release(out, 2);
        release(ref, 2);
    }
    return NULL;
}

CASE(several_runs_on_several_queues)
{
    for (int offload = 0; offload < 2; offload++) {
        struct mgx_program *p = compile(MIXED, &far_target, offload);
        pthread_t thread[THREADS];
        struct worker w[THREADS];
        CHECK(p != NULL);
        for (int i = 0; i < THREADS; i++) {
            w[i] = (struct worker){.p = p, .offload = offload, .seed = (uint64_t)i * 100};
            CHECK(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
        }
        bool good = true;
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            good &= w[i].good;
        }
        mgx_program_destroy(p);
        CHECK(good);
    }
    CHECK_INT(far_memory_live(), 0);
}

// --- recordings ---

// Inputs at several addresses, in turns, with other values in every round: what is played reads
// these addresses and gives what is there now.
CASE(recorded_steps_are_played)
{
    enum { SETS = MGX_PLAN_RECORDINGS + 3, ROUNDS = 4 };
    struct mgx_program *p = compile(MIXED, &far_target, false);
    struct mgx_tensor in[2] = {square(0), square(7)}, ref[2] = {{.data = NULL}};
    struct mgx_named_tensor named[SETS][2];
    struct mgx_ins *params[2];
    struct mgx_diag diag = {0};
    CHECK(p != NULL);
    memset(named, 0, sizeof named);
    CHECK_INT(mgx_module_parameters(mgx_program_main(p), params, 2), 2);
    for (int i = 0; i < ROUNDS * SETS; i++) {
        struct mgx_named_tensor *args = named[i % SETS];
        struct mgx_tensor out[2] = {{.data = NULL}}, host[2] = {{.data = NULL}};
        struct mgx_run run = {.params = args, .param_count = 2, .results = out, .result_count = 2};
        const int sets = i < 2 * SETS ? SETS : 3; // first more than are kept, then few
        args = named[i % sets];
        run.params = args;
        for (int k = 0; k < 2; k++)
            mgx_tensor_generate(&in[k], (uint64_t)(2 * i + k));
        for (int k = 0; k < 2; k++) {
            struct mgx_tensor again = {.data = NULL};
            args[k].name = mgx_parameter_name(params[k]);
            CHECK_OK(far_upload(&in[k], &again, &diag), diag);
            if (args[k].tensor.data) // other values, at the address it has
                memcpy(far_look(args[k].tensor.data), far_look(again.data),
                       sizeof(float[ELEMENTS]));
            else
                args[k].tensor = mgx_tensor_share(&again);
            mgx_tensor_release(&again);
        }
        CHECK(expect(MIXED, in, 2, ref));
        CHECK_OK(mgx_program_run(p, &run, &diag), diag);
        for (int k = 0; k < 2; k++) {
            CHECK_OK(far_fetch(&out[k], &host[k], &diag), diag);
            CHECK(mgx_tensor_equal(&host[k], &ref[k], false));
        }
        release(out, 2);
        release(host, 2);
        release(ref, 2);
    }
    CHECK(far_recordings > 0);
    for (int i = 0; i < SETS; i++)
        for (int k = 0; k < 2; k++)
            mgx_tensor_release(&named[i][k].tensor);
    release(in, 2);
    mgx_program_destroy(p);
    CHECK_INT(far_recordings, 0);
    CHECK_INT(far_memory_live(), 0);
}

// A machine that cannot begin a recording is not asked again: its steps are done one by one.
CASE(who_cannot_record_is_asked_once)
{
    struct mgx_tensor in[2] = {square(1), square(2)};
    struct mgx_named_tensor args[2] = {{.name = "a"}, {.name = "b"}};
    struct mgx_program *p = compile(MIXED, &far_target, false);
    CHECK(p != NULL);
    for (int k = 0; k < 2; k++) {
        struct mgx_diag diag = {0};
        CHECK_OK(far_upload(&in[k], &args[k].tensor, &diag), diag);
    }
    far_refusals = 100;
    for (int i = 0; i < 5; i++) {
        struct mgx_tensor out[2] = {{.data = NULL}};
        struct mgx_run run = {.params = args, .param_count = 2, .results = out, .result_count = 2};
        struct mgx_diag diag = {0};
        CHECK_OK(mgx_program_run(p, &run, &diag), diag);
        release(out, 2);
    }
    const int asked = 100 - far_refusals;
    CHECK(asked >= 1 && asked <= 2); // once for each stretch of steps
    CHECK_INT(far_recordings, 0);
    far_refusals = 0;
    release(in, 2);
    for (int k = 0; k < 2; k++)
        mgx_tensor_release(&args[k].tensor);
    mgx_program_destroy(p);
}

// Raises the flag at the look whose number is told.
struct ending {
    struct mgx_cancel cancel;
    int looks;
};

static bool end_at(void *user)
{
    struct ending *e = user;
    atomic_store(&e->cancel.next_poll, 0); // asked at every look
    return e->looks-- == 0;
}

// Runs the program from far tensors; ended at look `at` unless that is negative.
static enum mgx_status run_ended(const struct mgx_program *p, struct mgx_named_tensor *args, int at,
                                 struct mgx_diag *diag)
{
    struct mgx_tensor out[2] = {{.data = NULL}};
    struct mgx_run run = {.params = args, .param_count = 2, .results = out, .result_count = 2};
    struct ending e = {.cancel = {.poll = end_at, .user = &e}, .looks = at};
    mgx_cancel_attach(at < 0 ? NULL : &e.cancel);
    mgx_cancel_enter();
    const enum mgx_status status = mgx_program_run(p, &run, diag);
    mgx_cancel_leave();
    mgx_cancel_attach(NULL);
    release(out, 2);
    return status;
}

// A run that somebody ended while its steps were recorded says nothing of the machine: later runs
// record them.
CASE(ended_runs_are_recorded_later)
{
    struct mgx_tensor in[2] = {square(1), square(2)};
    struct mgx_named_tensor args[2] = {{.name = "a"}, {.name = "b"}};
    int ended = 0;
    for (int k = 0; k < 2; k++) {
        struct mgx_diag diag = {0};
        CHECK_OK(far_upload(&in[k], &args[k].tensor, &diag), diag);
    }
    for (int at = 0; at < 12; at++) {
        struct mgx_program *p = compile(MIXED, &far_target, false);
        struct mgx_diag diag = {0};
        CHECK(p != NULL);
        CHECK_OK(run_ended(p, args, -1, &diag), diag); // its addresses are met
        ended += run_ended(p, args, at, &diag) == MGX_CANCELLED;
        mgx_diag_clear(&diag);
        CHECK_OK(run_ended(p, args, -1, &diag), diag);
        CHECK_OK(run_ended(p, args, -1, &diag), diag);
        CHECK(far_recordings > 0);
        mgx_program_destroy(p);
        CHECK_INT(far_recordings, 0);
    }
    CHECK(ended > 1);
    release(in, 2);
    for (int k = 0; k < 2; k++)
        mgx_tensor_release(&args[k].tensor);
}

// --- results ---

CASE(results_outlive_the_program)
{
    struct mgx_tensor in[2] = {square(1), square(2)}, out[2] = {{.data = NULL}}, near = {0},
                      ref[2] = {{.data = NULL}};
    struct mgx_named_tensor named[2] = {{.name = NULL}};
    struct mgx_ins *params[2];
    struct mgx_diag diag = {0};
    struct mgx_program *p = compile(MIXED, &far_target, false);
    struct mgx_run run = {.params = named, .param_count = 2, .results = out, .result_count = 2};
    CHECK(p && expect(MIXED, in, 2, ref));
    CHECK_INT(mgx_module_parameters(mgx_program_main(p), params, 2), 2);
    for (int i = 0; i < 2; i++) {
        named[i].name = mgx_parameter_name(params[i]);
        CHECK_OK(far_upload(&in[i], &named[i].tensor, &diag), diag);
    }
    CHECK_OK(mgx_program_run(p, &run, &diag), diag);
    CHECK(mgx_tensor_memory(&out[0]) == &far_memory); // left where they are
    mgx_program_destroy(p);
    CHECK_OK(far_fetch(&out[0], &near, &diag), diag);
    CHECK(mgx_tensor_equal(&near, &ref[0], false));
    mgx_tensor_release(&near);
    release(out, 2);
    for (int i = 0; i < 2; i++)
        mgx_tensor_release(&named[i].tensor);
    release(in, 2);
    release(ref, 2);
    CHECK_INT(far_memory_live(), 0);
}

CASE(results_go_where_the_caller_wants_them)
{
    struct mgx_tensor args[4] = {square(1), square(2), square(3), {.data = NULL}},
                      out[2] = {{.data = NULL}}, ref[2] = {{.data = NULL}};
    const struct mgx_shape column = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){SIDE, 1});
    struct mgx_diag diag = {0};
    far_outputs = true;
    struct mgx_program *p = compile(MIXED, &far_target, true);
    far_outputs = false;
    CHECK(p && expect(MIXED, args, 2, ref));
    CHECK_OK(mgx_tensor_create(&args[3], &column, &diag), diag);
    CHECK_OK(far_run(p, true, args, 4, out, &diag), diag);
    CHECK(out[0].data == args[2].data && out[1].data == args[3].data);
    CHECK(mgx_tensor_equal(&args[2], &ref[0], false) && mgx_tensor_equal(&args[3], &ref[1], false));
    mgx_program_destroy(p);
    release(args, 4);
    release(out, 2);
    release(ref, 2);
}

// --- two targets in one process ---

CASE(one_program_on_two_targets)
{
    struct mgx_tensor in[2] = {square(3), square(4)}, a[2] = {{.data = NULL}},
                      b[2] = {{.data = NULL}};
    struct mgx_diag diag = {0};
    struct mgx_program *far = compile(MIXED, &far_target, true),
                       *cpu = compile(MIXED, mgx_target_find("cpu"), true);
    CHECK(far && cpu);
    CHECK_OK(far_run(far, true, in, 2, a, &diag), diag);
    CHECK_OK(far_run(cpu, true, in, 2, b, &diag), diag);
    for (int i = 0; i < ELEMENTS; i++) // one sums otherwise than the other
        CHECK_NEAR(((const float *)a[0].data)[i], ((const float *)b[0].data)[i], 1e-5);
    mgx_program_destroy(far);
    mgx_program_destroy(cpu);
    release(in, 2);
    release(a, 2);
    release(b, 2);
}

// --- what goes wrong ---

CASE(parameters_on_the_wrong_side_are_refused)
{
    struct mgx_tensor in[2] = {square(1), square(2)}, out[2] = {{.data = NULL}};
    struct mgx_diag diag = {0};
    struct mgx_program *left = compile(MIXED, &far_target, false),
                       *copied = compile(MIXED, &far_target, true);
    CHECK(left && copied);
    CHECK(far_run(left, true, in, 2, out, &diag) == MGX_INVALID);
    CHECK(strstr(diag.text, "lies in memory of the host, not of far"));
    mgx_diag_clear(&diag);
    CHECK(far_run(copied, false, in, 2, out, &diag) == MGX_INVALID);
    CHECK(strstr(diag.text, "lies in memory of far, not of the host"));
    mgx_program_destroy(left);
    mgx_program_destroy(copied);
    release(in, 2);
}

// Whatever allocation is refused, the run fails and the next one works.
CASE(no_memory_left)
{
    struct mgx_tensor in[2] = {square(1), square(2)}, out[2] = {{.data = NULL}};
    struct mgx_program *p = compile(MIXED, &far_target, true);
    CHECK(p != NULL);
    for (size_t limit = 0; limit < 4096; limit += 256) {
        struct mgx_diag diag = {0};
        far_memory_limit(limit);
        const enum mgx_status status = far_run(p, true, in, 2, out, &diag);
        far_memory_limit(SIZE_MAX);
        CHECK(status == MGX_NO_MEMORY);
        CHECK(strstr(diag.text, "out of memory: scratch of") != NULL);
    }
    struct mgx_diag diag = {0};
    CHECK_OK(far_run(p, true, in, 2, out, &diag), diag);
    mgx_program_destroy(p);
    release(in, 2);
    release(out, 2);
    CHECK_INT(far_memory_live(), 0);
}

// --- tracing ---

static enum mgx_status see(void *user, const struct mgx_ins *ins, const struct mgx_tensor *value,
                           struct mgx_diag *diag)
{
    (void)ins, (void)diag;
    double *sum = user;
    for (int64_t i = 0; i < mgx_shape_elements(&value->shape); i++)
        *sum += mgx_load_double(value->shape.type, value->data, mgx_shape_index(&value->shape, i));
    return MGX_OK;
}

CASE(traces_see_values_on_the_host)
{
    struct mgx_tensor in[2] = {square(1), square(2)}, out[2] = {{.data = NULL}};
    struct mgx_named_tensor named[2] = {{"a", in[0]}, {"b", in[1]}};
    struct mgx_diag diag = {0};
    double sum = 0;
    struct mgx_program *p = compile(MIXED, &far_target, true);
    struct mgx_run run = {.params = named,
                          .param_count = 2,
                          .results = out,
                          .result_count = 2,
                          .trace = see,
                          .trace_user = &sum};
    CHECK(p != NULL);
    CHECK_OK(mgx_program_run(p, &run, &diag), diag);
    CHECK(sum != 0 && sum == sum); // not NaN, which bytes that nobody has written are
    mgx_program_destroy(p);
    release(in, 2);
    release(out, 2);
}

TEST_MAIN(ROW(both_sides_work_together) ROW(the_host_cannot_touch_far_memory)
              ROW(few_kernels_and_the_shared_fusions) ROW(several_runs_on_several_queues)
                  ROW(recorded_steps_are_played) ROW(who_cannot_record_is_asked_once)
                      ROW(ended_runs_are_recorded_later) ROW(results_outlive_the_program)
                          ROW(results_go_where_the_caller_wants_them)
                              ROW(one_program_on_two_targets)
                                  ROW(parameters_on_the_wrong_side_are_refused) ROW(no_memory_left)
                                      ROW(traces_see_values_on_the_host))
