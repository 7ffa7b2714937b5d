// SPDX-License-Identifier: MIT
// Ends of tiles in memory, compiled once per instruction set. An activation, and what is done to
// floats behind it, is a loop over the tile; other steps are done four vectors at a time, of as
// many rows as they take. Bytes of floats, and no more, have a loop of their own, as all of a large
// tensor becomes bytes by it. Where the processor rounds floats to bfloat16 itself, results can
// leave as such.
#include <assert.h>

#include "targets/cpu/kernel/end/end_body.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512, AVX512_BF16)

#if defined(__AVX512BF16__)
// Rounds to nearest, ties to even; denormals become 0.
SIMD void store_bf16(char *to, int cols, vf v)
{
    const __m256i y = (__m256i)_mm512_cvtneps_pbh(v);
    if (cols == COLS)
        _mm256_storeu_si256((__m256i *)(void *)to, y);
    else
        _mm256_mask_storeu_epi16(to, (__mmask16)((1u << cols) - 1), y);
}
enum { ROUNDS = 1 };
#else
enum { ROUNDS = 0 };

SIMD void store_bf16(char *to, int cols, vf v)
{
    assert(!"this set does not round");
    (void)to, (void)cols, (void)v;
}
#endif

// --- activations ---

// An activation, and the steps behind it that are done with it; NULL: there is none.
struct floats_end {
    const struct mgx_end_step *act, *columns, *operand;
    int count;
};

static struct floats_end floats_end_of(const struct mgx_end_step *step, int count)
{
    struct floats_end f = {.act = step, .count = 1};
    if (f.count < count && step[f.count].kind == MGX_END_COLUMNS)
        f.columns = &step[f.count++];
    if (f.count < count && step[f.count].kind <= MGX_END_MULTIPLY)
        f.operand = &step[f.count++];
    return f;
}

SIMD vf meet(const struct mgx_end_step *s, vf x, vf operand)
{
    return s->kind == MGX_END_MULTIPLY ? vf_mul(x, operand) : vf_add(x, operand);
}

SIMD void store_result(bool rounds, char *to, int64_t j, int cols, vf x)
{
    if (rounds)
        store_bf16(to + j * 2, cols, x);
    else
        store_cols(to + j * (int64_t)sizeof(float), cols, x);
}

SIMD void act_rows(enum mgx_act act, const struct floats_end *f, bool rounds,
                   const struct mgx_end_rows *r)
{
    const vf b = vf_set(f->act->act.b), same = vf_set(f->act->act.a);
    const float *slopes = f->act->act.column;
    const bool plain = !slopes && !f->columns && r->cols % COLS == 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const float *from = r->from + i * r->from_row;
        const float *operand = (const float *)(const void *)(r->operand + i * r->operand_row);
        char *to = r->to + i * r->to_row;
        for (int64_t j = 0; plain && j < r->cols; j += COLS) {
            const vf x = vf_act(act, vf_load(from + j), same, b);
            store_result(rounds, to, j, COLS,
                         f->operand ? meet(f->operand, x, vf_load(operand + j)) : x);
        }
        for (int64_t j = 0; !plain && j < r->cols; j += COLS) {
            const int n = (int)(r->cols - j < COLS ? r->cols - j : COLS);
            const int64_t col = r->col + j;
            vf x =
                vf_act(act, load_cols(from + j, n), slopes ? load_cols(slopes + col, n) : same, b);
            if (f->columns)
                x = vf_fma(x, load_cols(f->columns->columns.factor + col, n),
                           load_cols(f->columns->columns.term + col, n));
            if (f->operand)
                x = meet(f->operand, x, load_cols(operand + j, n));
            store_result(rounds, to, j, n, x);
        }
    }
}

// To floats, in the tile or where results go, or to bf16.
static void act_tile(const struct floats_end *f, bool rounds, const struct mgx_end_rows *r)
{
    switch (f->act->act.act) {
#define X(name, text, meaning)                                                                     \
    case name:                                                                                     \
        if (ROUNDS && rounds)                                                                      \
            act_rows(name, f, true, r);                                                            \
        else                                                                                       \
            act_rows(name, f, false, r);                                                           \
        break;
        MGX_ACT_LIST(X)
#undef X
    case MGX_ACT_COUNT:
        break;
    }
}

// --- step by step ---

static __attribute__((noinline)) void end_four(const struct mgx_end_step *step, int count,
                                               const float *const from[END_VECTORS],
                                               const struct end_slot at[END_VECTORS])
{
    vf v[END_VECTORS];
    UNROLL
    for (int i = 0; i < END_VECTORS; i++)
        v[i] = load_cols(from[i], at[i].cols);
    end_steps(step, step + count, at, v);
}

// Four vectors of a row, as often as it has such.
static void end_plain_row(const struct mgx_end_step step[2], const float *from, int64_t cols,
                          char *to)
{
    const int zero = step[1].byte.zero;
    const bool is_signed = step[1].byte.is_signed;
    const struct mgx_end_step clamp = step[0];
    for (int64_t j = 0; j + END_VECTORS * COLS <= cols; j += END_VECTORS * COLS) {
        vf v[END_VECTORS];
        UNROLL
        for (int i = 0; i < END_VECTORS; i++)
            v[i] = end_clamp(&clamp, vf_load(from + j + i * COLS));
        store_four_rows(to + j, four_rows(v, zero, is_signed));
    }
}

