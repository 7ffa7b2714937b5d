// SPDX-License-Identifier: MIT
#include "ir/shape.h"

#include "check.h"

#define LENS(...) ((const int64_t[]){__VA_ARGS__})

static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

static struct mgx_shape random_shape(void)
{
    int64_t lens[MGX_MAX_RANK], strides[MGX_MAX_RANK];
    int order[MGX_MAX_RANK] = {0};
    const int rank = below(5);
    int64_t stride = 1;
    for (int i = 0; i < rank; i++) {
        lens[i] = 1 + below(4);
        const int at = below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = rank - 1; i >= 0; i--) {
        strides[order[i]] = below(6) ? stride : 0;
        stride *= lens[order[i]] + (below(8) == 0);
    }
    return mgx_shape_strided(MGX_FLOAT, rank, lens, strides);
}

// What the flags mean, from the set of touched offsets.
CASE(flags_agree_with_the_offsets_touched)
{
    for (int round = 0; round < 3000; round++) {
        const struct mgx_shape s = random_shape();
        const int64_t count = mgx_shape_elements(&s), space = mgx_shape_space(&s);
        static unsigned char touched[8192];
        CHECK(space <= (int64_t)sizeof touched);
        memset(touched, 0, (size_t)space);
        int64_t at[MGX_MAX_RANK] = {0}, multi[MGX_MAX_RANK], distinct = 0, highest = 0;
        bool in_order = true, constant = true;
        for (int64_t i = 0; i < count; i++) {
            const int64_t offset = mgx_shape_index(&s, i);
            CHECK_INT(offset, mgx_shape_offset(&s, at));
            mgx_shape_multi(&s, i, multi);
            CHECK(memcmp(multi, at, (size_t)s.rank * sizeof *at) == 0);
            CHECK(offset >= 0 && offset < space);
            in_order &= offset == i;
            constant &= offset == 0;
            highest = offset > highest ? offset : highest;
            distinct += !touched[offset];
            touched[offset] = 1;
            CHECK_INT(mgx_shape_next(&s, at), i + 1 < count);
        }
        CHECK_INT(space, highest + 1);
        CHECK_INT(mgx_shape_is_standard(&s), in_order);
        CHECK_INT(mgx_shape_is_packed(&s), distinct == count && space == count);
        if (mgx_shape_is_broadcasted(&s))
            CHECK(distinct < count);
        if (mgx_shape_is_scalar(&s))
            CHECK(constant);
        if (mgx_shape_is_packed(&s))
            CHECK_INT(mgx_shape_is_transposed(&s), !in_order);
    }
}

CASE(like_order_keeps_lengths_and_takes_the_order)
{
    for (int round = 0; round < 1000; round++) {
        const struct mgx_shape like = random_shape();
        struct mgx_shape s = mgx_shape_make(MGX_INT8, like.rank, like.lens);
        s = mgx_shape_like_order(&s, &like);
        CHECK(mgx_shape_same_lens(&s, &like) && mgx_shape_is_packed(&s) && s.type == MGX_INT8);
        if (mgx_shape_is_packed(&like))
            for (int i = 0; i < s.rank; i++)
                CHECK(s.lens[i] == 1 || s.strides[i] == like.strides[i]);
    }
    const struct mgx_shape nhwc =
        mgx_shape_strided(MGX_FLOAT, 4, LENS(2, 3, 4, 5), LENS(60, 1, 15, 3));
    int order[4];
    mgx_shape_permutation(&nhwc, order);
    CHECK(order[0] == 0 && order[1] == 2 && order[2] == 3 && order[3] == 1);
}

static char *printed(const struct mgx_shape *s)
{
    static char text[512];
    struct mgx_str out = {0};
    mgx_shape_print(&out, s);
    snprintf(text, sizeof text, "%s", mgx_str_text(&out));
    mgx_str_fini(&out);
    return text;
}

CASE(prints_as_migraphx_does)
{
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, LENS(1, 3));
    CHECK_TEXT(printed(&s), "float_type, {1, 3}, {3, 1}");
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_INT64);
    CHECK_TEXT(printed(&scalar), "int64_type, {1}, {0}");
    const struct mgx_dim dims[] = {{1, 4}, {3, 3}, {32, 32}};
    const struct mgx_shape d = mgx_shape_dynamic(MGX_FLOAT, 3, dims);
    CHECK_TEXT(printed(&d), "dynamic, float_type, {[1..4], 3, 32}");
    const struct mgx_dim named[] = {{1, 4, "n"}, {0, 9, "a \"b\""}};
    const struct mgx_shape e = mgx_shape_dynamic(MGX_HALF, 2, named);
    CHECK_TEXT(printed(&e), "dynamic, half_type, {n[1..4], \"a \\\"b\\\"\"[0..9]}");
    const struct mgx_shape both[] = {s, scalar};
    const struct mgx_shape tuple = mgx_shape_tuple(both, 2);
    CHECK_TEXT(printed(&tuple), "[float_type, {1, 3}, {3, 1}, int64_type, {1}, {0}]");
    const struct mgx_dim fixed[] = {{2, 2}, {3, 3}};
    const struct mgx_shape f = mgx_shape_dynamic(MGX_FLOAT, 2, fixed);
    CHECK(mgx_shape_is_static(&f) && mgx_shape_is_standard(&f));
}

