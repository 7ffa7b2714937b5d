// SPDX-License-Identifier: MIT
#include "base/array.h"

#include <string.h>

#include "base/clock.h"
#include "check.h"
#include "test_malloc.h"

struct numbers {
    MGX_ARRAY(int64_t);
};

struct box { // no power of two, larger than what the first capacity is reckoned by
    char bytes[72];
};

CASE(keeps_what_was_pushed_on_the_heap_and_in_an_arena)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct numbers heap = {0}, lent = {0};
    for (int64_t i = 0; i < 1000; i++) {
        CHECK(MGX_PUSH(&heap, NULL, i * i));
        CHECK(MGX_PUSH(&lent, &arena, -i));
        CHECK(heap.count == i + 1 && heap.count <= heap.capacity);
    }
    for (int64_t i = 0; i < 1000; i++)
        CHECK(heap.v[i] == i * i && lent.v[i] == -i);
    CHECK(arena.bytes <= 2 * (size_t)lent.capacity * sizeof *lent.v);
    free(heap.v);
    mgx_arena_fini(&arena);
}

CASE(places_lie_side_by_side_and_a_reserve_keeps_them_there)
{
    struct {
        MGX_ARRAY(struct box) boxes;
    } list = {0};
    CHECK(mgx_array_reserve(&list.boxes.array, 100, sizeof(struct box), NULL));
    const struct box *start = list.boxes.v;
    for (int i = 0; i < 100; i++) {
        struct box *place = MGX_ADD(&list.boxes, NULL);
        CHECK(place == start + i);
        memset(place, i, sizeof *place);
    }
    CHECK(list.boxes.v == start && list.boxes.count == 100);
    CHECK(list.boxes.v[99].bytes[71] == 99);
    free(list.boxes.v);
}

CASE(a_refusal_leaves_the_array_as_it_was)
{
    struct numbers n = {0};
    while (n.count < 4 || n.count < n.capacity)
        CHECK(MGX_PUSH(&n, NULL, 7));
    const struct numbers before = n;
    test_malloc_fail_after(0);
    const bool pushed = MGX_PUSH(&n, NULL, 8);
    test_malloc_fail_after(-1);
    if (test_malloc_failed())
        CHECK(!pushed && n.v == before.v && n.count == before.count);
    CHECK(!mgx_array_reserve(&n.array, INT64_MAX, sizeof *n.v, NULL));
    CHECK(!mgx_array_reserve(&n.array, INT64_MAX / 16, sizeof *n.v, NULL));
    CHECK(n.v[0] == 7);
    free(n.v);
}

CASE(the_clock_goes_forward)
{
    const double start = mgx_clock_seconds();
    const struct timespec while_ = {.tv_nsec = 2000000};
    nanosleep(&while_, NULL);
    const double passed = mgx_clock_seconds() - start;
    CHECK(passed > 0.001 && passed < 60);
}

TEST_MAIN(ROW(keeps_what_was_pushed_on_the_heap_and_in_an_arena)
              ROW(places_lie_side_by_side_and_a_reserve_keeps_them_there)
                  ROW(a_refusal_leaves_the_array_as_it_was) ROW(the_clock_goes_forward))
