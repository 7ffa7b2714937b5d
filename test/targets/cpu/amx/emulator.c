// SPDX-License-Identifier: MIT
// A tile unit in software; see emulator.h. Instructions as Intel's manual has them (volume 2,
// VEX.128 in the map 0F38, W0):
//
//     49  NP  mem  LDTILECFG     66  mem  STTILECFG    NP 11 000 000  TILERELEASE
//                                                      F2 11 rrr 000  TILEZERO
//     4b  F2  sib  TILELOADD     66  sib  TILELOADDT1  F3 sib         TILESTORED
//     5c  F3  11 rrr bbb  TDPBF16PS
//     5e  F2  TDPBSSD     F3  TDPBSUD     66  TDPBUSD     NP  TDPBUUD
//
// One palette: eight tiles of up to 16 rows of 64 bytes. The handler touches nothing but registers
// of the interrupted code, its memory and the thread's own tiles.
#include "targets/cpu/amx/emulator.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, PALETTE = 1, CONFIG_BYTES = 64 };

struct tile {
    int rows, bytes; // of a row; 0 and 0: not configured
    uint8_t data[ROWS][ROW_BYTES];
};

struct unit {
    bool configured;
    struct tile tile[TILES];
};

// No call into the loader on the way to it.
static _Thread_local struct unit unit __attribute__((tls_model("initial-exec")));

static _Atomic int64_t products[5], configured, in_use;
static _Atomic bool plainly;

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    char text[256] = "amx: ";
    const int head = (int)strlen(text), room = (int)sizeof text - head - 1;
    va_list list;
    va_start(list, format);
    const int size = vsnprintf(text + head, (size_t)room, format, list);
    va_end(list);
    const int end = head + (size < room ? size : room - 1);
    text[end] = '\n';
    (void)!write(STDERR_FILENO, text, (size_t)end + 1);
    abort();
}

// --- an instruction ---

struct instruction {
    unsigned opcode, prefix; // prefix: 0 none, 1 66, 2 F3, 3 F2
    unsigned mod, reg, rm, third;
    bool has_index;
    int64_t base, index; // of its memory: base + row * index
    int size;
};

static int64_t register_of(const greg_t *r, unsigned number)
{
    static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return r[order[number]];
}

static int32_t displacement(const uint8_t *code, int bytes)
{
    int32_t value = 0;
    if (bytes == 1)
        return (int8_t)code[0];
    memcpy(&value, code, (size_t)bytes);
    return value;
}

// ModRM's memory operand, from the byte behind it on. `high_base`, `high_index`: 8 or 0.
static void decode_memory(const uint8_t *code, const greg_t *r, unsigned high_base,
                          unsigned high_index, struct instruction *i)
{
    int bytes = i->mod == 1 ? 1 : i->mod == 2 ? 4 : 0;
    const uint8_t *at = code + i->size;
    if (i->rm == 4) {
        const unsigned sib = *at++, index = (sib >> 3 & 7) | high_index;
        const unsigned base = (sib & 7) | high_base;
        i->has_index = index != 4;
        i->index = i->has_index ? register_of(r, index) * (1 << (sib >> 6)) : 0;
        if ((sib & 7) == 5 && i->mod == 0)
            bytes = 4;
        else
            i->base = register_of(r, base);
    } else if (i->rm == 5 && i->mod == 0) {
        bytes = 4;
        i->base = r[REG_RIP] + (at - code) + bytes;
    } else {
        i->base = register_of(r, i->rm | high_base);
    }
    i->base += displacement(at, bytes);
    i->size = (int)(at - code) + bytes;
}

