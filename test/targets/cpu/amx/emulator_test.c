// SPDX-License-Identifier: MIT
// The tile unit in software against plain C, instruction by instruction, in the addressing modes
// that compilers write; and that it refuses what a processor refuses.
#include "targets/cpu/amx/emulator.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 16, BYTES = 64, ROUNDS = 40 };

static uint64_t state = 88172645463325252u;

static uint32_t random_bits(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(state * 2685821657736338717u >> 32);
}

static int random_below(int n)
{
    return (int)(random_bits() % (uint32_t)n);
}

static void fill(void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)random_bits();
}

struct config {
    _Alignas(64) uint8_t palette;
    uint8_t start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

static struct config all_tiles(int rows, int bytes)
{
    struct config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)rows;
        c.bytes[i] = (uint16_t)bytes;
    }
    return c;
}

static void configure(const struct config *c)
{
    __asm__ volatile("ldtilecfg %0" ::"m"(*c) : "memory");
}

static void release(void)
{
    __asm__ volatile("tilerelease" ::: "memory");
}

#define LOAD(tile, from, stride)                                                                   \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((int64_t)(stride))        \
                     : "memory")
#define STORE(tile, to, stride)                                                                    \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(stride))      \
                     : "memory")
#define MULTIPLY(name, c, a, b) __asm__ volatile(name " %tmm" #b ", %tmm" #a ", %tmm" #c)

// --- configuration ---

CASE(a_configuration_is_stored_as_it_was_loaded)
{
    static struct config c, back, none;
    c = all_tiles(16, 64);
    c.rows[3] = 5;
    c.bytes[3] = 12;
    c.rows[7] = 0;
    c.bytes[7] = 0;
    configure(&c);
    __asm__ volatile("sttilecfg %0" : "=m"(back)::"memory"); // relative to the instruction
    CHECK(memcmp(&back, &c, sizeof c) == 0);
    CHECK_INT(amx_counts().in_use, 1);
    release();
    __asm__ volatile("sttilecfg (%0)" ::"r"(&back) : "memory");
    CHECK(memcmp(&back, &none, sizeof none) == 0);
    configure(&c);
    configure(&none); // palette 0 releases too
    CHECK_INT(amx_counts().in_use, 0);
}

CASE(a_configuration_clears_the_tiles)
{
    uint8_t data[ROWS][BYTES], back[ROWS][BYTES];
    const struct config c = all_tiles(16, 64);
    fill(data, sizeof data);
    configure(&c);
    LOAD(2, data, BYTES);
    configure(&c);
    STORE(2, back, BYTES);
    release();
    for (int i = 0; i < ROWS * BYTES; i++)
        CHECK_INT(back[i / BYTES][i % BYTES], 0);
}

// --- loads and stores ---

// Every base, index and scale; displacements of no byte, one and four.
CASE(rows_are_where_the_address_says)
{
    enum { SIZE = 1 << 14 };
    static uint8_t memory[SIZE], back[SIZE];
    const struct config c = all_tiles(7, 20);
    fill(memory, sizeof memory);
    configure(&c);
#define MOVE(base, index, scale, shown, load, number)                                              \
    memset(back, 0x55, sizeof back);                                                               \
    __asm__ volatile("mov %0, %%" base "\n\tmov %2, %%" index "\n\t" load " " shown "(%%" base     \
                     ",%%" index "," #scale "), %%tmm" #number "\n\tmov %1, %%" base               \
                     "\n\ttilestored %%tmm" #number ", " shown "(%%" base ",%%" index "," #scale   \
                     ")" ::"r"(memory + SIZE / 2),                                                 \
                     "r"(back + SIZE / 2), "r"(stride)                                             \
                     : base, index, "memory");                                                     \
    for (int i = 0; i < SIZE; i++) {                                                               \
        const int64_t at = i - SIZE / 2 - strtol(shown, NULL, 0), row = at / (stride * scale),     \
                      in = at % (stride * scale);                                                  \
        const bool moved = at >= 0 && row < 7 && in < 20;                                          \
        CHECK_INT(back[i], moved ? memory[i] : 0x55);                                              \
    }
    const int64_t stride = 72;
    MOVE("rax", "rcx", 1, "", "tileloadd", 0)
    MOVE("rbx", "rdx", 2, "16", "tileloaddt1", 1)
    MOVE("rsi", "rdi", 4, "0x1000", "tileloadd", 2)
    MOVE("r8", "r9", 8, "64", "tileloadd", 3)
    MOVE("r10", "r11", 1, "0x400", "tileloadd", 4)
    MOVE("r12", "r13", 1, "", "tileloaddt1", 5)
    MOVE("r13", "r12", 2, "", "tileloadd", 6)
    MOVE("r14", "r15", 1, "8", "tileloadd", 7)
    release();
}

