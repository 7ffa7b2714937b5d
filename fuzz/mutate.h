// SPDX-License-Identifier: MIT
// Mutation of protobuf messages as messages: a change keeps the nesting and all lengths right, so
// that it reaches the operators instead of the wire reader. A fuzzer says which fields nest and
// which words are worth trying.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "import/wire.h"

static uint64_t state;

static uint32_t next(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

struct out { // the message being written; what does not fit is dropped as a whole
    uint8_t *data;
    size_t size, room;
    bool full;
};

static void put(struct out *o, const void *data, size_t size)
{
    if (o->full || size > o->room - o->size) {
        o->full = true;
        return;
    }
    if (size)
        memcpy(o->data + o->size, data, size);
    o->size += size;
}

static void put_varint(struct out *o, uint64_t value)
{
    for (uint8_t byte; value >= 0x80; value >>= 7) {
        byte = (uint8_t)(value | 0x80);
        put(o, &byte, 1);
    }
    const uint8_t last = (uint8_t)value;
    put(o, &last, 1);
}

// The fields that are messages: in which, which, and what they are. 0 is none.
struct nesting {
    uint8_t in, field, is;
};

struct schema {
    const struct nesting *rows;
    int row_count;
    const char *const *words; // that a text may become: operators, modes, names
    int word_count;
    int first; // what the input is
};
static const struct schema schema; // the fuzzer's own

static int child(int m, uint32_t field)
{
    for (int i = 0; i < schema.row_count; i++)
        if (schema.rows[i].in == m && schema.rows[i].field == field)
            return schema.rows[i].is;
    return 0;
}

static uint64_t odd_number(uint64_t old)
{
    static const int64_t odd[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  8,
                                  13,
                                  16,
                                  17,
                                  255,
                                  -1,
                                  -2,
                                  65536,
                                  INT32_MAX,
                                  INT32_MIN,
                                  (int64_t)1 << 32,
                                  (int64_t)1 << 40,
                                  (int64_t)1 << 62,
                                  INT64_MAX,
                                  INT64_MIN};
    switch (next(4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    default:
        return (uint64_t)odd[next(sizeof odd / sizeof *odd)];
    }
}

static uint32_t odd_float(void)
{
    static const uint32_t odd[] = {0,          0x80000000, 0x3F800000, 0xBF800000,
                                   0x7F800000, 0xFF800000, 0x7FC00000, 1,
                                   0x7F7FFFFF, 0x3F000000, 0x4F000000};
    return odd[next(sizeof odd / sizeof *odd)];
}

// Another operator or a mode, where a text is one; names of values get another letter.
static void put_text(struct out *o, const uint8_t *data, size_t size)
{
    uint8_t copy[256];
    if (next(2) || !size || size > sizeof copy) {
        const char *word = schema.words[next((uint32_t)schema.word_count)];
        put_varint(o, strlen(word));
        put(o, word, strlen(word));
        return;
    }
    memcpy(copy, data, size);
    copy[next((uint32_t)size)] ^= (uint8_t)(1 << next(7));
    put_varint(o, size);
    put(o, copy, size);
}

static void put_value(struct out *o, const struct mgx_wire_field *f)
{
    const uint32_t bits = odd_float();
    const uint64_t wide = (uint64_t)bits << 32;
    if (f->type == MGX_WIRE_VARINT)
        put_varint(o, odd_number(f->value));
    else if (f->type == MGX_WIRE_32)
        put(o, &bits, 4);
    else if (f->type == MGX_WIRE_64)
        put(o, &wide, 8);
    else
        put_text(o, f->data, f->size);
}

static void put_same(struct out *o, const struct mgx_wire_field *f)
{
    if (f->type == MGX_WIRE_BYTES)
        put_varint(o, f->size);
    put(o, f->data, f->size);
}

static void put_tag(struct out *o, const struct mgx_wire_field *f)
{
    put_varint(o, (uint64_t)f->number << 3 | f->type);
}

// Copies a message; field number `*target` of the walk in all, counted at every depth, is changed.
static void rewrite(struct out *o, int kind, struct mgx_wire w, int *target, int depth)
{
    enum { DEEPEST = 24 };
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        const int inner = f.type == MGX_WIRE_BYTES ? child(kind, f.number) : 0;
        const bool here = (*target)-- == 0;
        const uint32_t action = here ? next(inner ? 3 : 6) : 9;
        if (action == 0)
            continue; // gone
        put_tag(o, &f);
        if (action == 1) { // twice
            put_same(o, &f);
            put_tag(o, &f);
            put_same(o, &f);
        } else if (here && !inner) {
            put_value(o, &f);
        } else if (inner && depth < DEEPEST && *target >= 0) {
            uint8_t *room = malloc(o->room);
            struct out sub = {room, 0, o->room, room == NULL};
            rewrite(&sub, inner, mgx_wire_sub(&f), target, depth + 1);
            o->full |= sub.full;
            put_varint(o, sub.size);
            put(o, sub.data, sub.size);
            free(room);
        } else {
            put_same(o, &f);
        }
    }
}

static int count_fields(int kind, struct mgx_wire w, int depth)
{
    struct mgx_wire_field f;
    int count = 0;
    while (mgx_wire_next(&w, &f)) {
        const int inner = f.type == MGX_WIRE_BYTES ? child(kind, f.number) : 0;
        count++;
        if (inner && depth < 24)
            count += count_fields(inner, mgx_wire_sub(&f), depth + 1);
    }
    return count;
}

static size_t mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed * 2862933555777941757u + 3037000493u;
    uint8_t *room = malloc(max_size);
    size_t best = size;
    for (uint32_t changes = 1 + next(3); room && changes; changes--) {
        const struct mgx_wire model = mgx_wire_of(data, best);
        const int count = count_fields(schema.first, model, 0);
        int target = (int)next((uint32_t)(count ? count : 1));
        struct out o = {room, 0, max_size, false};
        rewrite(&o, schema.first, model, &target, 0);
        if (o.full || !o.size)
            break;
        memcpy(data, room, o.size);
        best = o.size;
    }
    free(room);
    return best;
}