CASE(matching_ignores_type_and_strides)
{
    const struct mgx_dim dims[] = {{1, 4}, {3, 3}};
    const struct mgx_shape d = mgx_shape_dynamic(MGX_FLOAT, 2, dims);
    const struct mgx_shape a = mgx_shape_make(MGX_INT8, 2, LENS(4, 3));
    const struct mgx_shape b = mgx_shape_make(MGX_INT8, 2, LENS(5, 3));
    const struct mgx_shape u = mgx_shape_unranked(MGX_FLOAT);
    CHECK(mgx_shape_may_match(&d, &a) && !mgx_shape_may_match(&d, &b));
    CHECK(mgx_shape_may_match(&u, &a) && !mgx_shape_same_lens(&u, &a));
    CHECK(!mgx_shape_same_lens(&d, &a) && mgx_shape_same_lens(&d, &d));
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_INT8);
    const struct mgx_shape one = mgx_shape_vector(MGX_FLOAT, 1);
    CHECK(mgx_shape_same_lens(&scalar, &one) && !mgx_shape_equal(&scalar, &one));
}

CASE(sizes_are_checked)
{
    const struct {
        int rank;
        int64_t lens[4], strides[4];
        bool good;
    } rows[] = {
        {1, {(int64_t)1 << 60}, {1}, false}, // 2^62 bytes
        {1, {((int64_t)1 << 60) - 1}, {1}, true},
        {2, {(int64_t)1 << 31, (int64_t)1 << 31}, {0, 0}, false},
        {2, {(int64_t)1 << 40, 0}, {1, 1}, true},
        {3, {(int64_t)1 << 40, 0, (int64_t)1 << 40}, {1, 1, 1}, false},
        {1, {-1}, {1}, false},
        {1, {4}, {-1}, false},
        {2, {2, 2}, {INT64_MAX, INT64_MAX}, false},
        {1, {1}, {INT64_MAX}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mgx_diag diag = {0};
        const struct mgx_shape s =
            mgx_shape_strided(MGX_FLOAT, rows[i].rank, rows[i].lens, rows[i].strides);
        if ((mgx_shape_check(&s, &diag) == MGX_OK) != rows[i].good)
            CHECK_FAIL("row %d: %s", (int)i, diag.text);
    }
    struct mgx_shape nest[40];
    nest[0] = mgx_shape_scalar(MGX_FLOAT);
    for (int i = 1; i < 40; i++)
        nest[i] = mgx_shape_tuple(&nest[i - 1], 1);
    CHECK_INT(mgx_shape_check(&nest[10], NULL), MGX_OK);
    CHECK_INT(mgx_shape_check(&nest[39], NULL), MGX_LIMIT);
    struct mgx_shape bad = mgx_shape_scalar(MGX_FLOAT);
    bad.rank = 17;
    CHECK(mgx_shape_check(&bad, NULL) != MGX_OK);
}

CASE(copies_are_deep)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    const int64_t best[] = {1, 4};
    struct mgx_dim dims[] = {{1, 4, "n", best, 2}, {3, 3}};
    const struct mgx_shape inner[] = {mgx_shape_dynamic(MGX_FLOAT, 2, dims),
                                      mgx_shape_scalar(MGX_BOOL)};
    const struct mgx_shape s = mgx_shape_tuple(inner, 2);
    struct mgx_shape copy;
    CHECK(mgx_shape_copy(&arena, &s, &copy));
    CHECK(mgx_shape_equal(&s, &copy) && copy.sub != s.sub);
    CHECK(copy.sub[0].dims != dims && copy.sub[0].dims[0].optimals != best);
    dims[0].max = 5;
    CHECK(!mgx_shape_equal(&s, &copy));
    mgx_arena_fini(&arena);
}

TEST_MAIN(ROW(flags_agree_with_the_offsets_touched)
              ROW(like_order_keeps_lengths_and_takes_the_order) ROW(prints_as_migraphx_does)
                  ROW(matching_ignores_type_and_strides) ROW(sizes_are_checked)
                      ROW(copies_are_deep))
