// SPDX-License-Identifier: MIT
// Each rule broken by hand once: the verifier must see it and name it. Sorting is tested here too,
// since what it must keep is what the verifier checks.
#include "ir/module.h"

#include "check.h"
#include "ir_ops.h"

static struct mgx_diag diag;

static const char text[] = "module: \"main\"\n"
                           "main:@0 = @literal{1, 2} -> float_type, {2}, {1}\n"
                           "b = @param:b -> float_type, {2}, {1}\n"
                           "a = @param:a -> float_type, {2}, {1}\n"
                           "main:@3 = sum(a,b) -> float_type, {2}, {1}\n"
                           "main:@4 = call(main:@3), [body] -> float_type, {2}, {1}\n"
                           "main:@5 = @return(main:@4)\n"
                           "\n"
                           "module: \"body\"\n"
                           "body:@0 = sum(main:@3,main:@0) -> float_type, {2}, {1}\n"
                           "\n";

static struct mgx_program *sample(void)
{
    struct mgx_program *p = NULL;
    mgx_diag_clear(&diag);
    if (mgx_program_parse(&p, &test_ops, text, sizeof text - 1, &diag) != MGX_OK)
        printf("%s\n", diag.text);
    return p;
}

static struct mgx_ins *at(const struct mgx_module *m, int i)
{
    struct mgx_ins *ins = m->first;
    while (i-- > 0)
        ins = ins->next;
    return ins;
}

static bool refuses(struct mgx_program *p, const char *message)
{
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_program_verify(p, &diag);
    mgx_program_destroy(p);
    if (status != MGX_OK && strstr(diag.text, message))
        return true;
    printf("expected <<%s>> but verify says <<%s>>\n", message, diag.text);
    return false;
}

CASE(a_sound_program_passes)
{
    struct mgx_program *p = sample();
    CHECK(p && mgx_program_verify(p, NULL) == MGX_OK);
    mgx_program_destroy(p);
}

CASE(broken_order_is_seen)
{
    struct mgx_program *p = sample();
    mgx_move_before(at(p->modules[0], 3), at(p->modules[0], 2)); // sum before its parameter a
    CHECK(refuses(p, "main:@2 (sum): input 0 comes later"));
    p = sample();
    mgx_move_before(at(p->modules[0], 4), at(p->modules[0], 3)); // call before what its body reads
    mgx_set_input(at(p->modules[0], 3), 0, at(p->modules[0], 1));
    CHECK(refuses(p, "main:@3 (call): its module reads main:@4, which comes later"));
    p = sample();
    mgx_move_before(at(p->modules[0], 5), at(p->modules[0], 4));
    CHECK(refuses(p, "main:@4 (@return): input 0 comes later"));
}

CASE(broken_links_are_seen)
{
    struct mgx_program *p = sample();
    at(p->modules[0], 3)->in[0] = at(p->modules[0], 1);
    CHECK(refuses(p, "does not read it"));
    p = sample();
    at(p->modules[0], 3)->uses = NULL;
    CHECK(refuses(p, "main:@4 (call): input 0 does not list this use"));
    p = sample();
    at(p->modules[0], 3)->in[1] = NULL;
    CHECK(refuses(p, "b (@param): it lists a use that does not read it"));
    p = sample();
    p->modules[0]->count++;
    CHECK(refuses(p, "module \"main\" counts 7 instructions, not 6"));
    p = sample();
    at(p->modules[0], 2)->prev = NULL;
    CHECK(refuses(p, "module \"main\": its list is broken after 2"));
    p = sample();
    at(p->modules[0], 2)->owner = p->modules[1];
    CHECK(refuses(p, "module \"main\": its list is broken after 2"));
}

CASE(broken_shapes_are_seen)
{
    struct mgx_program *p = sample();
    at(p->modules[0], 3)->shape.lens[0] = 3;
    CHECK(refuses(p, "its shape is float_type, {3}, {1}, its rule says float_type, {2}, {1}"));
    p = sample();
    at(p->modules[0], 1)->shape = mgx_shape_vector(MGX_FLOAT, 3);
    CHECK(refuses(p, "sum: Dimensions do not match\n  in main:@3 (sum)"));
    p = sample();
    at(p->modules[0], 1)->shape.lens[0] = -1;
    CHECK(refuses(p, "axis 0 of a shape has length -1"));
    p = sample();
    at(p->modules[0], 0)->literal->shape = mgx_shape_vector(MGX_FLOAT, 3);
    CHECK(refuses(p, "main:@0 (@literal): its value has another shape"));
    p = sample();
    at(p->modules[0], 0)->shape = at(p->modules[0], 0)->literal->shape =
        mgx_shape_vector(MGX_FLOAT, 3);
    CHECK(refuses(p, "main:@0 (@literal): its 12 bytes are not inside its storage of 8"));
}

