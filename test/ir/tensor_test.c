// SPDX-License-Identifier: MIT
#include "ir/tensor.h"

#include "check.h"

#define LENS(...) ((const int64_t[]){__VA_ARGS__})

// Strides of a packed tensor whose axes lie in memory in the order of the permutation's digits.
static struct mgx_shape permuted(enum mgx_type type, int rank, const int64_t *lens,
                                 const int *order)
{
    int64_t strides[MGX_MAX_RANK], stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= lens[order[i]];
    }
    return mgx_shape_strided(type, rank, lens, strides);
}

static const int orders[24][4] = {
    {0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1},
    {1, 0, 2, 3}, {1, 0, 3, 2}, {1, 2, 0, 3}, {1, 2, 3, 0}, {1, 3, 0, 2}, {1, 3, 2, 0},
    {2, 0, 1, 3}, {2, 0, 3, 1}, {2, 1, 0, 3}, {2, 1, 3, 0}, {2, 3, 0, 1}, {2, 3, 1, 0},
    {3, 0, 1, 2}, {3, 0, 2, 1}, {3, 1, 0, 2}, {3, 1, 2, 0}, {3, 2, 0, 1}, {3, 2, 1, 0}};

static bool copies(const struct mgx_shape *from, const struct mgx_shape *to)
{
    struct mgx_tensor a, b;
    if (mgx_tensor_create(&a, from, NULL) || mgx_tensor_create(&b, to, NULL))
        return false;
    for (int64_t i = 0; i < mgx_shape_elements(from); i++)
        mgx_store_int(from->type, a.data, mgx_shape_index(from, i), i % 100);
    mgx_tensor_copy(&a, &b);
    bool good = mgx_tensor_equal(&a, &b, true);
    for (int64_t i = 0; i < mgx_shape_elements(to); i++)
        good &= mgx_load_int(to->type, b.data, mgx_shape_index(to, i)) == i % 100;
    mgx_tensor_release(&a);
    mgx_tensor_release(&b);
    return good;
}

CASE(copies_between_all_orders_of_axes)
{
    static const enum mgx_type types[] = {MGX_INT8, MGX_HALF, MGX_FLOAT, MGX_DOUBLE};
    const int64_t many[] = {3, 1, 4, 5}, empty[] = {3, 0, 4, 5};
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 24; j++) {
            const enum mgx_type type = types[(i + j) % 4];
            const int64_t *lens = i == 7 ? empty : many;
            const struct mgx_shape a = permuted(type, 4, lens, orders[i]);
            const struct mgx_shape b = permuted(type, 4, lens, orders[j]);
            CHECK(copies(&a, &b));
        }
    const struct mgx_shape scalar = mgx_shape_scalar(MGX_FLOAT);
    const struct mgx_shape one = mgx_shape_vector(MGX_FLOAT, 1);
    CHECK(copies(&scalar, &scalar) && copies(&scalar, &one) && copies(&one, &scalar));
}

CASE(clone_expands_a_broadcast_and_pack_shares_a_standard_one)
{
    float values[] = {1, 2, 3};
    const struct mgx_shape s = mgx_shape_strided(MGX_FLOAT, 2, LENS(2, 3), LENS(0, 1));
    const struct mgx_tensor t = mgx_tensor_borrow(&s, values);
    struct mgx_tensor clone, same;
    CHECK(mgx_tensor_pack(&clone, &t, NULL) == MGX_OK);
    CHECK(mgx_shape_is_standard(&clone.shape) && ((float *)clone.data)[5] == 3);
    CHECK(mgx_tensor_pack(&same, &clone, NULL) == MGX_OK && same.data == clone.data);
    CHECK_INT(atomic_load(&clone.storage->refs), 2);
    CHECK(((uintptr_t)clone.data & 63) == 0);
    mgx_tensor_release(&clone);
    CHECK(((float *)same.data)[0] == 1);
    mgx_tensor_release(&same);
}