// False: not one of these.
static bool decode(const greg_t *r, struct instruction *i)
{
    const uint8_t *code = (const uint8_t *)r[REG_RIP];
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2)
        return false;
    *i = (struct instruction){.opcode = code[3], .prefix = code[2] & 3, .size = 5};
    if (i->opcode != 0x49 && i->opcode != 0x4b && i->opcode != 0x5c && i->opcode != 0x5e)
        return false;
    const bool high_reg = !(code[1] & 0x80), high_rm = !(code[1] & 0x20);
    const unsigned high_index = code[1] & 0x40 ? 0 : 8;
    i->third = ~code[2] >> 3 & 15;
    i->mod = code[4] >> 6;
    i->reg = code[4] >> 3 & 7;
    i->rm = code[4] & 7;
    const bool multiplies = i->opcode >= 0x5c;
    if (code[2] & 0x84)
        refuse("opcode %02x with W or L", i->opcode);
    if (high_reg || (i->mod == 3 && high_rm) || (multiplies && i->third > 7))
        refuse("opcode %02x names a tile beyond the eighth", i->opcode);
    if (!multiplies && i->third)
        refuse("opcode %02x with a third operand", i->opcode);
    if (i->mod != 3)
        decode_memory(code, r, high_rm ? 8 : 0, high_index, i);
    return true;
}

// --- configuration ---

static void read_config(const uint8_t *from)
{
    struct unit now = {.configured = true};
    if (from[1])
        refuse("configured with start row %d", from[1]);
    for (int i = 2; i < CONFIG_BYTES; i++)
        if (from[i] && (i < 16 || (i >= 32 && i < 48) || i >= 56))
            refuse("byte %d of a configuration is reserved, and %d", i, from[i]);
    for (int t = 0; t < TILES; t++) {
        uint16_t bytes;
        memcpy(&bytes, from + 16 + 2 * t, sizeof bytes);
        now.tile[t].bytes = bytes;
        now.tile[t].rows = from[48 + t];
        if (bytes > ROW_BYTES || now.tile[t].rows > ROWS || !bytes != !now.tile[t].rows)
            refuse("tile %d configured as %d rows of %d bytes", t, now.tile[t].rows, bytes);
    }
    atomic_fetch_add(&in_use, !unit.configured);
    atomic_fetch_add(&configured, 1);
    unit = now;
}

static void release(void)
{
    atomic_fetch_sub(&in_use, unit.configured);
    memset(&unit, 0, sizeof unit);
}

static void load_config(const uint8_t *from)
{
    if (from[0] == PALETTE) {
        read_config(from);
        return;
    }
    if (from[0])
        refuse("configured with palette %d", from[0]);
    release();
}

static void store_config(uint8_t *to)
{
    memset(to, 0, CONFIG_BYTES);
    to[0] = unit.configured ? PALETTE : 0;
    for (int t = 0; t < TILES; t++) {
        to[16 + 2 * t] = (uint8_t)unit.tile[t].bytes;
        to[48 + t] = (uint8_t)unit.tile[t].rows;
    }
}

// --- tiles ---

static struct tile *tile_of(unsigned number, const char *name)
{
    struct tile *t = &unit.tile[number];
    if (!unit.configured)
        refuse("%s without a configuration", name);
    if (!t->rows)
        refuse("%s of tile %u, which is not configured", name, number);
    if (t->bytes % 4)
        refuse("%s of tile %u with rows of %d bytes", name, number, t->bytes);
    return t;
}

static void move_rows(const struct instruction *i, bool store)
{
    const char *name = store ? "TILESTORED" : "TILELOADD";
    struct tile *t = tile_of(i->reg, name);
    if (i->mod == 3 || i->rm != 4 || !i->has_index)
        refuse("%s without an index register", name);
    if (!store)
        memset(t->data, 0, sizeof t->data);
    for (int row = 0; row < t->rows; row++) {
        uint8_t *memory =
            (uint8_t *)(uintptr_t)((uint64_t)i->base + (uint64_t)row * (uint64_t)i->index);
        memcpy(store ? memory : t->data[row], store ? t->data[row] : memory, (size_t)t->bytes);
    }
}

struct operands {
    struct tile *c;
    const struct tile *a, *b;
};