CASE(negative_strides_and_stride_zero)
{
    uint8_t data[ROWS][BYTES], back[ROWS][BYTES];
    const struct config c = all_tiles(16, 64);
    fill(data, sizeof data);
    configure(&c);
    LOAD(1, data[ROWS - 1], -BYTES);
    STORE(1, back, BYTES);
    for (int i = 0; i < ROWS; i++)
        CHECK(memcmp(back[i], data[ROWS - 1 - i], BYTES) == 0);
    LOAD(1, data[3], 0);
    STORE(1, back, BYTES);
    for (int i = 0; i < ROWS; i++)
        CHECK(memcmp(back[i], data[3], BYTES) == 0);
    __asm__ volatile("tilezero %tmm1");
    STORE(1, back, BYTES);
    for (int i = 0; i < ROWS; i++)
        CHECK_INT(back[i][i], 0);
    release();
}

// --- products ---

struct shape {
    int m, k, n; // rows of A; dwords of its rows, rows of B; columns of B
};

static struct shape start_product(int round)
{
    const struct shape s = round == 0
                               ? (struct shape){ROWS, ROWS, ROWS}
                               : (struct shape){1 + random_below(ROWS), 1 + random_below(ROWS),
                                                1 + random_below(ROWS)};
    struct config c = {.palette = 1};
    c.rows[0] = c.rows[1] = (uint8_t)s.m;
    c.rows[2] = (uint8_t)s.k;
    c.bytes[0] = c.bytes[2] = (uint16_t)(4 * s.n);
    c.bytes[1] = (uint16_t)(4 * s.k);
    configure(&c);
    return s;
}

static int32_t byte_of(const uint8_t *p, bool is_signed)
{
    return is_signed ? (int8_t)*p : *p;
}

static bool bytes_agree(struct shape s, bool a_signed, bool b_signed, uint8_t a[ROWS][BYTES],
                        uint8_t b[ROWS][BYTES], uint32_t c[ROWS][ROWS], uint32_t got[ROWS][ROWS])
{
    for (int i = 0; i < s.m; i++)
        for (int j = 0; j < s.n; j++) {
            uint32_t sum = c[i][j];
            for (int k = 0; k < 4 * s.k; k++)
                sum += (uint32_t)(byte_of(&a[i][k], a_signed) *
                                  byte_of(&b[k / 4][4 * j + k % 4], b_signed));
            if (sum != got[i][j])
                return false;
        }
    return true;
}

