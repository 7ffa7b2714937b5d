// SPDX-License-Identifier: MIT
// Blocks of memory: what is out never overlaps, whatever came and went, and what is free serves
// tensors of any size.
#include "plan/blocks.h"

#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { SLOTS = 24, MEGABYTE = 1 << 20 };

static bool create(struct mgx_plan_blocks *b, size_t bytes, struct mgx_tensor *out)
{
    struct mgx_diag diag = {0};
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)bytes);
    return mgx_plan_block_tensor(b, &shape, out, &diag) == MGX_OK;
}

static bool holds(const struct mgx_tensor *t, int value)
{
    const unsigned char *data = t->data;
    const size_t bytes = mgx_shape_bytes(&t->shape);
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != value)
            return false;
    return true;
}

CASE(blocks_do_not_overlap)
{
    struct mgx_plan_blocks *b = mgx_plan_blocks_create();
    struct mgx_tensor t[SLOTS] = {{.data = NULL}};
    uint32_t random = 1;
    CHECK(b != NULL);
    for (int round = 0; round < 400; round++) {
        random = random * 1664525u + 1013904223u;
        const int slot = (int)(random >> 8) % SLOTS;
        if (t[slot].data) {
            CHECK(holds(&t[slot], slot + 1));
            mgx_tensor_release(&t[slot]);
        }
        CHECK(create(b, (size_t)(1 + (random >> 16) % (5 * MEGABYTE)), &t[slot]));
        CHECK_INT((uintptr_t)t[slot].data % 64, 0);
        memset(t[slot].data, slot + 1, mgx_shape_bytes(&t[slot].shape));
    }
    mgx_plan_blocks_close(b); // those that are out stay
    for (int i = 0; i < SLOTS; i++) {
        CHECK(!t[i].data || holds(&t[i], i + 1));
        mgx_tensor_release(&t[i]);
    }
}

// Three neighbours that are free make room for one that is as large as all of them.
CASE(free_neighbours_grow_together)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
    for (int i = 0; i < 4; i++) {
        struct mgx_plan_blocks *b = mgx_plan_blocks_create();
        struct mgx_tensor t[3], all, behind;
        CHECK(b != NULL);
        for (int k = 0; k < 3; k++)
            CHECK(create(b, 2 * MEGABYTE, &t[k]));
        CHECK(create(b, 230 * MEGABYTE, &behind));
        const void *first = t[0].data;
        for (int k = 0; k < 3; k++)
            mgx_tensor_release(&t[orders[i][k]]);
        CHECK(create(b, 6 * MEGABYTE, &all));
        CHECK(all.data == first);
        mgx_tensor_release(&behind);
        mgx_tensor_release(&all);
        mgx_plan_blocks_close(b);
    }
}

// A small result that outlives its program does not hold the memory of the whole slab.
CASE(free_bytes_of_a_closed_plan_have_no_memory)
{
    enum { PAGE = 4096, PAGES = 8 * MEGABYTE / PAGE - 2 };
    static unsigned char resident[PAGES];
    struct mgx_plan_blocks *b = mgx_plan_blocks_create();
    struct mgx_tensor large, small;
    CHECK(b && create(b, 8 * MEGABYTE, &large) && create(b, MEGABYTE, &small));
    memset(large.data, 1, 8 * MEGABYTE);
    memset(small.data, 2, MEGABYTE);
    void *first = (void *)(((uintptr_t)large.data + PAGE - 1) / PAGE * PAGE);
    mgx_tensor_release(&large);
    mgx_plan_blocks_close(b);
    CHECK_INT(mincore(first, (size_t)PAGES * PAGE, resident), 0);
    int count = 0;
    for (int i = 0; i < PAGES; i++)
        count += resident[i] & 1;
    CHECK_INT(count, 0);
    CHECK(holds(&small, 2));
    mgx_tensor_release(&small);
}

// --- tensors that grow ---

// 2 x heads x tokens x 8, numbered by place so that every row knows itself.
static void number(struct mgx_tensor *t, int64_t from, int64_t to)
{
    for (int64_t i = 0; i < mgx_shape_elements(&t->shape); i++) {
        const int64_t token = i / 8 % t->shape.lens[2], head = i / 8 / t->shape.lens[2];
        if (token >= from && token < to)
            ((float *)t->data)[mgx_shape_index(&t->shape, i)] =
                (float)(1000 * head + token) + (float)(i % 8) / 8;
    }
}

static bool is_numbered(const struct mgx_tensor *t)
{
    for (int64_t i = 0; i < mgx_shape_elements(&t->shape); i++) {
        const int64_t token = i / 8 % t->shape.lens[2], head = i / 8 / t->shape.lens[2];
        if (((float *)t->data)[mgx_shape_index(&t->shape, i)] !=
            (float)(1000 * head + token) + (float)(i % 8) / 8)
            return false;
    }
    return true;
}

