// SPDX-License-Identifier: MIT
#include "ir/type.h"

#include "check.h"

static bool finds(const char *name, enum mgx_type type)
{
    enum mgx_type found;
    return mgx_type_find(name, strlen(name), &found) && found == type;
}

CASE(names_of_all_types_are_found)
{
    char name[64];
    for (int t = 0; t < MGX_TYPE_COUNT; t++) {
        snprintf(name, sizeof name, "%s", mgx_type_name((enum mgx_type)t));
        CHECK(finds(name, (enum mgx_type)t));
        name[strlen(name) - strlen("_type")] = '\0';
        CHECK(finds(name, (enum mgx_type)t));
    }
    CHECK(finds("int64_t", MGX_INT64) && finds("uint8_t", MGX_UINT8) && finds("int", MGX_INT32));
    CHECK(finds("migraphx::fp8::fp8e4m3fnuz", MGX_FP8E4M3FNUZ) && finds("bf16", MGX_BF16));
    enum mgx_type found;
    const char *const wrong[] = {"", "floaty", "float_t", "_type", "int64_typ", "FLOAT"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!mgx_type_find(wrong[i], strlen(wrong[i]), &found));
}

CASE(numbering_is_migraphx_s)
{
    CHECK_INT(MGX_BOOL, 0);
    CHECK_INT(MGX_FLOAT, 2);
    CHECK_INT(MGX_INT64, 9);
    CHECK_INT(MGX_BF16, 15);
    CHECK_INT(MGX_TUPLE, 17);
    CHECK_INT(MGX_FP4X2, 18);
}

// Smallest and largest integers per type, from the number of bits.
static const struct {
    enum mgx_type type;
    int bits;
    bool sign;
} integers[] = {{MGX_INT8, 8, true},     {MGX_UINT8, 8, false},   {MGX_INT16, 16, true},
                {MGX_UINT16, 16, false}, {MGX_INT32, 32, true},   {MGX_UINT32, 32, false},
                {MGX_INT64, 64, true},   {MGX_UINT64, 64, false}, {MGX_INT4, 4, true},
                {MGX_UINT4, 4, false},   {MGX_INT2, 2, true},     {MGX_UINT2, 2, false}};

CASE(integers_wrap_from_int_and_saturate_from_double)
{
    _Alignas(8) unsigned char room[32];
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        const enum mgx_type type = integers[i].type;
        const int bits = integers[i].bits;
        const double highest = ldexp(1, bits - integers[i].sign) - 1;
        const double lowest = integers[i].sign ? -ldexp(1, bits - 1) : 0;
        CHECK(mgx_type_highest(type) == highest && mgx_type_lowest(type) == lowest);
        mgx_store_double(type, room, 1, 1e30);
        const int64_t top = bits == 64 && !integers[i].sign ? -1
                            : bits == 64                    ? INT64_MAX
                                                            : (int64_t)highest;
        CHECK_INT(mgx_load_int(type, room, 1), top);
        mgx_store_double(type, room, 1, -1e30);
        CHECK_INT(mgx_load_int(type, room, 1), (int64_t)lowest);
        mgx_store_double(type, room, 1, NAN);
        CHECK_INT(mgx_load_int(type, room, 1), 0);
        mgx_store_double(type, room, 1, 1.99);
        CHECK_INT(mgx_load_int(type, room, 1), 1);
        for (int64_t v = -600; v < 600; v += 7) {
            mgx_store_int(type, room, 1, v);
            int64_t expected = v;
            if (bits < 64) {
                expected = v & (((int64_t)1 << bits) - 1);
                if (integers[i].sign && expected >> (bits - 1))
                    expected -= (int64_t)1 << bits;
            }
            CHECK_INT(mgx_load_int(type, room, 1), expected);
        }
    }
}

CASE(int64_rounds_once_on_its_way_to_a_narrow_float)
{
    unsigned char room[16];
    const int64_t v = ((int64_t)1 << 60) + ((int64_t)1 << 52) + 1; // just above a bf16 midpoint
    mgx_store_int(MGX_BF16, room, 0, v);
    CHECK(mgx_load_double(MGX_BF16, room, 0) == 0x1.02p60);
    mgx_store_int(MGX_BF16, room, 0, -v);
    CHECK(mgx_load_double(MGX_BF16, room, 0) == -0x1.02p60);
    const int64_t w = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1; // the same for float
    mgx_store_int(MGX_FLOAT, room, 0, w);
    CHECK(mgx_load_double(MGX_FLOAT, room, 0) == (double)(float)w);
    mgx_store_int(MGX_FLOAT, room, 0, INT64_MIN);
    CHECK(mgx_load_double(MGX_FLOAT, room, 0) == -0x1p63);
}

CASE(floats_hold_their_limits_at_any_address)
{
    unsigned char room[32];
    for (int t = 0; t < MGX_TYPE_COUNT; t++) {
        const enum mgx_type type = (enum mgx_type)t;
        if (!mgx_type_is_float(type))
            continue;
        mgx_store_double(type, room + 1, 1, mgx_type_highest(type));
        CHECK(mgx_load_double(type, room + 1, 1) == mgx_type_highest(type));
        mgx_store_double(type, room + 1, 1, mgx_type_lowest(type));
        CHECK(mgx_load_double(type, room + 1, 1) == mgx_type_lowest(type));
        CHECK(mgx_type_is_number(type) && mgx_type_is_signed(type));
        CHECK(mgx_type_is_fp8(type) ==
              (strncmp(mgx_type_name(type), "fp8e", 4) == 0 && mgx_type_lowest(type) < 0));
    }
    mgx_store_double(MGX_FLOAT, room, 0, 1e300);
    CHECK_INT(mgx_load_int(MGX_FLOAT, room, 0), INT64_MAX);
    mgx_store_double(MGX_BOOL, room, 0, 0.5);
    CHECK_INT(room[0], 1);
}

TEST_MAIN(ROW(names_of_all_types_are_found) ROW(numbering_is_migraphx_s)
              ROW(integers_wrap_from_int_and_saturate_from_double)
                  ROW(int64_rounds_once_on_its_way_to_a_narrow_float)
                      ROW(floats_hold_their_limits_at_any_address))