CASE(bytes_are_multiplied_as_their_signs_say)
{
    uint8_t a[ROWS][BYTES], b[ROWS][BYTES];
    uint32_t c[ROWS][ROWS], got[ROWS][ROWS];
    for (int round = 0; round < ROUNDS; round++) {
        amx_emulate_plainly(round % 2);
        const struct shape s = start_product(round);
        fill(a, sizeof a);
        fill(b, sizeof b);
        fill(c, sizeof c);
#define PRODUCT(name, a_signed, b_signed)                                                          \
    LOAD(0, c, BYTES);                                                                             \
    LOAD(1, a, BYTES);                                                                             \
    LOAD(2, b, BYTES);                                                                             \
    MULTIPLY(name, 0, 1, 2);                                                                       \
    STORE(0, got, BYTES);                                                                          \
    CHECK(bytes_agree(s, a_signed, b_signed, a, b, c, got));
        PRODUCT("tdpbssd", true, true)
        PRODUCT("tdpbsud", true, false)
        PRODUCT("tdpbusd", false, true)
        PRODUCT("tdpbuud", false, false)
    }
    amx_emulate_plainly(false);
    release();
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float no_denormal(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

// In more bits than any of these sums has.
static float fused(float a, float b, float c)
{
    return no_denormal((float)((__float128)no_denormal(a) * no_denormal(b) + no_denormal(c)));
}

static float pair_sum(struct shape s, uint16_t a[ROWS][2 * ROWS], uint16_t b[ROWS][2 * ROWS],
                      float c, int i, int j)
{
    float sum[2] = {0, 0};
    for (int k = 0; k < s.k; k++)
        for (int h = 0; h < 2; h++)
            sum[h] = fused(float_of((uint32_t)a[i][2 * k + h] << 16),
                           float_of((uint32_t)b[k][2 * j + h] << 16), sum[h]);
    return no_denormal(no_denormal(c) + no_denormal(sum[0] + sum[1]));
}

// Values of all sizes, denormals among them; or of one size, where sums round at every step.
static void fill_brain(uint16_t to[ROWS][2 * ROWS], bool wide)
{
    for (int i = 0; i < ROWS * 2 * ROWS; i++) {
        const uint32_t bits = random_bits(), exponent = wide ? (bits >> 8) % 190 : 120 + bits % 9;
        to[i / (2 * ROWS)][i % (2 * ROWS)] =
            (uint16_t)((bits & 0x8000) | exponent << 7 | (bits >> 20 & 0x7f));
    }
}

CASE(pairs_of_bf16_are_summed_in_the_manuals_order)
{
    uint16_t a[ROWS][2 * ROWS], b[ROWS][2 * ROWS];
    float c[ROWS][ROWS], got[ROWS][ROWS];
    for (int round = 0; round < ROUNDS; round++) {
        amx_emulate_plainly(round % 2);
        const struct shape s = start_product(round);
        fill_brain(a, round % 3 == 2);
        fill_brain(b, round % 3 == 2);
        for (int i = 0; i < ROWS * ROWS; i++)
            c[i / ROWS][i % ROWS] =
                float_of(round % 3 ? random_bits() & 0x807fffff : 0x3f800000 | random_bits() >> 9);
        LOAD(0, c, BYTES);
        LOAD(1, a, BYTES);
        LOAD(2, b, BYTES);
        MULTIPLY("tdpbf16ps", 0, 1, 2);
        STORE(0, got, BYTES);
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j < s.n; j++) {
                const float want = pair_sum(s, a, b, c[i][j], i, j);
                if (memcmp(&got[i][j], &want, sizeof want) != 0)
                    CHECK_FAIL("round %d, row %d, column %d: %a, expected %a", round, i, j,
                               got[i][j], want);
            }
    }
    amx_emulate_plainly(false);
    release();
}

// What a product leaves of a tile that is wider or higher: nothing.
CASE(what_a_tile_does_not_have_is_zero)
{
    uint8_t data[ROWS][BYTES];
    uint32_t back[ROWS][ROWS];
    struct config c = all_tiles(4, 16);
    memset(data, 1, sizeof data);
    configure(&c);
    LOAD(0, data, BYTES);
    LOAD(1, data, BYTES);
    LOAD(2, data, BYTES);
    MULTIPLY("tdpbuud", 0, 1, 2);
    memset(back, 0xff, sizeof back);
    STORE(0, back, BYTES);
    release();
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            CHECK_INT(back[i][j], i < 4 && j < 4 ? 0x01010101 + 16 : 0xffffffff);
}

// --- threads ---

static void *other_thread(void *user)
{
    const struct config c = all_tiles(2, 8);
    configure(&c);
    LOAD(0, user, BYTES);
    *(int64_t *)user = amx_counts().in_use;
    release();
    return NULL;
}

CASE(every_thread_has_its_own_tiles)
{
    uint8_t data[ROWS][BYTES], back[ROWS][BYTES];
    _Alignas(8) uint8_t others[ROWS][BYTES];
    const struct config c = all_tiles(16, 64);
    pthread_t thread;
    fill(data, sizeof data);
    configure(&c);
    LOAD(0, data, BYTES);
    CHECK_INT(pthread_create(&thread, NULL, other_thread, others), 0);
    pthread_join(thread, NULL);
    STORE(0, back, BYTES);
    release();
    CHECK(memcmp(back, data, sizeof data) == 0);
    CHECK_INT(*(int64_t *)(void *)others, 2);
    CHECK_INT(amx_counts().in_use, 0);
}

// --- refusals ---

static uint8_t scratch[ROWS * BYTES];

// What a child says that runs this; empty if it lived.
static void said_by(void (*run)(void), char text[256])
{
    int ends[2], status;
    text[0] = '\0';
    if (pipe(ends))
        return;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    close(ends[1]);
    const ssize_t size = read(ends[0], text, 255);
    text[size > 0 ? size : 0] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status))
        text[0] = '\0';
    else if (size <= 0)
        snprintf(text, 256, "signal %d", WTERMSIG(status));
}

static void with(int tile, int rows, int bytes)
{
    struct config c = all_tiles(16, 64);
    c.rows[tile] = (uint8_t)rows;
    c.bytes[tile] = (uint16_t)bytes;
    configure(&c);
}

