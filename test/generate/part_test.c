// SPDX-License-Identifier: MIT
// Parts of programs: what the cards have adds up to what the whole program gives, and programs of
// another look stay what they are.
//
// Behind the last sum everything is linear here, so that each card's program, with its sums taken for
// what they add, gives its share of the result.
#include "generate/part.h"

#include "base/size.h"
#include "check.h"
#include "op/op.h"
#include "targets/target.h"

enum { CARDS = 2, ROWS = 2, COLUMNS = 4 };

static const char head[] = "module: \"main\"\n"
                           "x = @param:x -> float_type, {2, 4}, {4, 1}\n";

// {4, 8} and back, the second in blocks of four numbers of 4 bits.
static const char weights[] =
    "g = @literal{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, 4, 3, 2, 1, 1, 0, 1, 0, 2, 2, -2, -2, 3, "
    "1, 4, 1, 5, 9, 2, 6} -> float_type, {4, 8}, {8, 1}\n"
    "u = @literal{2, 0, 1, -1, 3, 1, -2, 2, 1, 1, 1, -1, 2, 3, 4, 5, -5, 4, 3, -2, 1, 0, 1, 2, 2, "
    "7, "
    "1, 8, 2, 8, 1, 8} -> float_type, {4, 8}, {8, 1}\n"
    "d = @literal{1, -1, 2, 0, 3, 1, 1, 2, -2, 1, 0, 1, 4, 1, 2, 3, 1, 2, 1, -1, 0, 3, 1, 1, 2, 2, "
    "-1, 1, 1, 1, 5, 1} -> float_type, {8, 4}, {4, 1}\n"
    "b = @literal{0.25, 1, -3, 2} -> float_type, {4}, {1}\n"
    "c = @literal{1, 2, 3, 4, -4, -3, -2, -1} -> float_type, {8}, {1}\n"
    "q = @literal{18, 52, 86, 120, 154, 188, 222, 240, 1, 35, 69, 103, 137, 171, 205, 239} -> "
    "uint8_type, {4, 2, 2}, {4, 2, 1}\n"
    "s = @literal{0.5, 1, 2, 0.25, 1, 4, 0.5, 3} -> float_type, {4, 2}, {2, 1}\n"
    "z = @literal{8, 7, 3, 8, 1, 15, 0, 9} -> uint8_type, {4, 2}, {2, 1}\n";

static const char gate[] = "g1 = dot(x,g)\nu1 = dot(x,u)\ns1 = sigmoid(g1)\nm1 = mul(g1,s1)\n"
                           "t1 = mul(m1,u1)\n";

static struct mgx_program *parse(const char *tail)
{
    char text[8192];
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    snprintf(text, sizeof text, "%s%s%s%s", head, weights, gate, tail);
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        exit(2);
    }
    return p;
}

// Sums stand for what this card adds to them.
static int take_sums_alone(struct mgx_program *p)
{
    int count = 0;
    MGX_EACH (ins, mgx_program_main(p))
        if (mgx_is(ins, &mgx_op_sum_over_cards) &&
            mgx_rewrite(ins, &mgx_op_identity, NULL, MGX_IN(ins->in[0]).v, 1, NULL) == MGX_OK)
            count++;
    return count;
}

static void run(const struct mgx_program *p, double *add_to)
{
    float x[ROWS * COLUMNS];
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 2, (const int64_t[]){ROWS, COLUMNS});
    const struct mgx_named_tensor param = {"x", mgx_tensor_borrow(&shape, x)};
    struct mgx_tensor result = {.data = NULL};
    struct mgx_run r = {.params = &param, .param_count = 1, .results = &result, .result_count = 1};
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i * 5 % 7) / 8 - 0.5f;
    CHECK_OK(mgx_program_run(p, &r, &diag), diag);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        add_to[i] += mgx_load_double(MGX_FLOAT, result.data, i);
    mgx_tensor_release(&result);
}

