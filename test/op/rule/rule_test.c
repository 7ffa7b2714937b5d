// SPDX-License-Identifier: MIT
// Helpers of shape rules and computes against brute force on random shapes.
#include "op/rule/rule.h"

#include "check.h"

static uint64_t state = 88172645463325252u;

static int64_t pick(int64_t low, int64_t high) // xorshift64, both ends included
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (int64_t)(state % (uint64_t)(high - low + 1));
}

// Lengths 0..4 (mostly not 0), strides of a random order of axes with gaps, or 0.
static struct mgx_shape random_shape(int rank, bool may_repeat)
{
    int64_t lens[MGX_MAX_RANK] = {0}, strides[MGX_MAX_RANK] = {0};
    int order[MGX_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        lens[i] = pick(0, 40) ? pick(1, 4) : 0;
        order[i] = i;
    }
    for (int i = rank - 1; i > 0; i--) {
        const int j = (int)pick(0, i), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    int64_t step = pick(1, 2);
    for (int i = 0; i < rank; i++) {
        strides[order[i]] = may_repeat && pick(0, 5) == 0 ? 0 : step;
        step *= lens[order[i]] > 1 ? lens[order[i]] : 1;
        step += pick(0, 3) ? 0 : pick(1, 3);
    }
    return mgx_shape_strided(MGX_FLOAT, rank, lens, strides);
}

CASE(walk_visits_in_row_major_order)
{
    for (int round = 0; round < 2000; round++) {
        const int rank = (int)pick(0, 5), count = (int)pick(1, 4);
        struct mgx_shape s[4];
        const struct mgx_shape *list[4];
        for (int k = 0; k < count; k++) {
            s[k] = random_shape(rank, true);
            memcpy(s[k].lens, s[0].lens, sizeof s[k].lens);
            list[k] = &s[k];
        }
        struct mgx_walk w;
        int64_t element = 0;
        for (mgx_walk_start(&w, list, count); !w.done; mgx_walk_next(&w))
            for (int64_t i = 0; i < w.run; i++, element++)
                for (int k = 0; k < count; k++)
                    CHECK_INT(w.offset[k] + i * w.step[k], mgx_shape_index(&s[k], element));
        CHECK_INT(element, mgx_shape_elements(&s[0]));
    }
}

CASE(walk_joins_axes_that_are_one_run)
{
    const struct mgx_shape packed = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){2, 3, 1, 4});
    const struct mgx_shape *list[] = {&packed, &packed};
    struct mgx_walk w;
    mgx_walk_start(&w, list, 2);
    CHECK_INT(w.run, 24);
    mgx_walk_next(&w);
    CHECK(w.done);
}

// Random lengths with the same number of elements: prime factors thrown together anew.
static int random_split(int64_t elements, int64_t *lens)
{
    int rank = (int)pick(1, 4);
    for (int i = 0; i < rank; i++)
        lens[i] = 1;
    for (int64_t p = 2; elements > 1;) {
        if (elements % p) {
            p++;
            continue;
        }
        lens[pick(0, rank - 1)] *= p;
        elements /= p;
    }
    return rank;
}

// Is there any view at all? The stride of every axis is fixed by its second position; then all
// positions must agree.
static bool view_exists(const struct mgx_shape *s, int rank, const int64_t *lens)
{
    struct mgx_shape to = mgx_shape_make(MGX_FLOAT, rank, lens);
    const struct mgx_shape logical = to;
    const int64_t count = mgx_shape_elements(s);
    for (int i = 0; i < rank; i++)
        to.strides[i] = lens[i] > 1 ? mgx_shape_index(s, logical.strides[i]) : 0;
    for (int64_t e = 0; e < count; e++)
        if (mgx_shape_index(&to, e) != mgx_shape_index(s, e))
            return false;
    return true;
}

CASE(regroup_finds_a_view_exactly_when_there_is_one)
{
    int found = 0, refused = 0;
    for (int round = 0; round < 5000; round++) {
        const struct mgx_shape s = random_shape((int)pick(0, 4), true);
        const int64_t count = mgx_shape_elements(&s);
        int64_t lens[MGX_MAX_RANK] = {0};
        struct mgx_shape out;
        if (count == 0)
            continue;
        const int rank = random_split(count, lens);
        const bool is_view = mgx_shape_regroup(&s, rank, lens, &out);
        CHECK_INT(is_view, view_exists(&s, rank, lens));
        for (int64_t e = 0; is_view && e < count; e++)
            CHECK_INT(mgx_shape_index(&out, e), mgx_shape_index(&s, e));
        found += is_view;
        refused += !is_view;
    }
    CHECK(found > 500 && refused > 500);
}

CASE(broadcast_of_ranges_is_exact)
{
    for (int round = 0; round < 5000; round++) {
        struct mgx_dim a = {.min = pick(0, 4)}, b = {.min = pick(0, 4)};
        a.max = a.min + pick(0, 3);
        b.max = b.min + pick(0, 3);
        int64_t low = INT64_MAX, high = -1; // of all pairs that numpy accepts
        for (int64_t x = a.min; x <= a.max; x++)
            for (int64_t y = b.min; y <= b.max; y++)
                if (x == y || x == 1 || y == 1) {
                    const int64_t r = x == 1 ? y : x;
                    low = r < low ? r : low;
                    high = r > high ? r : high;
                }
        struct mgx_dim d = a;
        CHECK_INT(mgx_dim_broadcast(&d, b), high >= 0);
        if (high < 0)
            continue;
        CHECK_INT(d.min, low);
        CHECK_INT(d.max, high);
    }
}

CASE(equal_names_are_equal_lengths)
{
    const struct mgx_dim n = {.min = 1, .max = 8, .name = "n"};
    struct mgx_dim d = {.min = 1, .max = 8, .name = "n"};
    CHECK(mgx_dim_broadcast(&d, n));
    CHECK_TEXT(d.name, "n");
    d = (struct mgx_dim){.min = 1, .max = 1};
    CHECK(mgx_dim_broadcast(&d, n));
    CHECK_TEXT(d.name, "n");
    d = (struct mgx_dim){.min = 0, .max = 9};
    mgx_dim_meet(&d, n);
    CHECK_INT(d.max, 8);
    CHECK_TEXT(d.name, "n");
}

CASE(join_says_what_is_true_of_both)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    for (int round = 0; round < 1000; round++) {
        const struct mgx_shape a = random_shape((int)pick(0, 3), false);
        const struct mgx_shape b = random_shape((int)pick(0, 3), false);
        struct mgx_shape out;
        CHECK(mgx_shape_join(&arena, &a, &b, &out));
        CHECK_INT(out.unranked, a.rank != b.rank);
        CHECK(out.unranked || (mgx_shape_may_match(&out, &a) && mgx_shape_may_match(&out, &b)));
        CHECK(mgx_shape_join(&arena, &a, &a, &out));
        CHECK(mgx_shape_equal(&out, &a));
    }
    const struct mgx_shape i = mgx_shape_scalar(MGX_INT8), f = mgx_shape_scalar(MGX_FLOAT);
    struct mgx_shape out;
    CHECK(!mgx_shape_join(&arena, &i, &f, &out));
    mgx_arena_fini(&arena);
}

TEST_MAIN(ROW(walk_visits_in_row_major_order) ROW(walk_joins_axes_that_are_one_run)
              ROW(regroup_finds_a_view_exactly_when_there_is_one) ROW(broadcast_of_ranges_is_exact)
                  ROW(equal_names_are_equal_lengths) ROW(join_says_what_is_true_of_both))
