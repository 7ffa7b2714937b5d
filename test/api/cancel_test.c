// SPDX-License-Identifier: MIT
// Ending calls before they are done: every kind of long call ends soon after it was asked to, says
// so, and leaves everything usable.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support.h"
#include "test_clock.h"

// A callback is asked every two milliseconds at most. Here more pass from one look at the clock to
// the next, by what rounding to seconds takes: every place where a call may end asks, however busy
// the machine is, and a call of one thread asks as often each time.
enum { TICK = 3000000 };

// CPU time, not the clock's: a busy machine may not run this thread for longer than the bound.
static double cpu_milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Asks for the end at the n-th poll, never for 0; counts them and notes when it did.
struct patience {
    migraphx_cancellation_t c;
    int polls, last;
    double asked;
};

static bool lose_patience(void *data)
{
    struct patience *p = data;
    if (++p->polls != p->last)
        return false;
    p->asked = cpu_milliseconds();
    return true;
}

static void attach(struct patience *p, int last)
{
    test_clock_go_by(TICK);
    *p = (struct patience){.last = last};
    must(migraphx_cancellation_create(&p->c));
    must(migraphx_cancellation_set_callback(p->c, lose_patience, p));
    must(migraphx_cancellation_attach(p->c));
}

// The call was made to its end, and asked so many times or more; detaches.
static void check_whole(struct patience *p, migraphx_status status, int least)
{
    CHECK_INT(status, migraphx_status_success);
    if (p->polls < least)
        CHECK_FAIL("it asked %d times, expected at least %d", p->polls, least);
    OK(migraphx_cancellation_destroy(p->c));
}

// The call under way ended by itself, in time and without asking again; detaches.
static void check_ended(struct patience *p, migraphx_status status)
{
    enum { BOUND = 50 };
    CHECK_INT(status, migraphx_status_cancelled);
    CHECK_INT(p->polls, p->last);
    CHECK(strncmp(last_error(), "cancelled", strlen("cancelled")) == 0);
    const double took = cpu_milliseconds() - p->asked;
    if (took > BOUND)
        CHECK_FAIL("it took %g ms of work to end", took);
    OK(migraphx_cancellation_destroy(p->c));
}

// --- programs ---

static migraphx_instruction_t literal(migraphx_module_t m, size_t rows, size_t columns)
{
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(rows, columns));
    migraphx_argument_t values;
    migraphx_instruction_t ins;
    char *data;
    must(migraphx_argument_generate(&values, shape, rows + columns));
    must(migraphx_argument_buffer(&data, values));
    must(migraphx_module_add_literal(&ins, m, shape, data));
    migraphx_argument_destroy(values);
    migraphx_shape_destroy(shape);
    return ins;
}

static migraphx_instruction_t parameter(migraphx_module_t m, size_t rows, size_t columns)
{
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(rows, columns));
    migraphx_instruction_t ins;
    must(migraphx_module_add_parameter(&ins, m, "x", shape));
    migraphx_shape_destroy(shape);
    return ins;
}

// x times a constant, as often as said; `x` is a constant too if it is to be folded.
static migraphx_program_t products(size_t size, int count, bool constant)
{
    migraphx_program_t p;
    migraphx_module_t m;
    must(migraphx_program_create(&p));
    must(migraphx_program_get_main_module(&m, p));
    migraphx_instruction_t w = literal(m, size, size);
    migraphx_instruction_t y = constant ? literal(m, size, size) : parameter(m, size, size);
    for (int i = 0; i < count; i++) {
        migraphx_instruction_t next = add(m, "dot", "{}", y, w);
        migraphx_instruction_destroy(y);
        y = next;
    }
    add_return(m, y);
    migraphx_instruction_destroy(y);
    migraphx_instruction_destroy(w);
    return p;
}

static migraphx_status compile_with(migraphx_program_t p, const char *target_name, bool tune,
                                    size_t threads)
{
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, target_name));
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_exhaustive_tune_flag(options, tune));
    must(migraphx_compile_options_set_threads(options, threads));
    const migraphx_status status = migraphx_program_compile(p, target, options);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    return status;
}