CASE(strings_and_tuples_are_cloned_deep)
{
    char text[] = "abc";
    struct mgx_string values[] = {{text, 3}, {NULL, 0}, {text + 1, 2}};
    const struct mgx_shape s = mgx_shape_vector(MGX_STRING, 3);
    const struct mgx_tensor t = mgx_tensor_borrow(&s, values);
    struct mgx_tensor members[2], group, clone;
    CHECK(mgx_tensor_clone(&members[0], &t, NULL) == MGX_OK);
    CHECK(mgx_tensor_create(&members[1], &s, NULL) == MGX_OK);
    CHECK(mgx_tensor_group(&group, members, 2, false, NULL) == MGX_OK);
    CHECK(!members[0].storage && group.shape.type == MGX_TUPLE && group.shape.sub_count == 2);
    CHECK(mgx_tensor_clone(&clone, &group, NULL) == MGX_OK);
    text[0] = 'x';
    mgx_tensor_release(&group);
    struct mgx_str out = {0};
    mgx_tensor_print(&out, &clone);
    CHECK_TEXT(mgx_str_text(&out), "[\"abc\", \"\", \"bc\"], [\"\", \"\", \"\"]");
    mgx_str_fini(&out);
    mgx_tensor_release(&clone);
}

CASE(sequences_say_what_their_members_share)
{
    struct mgx_tensor members[2], sequence;
    const struct mgx_shape two = mgx_shape_vector(MGX_FLOAT, 2),
                           three = mgx_shape_vector(MGX_FLOAT, 3);
    CHECK(!mgx_tensor_create(&members[0], &two, NULL) &&
          !mgx_tensor_create(&members[1], &two, NULL));
    CHECK(mgx_tensor_group(&sequence, members, 2, true, NULL) == MGX_OK);
    CHECK(sequence.shape.sub_count == 1 && mgx_shape_equal(&sequence.shape.sub[0], &two));
    mgx_tensor_release(&sequence);
    CHECK(!mgx_tensor_create(&members[0], &two, NULL) &&
          !mgx_tensor_create(&members[1], &three, NULL));
    CHECK(mgx_tensor_group(&sequence, members, 2, true, NULL) == MGX_OK);
    CHECK(sequence.shape.sub[0].unranked);
    mgx_tensor_release(&sequence);
    CHECK(mgx_tensor_group(&sequence, members, 0, true, NULL) == MGX_OK);
    CHECK(sequence.shape.type == MGX_SEQUENCE && sequence.sub_count == 0);
    mgx_tensor_release(&sequence);
}

static struct mgx_tensor vector_of(int64_t length, float value)
{
    const struct mgx_shape s = mgx_shape_vector(MGX_FLOAT, length);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &s, NULL) != MGX_OK)
        abort();
    for (int64_t i = 0; i < length; i++)
        ((float *)t.data)[i] = value;
    return t;
}

static struct mgx_tensor appended(const struct mgx_tensor *sequence, int64_t length, float value)
{
    struct mgx_tensor out, member = vector_of(length, value);
    if (mgx_tensor_append(&out, sequence, &member, NULL) != MGX_OK)
        abort();
    mgx_tensor_release(&member);
    return out;
}

static bool counts_up(const struct mgx_tensor *sequence, int count)
{
    bool good = sequence->sub_count == count && sequence->shape.type == MGX_SEQUENCE;
    for (int i = 0; i < sequence->sub_count; i++)
        good &= ((const float *)sequence->sub[i].data)[0] == (float)i;
    return good;
}

// All versions stay alive beside each other, and each what it was.
CASE(sequences_grow_and_stay_what_they_were)
{
    enum { MANY = 100 };
    struct mgx_tensor v[MANY + 1] = {0};
    int blocks = 0;
    CHECK(mgx_tensor_group(&v[0], NULL, 0, true, NULL) == MGX_OK);
    for (int i = 0; i < MANY; i++) {
        v[i + 1] = appended(&v[i], 2, (float)i);
        blocks += v[i + 1].storage != v[i].storage;
    }
    CHECK(blocks < 12); // each half as large again as the one before
    for (int i = 0; i <= MANY; i++)
        CHECK(counts_up(&v[i], i));
    struct mgx_tensor other = appended(&v[50], 2, -1), more = appended(&other, 2, -2);
    CHECK(other.storage != v[51].storage && more.storage == other.storage);
    CHECK(((float *)other.sub[50].data)[0] == -1 && ((float *)more.sub[51].data)[0] == -2);
    CHECK(counts_up(&v[51], 51) && counts_up(&v[MANY], MANY));
    for (int i = 0; i <= MANY; i++)
        mgx_tensor_release(&v[i]);
    CHECK(other.sub_count == 51 && ((float *)other.sub[49].data)[1] == 49);
    mgx_tensor_release(&other);
    mgx_tensor_release(&more);
}

