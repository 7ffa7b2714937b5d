// SPDX-License-Identifier: MIT
// The pass manager's housekeeping, patterns, and the bounds of folding.
#include "pass/engine/walk.h"
#include "pass/pass.h"

#include "check.h"
#include "pass/engine/match.h"
#include "test_malloc.h"

static struct mgx_program *parse(const char *text)
{
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK)
        printf("%s\n", diag.text);
    return p;
}

static int main_count(const struct mgx_program *p)
{
    int count = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        count++;
    return count;
}

static const char chain[] = "module: \"main\"\n"
                            "x = @param:x -> float_type, {2}, {1}\n"
                            "a = identity(x)\n"
                            "b = neg(a)\n"
                            "c = neg(b)\n"
                            "d = relu(c)\n"
                            "e = @return(d)\n";

CASE(finds_passes_by_the_names_users_know)
{
    static const char *const names[] = {"auto_contiguous",     "dead_code_elimination",
                                        "eliminate_dead_code", "eliminate_contiguous",
                                        "eliminate_convert",   "eliminate_common_subexpression",
                                        "eliminate_data_type", "eliminate_identity",
                                        "eliminate_pad",       "fuse_pointwise",
                                        "fuse_reduce",         "fuse_pointwise_reduce",
                                        "inline_module",       "insert_pad",
                                        "normalize_ops",       "optimize_module",
                                        "promote_literals",    "propagate_constant",
                                        "rewrite_gelu",        "rewrite_pooling",
                                        "rewrite_reduce",      "rewrite_rnn",
                                        "simplify_algebra",    "simplify_dyn_ops",
                                        "simplify_reshapes",   "fp_to_double"};
    for (int i = 0; i < MGX_COUNT(names); i++)
        CHECK(mgx_pass_find(names[i]) != NULL);
    CHECK(mgx_pass_find("no_such_pass") == NULL);
    int count;
    const struct mgx_pass *const *all = mgx_pass_all(&count);
    for (int i = 0; i < count; i++) {
        CHECK(mgx_pass_find(all[i]->name) == all[i]);
        CHECK(all[i]->meaning &&
              (all[i]->module != NULL) + (all[i]->program != NULL) + (all[i]->rules.count > 0) ==
                  1);
    }
}

CASE(skips_disabled_passes)
{
    struct mgx_program *p = parse(chain);
    struct mgx_diag diag = {0};
    const char *const disabled[] = {"simplify_algebra", "optimize_module"};
    const struct mgx_pass_options options = {.disabled = disabled, .disabled_count = 2};
    CHECK_OK(mgx_run_passes(p, mgx_pipeline_simplify, &options, &diag), diag);
    CHECK_INT(main_count(p), 5); // the identity went, the double negation stayed
    CHECK_OK(mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag), diag);
    CHECK_INT(main_count(p), 3);
    mgx_program_destroy(p);
}

struct seen {
    int calls, changed;
    bool in_order;
};

static void watch(void *user, const char *pass, const struct mgx_program *p, bool changed,
                  double microseconds)
{
    struct seen *s = user;
    s->in_order &= s->calls > 0 || strcmp(pass, "eliminate_identity") == 0;
    s->in_order &= p != NULL && microseconds >= 0;
    s->calls++;
    s->changed += changed;
}

CASE(traces_every_pass)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_eliminate_identity,
                                                    &mgx_pass_eliminate_identity, NULL};
    struct mgx_program *p = parse(chain);
    struct mgx_diag diag = {0};
    struct seen seen = {.in_order = true};
    const struct mgx_pass_options options = {.trace = watch, .trace_user = &seen};
    CHECK_OK(mgx_run_passes(p, passes, &options, &diag), diag);
    CHECK_INT(seen.calls, 2);
    CHECK_INT(seen.changed, 1);
    CHECK(seen.in_order);
    mgx_program_destroy(p);
}

// A pass that breaks the program: it moves an instruction behind its reader.
static enum mgx_status break_order(struct mgx_pass_call *c, struct mgx_module *m)
{
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (mgx_is(ins, &mgx_op_relu))
            mgx_move_before(ins, m->first);
    c->changed = true;
    return MGX_OK;
}