static migraphx_status compile(migraphx_program_t p, const char *target_name, bool tune)
{
    return compile_with(p, target_name, tune, 1);
}

static migraphx_arguments_t run(migraphx_program_t p, migraphx_program_parameters_t params)
{
    migraphx_arguments_t results = NULL;
    must(migraphx_program_run(&results, p, params));
    return results;
}

static void check_same(migraphx_arguments_t a, migraphx_arguments_t b)
{
    const_migraphx_argument_t x, y;
    bool equal = false;
    OK(migraphx_arguments_get(&x, a, 0));
    OK(migraphx_arguments_get(&y, b, 0));
    OK(migraphx_argument_equal(&equal, x, y));
    CHECK(equal);
}

// --- cases ---

static void try_run(migraphx_program_t p, migraphx_program_parameters_t params, int last)
{
    migraphx_arguments_t none = NULL;
    struct patience patience;
    attach(&patience, last);
    check_ended(&patience, migraphx_program_run(&none, p, params));
}

struct inputs {
    float *data;
    migraphx_program_parameters_t params;
};

static struct inputs inputs_of(size_t size)
{
    float *data = calloc(size * size, sizeof *data);
    for (size_t i = 0; i < size * size; i++)
        data[i] = (float)(i % 17) - 8;
    return (struct inputs){data, one_parameter("x", 2, SIZES(size, size), data)};
}

static void free_inputs(struct inputs in)
{
    migraphx_program_parameters_destroy(in.params);
    free(in.data);
}

// A run is given up at its first, its middle and its last poll, of which there are at least so many,
// and gives the same results as before afterwards.
static void give_up_run(const char *target, size_t size, int count, int least)
{
    migraphx_program_t p = products(size, count, false);
    const struct inputs in = inputs_of(size);
    OK(compile(p, target, false));
    migraphx_arguments_t before = NULL;
    struct patience patience;
    attach(&patience, 0);
    check_whole(&patience, migraphx_program_run(&before, p, in.params), least);
    try_run(p, in.params, 1);
    try_run(p, in.params, patience.polls / 2);
    try_run(p, in.params, patience.polls);
    migraphx_arguments_t after = run(p, in.params);
    check_same(before, after);
    migraphx_arguments_destroy(before);
    migraphx_arguments_destroy(after);
    free_inputs(in);
    migraphx_program_destroy(p);
}

CASE(a_run_of_the_reference_ends)
{
    give_up_run("ref", 500, 2, 20);
}

CASE(a_run_of_the_cpu_ends_between_steps)
{
    give_up_run("cpu", 200, 20, 20);
}

// The first poll is before the step, the second before a task of this thread. Where the other one took
// them all there is none, or nothing is left that could be given up, and the run was whole: again.
CASE(a_run_of_the_cpu_ends_within_a_step)
{
    migraphx_program_t p = products(1500, 1, false);
    const struct inputs in = inputs_of(1500);
    OK(compile_with(p, "cpu", false, 2));
    struct patience patience;
    migraphx_status status = migraphx_status_success;
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        migraphx_arguments_t results = NULL;
        attach(&patience, 2);
        status = migraphx_program_run(&results, p, in.params);
        migraphx_arguments_destroy(results);
        if (status != migraphx_status_success || i + 1 == TRIES)
            break;
        check_whole(&patience, status, 1);
    }
    check_ended(&patience, status);
    free_inputs(in);
    migraphx_program_destroy(p);
}

static void try_compilation(migraphx_program_t p, bool tune, int last)
{
    char *before, *after;
    OK(migraphx_program_to_string(&before, p));
    struct patience patience;
    attach(&patience, last);
    check_ended(&patience, compile(p, "cpu", tune));
    OK(migraphx_program_to_string(&after, p));
    CHECK_TEXT(after, before);
    migraphx_string_destroy(before);
    migraphx_string_destroy(after);
}