static bool make_cache(struct mgx_plan_blocks *b, int64_t heads, int64_t tokens, int64_t most,
                       struct mgx_tensor *out)
{
    struct mgx_diag diag = {0};
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 4, (int64_t[]){2, heads, tokens, 8});
    return mgx_plan_block_growing(b, &s, 2, most, out, &diag) == MGX_OK;
}

static struct mgx_tensor longer(const struct mgx_tensor *t, int64_t more)
{
    struct mgx_tensor next = mgx_tensor_share(t);
    next.shape.lens[2] += more;
    return next;
}

CASE(a_cache_of_heads_grows_behind_every_head)
{
    struct mgx_plan_blocks *b = mgx_plan_blocks_create();
    struct mgx_tensor t, first, next;
    CHECK(b && make_cache(b, 3, 5, 9, &t));
    CHECK(t.storage->grows && t.shape.strides[2] == 8 && t.shape.strides[1] == 72);
    number(&t, 0, 5);
    first = mgx_tensor_share(&t);
    for (int64_t tokens = 5; tokens < 9; tokens += 2) {
        CHECK(mgx_plan_block_extend(&t, 2, 2));
        CHECK(!mgx_plan_block_extend(&t, 2, 2)); // somebody has them
        next = longer(&t, 2);
        number(&next, tokens, tokens + 2);
        mgx_tensor_release(&t);
        t = next;
        CHECK(is_numbered(&t) && is_numbered(&first));
    }
    CHECK(!mgx_plan_block_extend(&t, 2, 1)); // no room is left
    CHECK(!mgx_plan_block_extend(&first, 2, 1));
    mgx_tensor_release(&first);
    mgx_tensor_release(&t);
    mgx_plan_blocks_close(b);
}

// Who alone has a cache gives its last rows back, and takes them again.
CASE(a_cache_that_is_nobody_elses_becomes_shorter)
{
    struct mgx_plan_blocks *b = mgx_plan_blocks_create();
    struct mgx_tensor t, next;
    CHECK(b && make_cache(b, 3, 5, 9, &t));
    number(&t, 0, 5);
    CHECK(mgx_plan_block_extend(&t, 2, 4));
    next = longer(&t, 4);
    CHECK(!mgx_plan_block_shorten(&next, 2, 3)); // t has it too
    mgx_tensor_release(&t);
    CHECK(!mgx_plan_block_shorten(&next, 1, 1));
    CHECK(mgx_plan_block_shorten(&next, 2, 3));
    CHECK(!mgx_plan_block_shorten(&next, 2, 3)); // it no longer ends there
    struct mgx_shape shape = next.shape;
    shape.lens[2] = 6;
    t = mgx_tensor_view(&next, &shape, 0);
    mgx_tensor_release(&next);
    CHECK(mgx_plan_block_extend(&t, 2, 3) && !mgx_plan_block_extend(&t, 2, 1));
    mgx_tensor_release(&t);
    mgx_plan_blocks_close(b);
}

// A part of the heads, or of the tokens, or the heads in another order, is not what grows.
CASE(views_of_a_cache_take_nothing_of_it)
{
    struct mgx_plan_blocks *b = mgx_plan_blocks_create();
    struct mgx_tensor t;
    CHECK(b && make_cache(b, 3, 5, 9, &t));
    struct mgx_tensor late_heads = t, few = t, turned = t, other = t;
    late_heads.data = (float *)t.data + 72;
    late_heads.shape.lens[1] = 2;
    CHECK(!mgx_plan_block_extend(&late_heads, 2, 1));
    few.shape.lens[2] = 4;
    CHECK(!mgx_plan_block_extend(&few, 2, 1));
    turned.shape.lens[1] = 2, turned.shape.lens[0] = 3;
    turned.shape.strides[0] = 72, turned.shape.strides[1] = 216;
    CHECK(!mgx_plan_block_extend(&turned, 2, 1));
    other.shape.lens[3] = 4; // columns of every token
    CHECK(!mgx_plan_block_extend(&other, 2, 1));
    CHECK(!mgx_plan_block_extend(&t, 1, 1) && !mgx_plan_block_extend(&t, 3, 1));
    CHECK(mgx_plan_block_extend(&t, 2, 1));
    mgx_tensor_release(&t);
    CHECK(make_cache(b, 1, 5, 9, &t)); // two lines still
    CHECK(t.storage->grows && mgx_plan_block_extend(&t, 2, 4));
    mgx_tensor_release(&t);
    mgx_plan_blocks_close(b);
}

TEST_MAIN(ROW(blocks_do_not_overlap) ROW(a_cache_of_heads_grows_behind_every_head)
              ROW(a_cache_that_is_nobody_elses_becomes_shorter)
                  ROW(views_of_a_cache_take_nothing_of_it) ROW(free_neighbours_grow_together)
                      ROW(free_bytes_of_a_closed_plan_have_no_memory))