static void note_failure(void *user, const char *pass, const struct mgx_program *p, const char *why)
{
    struct mgx_str *out = user;
    mgx_str_printf(out, "%s left %d: %.10s", pass, main_count(p), why);
}

CASE(names_the_pass_that_breaks_a_program)
{
    struct mgx_str left = {0};
    static const struct mgx_pass vandal = {"vandal", "breaks the order", .module = break_order};
    static const struct mgx_pass *const passes[] = {&vandal, NULL};
    struct mgx_program *p = parse(chain);
    struct mgx_diag diag = {0};
    const struct mgx_pass_options options = {
        .verify = true, .failed = note_failure, .trace_user = &left};
    CHECK_INT(mgx_run_passes(p, passes, &options, &diag), MGX_INVALID);
    CHECK(strstr(diag.text, "pass vandal") != NULL);
    CHECK(strstr(mgx_str_text(&left), "vandal left 6: ") && left.size > 15);
    mgx_str_fini(&left);
    mgx_program_destroy(p);
}

// --- memory ---

CASE(what_folding_replaces_is_given_back)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_propagate_constant, NULL};
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "k = @literal{1, 2} -> float_type, {2}, {1}\n"
                                  "x = @param:x -> float_type, {2}, {1}\n"
                                  "n = neg(k)\n"
                                  "e = exp(n)\n"
                                  "a = add(e,x)\n"
                                  "r = @return(a)\n");
    struct mgx_tensor k = {0};
    MGX_EACH (ins, mgx_program_main(p))
        if (ins->literal)
            k = mgx_tensor_share(ins->literal);
    struct mgx_diag diag = {0};
    CHECK(k.storage && atomic_load(&k.storage->refs) > 1);
    CHECK_OK(mgx_run_passes(p, passes, NULL, &diag), diag);
    CHECK_INT(atomic_load(&k.storage->refs), 1);
    CHECK_INT((int)p->literals.count, 1);
    mgx_tensor_release(&k);
    mgx_program_destroy(p);
}

CASE(asking_for_shapes_again_costs_no_memory)
{
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
                                  "a = reshape[dims={3, 2}](x)\n"
                                  "b = multibroadcast[out_lens={4, 3, 2}](a)\n"
                                  "c = reduce_sum[axes={1}](b)\n"
                                  "r = @return(c)\n");
    struct mgx_arena scratch;
    struct mgx_diag diag = {0};
    const size_t before = p->arena.bytes;
    mgx_arena_init(&scratch);
    for (int i = 0; i < 10; i++)
        CHECK_OK(mgx_refresh_shapes(p, &scratch, &diag), diag);
    mgx_arena_fini(&scratch);
    CHECK_INT((int64_t)p->arena.bytes, (int64_t)before);
    mgx_program_destroy(p);
}

// --- patterns ---

static bool reads(const char *text)
{
    struct mgx_pattern p;
    return mgx_pattern_parse(&p, &text) && !*text;
}

CASE(patterns_read_or_are_refused)
{
    CHECK(reads("add(x, 0)"));
    CHECK(reads("mul(c:convolution|dot!(x, w#), a#)"));
    CHECK(reads("%pointwise(x, -1.5)"));
    CHECK(!reads("no_such_operator(x)"));
    CHECK(!reads("add(x"));
    CHECK(!reads("add(x,)"));
    CHECK(!reads("%colour(x)"));
    CHECK(!reads("x(y)"));
}