// The program is as before: it can be compiled.
static void give_up_compilation(size_t size, int count, bool constant, bool tune, int least)
{
    migraphx_program_t p = products(size, count, constant), whole = products(size, count, constant);
    struct patience patience;
    attach(&patience, 0);
    check_whole(&patience, compile(whole, "cpu", tune), least);
    migraphx_program_destroy(whole);
    try_compilation(p, tune, 1);
    try_compilation(p, tune, patience.polls / 2);
    OK(compile(p, "cpu", false));
    migraphx_program_destroy(p);
}

CASE(a_compilation_ends_between_passes)
{
    give_up_compilation(8, 3, false, false, 20);
}

CASE(a_compilation_ends_while_it_folds)
{
    give_up_compilation(1500, 3, true, false, 20);
}

CASE(a_tuning_ends)
{
    give_up_compilation(700, 1, false, true, 20);
}

CASE(passes_end)
{
    migraphx_program_t p = products(8, 2, false);
    struct patience patience;
    attach(&patience, 1);
    check_ended(&patience, migraphx_program_optimize(p));
    OK(migraphx_program_optimize(p));
    migraphx_program_destroy(p);
}

// --- who asks ---

static void *ask(void *c)
{
    usleep(20000);
    must(migraphx_cancellation_request(c));
    return NULL;
}

// A program that runs for seconds, ended by somebody else; true when it was.
static void end_from_outside(void (*begin)(migraphx_cancellation_t c))
{
    migraphx_program_t p = products(1000, 4, false);
    float *data = calloc(1000 * 1000, sizeof *data);
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(1000, 1000), data);
    migraphx_arguments_t none = NULL;
    migraphx_cancellation_t c;
    bool requested = false;
    OK(compile(p, "ref", false));
    OK(migraphx_cancellation_create(&c));
    OK(migraphx_cancellation_attach(c));
    begin(c);
    CHECK_INT(migraphx_program_run(&none, p, params), migraphx_status_cancelled);
    CHECK_INT(migraphx_program_run(&none, p, params), migraphx_status_cancelled); // still
    OK(migraphx_cancellation_requested(&requested, c));
    CHECK(requested);
    OK(migraphx_cancellation_reset(c));
    OK(migraphx_cancellation_requested(&requested, c));
    CHECK(!requested);
    OK(migraphx_cancellation_detach(c));
    OK(migraphx_cancellation_destroy(c));
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(p);
    free(data);
}

static pthread_t asker;

static void begin_thread(migraphx_cancellation_t c)
{
    CHECK_INT(pthread_create(&asker, NULL, ask, c), 0);
}

CASE(another_thread_may_ask)
{
    end_from_outside(begin_thread);
    pthread_join(asker, NULL);
}

static migraphx_cancellation_t for_signal;

static void on_alarm(int number)
{
    (void)number;
    migraphx_cancellation_request(for_signal);
}

static void begin_alarm(migraphx_cancellation_t c)
{
    for_signal = c;
    signal(SIGALRM, on_alarm);
    ualarm(20000, 0);
}

CASE(a_signal_handler_may_ask)
{
    end_from_outside(begin_alarm);
    signal(SIGALRM, SIG_DFL);
}

// --- rules ---

static void check_refusals(migraphx_cancellation_t c)
{
    FAILS(migraphx_cancellation_reset(c), migraphx_status_bad_param,
          "migraphx_cancellation_reset: a call is at work under it");
    FAILS(migraphx_cancellation_attach(c), migraphx_status_bad_param,
          "migraphx_cancellation_attach: a call of this thread is at work");
    FAILS(migraphx_cancellation_detach(c), migraphx_status_bad_param,
          "migraphx_cancellation_detach: a call of this thread is at work");
    FAILS(migraphx_cancellation_destroy(c), migraphx_status_bad_param,
          "migraphx_cancellation_destroy: a call of this thread is at work under it");
}

static bool try_what_is_refused(void *data)
{
    check_refusals(*(migraphx_cancellation_t *)data);
    return true;
}

