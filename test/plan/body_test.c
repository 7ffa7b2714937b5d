// SPDX-License-Identifier: MIT
// Bodies of if, loop and scan: those of numbers have plans of their own, and make what evaluation makes
// of them. Every result is the reference target's, in runs that follow each other and by several
// threads at once. Small integers in floats: sums are exact.
#include <pthread.h>

#include "base/size.h"
#include "check.h"
#include "op/op.h"
#include "plan/plan.h"
#include "targets/target.h"

enum { RUNS = 3, THREADS = 4, RESULTS = 3, VALUES = 24 };

// What is carried, a row, and one value that is handed on; main's transposed value and a literal are
// read inside, where one branch of an if reads the same.
static const char loop[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {4, 6}, {6, 1}\n"
    "n = @param:n -> int64_type, {1}, {1}\n"
    "@1 = @literal{1} -> bool_type, {1}, {0}\n"
    "@2 = @literal{2, -1, 3, 1} -> float_type, {4}, {1}\n"
    "xt = transpose[permutation={1, 0}](x)\n"
    "s = add(x,x)\n"
    "l = loop[max_iterations=0,scan_output_directions={1}](n,@1,x,s), [body]\n"
    "a = get_tuple_elem[index=0](l)\n"
    "b = get_tuple_elem[index=1](l)\n"
    "c = get_tuple_elem[index=2](l)\n"
    "y = @return(a,b,c)\n"
    "\n"
    "module: \"body\"\n"
    "body:h = @param:h -> float_type, {4, 6}, {6, 1}\n"
    "body:v = @param:v -> float_type, {4, 6}, {6, 1}\n"
    "body:k = @param:k -> bool_type, {1}, {0}\n"
    "body:i = @param:i -> int64_type, {1}, {0}\n"
    "body:@l = @literal{2} -> int64_type, {1}, {0}\n"
    "body:g = less(body:i,body:@l)\n"
    "body:f = convert[target_type=0](body:g)\n"
    "body:t = if(body:f), [early, later]\n"
    "body:e = get_tuple_elem[index=0](body:t)\n"
    "body:w = add(body:v,body:e)\n"
    "body:r = dot(body:w,xt)\n"
    "body:y = @return(body:k,body:w,body:h,body:r)\n"
    "\n"
    "module: \"early\"\n"
    "early:m = multibroadcast[out_lens={6, 4}](@2)\n"
    "early:u = transpose[permutation={1, 0}](early:m)\n"
    "early:z = sub(early:u,body:h)\n"
    "early:y = @return(early:z)\n"
    "\n"
    "module: \"later\"\n"
    "later:y = @return(s)\n";

// Lengths grow from round to round, and seeds go on where the last body drew one.
static const char growing[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {4, 6}, {6, 1}\n"
    "n = @param:n -> int64_type, {1}, {1}\n"
    "@1 = @literal{1} -> bool_type, {1}, {0}\n"
    "l = loop[max_iterations=0,scan_output_directions={}](n,@1,x), [body]\n"
    "a = get_tuple_elem[index=0](l)\n"
    "b = get_tuple_elem[index=1](l)\n"
    "c = random_seed[dtype=int64_type]()\n"
    "y = @return(a,b,c)\n"
    "\n"
    "module: \"body\"\n"
    "body:v = @param:v -> dynamic, float_type, {[4..400], 6}\n"
    "body:k = @param:k -> bool_type, {1}, {0}\n"
    "body:i = @param:i -> int64_type, {1}, {0}\n"
    "body:r = random_seed[dtype=int64_type]()\n"
    "body:w = concat[axis=0](body:v,x)\n"
    "body:u = add(body:w,body:w)\n"
    "body:y = @return(body:k,body:u,body:r)\n";

static struct mgx_program *compile(const char *text, const char *target)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) == MGX_OK &&
        mgx_program_compile(p, mgx_target_find(target), &options, &diag) == MGX_OK)
        return p;
    printf("%s\n", diag.text);
    mgx_program_destroy(p);
    return NULL;
}

