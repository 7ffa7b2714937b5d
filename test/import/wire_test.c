// SPDX-License-Identifier: MIT
// The wire reader on honest and dishonest bytes.
#include "import/wire.h"

#include "check.h"
#include "onnx/writer.h"

static const char *read_all(const void *data, size_t size)
{
    struct mgx_wire w = mgx_wire_of(data, size);
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f))
        if (f.data < (const uint8_t *)data || f.data + f.size > (const uint8_t *)data + size)
            return "outside";
    return w.bad ? w.bad : "";
}

CASE(varints_keep_all_64_bits)
{
    static const uint64_t values[] = {0,     1,          127,       128,       16383,
                                      16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct pb m = {0};
        pb_varint(&m, values[i]);
        struct mgx_wire w = mgx_wire_of(m.data, m.size);
        uint64_t got;
        CHECK(mgx_wire_varint(&w, &got));
        CHECK(got == values[i]);
        CHECK(w.p == w.end);
        pb_free(&m);
    }
}

CASE(refuses_what_is_not_a_field)
{
    static const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                     0x80, 0x80, 0x80, 0x80, 0x01};
    static const uint8_t too_wide[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    static const uint8_t number_zero[] = {0x00, 0x01}, group[] = {0x0B, 0x0C}, type6[] = {0x0E},
                         type7[] = {0x0F};
    static const uint8_t past_end[] = {0x0A, 0x05, 'a'};
    static const uint8_t huge[] = {0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                   0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    static const uint8_t short32[] = {0x0D, 1, 2, 3}, short64[] = {0x09, 1, 2, 3, 4, 5, 6, 7};
    CHECK(*read_all(eleven, sizeof eleven));
    CHECK(*read_all(too_wide, sizeof too_wide));
    CHECK(*read_all(number_zero, sizeof number_zero));
    CHECK(strstr(read_all(group, sizeof group), "group"));
    CHECK(*read_all(type6, sizeof type6));
    CHECK(*read_all(type7, sizeof type7));
    CHECK(strstr(read_all(past_end, sizeof past_end), "longer than what is left"));
    CHECK(*read_all(huge, sizeof huge));
    CHECK(*read_all(short32, sizeof short32));
    CHECK(*read_all(short64, sizeof short64));
    CHECK_TEXT(read_all("", 0), "");
}

CASE(random_bytes_never_lead_outside)
{
    srand(7);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[64];
        const size_t size = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(rand() % 3 ? rand() % 32 : rand());
        uint8_t *heap = malloc(size ? size : 1); // at the exact size, for sanitizers
        memcpy(heap, bytes, size);
        const bool outside = strcmp(read_all(heap, size), "outside") == 0;
        free(heap);
        CHECK(!outside);
    }
}

CASE(lists_may_be_packed_or_not)
{
    struct pb m = {0}, list = {0};
    pb_int(&m, 8, 5);
    pb_varint(&list, 6);
    pb_varint(&list, 300);
    pb_message(&m, 8, &list);
    pb_int(&m, 8, -1);
    struct mgx_wire w = mgx_wire_of(m.data, m.size), part;
    struct mgx_wire_field f;
    int64_t got[4];
    int count = 0;
    while (mgx_wire_next(&w, &f)) {
        CHECK(mgx_wire_packed(&w, &f, 0, &part));
        for (uint64_t value; part.p < part.end && mgx_wire_varint(&part, &value);)
            got[count++] = (int64_t)value;
    }
    pb_free(&m);
    CHECK_INT(count, 4);
    CHECK(got[0] == 5 && got[1] == 6 && got[2] == 300 && got[3] == -1);
}

CASE(utf8_is_told_from_bytes)
{
    static const struct {
        const char *text;
        size_t size;
        bool valid;
    } cases[] = {{"", 0, true},
                 {"name", 4, true},
                 {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, true},
                 {"a\0b", 3, false},
                 {"\xC0\x80", 2, false},         // overlong NUL
                 {"\xE0\x80\xAF", 3, false},     // overlong slash
                 {"\xED\xA0\x80", 3, false},     // surrogate
                 {"\xF4\x90\x80\x80", 4, false}, // above the last code point
                 {"\x80", 1, false},
                 {"\xE2\x82", 2, false},
                 {"\xFF", 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (mgx_utf8_valid(cases[i].text, cases[i].size) != cases[i].valid)
            CHECK_FAIL("case %zu", i);
}

TEST_MAIN(ROW(varints_keep_all_64_bits) ROW(refuses_what_is_not_a_field)
              ROW(random_bytes_never_lead_outside) ROW(lists_may_be_packed_or_not)
                  ROW(utf8_is_told_from_bytes))
