// SPDX-License-Identifier: MIT
// Unpacking deflated bytes: blocks of stored bytes, or of symbols in canonical Huffman codes.
//
// A code is kept as how many symbols have each length, and the symbols in the order of their codes;
// reading one compares with the first code of each length in turn. Slow beside tables, short, and
// nothing in it trusts the bytes: every read and write is checked.
#include "inflate.h"

#include <string.h>

enum { LONGEST = 15, SYMBOLS = 288, DISTANCES = 30 };

struct code {
    short count[LONGEST + 1], symbol[SYMBOLS];
};

struct stream {
    const unsigned char *in, *in_end;
    unsigned bits; // that were read and not used, the next one lowest
    int bit_count;
    unsigned char *begin, *out, *end;
    bool bad;
};

static int take(struct stream *s, int count)
{
    while (s->bit_count < count) {
        if (s->in == s->in_end) {
            s->bad = true;
            return 0;
        }
        s->bits |= (unsigned)*s->in++ << s->bit_count;
        s->bit_count += 8;
    }
    const int value = (int)(s->bits & ((1u << count) - 1));
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

// False when there are more codes of some length than fit.
static bool make_code(struct code *c, const unsigned char *lengths, int count)
{
    short at[LONGEST + 2] = {0};
    memset(c, 0, sizeof *c);
    for (int i = 0; i < count; i++)
        c->count[lengths[i]]++;
    c->count[0] = 0;
    int left = 1;
    for (int length = 1; length <= LONGEST; length++) {
        left = 2 * left - c->count[length];
        if (left < 0)
            return false;
        at[length + 1] = (short)(at[length] + c->count[length]);
    }
    for (int i = 0; i < count; i++)
        if (lengths[i])
            c->symbol[at[lengths[i]]++] = (short)i;
    return true;
}

static int decode(struct stream *s, const struct code *c)
{
    int value = 0, first = 0, index = 0;
    for (int length = 1; length <= LONGEST; length++) {
        value |= take(s, 1);
        if (value - first < c->count[length])
            return c->symbol[index + value - first];
        index += c->count[length];
        first = (first + c->count[length]) << 1;
        value <<= 1;
    }
    s->bad = true;
    return 0;
}

static void copy_back(struct stream *s, int distance, int length)
{
    if (distance > s->out - s->begin || length > s->end - s->out) {
        s->bad = true;
        return;
    }
    for (int i = 0; i < length; i++, s->out++)
        *s->out = s->out[-distance];
}

static void read_symbols(struct stream *s, const struct code *letters, const struct code *distances)
{
    static const short base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const char extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    for (;;) {
        int symbol = decode(s, letters);
        if (s->bad || symbol == 256)
            return;
        if (symbol < 256) {
            if (s->out == s->end)
                s->bad = true;
            else
                *s->out++ = (unsigned char)symbol;
            continue;
        }
        symbol -= 257;
        if (symbol >= (int)sizeof extra) {
            s->bad = true;
            return;
        }
        const int length = base[symbol] + take(s, extra[symbol]);
        const int d = decode(s, distances);
        if (d >= DISTANCES)
            s->bad = true;
        if (s->bad)
            return;
        const int more = d < 2 ? 0 : d / 2 - 1;
        copy_back(s, (d < 2 ? d + 1 : ((2 + d % 2) << more) + 1) + take(s, more), length);
    }
}

static void read_fixed(struct stream *s)
{
    unsigned char lengths[SYMBOLS];
    struct code letters, distances;
    for (int i = 0; i < SYMBOLS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    s->bad |= !make_code(&letters, lengths, SYMBOLS);
    memset(lengths, 5, DISTANCES);
    s->bad |= !make_code(&distances, lengths, DISTANCES);
    read_symbols(s, &letters, &distances);
}

// Lengths of codes, themselves coded; 16 to 18 repeat.
static void read_lengths(struct stream *s, const struct code *c, unsigned char *lengths, int count)
{
    for (int i = 0; i < count && !s->bad;) {
        const int symbol = decode(s, c);
        if (symbol < 16) {
            lengths[i++] = (unsigned char)symbol;
            continue;
        }
        const unsigned char value = symbol == 16 && i > 0 ? lengths[i - 1] : 0;
        int times = symbol == 16 ? 3 + take(s, 2) : symbol == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
        s->bad |= i + times > count || (symbol == 16 && i == 0);
        while (!s->bad && times-- > 0)
            lengths[i++] = value;
    }
}

static void read_dynamic(struct stream *s)
{
    static const char order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned char lengths[SYMBOLS + 32] = {0};
    struct code first, letters, distances;
    const int letter_count = take(s, 5) + 257, distance_count = take(s, 5) + 1;
    const int count = take(s, 4) + 4;
    for (int i = 0; i < count; i++)
        lengths[(int)order[i]] = (unsigned char)take(s, 3);
    if (s->bad || letter_count > 286 || !make_code(&first, lengths, 19)) {
        s->bad = true;
        return;
    }
    memset(lengths, 0, sizeof lengths);
    read_lengths(s, &first, lengths, letter_count + distance_count);
    s->bad |= !make_code(&letters, lengths, letter_count) ||
              !make_code(&distances, lengths + letter_count, distance_count);
    if (!s->bad)
        read_symbols(s, &letters, &distances);
}

static void read_stored(struct stream *s)
{
    s->bits = 0;
    s->bit_count = 0;
    if (s->in_end - s->in < 4) {
        s->bad = true;
        return;
    }
    const int length = s->in[0] | s->in[1] << 8;
    s->bad |= (length ^ 0xffff) != (s->in[2] | s->in[3] << 8);
    s->in += 4;
    if (s->bad || length > s->in_end - s->in || length > s->end - s->out) {
        s->bad = true;
        return;
    }
    memcpy(s->out, s->in, (size_t)length);
    s->in += length;
    s->out += length;
}

bool inflate(const unsigned char *packed, size_t packed_size, unsigned char *out, size_t size)
{
    struct stream s = {
        .in = packed, .in_end = packed + packed_size, .begin = out, .out = out, .end = out + size};
    for (int last = 0; !last && !s.bad;) {
        last = take(&s, 1);
        switch (take(&s, 2)) {
        case 0:
            read_stored(&s);
            break;
        case 1:
            read_fixed(&s);
            break;
        case 2:
            read_dynamic(&s);
            break;
        default:
            s.bad = true;
        }
    }
    return !s.bad && s.out == s.end;
}