static void with_byte(int at, int value)
{
    struct config c = all_tiles(16, 64);
    ((uint8_t *)&c)[at] = (uint8_t)value;
    configure(&c);
}

static void product(void)
{
    MULTIPLY("tdpbusd", 0, 1, 2);
}

// Assemblers refuse these as well: the last three bytes of an instruction.
#define RAW(bytes) __asm__ volatile(".byte 0xc4, 0xe2, " bytes)
#define REFUSAL(name, ...)                                                                         \
    static void name(void)                                                                         \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
REFUSAL(palette_2, with_byte(0, 2))
REFUSAL(start_row, with_byte(1, 1))
REFUSAL(reserved_low, with_byte(15, 1))
REFUSAL(reserved_middle, with_byte(32, 1))
REFUSAL(reserved_high, with_byte(63, 1))
REFUSAL(many_rows, with(4, 17, 64))
REFUSAL(long_rows, with(4, 16, 65))
REFUSAL(rows_of_nothing, with(4, 16, 0))
REFUSAL(no_rows, with(4, 0, 64))
REFUSAL(unconfigured_load, LOAD(0, scratch, 64))
REFUSAL(unconfigured_product, product())
REFUSAL(missing_tile, with(3, 0, 0); LOAD(3, scratch, 64))
REFUSAL(missing_operand, with(1, 0, 0); product())
REFUSAL(odd_rows, with(3, 16, 62); LOAD(3, scratch, 64))
REFUSAL(wrong_rows, with(1, 15, 64); product())
REFUSAL(wrong_columns, with(2, 16, 60); product())
REFUSAL(wrong_depth, with(2, 15, 64); product())
REFUSAL(twice_a, with(1, 16, 64); RAW("0x71, 0x5e, 0xc1"))
REFUSAL(twice_c, with(1, 16, 64); RAW("0x72, 0x5c, 0xc0"))
REFUSAL(no_index, with(1, 16, 64); __asm__ volatile("tileloadd (%0), %%tmm0" ::"r"(scratch)))
REFUSAL(after_release, with(1, 16, 64); release(); STORE(0, scratch, 64))
REFUSAL(no_instruction, __asm__ volatile("ud2"))

CASE(what_a_processor_refuses_ends_the_process)
{
    static const struct {
        void (*run)(void);
        const char *says;
    } cases[] = {
        {palette_2, "palette 2"},
        {start_row, "start row 1"},
        {reserved_low, "byte 15"},
        {reserved_middle, "byte 32"},
        {reserved_high, "byte 63"},
        {many_rows, "tile 4 configured as 17 rows of 64"},
        {long_rows, "tile 4 configured as 16 rows of 65"},
        {rows_of_nothing, "tile 4 configured as 16 rows of 0"},
        {no_rows, "tile 4 configured as 0 rows of 64"},
        {unconfigured_load, "TILELOADD without a configuration"},
        {unconfigured_product, "TDPBUSD without a configuration"},
        {missing_tile, "tile 3, which is not configured"},
        {missing_operand, "TDPBUSD of tile 1, which is not"},
        {odd_rows, "rows of 62 bytes"},
        {wrong_rows, "TDPBUSD of 15 x 64 and 16 x 64 to 16 x 64"},
        {wrong_columns, "TDPBUSD of 16 x 64 and 16 x 60 to 16 x 64"},
        {wrong_depth, "TDPBUSD of 16 x 64 and 15 x 64 to 16 x 64"},
        {twice_a, "TDPBUSD of one tile twice"},
        {twice_c, "TDPBF16PS of one tile twice"},
        {no_index, "TILELOADD without an index register"},
        {after_release, "TILESTORED without a configuration"},
        {no_instruction, "signal 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        said_by(cases[i].run, text);
        if (!strstr(text, cases[i].says))
            CHECK_FAIL("it says \"%s\", expected \"%s\"", text, cases[i].says);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {ROW(a_configuration_is_stored_as_it_was_loaded) //
                                              ROW(a_configuration_clears_the_tiles)           //
                                              ROW(rows_are_where_the_address_says)            //
                                              ROW(negative_strides_and_stride_zero)           //
                                              ROW(bytes_are_multiplied_as_their_signs_say)    //
                                              ROW(pairs_of_bf16_are_summed_in_the_manuals_order)
                                                  ROW(what_a_tile_does_not_have_is_zero)     //
                                              ROW(every_thread_has_its_own_tiles)            //
                                              ROW(what_a_processor_refuses_ends_the_process) //
                                              {NULL, NULL}};
    amx_emulate();
    return check_run(cases, argc, argv);
}