CASE(while_a_call_is_at_work_nothing_is_taken_back)
{
    migraphx_program_t p = products(8, 1, false);
    migraphx_cancellation_t c;
    OK(migraphx_cancellation_create(&c));
    OK(migraphx_cancellation_set_callback(c, try_what_is_refused, &c));
    OK(migraphx_cancellation_attach(c));
    FAILS(migraphx_cancellation_set_callback(c, try_what_is_refused, &c), migraphx_status_bad_param,
          "migraphx_cancellation_set_callback: a thread obeys it already: set the callback before");
    CHECK_INT(migraphx_program_optimize(p), migraphx_status_cancelled);
    OK(migraphx_cancellation_destroy(c));
    OK(migraphx_program_optimize(p)); // nobody is asked any more
    migraphx_program_destroy(p);
}

static void check_foreign(migraphx_cancellation_t c)
{
    FAILS(migraphx_cancellation_destroy(c), migraphx_status_bad_param,
          "migraphx_cancellation_destroy: another thread obeys it: detach it there first");
    FAILS(migraphx_cancellation_detach(c), migraphx_status_bad_param,
          "migraphx_cancellation_detach: this thread does not obey it");
}

static void *destroy_elsewhere(void *c)
{
    check_foreign(c);
    return NULL;
}

CASE(it_belongs_to_the_threads_that_obey_it)
{
    migraphx_cancellation_t c;
    pthread_t thread;
    OK(migraphx_cancellation_create(&c));
    OK(migraphx_cancellation_attach(c));
    CHECK_INT(pthread_create(&thread, NULL, destroy_elsewhere, c), 0);
    pthread_join(thread, NULL);
    OK(migraphx_cancellation_destroy(c));
}

// Values are read outside of calls that can be ended: a request does not touch them.
CASE(what_is_no_work_is_not_ended)
{
    migraphx_cancellation_t c;
    migraphx_argument_t a;
    migraphx_shape_t shape = make_shape(migraphx_shape_float_type, 2, SIZES(300, 300));
    static double values[90000];
    OK(migraphx_cancellation_create(&c));
    OK(migraphx_cancellation_attach(c));
    OK(migraphx_cancellation_request(c));
    OK(migraphx_argument_fill(&a, shape, 3));
    OK(migraphx_argument_values(values, 90000, a));
    CHECK(values[0] == 3 && values[89999] == 3);
    OK(migraphx_cancellation_destroy(c));
    migraphx_argument_destroy(a);
    migraphx_shape_destroy(shape);
}

// 16 MiB of weights as JSON, written and read.
CASE(saving_and_loading_end)
{
    migraphx_program_t p = products(2048, 1, false), q = NULL;
    migraphx_file_options_t json;
    struct patience patience;
    char *text = NULL;
    size_t size;
    must(migraphx_file_options_create(&json));
    must(migraphx_file_options_set_file_format(json, "json"));
    attach(&patience, 3);
    check_ended(&patience, migraphx_save_buffer(&text, &size, p, json));
    OK(migraphx_save_buffer(&text, &size, p, json));
    attach(&patience, 3);
    check_ended(&patience, migraphx_load_buffer(&q, text, size, json));
    CHECK(q == NULL);
    OK(migraphx_load_buffer(&q, text, size, json));
    migraphx_string_destroy(text);
    migraphx_file_options_destroy(json);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
}

CASE(the_last_error_is_a_value_too)
{
    CHECK_INT(migraphx_cancellation_request(NULL), migraphx_status_bad_param);
    CHECK_TEXT(migraphx_last_error(), "migraphx_cancellation_request: cancellation is NULL");
}

TEST_MAIN(ROW(a_run_of_the_reference_ends) ROW(a_run_of_the_cpu_ends_between_steps)
              ROW(a_run_of_the_cpu_ends_within_a_step) ROW(a_compilation_ends_between_passes)
                  ROW(a_compilation_ends_while_it_folds) ROW(a_tuning_ends) ROW(passes_end)
                      ROW(saving_and_loading_end) ROW(another_thread_may_ask)
                          ROW(a_signal_handler_may_ask)
                              ROW(while_a_call_is_at_work_nothing_is_taken_back)
                                  ROW(it_belongs_to_the_threads_that_obey_it)
                                      ROW(what_is_no_work_is_not_ended)
                                          ROW(the_last_error_is_a_value_too))