CASE(broken_modules_are_seen)
{
    struct mgx_program *p = sample();
    at(p->modules[0], 4)->mod[0] = p->modules[0];
    CHECK(refuses(p, "main:@4 (call): main is used as a body"));
    p = sample();
    mgx_insert(p->modules[1], NULL, &op_call, NULL, NULL, 0, &p->modules[1], 1);
    CHECK(refuses(p, "1 modules contain one another"));
    p = sample();
    mgx_set_input(at(p->modules[0], 5), 0, at(p->modules[1], 0));
    CHECK(refuses(p, "body:@0 (sum): main reads it out of module \"body\""));
    p = sample();
    ((struct mgx_param_attr *)at(p->modules[0], 1)->attr)->parameter = "a";
    CHECK(refuses(p, "a (@param): another parameter is called \"a\" as well"));
    p = sample();
    struct mgx_module foreign = {.name = "body", .program = p};
    struct mgx_module *list[] = {&foreign};
    at(p->modules[0], 4)->mod = list;
    CHECK(refuses(p, "main:@4 (call): module 0 is not in the program"));
}

CASE(a_module_used_twice_must_be_sound_at_both_places)
{
    struct mgx_program *p = sample();
    struct mgx_ins *a = at(p->modules[0], 2);
    CHECK(
        mgx_insert(p->modules[0], at(p->modules[0], 3), &op_call, NULL, &a, 1, &p->modules[1], 1));
    CHECK(refuses(p, "main:@3 (call): its module reads main:@4, which comes later"));
}

// --- sorting ---

static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

// The same graph of `count` sums over three inputs, built in an order that depends on `shuffle`.
static struct mgx_program *shuffled(const int (*edges)[2], int count, bool shuffle)
{
    struct mgx_program *p = NULL;
    struct mgx_ins *made[64] = {0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 2);
    if (mgx_program_create(&p, &test_ops, NULL) != MGX_OK)
        return NULL;
    struct mgx_module *m = mgx_program_main(p);
    static const char *const names[] = {"x", "y", "z"};
    for (int i = 0, first = shuffle ? below(3) : 0; i < 3; i++)
        made[(i + first) % 3] = mgx_add_parameter(m, names[(i + first) % 3], &shape);
    for (int left = count; left && mgx_program_status(p, NULL) == MGX_OK;)
        for (int i = 3; i < count + 3; i++) {
            struct mgx_ins *a = made[edges[i][0]], *b = made[edges[i][1]];
            if (made[i] || !a || !b || (shuffle && below(3)))
                continue;
            made[i] = mgx_emit(m, &op_sum, NULL, MGX_IN(a, b));
            left--;
        }
    mgx_add_return(m, &made[count + 2], 1);
    return p;
}

CASE(sorting_makes_equal_what_differs_in_order_only)
{
    for (int round = 0; round < 200; round++) {
        int edges[64][2];
        const int count = 2 + below(40);
        for (int i = 3; i < count + 3; i++)
            for (int k = 0; k < 2; k++)
                edges[i][k] = k == 0 && i > 3 ? i - 1 : below(i); // all of it is needed
        struct mgx_program *p = shuffled((const int(*)[2])edges, count, false);
        struct mgx_program *q = shuffled((const int(*)[2])edges, count, true);
        CHECK(p && q);
        mgx_module_sort(p->modules[0]);
        mgx_module_sort(q->modules[0]);
        CHECK_OK(mgx_program_verify(q, &diag), diag);
        CHECK(mgx_program_equal(p, q));
        mgx_program_destroy(p);
        mgx_program_destroy(q);
    }
}

CASE(sorting_respects_captures_and_keeps_the_result_last)
{
    struct mgx_program *p = sample();
    struct mgx_module *m = mgx_program_main(p);
    mgx_remove(mgx_module_return(m));
    mgx_emit(m, &op_sum, NULL, MGX_IN(at(m, 1), at(m, 1))); // now the result; call is not needed
    mgx_module_sort(m);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    struct mgx_str out = {0};
    mgx_module_print(&out, m);
    CHECK_TEXT(mgx_str_text(&out), "a = @param:a -> float_type, {2}, {1}\n"
                                   "b = @param:b -> float_type, {2}, {1}\n"
                                   "main:@2 = @literal{1, 2} -> float_type, {2}, {1}\n"
                                   "main:@3 = sum(a,b) -> float_type, {2}, {1}\n"
                                   "main:@4 = call(main:@3), [body] -> float_type, {2}, {1}\n"
                                   "main:@5 = sum(b,b) -> float_type, {2}, {1}\n");
    mgx_str_fini(&out);
    mgx_program_destroy(p);
}

// A chain as deep as this would overflow the C stack of a recursive walk.
CASE(deep_graphs_are_sorted_and_checked_in_linear_time)
{
    struct mgx_program *p;
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 2);
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *last = mgx_add_parameter(m, "x", &shape);
    for (int i = 0; i < 100000; i++)
        last = mgx_emit(m, &op_sum, NULL, MGX_IN(last, last));
    mgx_add_return(m, &last, 1);
    mgx_module_sort(m);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    CHECK(mgx_module_result(m, 0) == last);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(a_sound_program_passes) ROW(broken_order_is_seen) ROW(broken_links_are_seen)
              ROW(broken_shapes_are_seen) ROW(broken_modules_are_seen)
                  ROW(a_module_used_twice_must_be_sound_at_both_places)
                      ROW(sorting_makes_equal_what_differs_in_order_only)
                          ROW(sorting_respects_captures_and_keeps_the_result_last)
                              ROW(deep_graphs_are_sorted_and_checked_in_linear_time))