static void check_parts(const char *tail, int wanted)
{
    double whole[ROWS * COLUMNS] = {0}, parts[ROWS * COLUMNS] = {0};
    struct mgx_program *p = parse(tail);
    run(p, whole);
    mgx_program_destroy(p);
    for (int card = 0; card < CARDS; card++) {
        struct mgx_diag diag;
        int sums = 0;
        mgx_diag_clear(&diag);
        p = parse(tail);
        CHECK_OK(mgx_part_take(p, card, CARDS, &sums, &diag), diag);
        CHECK_OK(mgx_program_verify(p, &diag), diag);
        CHECK_INT(sums, wanted);
        CHECK_INT(take_sums_alone(p), wanted);
        run(p, parts);
        mgx_program_destroy(p);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(parts[i], whole[i], 1e-4);
}

CASE(a_gate_between_two_products_is_shared)
{
    check_parts("y = dot(t1,d)\nr = @return(y)\n", 1);
}

CASE(the_first_card_adds_what_is_added)
{
    check_parts("y = dot(t1,d)\nbb = multibroadcast[out_lens={2,4}](b)\na1 = add(y,bb)\n"
                "a2 = add(x,a1)\nr = @return(a2)\n",
                1);
}

CASE(a_bias_between_the_products_is_a_part)
{
    check_parts("cc = multibroadcast[out_lens={2,8}](c)\nt2 = add(t1,cc)\ny = dot(t2,d)\n"
                "r = @return(y)\n",
                1);
}

CASE(blocks_of_few_bits_are_shared)
{
    check_parts("w = dequantize_blocks[bits=4,columns=8](q,s,z)\n"
                "wt = transpose[permutation={1,0}](w)\ny = dot(t1,wt)\na1 = add(y,x)\n"
                "r = @return(a1)\n",
                1);
}

CASE(zero_points_that_are_unpacked_are_shared)
{
    check_parts("zz = @literal{120, 56, 241, 144} -> uint8_type, {4, 1}, {1, 1}\n"
                "zu = unpack_nbits[bits=4](zz)\n"
                "w = dequantize_blocks[bits=4,columns=8](q,s,zu)\n"
                "wt = transpose[permutation={1,0}](w)\ny = dot(t1,wt)\nr = @return(y)\n",
                1);
}

// What is added to the first product is added behind its sum: the second one is not whole there.
CASE(products_side_by_side_have_a_sum_each)
{
    struct mgx_program *p = parse("h = dot(x,u)\nh1 = relu(h)\ny = dot(t1,d)\na1 = add(x,y)\n"
                                  "v = dot(h1,d)\na2 = add(a1,v)\nr = @return(a2)\n");
    const struct mgx_ins *sum[2] = {NULL};
    struct mgx_diag diag;
    int sums = 0, count = 0;
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_part_take(p, 0, CARDS, &sums, &diag), diag);
    MGX_EACH (ins, mgx_program_main(p))
        if (mgx_is(ins, &mgx_op_sum_over_cards) && count < 2)
            sum[count++] = ins;
    CHECK_INT(count, 2);
    CHECK(mgx_is(sum[0]->in[0], &mgx_op_add) && mgx_is(sum[1]->in[0], &mgx_op_add));
    CHECK(sum[0]->in[0]->in[0]->op == &mgx_op_param && sum[1]->in[0]->in[0] == sum[0]);
    mgx_program_destroy(p);
}

CASE(sums_come_one_after_the_other)
{
    struct mgx_program *p = parse("h = dot(x,u)\nh1 = relu(h)\ny = dot(t1,d)\nv = dot(h1,d)\n"
                                  "a2 = add(y,v)\nr = @return(a2)\n");
    struct mgx_ins *last = NULL;
    struct mgx_diag diag;
    int sums = 0;
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_part_take(p, 1, CARDS, &sums, &diag), diag);
    MGX_EACH (ins, mgx_program_main(p))
        if (mgx_is(ins, &mgx_op_sum_over_cards)) {
            CHECK_INT(ins->in_count, last ? 2 : 1);
            CHECK(!last || ins->in[1] == last);
            last = ins;
        }
    CHECK_INT(sums, 2);
    mgx_program_destroy(p);
}

CASE(scores_are_shared_by_words)
{
    double whole[ROWS * COLUMNS] = {0}, parts[ROWS * COLUMNS] = {0};
    struct mgx_program *p = parse("y = dot(t1,d)\nr = @return(y)\n");
    run(p, whole);
    mgx_program_destroy(p);
    for (int card = 0; card < CARDS; card++) {
        struct mgx_diag diag;
        int sums = 0;
        mgx_diag_clear(&diag);
        p = parse("y = dot(t1,d)\nr = @return(y)\n");
        CHECK_OK(mgx_part_take_scores(p, 0, card, CARDS, &sums, &diag), diag);
        CHECK_INT(sums, 1);
        CHECK_INT(take_sums_alone(p), 1);
        run(p, parts);
        mgx_program_destroy(p);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(parts[i], whole[i], 1e-4);
}

CASE(other_programs_stay_as_they_are)
{
    static const char *const tails[] = {
        "m = reduce_sum[axes={1}](t1)\nn = multibroadcast[out_lens={2,8}](m)\nt2 = div(t1,n)\n"
        "y = dot(t2,d)\nr = @return(y)\n",                             // rows are mixed
        "y = dot(t1,d)\nr = @return(y,u1)\n",                          // a column is a result
        "y = dot(x,g)\nr = @return(y)\n",                              // one product
        "k = @param:k -> float_type, {2, 8}, {8, 1}\nt2 = mul(t1,k)\n" // all columns come
        "y = dot(t2,d)\nr = @return(y)\n"};
    for (int i = 0; i < MGX_COUNT(tails); i++) {
        struct mgx_program *p = parse(tails[i]), *as_it_was = parse(tails[i]);
        struct mgx_diag diag;
        int sums = 1;
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_part_take(p, 1, CARDS, &sums, &diag), diag);
        CHECK(!sums && mgx_program_equal(p, as_it_was));
        mgx_program_destroy(p);
        mgx_program_destroy(as_it_was);
    }
}

TEST_MAIN(ROW(a_gate_between_two_products_is_shared) ROW(the_first_card_adds_what_is_added)
              ROW(a_bias_between_the_products_is_a_part) ROW(blocks_of_few_bits_are_shared)
                  ROW(zero_points_that_are_unpacked_are_shared)
                      ROW(products_side_by_side_have_a_sum_each) ROW(sums_come_one_after_the_other)
                          ROW(scores_are_shared_by_words) ROW(other_programs_stay_as_they_are))