CASE(sequences_that_grow_say_what_their_members_share)
{
    const struct mgx_shape two = mgx_shape_vector(MGX_FLOAT, 2);
    struct mgx_tensor pair[2] = {vector_of(2, 0), vector_of(2, 1)}, s = {0};
    CHECK(mgx_tensor_group(&s, pair, 2, true, NULL) == MGX_OK);
    struct mgx_tensor same = appended(&s, 2, 2), differs = appended(&same, 3, 3),
                      after = appended(&differs, 2, 4), again = appended(&same, 2, 3);
    CHECK(mgx_shape_equal(&same.shape.sub[0], &two) && mgx_shape_equal(&again.shape.sub[0], &two));
    CHECK(differs.shape.sub[0].unranked && after.shape.sub[0].unranked);
    CHECK(counts_up(&same, 3) && counts_up(&after, 5) && counts_up(&again, 4));
    struct mgx_tensor *const all[] = {&s, &same, &differs, &after, &again};
    for (int i = 0; i < 5; i++)
        mgx_tensor_release(all[i]);
}

static bool equal_pair(enum mgx_type type, double a, double b, bool exact)
{
    _Alignas(8) unsigned char x[8], y[8];
    const struct mgx_shape s = mgx_shape_scalar(type);
    mgx_store_double(type, x, 0, a);
    mgx_store_double(type, y, 0, b);
    const struct mgx_tensor p = mgx_tensor_borrow(&s, x), q = mgx_tensor_borrow(&s, y);
    return mgx_tensor_equal(&p, &q, exact);
}

CASE(equal_allows_the_neighbouring_float)
{
    const float one = nextafterf(1, 2), two = nextafterf(one, 2);
    CHECK(equal_pair(MGX_FLOAT, 1, one, false) && !equal_pair(MGX_FLOAT, 1, one, true));
    CHECK(!equal_pair(MGX_FLOAT, 1, two, false) && equal_pair(MGX_FLOAT, 0.0, -0.0, true));
    CHECK(equal_pair(MGX_FLOAT, 0, -0x1p-149, false) && !equal_pair(MGX_FLOAT, 1, -1, false));
    CHECK(equal_pair(MGX_HALF, 2, 2 + 0x1p-9, false) && !equal_pair(MGX_HALF, 2, 2.25, false));
    CHECK(equal_pair(MGX_DOUBLE, INFINITY, INFINITY, false));
    CHECK(!equal_pair(MGX_DOUBLE, 0x1.fffffffffffffp1023, INFINITY, false));
    CHECK(!equal_pair(MGX_FLOAT, NAN, NAN, false) && equal_pair(MGX_FLOAT, NAN, NAN, true));
    CHECK(!equal_pair(MGX_INT32, 1, 2, false) && equal_pair(MGX_INT64, -5, -5, false));
}

CASE(strings_and_complex_numbers_are_compared_by_value)
{
    char one[] = "ab", two[] = "ab";
    const struct mgx_string x[] = {{one, 2}, {NULL, 0}}, y[] = {{two, 2}, {two, 0}};
    const struct mgx_shape s = mgx_shape_vector(MGX_STRING, 2);
    const struct mgx_tensor a = mgx_tensor_borrow(&s, x), b = mgx_tensor_borrow(&s, y);
    CHECK(mgx_tensor_equal(&a, &b, true));
    two[1] = 'c';
    CHECK(!mgx_tensor_equal(&a, &b, true));
    const float p[] = {1, 2}, q[] = {1, nextafterf(2, 3)};
    const struct mgx_shape c = mgx_shape_scalar(MGX_COMPLEX64);
    const struct mgx_tensor u = mgx_tensor_borrow(&c, p), v = mgx_tensor_borrow(&c, q);
    CHECK(mgx_tensor_equal(&u, &v, false) && !mgx_tensor_equal(&u, &v, true));
}