static bool reads_bytes(const struct mgx_end_step *step, int count)
{
    for (int i = 0; i < count; i++)
        if (step[i].kind == MGX_END_MIX)
            return true;
    return false;
}

// How the vectors of a tile are found, four at a time.
struct walk {
    const struct mgx_end_rows *r;
    int64_t size, operand_size; // of a result, of a value of the operand
};

// The vector of row i from column j on.
SIMD const float *slot_at(const struct walk *w, int64_t i, int64_t j, int cols, struct end_slot *at)
{
    const struct mgx_end_rows *r = w->r;
    const char *operand = r->operand;
    *at = (struct end_slot){.col = r->col + j,
                            .operand =
                                operand ? operand + i * r->operand_row + j * w->operand_size : NULL,
                            .to = r->to + i * r->to_row + j * w->size,
                            .cols = cols};
    return r->from + i * r->from_row + j;
}

// Rows of `across` whole vectors, which divide four or are a multiple of it.
SIMD void steps_whole(const struct mgx_end_step *step, int count, const struct walk *w, int64_t row,
                      int64_t j, int across)
{
    const float *from[END_VECTORS];
    struct end_slot at[END_VECTORS];
    UNROLL
    for (int k = 0; k < END_VECTORS; k++)
        from[k] = slot_at(w, row + k / across, j + k % across * COLS, COLS, &at[k]);
    end_four(step, count, from, at);
}

// Any rows from the first on, whose columns from `j` on are left.
static void steps_some(const struct mgx_end_step *step, int count, const struct walk *w,
                       int64_t first, int64_t begin)
{
    const struct mgx_end_rows *r = w->r;
    const float *from[END_VECTORS];
    struct end_slot at[END_VECTORS];
    int filled = 0;
    for (int64_t i = first; i < r->rows; i++)
        for (int64_t j = begin; j < r->cols; j += COLS) {
            const int cols = (int)(r->cols - j < COLS ? r->cols - j : COLS);
            from[filled] = slot_at(w, i, j, cols, &at[filled]);
            if (++filled < END_VECTORS)
                continue;
            end_four(step, count, from, at);
            filled = 0;
        }
    if (!filled)
        return;
    for (int i = filled; i < END_VECTORS; i++) { // the last one again, which changes nothing
        from[i] = from[filled - 1];
        at[i] = at[filled - 1];
    }
    end_four(step, count, from, at);
}

static void steps_rows(const struct mgx_end_step *step, int count, const struct mgx_end_rows *r)
{
    enum { FOUR = END_VECTORS * COLS };
    const bool bytes = count && step[count - 1].kind == MGX_END_BYTE;
    const struct walk w = {r, bytes ? 1 : (int64_t)sizeof(float),
                           reads_bytes(step, count) ? 1 : (int64_t)sizeof(float)};
    const int64_t whole = r->cols / FOUR * FOUR;
    int64_t i = 0;
    if (bytes && count == 2 && step->kind == MGX_END_CLAMP && !step[1].byte.table) {
        for (; i < r->rows; i++)
            end_plain_row(step, r->from + i * r->from_row, r->cols, r->to + i * r->to_row);
        steps_some(step, count, &w, 0, whole);
        return;
    }
    for (; r->cols == 2 * COLS && i + 2 <= r->rows; i += 2)
        steps_whole(step, count, &w, i, 0, 2);
    for (; r->cols == whole && i < r->rows; i++)
        for (int64_t j = 0; j < whole; j += FOUR)
            steps_whole(step, count, &w, i, j, END_VECTORS);
    steps_some(step, count, &w, i, 0);
}

// No steps at all: floats to bf16.
static void round_rows(const struct mgx_end_rows *r)
{
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t j = 0; j < r->cols; j += COLS) {
            const int n = (int)(r->cols - j < COLS ? r->cols - j : COLS);
            store_bf16(r->to + i * r->to_row + j * 2, n,
                       load_cols(r->from + i * r->from_row + j, n));
        }
}

// To where the floats are.
static void set_in_place(const struct mgx_end_rows *all, struct mgx_end_rows *r)
{
    r->to = (char *)(uintptr_t)all->from;
    r->to_row = all->from_row * (int64_t)sizeof(float);
    r->rounds = false;
}

// The activation is done in the tile, or there is none.
static void run_rest(const struct mgx_end_step *step, int count, const struct mgx_end_rows *all)
{
    struct mgx_end_rows r = *all;
    if (r.rounds) { // in the tile first
        set_in_place(all, &r);
        if (count)
            steps_rows(step, count, &r);
        round_rows(all);
        return;
    }
    steps_rows(step, count, &r);
}

static void end_rows(const struct mgx_end_step *step, int count, const struct mgx_end_rows *r)
{
    if (!count || step->kind != MGX_END_ACT) {
        run_rest(step, count, r);
        return;
    }
    const struct floats_end f = floats_end_of(step, count);
    if (f.count == count) {
        act_tile(&f, r->rounds, r);
        return;
    }
    struct mgx_end_rows in_place = *r;
    set_in_place(r, &in_place);
    act_tile(&f, false, &in_place);
    run_rest(step + f.count, count - f.count, r);
}

const struct mgx_end_kernel NAME(mgx_f32_end) = {KERNEL_BASE("f32_end"), end_rows};
