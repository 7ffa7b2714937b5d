// SPDX-License-Identifier: MIT
// Products of few rows with narrow weights, and unpacking these, compiled once per instruction set;
// see narrow.h.
//
// All loops over rows, panels and the k of a byte are unrolled. One row has two sums per vector, of
// even and of odd steps, so that multiplications need not wait for each other.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/size.h"
#include "targets/cpu/kernel/tile/narrow.h"
#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX_VNNI, AVX512, AVX512_VNNI)

#if defined(__AVX512F__) && defined(__AVX512VL__)
typedef __m512i vwords; // of 32 bits
SIMD vwords load_words(const char *p)
{
    return _mm512_loadu_si512(p);
}
SIMD vf load_bytes(const char *p) // as floats
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
// As floats: few bits from a table, which looks at the four lowest alone.
SIMD vf take_bits(vwords x, int shift, int bits)
{
    x = shift ? _mm512_srli_epi32(x, (unsigned)shift) : x;
    if (bits == 4)
        return _mm512_permutexvar_ps(
            x, _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    if (bits == 2)
        return _mm512_permutexvar_ps(
            x, _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
    return _mm512_cvtepi32_ps(
        shift + bits < 32 ? _mm512_and_si512(x, _mm512_set1_epi32((1 << bits) - 1)) : x);
}
SIMD vwords take_pairs(vwords x, int shift, int bits) // of the halves of words
{
    x = shift ? _mm512_srli_epi16(x, (unsigned)shift) : x;
    return shift + bits < 16 ? _mm512_and_si512(x, _mm512_set1_epi16((short)((1 << bits) - 1))) : x;
}
SIMD vwords add_pairs(vwords sum, vwords x, int32_t pair) // sum + low * low + high * high
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, _mm512_set1_epi32(pair)));
}
SIMD vwords take_fours(vwords x, int shift, int bits) // of the bytes of words
{
    x = shift ? _mm512_srli_epi16(x, (unsigned)shift) : x;
    return bits < 8 ? _mm512_and_si512(x, _mm512_set1_epi8((char)((1 << bits) - 1))) : x;
}
SIMD vwords spread_bytes(const char *p) // to words
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD vwords times_word(vwords x, int32_t low) // of 16 bits
{
    return _mm512_madd_epi16(x, _mm512_set1_epi32(low));
}
SIMD vwords same_words(int32_t x)
{
    return _mm512_set1_epi32(x);
}
#if defined(__AVX512VNNI__)
SIMD vwords add_fours(vwords sum, vwords x, int32_t four) // sum + byte * byte + ...
{
    return _mm512_dpbusd_epi32(sum, x, _mm512_set1_epi32(four));
}
SIMD vwords join_bytes(vwords high, vwords low)
{
    return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
}
#else
SIMD vwords add_twos(vwords sum, vwords x, int32_t four) // halves + byte * byte + byte * byte
{
    return _mm512_add_epi16(sum, _mm512_maddubs_epi16(x, _mm512_set1_epi32(four)));
}
SIMD vwords add_halves(vwords sum, vwords x) // sum + both halves
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, _mm512_set1_epi16(1)));
}
#endif
SIMD vwords no_words(void)
{
    return _mm512_setzero_si512();
}
SIMD vf words_as_floats(vwords x)
{
    return _mm512_cvtepi32_ps(x);
}
SIMD vf load_half(const char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SIMD vf load_bf16(const char *p)
{
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}
#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256i vwords;
SIMD vwords load_words(const char *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
SIMD vf load_bytes(const char *p)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
SIMD vf take_bits(vwords x, int shift, int bits)
{
    x = shift ? _mm256_srli_epi32(x, shift) : x;
    return _mm256_cvtepi32_ps(
        shift + bits < 32 ? _mm256_and_si256(x, _mm256_set1_epi32((1 << bits) - 1)) : x);
}
SIMD vwords take_pairs(vwords x, int shift, int bits)
{
    x = shift ? _mm256_srli_epi16(x, shift) : x;
    return shift + bits < 16 ? _mm256_and_si256(x, _mm256_set1_epi16((short)((1 << bits) - 1))) : x;
}
SIMD vwords add_pairs(vwords sum, vwords x, int32_t pair)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi32(pair)));
}
SIMD vwords take_fours(vwords x, int shift, int bits)
{
    x = shift ? _mm256_srli_epi16(x, shift) : x;
    return bits < 8 ? _mm256_and_si256(x, _mm256_set1_epi8((char)((1 << bits) - 1))) : x;
}
SIMD vwords spread_bytes(const char *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
SIMD vwords times_word(vwords x, int32_t low)
{
    return _mm256_madd_epi16(x, _mm256_set1_epi32(low));
}
SIMD vwords same_words(int32_t x)
{
    return _mm256_set1_epi32(x);
}
#if defined(__AVXVNNI__)
SIMD vwords add_fours(vwords sum, vwords x, int32_t four)
{
    return _mm256_dpbusd_avx_epi32(sum, x, _mm256_set1_epi32(four));
}
SIMD vwords join_bytes(vwords high, vwords low)
{
    return _mm256_add_epi32(_mm256_slli_epi32(high, 8), low);
}
#else
SIMD vwords add_twos(vwords sum, vwords x, int32_t four)
{
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(x, _mm256_set1_epi32(four)));
}
SIMD vwords add_halves(vwords sum, vwords x)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi16(1)));
}
#endif
SIMD vwords no_words(void)
{
    return _mm256_setzero_si256();
}
SIMD vf words_as_floats(vwords x)
{
    return _mm256_cvtepi32_ps(x);
}
SIMD vf load_half(const char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD vf load_bf16(const char *p)
{
    const __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
#else
typedef vi vwords;
SIMD vwords load_words(const char *p)
{
    vwords x;
    memcpy(&x, p, sizeof x);
    return x;
}
SIMD vf load_bytes(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (vf){b[0], b[1], b[2], b[3]};
}
SIMD vf take_bits(vwords x, int shift, int bits)
{
    return __builtin_convertvector((x >> shift) & ((1 << bits) - 1), vf);
}
SIMD vwords take_pairs(vwords x, int shift, int bits)
{
    return (x >> shift) & (((1 << bits) - 1) * 0x10001);
}
SIMD vwords add_pairs(vwords sum, vwords x, int32_t pair)
{
    return sum + (x & 0xffff) * (int32_t)(int16_t)pair + (x >> 16) * (pair >> 16);
}
SIMD vwords no_words(void)
{
    return (vwords){0};
}
SIMD vf words_as_floats(vwords x)
{
    return __builtin_convertvector(x, vf);
}
SIMD vf load_half(const char *p)
{
    uint16_t x[VL];
    memcpy(x, p, sizeof x);
    return (vf){mgx_half_to_float(x[0]), mgx_half_to_float(x[1]), mgx_half_to_float(x[2]),
                mgx_half_to_float(x[3])};
}
SIMD vf load_bf16(const char *p)
{
    uint16_t x[VL];
    memcpy(x, p, sizeof x);
    const vu bits = {x[0], x[1], x[2], x[3]};
    return (vf)(bits << 16);
}
#endif

#if defined(__AVX2__) && defined(__FMA__)
#include "targets/cpu/kernel/tile/narrow_whole.h"
#define WHOLE whole_row
#else
#define WHOLE mgx_narrow_whole
#endif

// --- products ---

// Bytes of a panel. Of a single one that is most of what memory has on its way: some 5 KB at 50
// GB/s and 100 ns. Two at once are two streams, which memory serves a fifth slower.
enum { AHEAD = VL == 16 ? 8192 : 6144, AHEAD_16 = VL == 16 ? 6144 : 1024, MAX_PER = 16 };

// With AVX-512 memory is the limit, and a single panel the faster way. Without, two share what is
// done with A for both; of 8 bits that is little.
static int panels_of(const struct mgx_narrow *form)
{
    return VL == 16 || (form->kind == MGX_NARROW_BLOCKS && form->bits == 8) ? 1 : 2;
}

// How far from `at` in a panel what is fetched lies: behind it come the panels that are taken with
// it, and next is the one behind those.
SIMD int64_t ahead_of(const struct mgx_narrow_args *x, int panels, const char *at)
{
    return AHEAD + (at + AHEAD >= x->panel + x->panel_bytes ? (panels - 1) * x->panel_bytes : 0);
}

// What a loop is unrolled for: constants after inlining.
struct shape {
    int rows, panels, nv; // nv: vectors of a panel
    enum mgx_narrow_kind kind;
    int bits;
    bool bytes; // A is
};

enum { SUMS = 16 }; // rows * panels * nv at most

SIMD int sums_of(struct shape s)
{
    return s.rows * s.panels * s.nv;
}

// Lines of `bytes` at `at` of a panel, and of those beside it.
SIMD void fetch(struct shape s, const struct mgx_narrow_args *x, const char *at, int bytes)
{
    UNROLL
    for (int p = 0; p < s.panels; p++) {
        UNROLL
        for (int line = 0; line < bytes; line += 64)
            __builtin_prefetch(at + p * x->panel_bytes + line, 0, 3);
    }
}

// Where a loop over blocks is.
struct place {
    const char *at, *zeros; // the block's scales, with its values behind them, and its zero points
    int64_t ahead;
};

// Block `b`, behind the one that `own` was. Fetches what stands beside the values ahead of it.
SIMD void next_block(struct shape s, const struct mgx_narrow_args *x, int64_t b, struct place *own)
{
    const int width = s.nv * VL;
    if (b)
        own->at += mgx_narrow_record(x->form, width), own->zeros += width;
    own->ahead = ahead_of(x, s.panels, own->at);
    if (x->form->zeros && b % mgx_narrow_shared(width) == 0) {
        own->zeros = own->at;
        own->at += MGX_NARROW_LINE;
        fetch(s, x, own->zeros + own->ahead, MGX_NARROW_LINE);
    }
    fetch(s, x, own->at + own->ahead, 4 * width);
}

SIMD vf load_scale(const char *p)
{
    return vf_load((const float *)(const void *)p);
}

SIMD vf load_16(enum mgx_narrow_kind kind, const char *p)
{
    return kind == MGX_NARROW_F16 ? load_half(p) : load_bf16(p);
}

// k's values of vector v of panel p are in `x`: adds them times A's.
SIMD void add(struct shape s, int p, int v, const vf *a, vf x, vf *c)
{
    UNROLL
    for (int r = 0; r < s.rows; r++) {
        vf *sum = &c[(r * s.panels + p) * s.nv + v];
        *sum = vf_fma(a[r], x, *sum);
    }
}

// A's values at k of all rows.
SIMD void spread(struct shape s, const float *a, int64_t a_row, vf *out)
{
    UNROLL
    for (int r = 0; r < s.rows; r++)
        out[r] = vf_set(a[r * a_row]);
}

// One group of k that share their words.
SIMD void step(struct shape s, const char *q, int64_t panel_bytes, const float *a, int64_t a_row,
               vf c[2][SUMS])
{
    const int per = 32 / s.bits;
    vwords x[SUMS];
    UNROLL
    for (int v = 0; v < s.panels * s.nv; v++)
        x[v] = load_words(q + v / s.nv * panel_bytes + v % s.nv * VL * 4);
    UNROLL
    for (int i = 0; i < per; i++) {
        vf av[MGX_NARROW_ROWS];
        spread(s, a + i, a_row, av);
        UNROLL
        for (int v = 0; v < s.panels * s.nv; v++)
            add(s, v / s.nv, v % s.nv, av, take_bits(x[v], i * s.bits, s.bits),
                c[s.rows == 1 ? i % 2 : 0]);
    }
}

SIMD void clear(struct shape s, vf c[2][SUMS])
{
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        c[0][i] = c[1][i] = vf_zero();
}

// Sums over one block: `count` k from A's `a` on.
SIMD void sum_block(struct shape s, const struct mgx_narrow_args *x, int64_t ahead, const char *q,
                    const float *a, int64_t count, vf c[2][SUMS])
{
    const int per = 32 / s.bits, row = s.nv * VL * 4;
    const int64_t whole = count / per;
    clear(s, c);
    for (int64_t g = 0; g < whole; g++, q += row, a += per) {
        fetch(s, x, q + ahead, row);
        step(s, q, x->panel_bytes, a, x->a_row, c);
    }
    if (count % per) { // A ends within a word
        float rest[MGX_NARROW_ROWS * MAX_PER] = {0};
        for (int r = 0; r < s.rows; r++)
            for (int64_t i = 0; i < count % per; i++)
                rest[r * MAX_PER + i] = a[r * x->a_row + i];
        step(s, q, x->panel_bytes, rest, MAX_PER, c);
    }
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        c[0][i] = vf_add(c[0][i], c[1][i]);
}

// Blocks: total[...] += scale * (sum - zero * sum of A).
SIMD void sum_blocks(struct shape s, const struct mgx_narrow_args *x, vf total[SUMS])
{
    const struct mgx_narrow *form = x->form;
    const int64_t head = mgx_narrow_head(form, s.nv * VL);
    const int64_t blocks = mgx_narrow_blocks(form);
    const vf middle = vf_set((float)(1 << (s.bits - 1)));
    struct place own = {.at = x->panel};
    for (int64_t b = 0; b < blocks; b++) {
        vf c[2][SUMS];
        const int64_t k = b * form->block;
        next_block(s, x, b, &own);
        sum_block(s, x, own.ahead, own.at + head, x->a + k,
                  mgx_min_i64(form->block, form->depth - k), c);
        UNROLL
        for (int p = 0; p < s.panels; p++) {
            UNROLL
            for (int v = 0; v < s.nv; v++) {
                const int64_t beside = p * x->panel_bytes + v * VL;
                const vf scale = load_scale(own.at + beside + 3 * v * VL);
                const vf zero = form->zeros ? load_bytes(own.zeros + beside) : middle;
                UNROLL
                for (int r = 0; r < s.rows; r++) {
                    const int i = (r * s.panels + p) * s.nv + v;
                    const vf sum = vf_fnma(zero, vf_set(x->sums[r * x->sums_row + b]), c[0][i]);
                    total[i] = vf_fma(scale, sum, total[i]);
                }
            }
        }
    }
}

SIMD void load_panels(struct shape s, const struct mgx_narrow_args *x, const char *q, vwords *w)
{
    UNROLL
    for (int v = 0; v < s.panels * s.nv; v++)
        w[v] = load_words(q + v / s.nv * x->panel_bytes + v % s.nv * VL * 4);
}

// The same with A in whole numbers of two bytes each, four of which are multiplied at once ...
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
SIMD void sum_whole(struct shape s, const struct mgx_narrow_args *x, int64_t ahead, const char *q,
                    const int32_t *fours, int64_t groups, vwords c[SUMS])
{
    const int per = 8 / s.bits, row = s.nv * VL * 4;
    vwords high[SUMS];
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        c[i] = high[i] = no_words();
    for (int64_t g = 0; g < groups; g++, q += row, fours += 2 * per) {
        vwords w[SUMS];
        load_panels(s, x, q, w);
        fetch(s, x, q + ahead, row);
        UNROLL
        for (int i = 0; i < per; i++) {
            UNROLL
            for (int v = 0; v < s.panels * s.nv; v++) {
                const vwords y = take_fours(w[v], i * s.bits, s.bits);
                UNROLL
                for (int r = 0; r < s.rows; r++) {
                    const int at = r * s.panels * s.nv + v;
                    const int32_t *own = fours + r * x->pairs_row + 2 * i;
                    high[at] = add_fours(high[at], y, own[0]);
                    c[at] = add_fours(c[at], y, own[1]);
                }
            }
        }
    }
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        c[i] = join_bytes(high[i], c[i]);
}
#else
// ... or of 16 bits, of which a pair is.
SIMD void sum_whole(struct shape s, const struct mgx_narrow_args *x, int64_t ahead, const char *q,
                    const int32_t *pairs, int64_t groups, vwords c[SUMS])
{
    const int per = 16 / s.bits, row = s.nv * VL * 4;
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        c[i] = no_words();
    for (int64_t g = 0; g < groups; g++, q += row, pairs += per) {
        vwords w[SUMS];
        UNROLL
        for (int v = 0; v < s.panels * s.nv; v++)
            w[v] = load_words(q + v / s.nv * x->panel_bytes + v % s.nv * VL * 4);
        fetch(s, x, q + ahead, row);
        UNROLL
        for (int i = 0; i < per; i++) {
            UNROLL
            for (int v = 0; v < s.panels * s.nv; v++) {
                const vwords y = take_pairs(w[v], i * s.bits, s.bits);
                UNROLL
                for (int r = 0; r < s.rows; r++) {
                    vwords *sum = &c[(r * s.panels + v / s.nv) * s.nv + v % s.nv];
                    *sum = add_pairs(*sum, y, pairs[r * x->pairs_row + i]);
                    IN_REGISTER(*sum); // sums in another order need more registers
                }
            }
        }
    }
}
#endif

#if defined(__AVX2__) && defined(__FMA__)
// What `groups` words of B add to sums that have begun, of rows whose bytes lie together.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
SIMD void add_bytes(struct shape s, const struct mgx_narrow_args *x, const char *q,
                    const int32_t *fours, int64_t groups, vwords c[SUMS])
{
    const int per = 8 / s.bits, row = s.nv * VL * 4;
    assert(groups > 0);
    do {
        vwords w[2], y[2];
        load_panels(s, x, q, w);
        UNROLL
        for (int i = 0; i < per; i++) {
            UNROLL
            for (int v = 0; v < s.nv; v++)
                y[v] = take_fours(w[v], i * s.bits, s.bits);
            UNROLL
            for (int at = 0; at < sums_of(s); at++) {
                c[at] = add_fours(c[at], y[at % s.nv], fours[i * s.rows + at / s.nv]);
                IN_REGISTER(c[at]);
            }
        }
        q += row;
        fours += per * s.rows;
    } while (--groups);
}
#else
// 16 bits hold the products of TOGETHER words, whose numbers are 4 bits at most.
SIMD void add_bytes(struct shape s, const struct mgx_narrow_args *x, const char *q,
                    const int32_t *fours, int64_t groups, vwords c[SUMS])
{
    enum { TOGETHER = 4 };
    const int per = 8 / s.bits, row = s.nv * VL * 4;
    for (; groups > 0; groups -= TOGETHER) {
        vwords w[2], y[2], halves[SUMS];
        UNROLL
        for (int at = 0; at < sums_of(s); at++)
            halves[at] = no_words();
        for (int64_t g = 0; g < mgx_min_i64(groups, TOGETHER); g++) {
            load_panels(s, x, q, w);
            UNROLL
            for (int i = 0; i < per; i++) {
                UNROLL
                for (int v = 0; v < s.nv; v++)
                    y[v] = take_fours(w[v], i * s.bits, s.bits);
                UNROLL
                for (int at = 0; at < sums_of(s); at++) {
                    halves[at] = add_twos(halves[at], y[at % s.nv], fours[i * s.rows + at / s.nv]);
                    IN_REGISTER(halves[at]);
                }
            }
            q += row;
            fours += per * s.rows;
        }
        UNROLL
        for (int at = 0; at < sums_of(s); at++)
            c[at] = add_halves(c[at], halves[at]);
    }
}
#endif

// The same of bytes of A, whose sums begin with what the zero points take off.
SIMD void sum_bytes(struct shape s, const struct mgx_narrow_args *x, vf total[SUMS])
{
    const struct mgx_narrow *form = x->form;
    const int64_t head = mgx_narrow_head(form, s.nv * VL), word = 32 / s.bits;
    const int64_t blocks = mgx_narrow_blocks(form);
    const vwords middle = same_words(1 << (s.bits - 1));
    struct place own = {.at = x->panel};
    for (int64_t b = 0; b < blocks; b++) {
        vwords c[SUMS], zero[2];
        const int64_t k = b * form->block, left = mgx_min_i64(form->block, form->depth - k);
        const float *sum = x->sums + 2 * b * s.rows;
        next_block(s, x, b, &own);
        UNROLL
        for (int v = 0; v < s.nv; v++)
            zero[v] = form->zeros ? spread_bytes(own.zeros + v * VL) : middle;
        UNROLL
        for (int i = 0; i < sums_of(s); i++) {
            int32_t less; // a block's sum below zero
            memcpy(&less, &sum[2 * (i / s.nv)], sizeof less);
            c[i] = times_word(zero[i % s.nv], less);
            IN_REGISTER(c[i]);
        }
        add_bytes(s, x, own.at + head, x->pairs + k / 4 * s.rows, mgx_ceil_div(left, word), c);
        UNROLL
        for (int i = 0; i < sums_of(s); i++) {
            const vf scale = load_scale(own.at + i % s.nv * 4 * VL);
            const vf y = vf_mul(words_as_floats(c[i]), vf_set(sum[2 * (i / s.nv) + 1]));
            total[i] = vf_fma(scale, y, total[i]);
        }
    }
}
#endif

SIMD void sum_integers(struct shape s, const struct mgx_narrow_args *x, vf total[SUMS])
{
    const struct mgx_narrow *form = x->form;
    const int64_t head = mgx_narrow_head(form, s.nv * VL), word = 32 / s.bits;
    const int64_t blocks = mgx_narrow_blocks(form);
    const vf middle = vf_set((float)(1 << (s.bits - 1)));
    struct place own = {.at = x->panel};
    for (int64_t b = 0; b < blocks; b++) {
        vwords c[SUMS];
        const int64_t k = b * form->block, left = mgx_min_i64(form->block, form->depth - k);
        next_block(s, x, b, &own);
        sum_whole(s, x, own.ahead, own.at + head, x->pairs + k / 2, mgx_ceil_div(left, word), c);
        UNROLL
        for (int i = 0; i < sums_of(s); i++) {
            const int r = i / (s.panels * s.nv), p = i / s.nv % s.panels, v = i % s.nv;
            const int64_t beside = p * x->panel_bytes + v * VL;
            const float *sum = x->sums + r * x->sums_row + 2 * b; // of A, and its factor
            const vf scale = load_scale(own.at + beside + 3 * v * VL);
            const vf zero = form->zeros ? load_bytes(own.zeros + beside) : middle;
            const vf y = vf_fnma(zero, vf_set(sum[0]), words_as_floats(c[i]));
            total[i] = vf_fma(vf_mul(scale, vf_set(sum[1])), y, total[i]);
        }
    }
}

// One k of 16 bits.
SIMD void step_16(struct shape s, const struct mgx_narrow_args *x, const char *q, const float *a,
                  vf *c)
{
    vf av[MGX_NARROW_ROWS];
    spread(s, a, x->a_row, av);
    UNROLL
    for (int p = 0; p < s.panels; p++) {
        const char *own = q + p * x->panel_bytes;
        __builtin_prefetch(own + AHEAD_16, 0, 3);
        UNROLL
        for (int v = 0; v < s.nv; v++)
            add(s, p, v, av, load_16(s.kind, own + 2 * v * VL), c);
    }
}

SIMD void sum_16(struct shape s, const struct mgx_narrow_args *x, vf total[SUMS])
{
    const int64_t row = 2 * s.nv * VL, depth = x->form->depth;
    const char *q = x->panel;
    vf c[2][SUMS];
    int64_t k = 0;
    clear(s, c);
    for (; k + 2 <= depth; k += 2, q += 2 * row) {
        step_16(s, x, q, x->a + k, c[0]);
        step_16(s, x, q + row, x->a + k + 1, c[s.rows == 1 ? 1 : 0]);
    }
    if (k < depth)
        step_16(s, x, q, x->a + k, c[0]);
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        total[i] = vf_add(c[0][i], c[1][i]);
}

// Bias, residual and clamp, as far as there are rows and columns.
SIMD void store_sums(struct shape s, const struct mgx_narrow_args *x, int rows,
                     const vf total[SUMS])
{
    for (int r = 0; r < s.rows && r < rows; r++)
        for (int v = 0; v < s.panels * s.nv; v++) {
            const int at = v * VL, left = x->cols - at, n = left < VL ? left : VL;
            if (left <= 0)
                break;
            vf y = total[r * s.panels * s.nv + v];
            if (x->bias)
                y = vf_add(y, vf_load_some(x->bias + at, n));
            if (x->residual)
                y = vf_add(y, vf_load_some(x->residual + r * x->residual_row + at, n));
            if (x->clamp)
                y = vf_min(vf_set(x->high), vf_max(vf_set(x->low), y));
            if (n == VL)
                vf_store(x->c + r * x->c_row + at, y);
            else
                vf_store_some(x->c + r * x->c_row + at, y, n);
        }
}

// The ways to multiply: 16 bits; blocks of floats; blocks of whole numbers.
enum way { HALVES, BRAINS, FLOATS_8, FLOATS_4, FLOATS_2, WHOLE_8, WHOLE_4, WHOLE_2, WAYS };

static enum way way_of(const struct mgx_narrow_args *x)
{
    const struct mgx_narrow *form = x->form;
    if (form->kind != MGX_NARROW_BLOCKS)
        return form->kind == MGX_NARROW_F16 ? HALVES : BRAINS;
    const int bits = form->bits == 8 ? 0 : form->bits == 4 ? 1 : 2;
    return (enum way)((x->pairs ? WHOLE_8 : FLOATS_8) + bits);
}

SIMD void multiply(struct shape s, enum way way, const struct mgx_narrow_args *x, int rows)
{
    vf total[SUMS];
    UNROLL
    for (int i = 0; i < sums_of(s); i++)
        total[i] = vf_zero();
#if defined(__AVX2__) && defined(__FMA__)
    if (s.bytes)
        sum_bytes(s, x, total);
    else
#endif
        if (way >= WHOLE_8)
        sum_integers(s, x, total);
    else if (way >= FLOATS_8)
        sum_blocks(s, x, total);
    else
        sum_16(s, x, total);
    store_sums(s, x, rows, total);
}

// A function for every way: gcc takes half as long again for one that has them all.
#define WAY(name, rows, panels, nv, way, kind, bits)                                               \
    static void name##_##way(const struct mgx_narrow_args *x)                                      \
    {                                                                                              \
        multiply((struct shape){rows, panels, nv, kind, bits, false}, way, x, rows);               \
    }
#define SHAPE(name, rows, panels, nv)                                                              \
    WAY(name, rows, panels, nv, HALVES, MGX_NARROW_F16, 8)                                         \
    WAY(name, rows, panels, nv, BRAINS, MGX_NARROW_BF16, 8)                                        \
    WAY(name, rows, panels, nv, FLOATS_8, MGX_NARROW_BLOCKS, 8)                                    \
    WAY(name, rows, panels, nv, FLOATS_4, MGX_NARROW_BLOCKS, 4)                                    \
    WAY(name, rows, panels, nv, FLOATS_2, MGX_NARROW_BLOCKS, 2)                                    \
    WAY(name, rows, panels, nv, WHOLE_8, MGX_NARROW_BLOCKS, 8)                                     \
    WAY(name, rows, panels, nv, WHOLE_4, MGX_NARROW_BLOCKS, 4)                                     \
    WAY(name, rows, panels, nv, WHOLE_2, MGX_NARROW_BLOCKS, 2)                                     \
    static const product_fn name[WAYS] = {name##_HALVES,   name##_BRAINS,   name##_FLOATS_8,       \
                                          name##_FLOATS_4, name##_FLOATS_2, name##_WHOLE_8,        \
                                          name##_WHOLE_4,  name##_WHOLE_2};

typedef void (*product_fn)(const struct mgx_narrow_args *x);

SHAPE(one_wide, 1, 1, 2)
SHAPE(one_narrow, 1, 1, 1)
#if !defined(FEWER_FORMS)
SHAPE(two_wide, 2, 1, 2)
SHAPE(three_wide, 3, 1, 2)
SHAPE(four_wide, 4, 1, 2)
static const product_fn *const wide[] = {NULL, one_wide, two_wide, three_wide, four_wide};
#else
static const product_fn *const wide[] = {NULL, one_wide, NULL, NULL, NULL};
#endif
#if !defined(__AVX512F__) // whose panels_of is 1
SHAPE(one_two, 1, 2, 2)
#endif

// Many rows as bytes: of the last ones some are not there.
#if defined(__AVX2__) && defined(__FMA__)
#define BYTES(name, nv, bits)                                                                      \
    static void name##_##bits(const struct mgx_narrow_args *x, int rows)                           \
    {                                                                                              \
        multiply((struct shape){MANY, 1, nv, MGX_NARROW_BLOCKS, bits, true}, WHOLE_##bits, x,      \
                 rows);                                                                            \
    }
BYTES(bytes_wide, 2, 4)
BYTES(bytes_wide, 2, 2)
BYTES(bytes_narrow, 1, 4)
BYTES(bytes_narrow, 1, 2)
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
enum { BYTES_TIMES = 8, WHOLE_MANY = VL == 16 ? MGX_NARROW_ROWS : 0 }; // most bits; rows of 15 bits
BYTES(bytes_wide, 2, 8)
BYTES(bytes_narrow, 1, 8)
#else
enum { BYTES_TIMES = 4, WHOLE_MANY = 0 };
#define bytes_wide_8 NULL
#define bytes_narrow_8 NULL
#endif
typedef void (*bytes_fn)(const struct mgx_narrow_args *x, int rows);

static void product_of_bytes(const struct mgx_narrow_args *x, int rows)
{
    static const bytes_fn wide_of[] = {bytes_wide_8, bytes_wide_4, bytes_wide_2};
    static const bytes_fn narrow_of[] = {bytes_narrow_8, bytes_narrow_4, bytes_narrow_2};
    const int bits = x->form->bits == 8 ? 0 : x->form->bits == 4 ? 1 : 2;
    assert(rows >= 1 && rows <= MANY && x->form->bits <= BYTES_TIMES);
    (x->width == 2 * VL ? wide_of : narrow_of)[bits](x, rows);
}

static int many_of(const struct mgx_narrow *form)
{
    if (form->kind != MGX_NARROW_BLOCKS || !form->fast)
        return 0;
    return form->bytes && form->bits <= BYTES_TIMES ? MANY : WHOLE_MANY;
}
#else
static void product_of_bytes(const struct mgx_narrow_args *x, int rows)
{
    (void)x;
    (void)rows;
    assert(false);
}

static int many_of(const struct mgx_narrow *form)
{
    (void)form;
    return 0;
}
#endif

// Rows without a form of their own, as those of a last panel of one vector: one by one, from cache.
static void row_by_row(const struct mgx_narrow_args *x, int rows)
{
    const product_fn *const product = x->width == 2 * VL ? one_wide : one_narrow;
    struct mgx_narrow_args one = *x;
    for (int r = 0; r < rows; r++) {
        product[way_of(x)](&one);
        one.a += x->a_row;
        one.sums += x->sums ? x->sums_row : 0;
        one.pairs += x->pairs ? x->pairs_row : 0;
        one.residual += x->residual ? x->residual_row : 0;
        one.c += x->c_row;
    }
}

static void product(const struct mgx_narrow_args *x, int rows, int panels)
{
    (void)panels;
    if (x->bytes) {
        product_of_bytes(x, rows);
        return;
    }
    assert(panels <= panels_of(x->form) && rows >= 1 && rows <= MGX_NARROW_ROWS);
#if !defined(__AVX512F__)
    if (panels == 2) {
        one_two[way_of(x)](x);
        return;
    }
#endif
    if (x->width == 2 * VL && wide[rows])
        wide[rows][way_of(x)](x);
    else
        row_by_row(x, rows);
}

static void block_sums(const float *a, int64_t depth, int64_t block, float *out)
{
    for (int64_t k = 0; k < depth; k += block, a += block) {
        const int64_t count = mgx_min_i64(block, depth - k);
        vf sum = vf_zero();
        int64_t i = 0;
        for (; i + VL <= count; i += VL)
            sum = vf_add(sum, vf_load(a + i));
        if (i < count)
            sum = vf_add(sum, vf_load_some(a + i, (int)(count - i)));
        *out++ = vf_sum(sum);
    }
}

// --- unpacking ---

SIMD void unpack_16(enum mgx_narrow_kind kind, const char *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i += VL)
        vf_store(to + i, load_16(kind, from + 2 * i));
}

// `count` k from `first` on of one block.
SIMD void unpack_block(int bits, const struct mgx_narrow *form, const char *record,
                       const char *zeros, int width, int64_t first, int64_t count, float *to)
{
    const int per = 32 / bits;
    const char *q = record + mgx_narrow_head(form, width);
    for (int j = 0; j < width; j += VL) {
        const vf scale = vf_load((const float *)(const void *)record + j);
        const vf zero = form->zeros ? load_bytes(zeros + j) : vf_set((float)(1 << (bits - 1)));
        for (int64_t k = first / per * per; k < first + count; k += per) {
            const vwords x = load_words(q + (k / per * width + j) * 4);
            UNROLL
            for (int i = 0; i < per; i++)
                if (k + i >= first && k + i < first + count)
                    vf_store(to + (k + i - first) * width + j,
                             vf_mul(vf_sub(take_bits(x, i * bits, bits), zero), scale));
        }
    }
}

static void unpack(const struct mgx_narrow *form, const char *panel, int width, int64_t k,
                   int64_t depth, float *to)
{
    if (form->kind == MGX_NARROW_F16) {
        unpack_16(MGX_NARROW_F16, panel + 2 * k * width, depth * width, to);
        return;
    }
    if (form->kind == MGX_NARROW_BF16) {
        unpack_16(MGX_NARROW_BF16, panel + 2 * k * width, depth * width, to);
        return;
    }
    for (const int64_t end = k + depth; k < end;) {
        const int64_t first = k % form->block;
        const int64_t count = mgx_min_i64(form->block - first, end - k);
        const char *record = panel + mgx_narrow_at(form, width, k / form->block);
        const char *zeros = panel + mgx_narrow_zeros(form, width, k / form->block);
        if (form->bits == 8)
            unpack_block(8, form, record, zeros, width, first, count, to);
        else if (form->bits == 4)
            unpack_block(4, form, record, zeros, width, first, count, to);
        else
            unpack_block(2, form, record, zeros, width, first, count, to);
        to += count * width;
        k += count;
    }
}

const struct mgx_narrow_kernel NAME(mgx_f32_narrow) = {
    KERNEL_BASE("f32_narrow"), .vector = VL,       .panels = panels_of, .product = product,
    .many = many_of,           .sums = block_sums, .whole = WHOLE,      .unpack = unpack};