static struct operands operands_of(const struct instruction *i, const char *name)
{
    const struct operands o = {tile_of(i->reg, name), tile_of(i->rm, name),
                               tile_of(i->third, name)};
    if (i->mod != 3)
        refuse("%s with an operand in memory", name);
    if (o.c == o.a || o.c == o.b || o.a == o.b)
        refuse("%s of one tile twice", name);
    if (o.c->rows != o.a->rows || o.c->bytes != o.b->bytes || o.a->bytes / 4 != o.b->rows)
        refuse("%s of %d x %d and %d x %d to %d x %d (rows, bytes)", name, o.a->rows, o.a->bytes,
               o.b->rows, o.b->bytes, o.c->rows, o.c->bytes);
    return o;
}

// --- products ---

#define INLINED static inline __attribute__((always_inline))

// Byte j of every dword of a row, widened.
INLINED void widen(const uint8_t *row, int j, bool is_signed, int32_t out[ROWS])
{
    for (int n = 0; n < ROWS; n++)
        out[n] = is_signed ? (int8_t)row[4 * n + j] : row[4 * n + j];
}

// Sums wrap. What lies beyond a tile's rows and bytes is zero, so all columns may be multiplied.
INLINED void multiply_bytes(const struct operands *o, bool a_signed, bool b_signed)
{
    int32_t b[ROWS][4][ROWS];
    for (int k = 0; k < o->b->rows; k++)
        for (int j = 0; j < 4; j++)
            widen(o->b->data[k], j, b_signed, b[k][j]);
    for (int m = 0; m < o->c->rows; m++) {
        uint32_t sum[ROWS];
        memcpy(sum, o->c->data[m], sizeof sum);
        for (int k = 0; k < o->b->rows; k++)
            for (int j = 0; j < 4; j++) {
                const uint8_t byte = o->a->data[m][4 * k + j];
                const int32_t a = a_signed ? (int8_t)byte : byte;
                for (int n = 0; n < ROWS; n++)
                    sum[n] += (uint32_t)(a * b[k][j][n]);
            }
        memcpy(o->c->data[m], sum, sizeof sum);
    }
}

// Value j of the pair in each dword, as a float.
INLINED void spread(const uint8_t *row, int j, float out[ROWS])
{
    uint32_t bits[ROWS];
    memcpy(bits, row, sizeof bits);
    for (int n = 0; n < ROWS; n++)
        bits[n] = j ? bits[n] & 0xffff0000u : bits[n] << 16;
    memcpy(out, bits, sizeof bits);
}