CASE(patterns_match_in_either_order_and_bind)
{
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "k = @literal{2} -> float_type, {1}, {0}\n"
                                  "x = @param:x -> float_type, {3}, {1}\n"
                                  "b = multibroadcast[out_lens={3}](k)\n"
                                  "c = mul(b,x)\n"
                                  "d = sub(b,x)\n"
                                  "e = add(c,d)\n"
                                  "f = @return(e)\n");
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *e = mgx_module_result(m, 0), *x = mgx_find_parameter(m, "x");
    struct mgx_pattern pattern;
    struct mgx_match match;
    const char *text = "add(sub!(2, x), c:mul(x, 2))";
    CHECK(mgx_pattern_parse(&pattern, &text));
    CHECK(mgx_pattern_match(&pattern, e, &match));
    CHECK(mgx_var(&match, 'x') == x && mgx_var(&match, 'c') == e->in[0]);
    text = "add(sub(x, 2), mul(x, 2))"; // sub does not commute
    CHECK(mgx_pattern_parse(&pattern, &text) && !mgx_pattern_match(&pattern, e, &match));
    text = "add(sub(3, x), y)";
    CHECK(mgx_pattern_parse(&pattern, &text) && !mgx_pattern_match(&pattern, e, &match));
    mgx_program_destroy(p);
}

// --- bounds of folding ---

static size_t literal_bytes(const struct mgx_program *p)
{
    size_t bytes = 0;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (ins->literal)
            bytes += mgx_shape_bytes(&ins->shape);
    return bytes;
}

CASE(folding_makes_no_gigabytes_of_a_number)
{
    // A number repeated a billion times, padded, joined with itself: each would fold.
    struct mgx_program *p = parse("module: \"main\"\n"
                                  "k = @literal{2} -> float_type, {1}, {0}\n"
                                  "x = @param:x -> float_type, {40000, 30000}, {30000, 1}\n"
                                  "b = multibroadcast[out_lens={20000, 30000}](k)\n"
                                  "c = contiguous(b)\n"
                                  "d = exp(c)\n"
                                  "e = concat[axis=0](d,c)\n"
                                  "f = pad[mode=0,pads={0, 0, 0, 0},value=0](e)\n"
                                  "g = add(f,x)\n"
                                  "h = @return(g)\n");
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_run_passes(p, mgx_pipeline_simplify, NULL, &diag), diag);
    CHECK(literal_bytes(p) < 1000);
    mgx_program_destroy(p);
}

CASE(folding_stays_within_its_total)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\nk = @literal{2, 3} -> float_type, {2, 1}, {1, 1}\n"
                       "x = @param:x -> float_type, {2, 1000}, {1000, 1}\n");
    for (int i = 0; i < 50; i++)
        mgx_str_printf(&text,
                       "p%d = pad[mode=0,pads={0, %d, 0, %d},value=0](k)\na%d = add(p%d,x)\n", i, i,
                       999 - i, i, i);
    mgx_str_put(&text, "r = @return(a0");
    for (int i = 1; i < 50; i++)
        mgx_str_printf(&text, ",a%d", i);
    mgx_str_put(&text, ")\n");
    struct mgx_program *p = parse(mgx_str_text(&text));
    mgx_str_fini(&text);
    struct mgx_diag diag = {0};
    static const struct mgx_pass *const passes[] = {&mgx_pass_propagate_constant, NULL};
    const struct mgx_pass_options options = {.fold_total_bytes = 100000};
    CHECK_OK(mgx_run_passes(p, passes, &options, &diag), diag);
    CHECK(literal_bytes(p) <= 100000 + 8);
    CHECK(literal_bytes(p) >= 50000); // and does what it can
    mgx_program_destroy(p);
}

CASE(views_of_a_literal_cost_no_bytes_in_between)
{
    struct mgx_str text = {0};
    mgx_str_put(&text, "module: \"main\"\nx = @param:x -> float_type, {12}, {1}\nk = @literal{0");
    for (int i = 1; i < 1000; i++)
        mgx_str_printf(&text, ", %d", i);
    mgx_str_put(&text, "} -> float_type, {1000}, {1}\n");
    for (int i = 0; i < 6; i++)
        mgx_str_printf(&text, "s%d = slice[axes={0},starts={%d},ends={%d}](k)\n", i, 50 - i * 4,
                       52 - i * 4);
    mgx_str_put(&text, "c = concat[axis=0](s0,s1,s2,s3,s4,s5)\na = add(c,x)\nr = @return(a)\n");
    struct mgx_program *p = parse(mgx_str_text(&text));
    mgx_str_fini(&text);
    struct mgx_diag diag = {0};
    static const struct mgx_pass *const passes[] = {&mgx_pass_propagate_constant, NULL};
    const struct mgx_pass_options options = {.fold_total_bytes = 8000}; // two of k
    CHECK_OK(mgx_run_passes(p, passes, &options, &diag), diag);
    CHECK(mgx_program_main(p)->last->in[0]->in[0]->literal);
    mgx_program_destroy(p);
}