static bool run(const struct mgx_program *p, int64_t rounds, int first, struct mgx_tensor *results)
{
    float x[VALUES];
    struct mgx_diag diag = {0};
    const struct mgx_shape xs = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){4, 6}),
                           ns = mgx_shape_vector(MGX_INT64, 1);
    for (int i = 0; i < VALUES; i++)
        x[i] = (float)((i * 5 + first) % 7 - 3);
    const struct mgx_named_tensor params[] = {{"x", mgx_tensor_borrow(&xs, x)},
                                              {"n", mgx_tensor_borrow(&ns, &rounds)}};
    struct mgx_run call = {.params = params,
                           .param_count = 2,
                           .results = results,
                           .result_count = RESULTS,
                           .seed = 11};
    const bool good = mgx_program_run(p, &call, &diag) == MGX_OK;
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

static bool agrees(const struct mgx_program *cpu, const struct mgx_program *ref, int64_t rounds,
                   int first)
{
    struct mgx_tensor ours[RESULTS] = {{.data = NULL}}, right[RESULTS] = {{.data = NULL}};
    bool good = run(cpu, rounds, first, ours) && run(ref, rounds, first, right);
    for (int i = 0; i < RESULTS; i++) {
        good &= mgx_tensor_equal(&ours[i], &right[i], true);
        mgx_tensor_release(&ours[i]);
        mgx_tensor_release(&right[i]);
    }
    return good;
}

static int bodies_of(const struct mgx_program *p)
{
    return ((const struct mgx_plan *)p->executable)->body_count;
}