CASE(values_come_out_row_major)
{
    const int8_t data[] = {1, 2, 3, 4, 5, 6};
    const struct mgx_shape s = mgx_shape_strided(MGX_INT8, 2, LENS(2, 3), LENS(1, 2));
    const struct mgx_tensor t = mgx_tensor_borrow(&s, data);
    double reals[6];
    int64_t ints[6];
    mgx_tensor_to_doubles(&t, reals);
    mgx_tensor_to_ints(&t, ints);
    static const int expected[] = {1, 3, 5, 2, 4, 6};
    for (int i = 0; i < 6; i++)
        CHECK(reals[i] == expected[i] && ints[i] == expected[i]);
}

CASE(prints_six_digits)
{
    struct mgx_str out = {0};
    const float f[] = {1, 0.1f, 1e-7f, 1234567, -INFINITY, -NAN};
    const struct mgx_shape s = mgx_shape_vector(MGX_FLOAT, 6);
    const struct mgx_tensor t = mgx_tensor_borrow(&s, f);
    mgx_tensor_print(&out, &t);
    CHECK_TEXT(mgx_str_text(&out), "1, 0.1, 1e-07, 1.23457e+06, -inf, nan");
    mgx_str_fini(&out);
    const uint64_t u[] = {UINT64_MAX};
    const struct mgx_shape v = mgx_shape_vector(MGX_UINT64, 1);
    const struct mgx_tensor w = mgx_tensor_borrow(&v, u);
    mgx_tensor_print(&out, &w);
    CHECK_TEXT(mgx_str_text(&out), "18446744073709551615");
    mgx_str_fini(&out);
}

// The generator's definition, computed here step by step.
CASE(generates_reproducibly_within_the_documented_ranges)
{
    uint64_t x = 123456789, y = 362436069, z = 521288629 ^ 7;
    const struct mgx_shape s = mgx_shape_make(MGX_FLOAT, 2, LENS(16, 16));
    const struct mgx_shape i = mgx_shape_retype(&s, MGX_INT8), b = mgx_shape_retype(&s, MGX_BOOL);
    struct mgx_tensor floats, ints, bools;
    CHECK(!mgx_tensor_create(&floats, &s, NULL) && !mgx_tensor_create(&ints, &i, NULL) &&
          !mgx_tensor_create(&bools, &b, NULL));
    mgx_tensor_generate(&floats, 7);
    mgx_tensor_generate(&ints, 7);
    mgx_tensor_generate(&bools, 7);
    for (int k = 0; k < 256; k++) {
        x ^= x << 16;
        x ^= x >> 5;
        x ^= x << 1;
        const uint64_t t = x;
        x = y;
        y = z;
        z = t ^ x ^ y;
        CHECK_NEAR(((float *)floats.data)[k], (double)(z % 32) / 16 - 1, 0);
        CHECK_INT(((int8_t *)ints.data)[k], 16 - (int)(z % 32));
        CHECK_INT(((uint8_t *)bools.data)[k], z & 1);
    }
    mgx_tensor_release(&floats);
    mgx_tensor_release(&ints);
    mgx_tensor_release(&bools);
}

CASE(impossible_tensors_are_refused)
{
    struct mgx_tensor t;
    struct mgx_diag diag = {0};
    const struct mgx_shape large = mgx_shape_vector(MGX_FLOAT, (int64_t)1 << 60);
    CHECK_INT(mgx_tensor_create(&t, &large, &diag), MGX_LIMIT);
    const struct mgx_dim dim = {1, 2};
    const struct mgx_shape dynamic = mgx_shape_dynamic(MGX_FLOAT, 1, &dim);
    CHECK_INT(mgx_tensor_create(&t, &dynamic, NULL), MGX_INVALID);
}

TEST_MAIN(ROW(copies_between_all_orders_of_axes)
              ROW(clone_expands_a_broadcast_and_pack_shares_a_standard_one) ROW(
                  strings_and_tuples_are_cloned_deep) ROW(sequences_say_what_their_members_share)
                  ROW(sequences_grow_and_stay_what_they_were)
                      ROW(sequences_that_grow_say_what_their_members_share)
                          ROW(equal_allows_the_neighbouring_float)
                              ROW(strings_and_complex_numbers_are_compared_by_value)
                                  ROW(values_come_out_row_major) ROW(prints_six_digits)
                                      ROW(generates_reproducibly_within_the_documented_ranges)
                                          ROW(impossible_tensors_are_refused))