INLINED float flushed(float x, bool flushes)
{
    return flushes && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// First and second values of pairs are summed apart over the whole tile, from 0 on; then both sums
// are added, and that to C. `flushes`: denormals become 0 here, not by the processor's mode.
INLINED void multiply_pairs(const struct operands *o, bool flushes)
{
    for (int m = 0; m < o->c->rows; m++) {
        float sum[2][ROWS] = {{0}}, c[ROWS], b[ROWS], a[ROWS];
        memcpy(c, o->c->data[m], sizeof c);
        for (int j = 0; j < 2; j++) {
            spread(o->a->data[m], j, a);
            for (int k = 0; k < o->b->rows; k++) {
                spread(o->b->data[k], j, b);
                for (int n = 0; n < ROWS; n++)
                    sum[j][n] = flushed(
                        __builtin_fmaf(flushed(a[k], flushes), flushed(b[n], flushes), sum[j][n]),
                        flushes);
            }
        }
        for (int n = 0; n < ROWS; n++) {
            const float both = flushed(sum[0][n] + sum[1][n], flushes);
            c[n] = flushed(flushed(c[n], flushes) + both, flushes);
        }
        memset(o->c->data[m], 0, ROW_BYTES);
        memcpy(o->c->data[m], c, (size_t)o->c->bytes);
    }
}

#define FOR_SET(name, attribute)                                                                   \
    attribute static void bytes_##name(const struct operands *o, bool a_signed, bool b_signed)     \
    {                                                                                              \
        if (a_signed && b_signed)                                                                  \
            multiply_bytes(o, true, true);                                                         \
        else if (a_signed)                                                                         \
            multiply_bytes(o, true, false);                                                        \
        else if (b_signed)                                                                         \
            multiply_bytes(o, false, true);                                                        \
        else                                                                                       \
            multiply_bytes(o, false, false);                                                       \
    }

FOR_SET(plain, )
FOR_SET(avx512, __attribute__((target("avx512f,avx512bw"))))

static void pairs_plain(const struct operands *o)
{
    multiply_pairs(o, true);
}

__attribute__((target("avx512f,fma"), noinline)) static void pairs_avx512(const struct operands *o)
{
    multiply_pairs(o, false);
}

// With denormals taken for zero and made zero, rounding to nearest even, nothing reported.
static void pairs_flushing(const struct operands *o)
{
    enum { QUIET = 0x1f80, DENORMALS_ARE_ZERO = 0x40, FLUSH_TO_ZERO = 0x8000 };
    const unsigned mode = QUIET | DENORMALS_ARE_ZERO | FLUSH_TO_ZERO;
    unsigned before;
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    __asm__ volatile("ldmxcsr %0" ::"m"(mode) : "memory");
    pairs_avx512(o);
    __asm__ volatile("ldmxcsr %0" ::"m"(before) : "memory");
}

static bool has_vectors(void)
{
    return !atomic_load_explicit(&plainly, memory_order_relaxed) &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
}

static void multiply(const struct instruction *i)
{
    static const char *const names[] = {"TDPBUUD", "TDPBUSD", "TDPBSUD", "TDPBSSD"};
    const bool floats = i->opcode == 0x5c;
    atomic_fetch_add(&products[floats ? 4 : i->prefix], 1);
    if (floats) {
        const struct operands o = operands_of(i, "TDPBF16PS");
        if (i->prefix != 2)
            refuse("opcode 5c with prefix %u", i->prefix);
        (has_vectors() ? pairs_flushing : pairs_plain)(&o);
        return;
    }
    const struct operands o = operands_of(i, names[i->prefix]);
    (has_vectors() ? bytes_avx512 : bytes_plain)(&o, i->prefix >= 2, i->prefix & 1);
}

// --- what the processor calls ---

static void configure(const struct instruction *i)
{
    uint8_t *memory = (uint8_t *)(uintptr_t)((uint64_t)i->base + (uint64_t)i->index);
    if (i->mod == 3 && i->prefix == 3 && i->rm == 0) {
        memset(tile_of(i->reg, "TILEZERO")->data, 0, sizeof unit.tile[0].data);
        return;
    }
    if (i->mod == 3 && (i->prefix || i->reg || i->rm))
        refuse("opcode 49 with prefix %u, registers %u and %u", i->prefix, i->reg, i->rm);
    if (i->mod == 3) {
        release();
        return;
    }
    if (i->reg || i->prefix > 1)
        refuse("opcode 49 with prefix %u, register %u", i->prefix, i->reg);
    if (i->prefix)
        store_config(memory);
    else
        load_config(memory);
}

static void execute(const struct instruction *i)
{
    if (i->opcode == 0x49)
        configure(i);
    else if (i->opcode == 0x4b && i->prefix)
        move_rows(i, i->prefix == 2);
    else if (i->opcode == 0x4b)
        refuse("opcode 4b without a prefix");
    else
        multiply(i);
}

static void on_refused(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct instruction i;
    (void)info;
    if (!decode(r, &i)) { // somebody else's: it comes again, and ends the process
        signal(number, SIG_DFL);
        return;
    }
    execute(&i);
    r[REG_RIP] += i.size;
}

void amx_emulate(void)
{
    struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
}

void amx_emulate_plainly(bool on)
{
    plainly = on;
}

struct amx_counts amx_counts(void)
{
    struct amx_counts c = {.configured = configured, .in_use = in_use};
    for (int i = 0; i < 5; i++)
        c.products += c.by_kind[i] = products[i];
    return c;
}