CASE(a_round_makes_what_evaluation_makes)
{
    struct mgx_program *cpu = compile(loop, "cpu"), *ref = compile(loop, "ref");
    CHECK(cpu && ref);
    CHECK_INT(bodies_of(cpu), 1); // what that body has is its own program's
    for (int i = 0; i < RUNS; i++)
        for (int rounds = 0; rounds < 6; rounds++)
            CHECK(agrees(cpu, ref, rounds, i));
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

CASE(explain_has_the_steps_of_bodies)
{
    static const char *const has[] = {"body body: ", "\nbody:@", "body early: ", "body later: "};
    struct mgx_program *cpu = compile(loop, "cpu");
    struct mgx_str text = {0};
    CHECK(cpu);
    mgx_target_cpu.explain(cpu, &text);
    for (int i = 0; i < MGX_COUNT(has); i++)
        CHECK((strstr(mgx_str_text(&text), has[i]) != NULL) == (i < 3)); // the last hands on alone
    mgx_str_fini(&text);
    mgx_program_destroy(cpu);
}

CASE(lengths_may_grow_and_seeds_go_on)
{
    struct mgx_program *cpu = compile(growing, "cpu"), *ref = compile(growing, "ref");
    CHECK(cpu && ref);
    CHECK_INT(bodies_of(cpu), 1);
    for (int i = 0; i < RUNS; i++)
        for (int rounds = 0; rounds < 6; rounds++)
            CHECK(agrees(cpu, ref, rounds, i));
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

// --- by several threads on one program ---

struct worker {
    pthread_t thread;
    const struct mgx_program *cpu, *ref;
    int number, wrong;
};

static void *work(void *user)
{
    struct worker *w = user;
    for (int i = 0; i < 20; i++)
        w->wrong += !agrees(w->cpu, w->ref, (w->number + i) % 6, i);
    return NULL;
}

CASE(threads_have_states_of_their_own)
{
    struct mgx_program *cpu = compile(loop, "cpu"), *ref = compile(loop, "ref");
    struct worker w[THREADS];
    int wrong = 0;
    CHECK(cpu && ref);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.cpu = cpu, .ref = ref, .number = i};
        CHECK_INT(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        wrong += w[i].wrong;
    }
    CHECK_INT(wrong, 0);
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

// --- limits ---

// A nest of n by 4,000 rounds of nothing.
static const char nest[] = "module: \"main\"\n"
                           "x = @param:x -> float_type, {4, 6}, {6, 1}\n"
                           "n = @param:n -> int64_type, {1}, {1}\n"
                           "@1 = @literal{1} -> bool_type, {1}, {0}\n"
                           "l = loop[max_iterations=0,scan_output_directions={}](n,@1,x), [body]\n"
                           "a = get_tuple_elem[index=0](l)\n"
                           "y = @return(a,a,a)\n"
                           "\n"
                           "module: \"body\"\n"
                           "body:v = @param:v -> float_type, {4, 6}, {6, 1}\n"
                           "body:k = @param:k -> bool_type, {1}, {0}\n"
                           "body:i = @param:i -> int64_type, {1}, {0}\n"
                           "body:@c = @literal{4000} -> int64_type, {1}, {0}\n"
                           "body:l = loop[max_iterations=0,scan_output_directions={}]"
                           "(body:@c,body:k,body:v), [inner]\n"
                           "body:a = get_tuple_elem[index=0](body:l)\n"
                           "body:b = neg(body:a)\n"
                           "body:y = @return(body:k,body:b)\n"
                           "\n"
                           "module: \"inner\"\n"
                           "inner:v = @param:w -> float_type, {4, 6}, {6, 1}\n"
                           "inner:k = @param:j -> bool_type, {1}, {0}\n"
                           "inner:i = @param:o -> int64_type, {1}, {0}\n"
                           "inner:n = neg(inner:v)\n"
                           "inner:y = @return(inner:k,inner:n)\n";

CASE(rounds_of_all_depths_are_counted_together)
{
    struct mgx_program *cpu = compile(nest, "cpu");
    struct mgx_tensor results[RESULTS] = {{.data = NULL}};
    CHECK(cpu);
    CHECK(run(cpu, 10, 0, results));
    for (int i = 0; i < RESULTS; i++)
        mgx_tensor_release(&results[i]);
    CHECK(!run(cpu, 4000, 0, results));
    mgx_program_destroy(cpu);
}

// Members of sequences would be copied at every round.
static const char members[] =
    "module: \"main\"\n"
    "x = @param:x -> float_type, {4, 6}, {6, 1}\n"
    "n = @param:n -> int64_type, {1}, {1}\n"
    "@1 = @literal{1} -> bool_type, {1}, {0}\n"
    "s = sequence_construct(x)\n"
    "l = loop[max_iterations=0,scan_output_directions={}](n,@1,s), [body]\n"
    "a = get_tuple_elem[index=0](l)\n"
    "c = concat_from_sequence[axis=0,new_axis=0](a)\n"
    "y = @return(c,c,c)\n"
    "\n"
    "module: \"body\"\n"
    "body:v = @param:v -> sequence[dynamic, float_type, {[0..9], [0..9]}]\n"
    "body:k = @param:k -> bool_type, {1}, {0}\n"
    "body:i = @param:i -> int64_type, {1}, {0}\n"
    "body:u = add(x,x)\n"
    "body:w = sequence_insert(body:v,body:u)\n"
    "body:y = @return(body:k,body:w)\n";

CASE(sequences_are_evaluated)
{
    struct mgx_program *cpu = compile(members, "cpu"), *ref = compile(members, "ref");
    CHECK(cpu && ref);
    CHECK_INT(bodies_of(cpu), 0);
    for (int rounds = 0; rounds < 6; rounds++)
        CHECK(agrees(cpu, ref, rounds, 1));
    mgx_program_destroy(cpu);
    mgx_program_destroy(ref);
}

TEST_MAIN(ROW(a_round_makes_what_evaluation_makes) ROW(explain_has_the_steps_of_bodies)
              ROW(lengths_may_grow_and_seeds_go_on) ROW(threads_have_states_of_their_own)
                  ROW(rounds_of_all_depths_are_counted_together) ROW(sequences_are_evaluated))