// --- out of memory ---

static const char busy[] = "module: \"main\"\n"
                           "w = @literal{1, 2, 3, 4} -> float_type, {2, 2}, {2, 1}\n"
                           "v = @literal{4, 3, 2, 1} -> float_type, {2, 2}, {2, 1}\n"
                           "s = @literal{2, 3} -> float_type, {2}, {1}\n"
                           "k = @literal{1} -> bool_type, {1}, {0}\n"
                           "x = @param:x -> float_type, {3, 2}, {2, 1}\n"
                           "s2 = broadcast[axis=1,out_lens={3, 2}](s)\n"
                           "a = dot(x,w)\n"
                           "b = mul(a,s2)\n"
                           "c = dot(x,v)\n"
                           "d = add(b,c)\n"
                           "e = transpose[permutation={1, 0}](d)\n"
                           "f = relu(e)\n"
                           "g = transpose[permutation={1, 0}](f)\n"
                           "h = concat[axis=0](g,g)\n"
                           "i = slice[axes={0},starts={1},ends={3}](h)\n"
                           "j = if(k), [then, else]\n"
                           "l = get_tuple_elem[index=0](j)\n"
                           "m = add(i,l)\n"
                           "n = reduce_sum[axes={1}](m)\n"
                           "o = exp(n)\n"
                           "p = @return(o)\n"
                           "module: \"then\"\n"
                           "t = slice[axes={0},starts={0},ends={2}](x)\n"
                           "u = exp(t)\n"
                           "y = @return(u)\n"
                           "module: \"else\"\n"
                           "z = slice[axes={0},starts={1},ends={3}](x)\n"
                           "q = @return(z)\n";

CASE(runs_out_of_memory_cleanly_anywhere)
{
    static const struct mgx_pass *const passes[] = {&mgx_pass_normalize_ops,
                                                    &mgx_pass_inline_module,
                                                    &mgx_pass_optimize_module,
                                                    &mgx_pass_auto_contiguous,
                                                    &mgx_pass_fp_to_double,
                                                    &mgx_pass_fuse_pointwise_reduce,
                                                    NULL};
    for (long n = 0; n < 100000; n++) {
        const long before = test_malloc_live();
        struct mgx_program *p = parse(busy);
        struct mgx_diag diag = {0};
        const struct mgx_pass_options options = {.verify = true};
        test_malloc_fail_after(n);
        const enum mgx_status status = mgx_run_passes(p, passes, &options, &diag);
        const bool failed = test_malloc_failed();
        test_malloc_fail_after(-1);
        mgx_program_destroy(p);
        CHECK_INT(test_malloc_live(), before);
        CHECK(!failed || status == MGX_NO_MEMORY);
        if (!failed) {
            CHECK_INT(status, MGX_OK);
            return;
        }
    }
    CHECK(!"it never got enough memory");
}

TEST_MAIN(ROW(finds_passes_by_the_names_users_know) ROW(skips_disabled_passes)
              ROW(traces_every_pass) ROW(names_the_pass_that_breaks_a_program)
                  ROW(what_folding_replaces_is_given_back)
                      ROW(asking_for_shapes_again_costs_no_memory) ROW(patterns_read_or_are_refused)
                          ROW(patterns_match_in_either_order_and_bind)
                              ROW(folding_makes_no_gigabytes_of_a_number)
                                  ROW(folding_stays_within_its_total)
                                      ROW(views_of_a_literal_cost_no_bytes_in_between)
                                          ROW(runs_out_of_memory_cleanly_anywhere))
