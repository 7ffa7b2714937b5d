// SPDX-License-Identifier: MIT
// The layouts are those of AMD's documents ("AMD Matrix Instruction Calculator", the ISA documents of
// CDNA 1 to 3 and of RDNA 3 and 4), written from element to register; nothing here knows how the
// engine's kernels say it.
//
//     MFMA      a, b   a lane has `per` = k * m / 64 neighbours of the depth; element [i][k] is
//                      number k % per of lane k / per * m + i
//               c, d   four rows high: element [i][j] is number i / (4 s) * 4 + i % 4 of lane
//                      i / 4 % s * n + j, with s = 64 / n
//     RDNA 3    a, b   element [i][k] is number k of lane i and of lane i + 16
//               c, d   element [i][j] is number 16 i / 32 of lane 16 i % 32 + j
//     RDNA 4    a, b   element [i][k] is number k % 8 of lane k / 8 * 16 + i
//               c, d   element [i][j] is number i % 8 of lane i / 8 * 16 + j
//
// Sums are float, one product after the other in order of the depth; what the units do in between
// no document says. Sums of bytes are exact, of 32 bits. Where an instruction is told which of its bytes have a
// sign its name here ends in that, a's and then b's.
#include "matrix.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MOST_DEPTH = 32 };

struct cell {
    int lane, number;
};

static const struct matrix_instruction instructions[] = {
    {"mfma_f32_16x16x16f16", 64, 16, 16, 16, "hh", 9},
    {"mfma_f32_16x16x8bf16", 64, 16, 16, 8, "bb", 9},
    {"mfma_f32_16x16x16bf16_1k", 64, 16, 16, 16, "bb", 9},
    {"mfma_f32_16x16x4f32", 64, 16, 16, 4, "ff", 9},
    {"mfma_i32_16x16x16i8", 64, 16, 16, 16, "ss", 9},
    {"mfma_i32_16x16x32_i8", 64, 16, 16, 32, "ss", 9},
    {"mfma_f32_16x16x32_fp8_fp8", 64, 16, 16, 32, "EE", 9},
    {"mfma_f32_16x16x32_fp8_bf8", 64, 16, 16, 32, "EV", 9},
    {"mfma_f32_16x16x32_bf8_fp8", 64, 16, 16, 32, "VE", 9},
    {"mfma_f32_16x16x32_bf8_bf8", 64, 16, 16, 32, "VV", 9},
    {"mfma_f32_16x16x32_fp8_fp8 ocp", 64, 16, 16, 32, "ee", 9},
    {"mfma_f32_16x16x32_fp8_bf8 ocp", 64, 16, 16, 32, "ev", 9},
    {"mfma_f32_16x16x32_bf8_fp8 ocp", 64, 16, 16, 32, "ve", 9},
    {"mfma_f32_16x16x32_bf8_bf8 ocp", 64, 16, 16, 32, "vv", 9},
    {"wmma_f32_16x16x16_f16_w32", 32, 16, 16, 16, "hh", 11},
    {"wmma_f32_16x16x16_bf16_w32", 32, 16, 16, 16, "bb", 11},
    {"wmma_i32_16x16x16_iu8_w32 ss", 32, 16, 16, 16, "ss", 11},
    {"wmma_i32_16x16x16_iu8_w32 su", 32, 16, 16, 16, "su", 11},
    {"wmma_i32_16x16x16_iu8_w32 us", 32, 16, 16, 16, "us", 11},
    {"wmma_i32_16x16x16_iu8_w32 uu", 32, 16, 16, 16, "uu", 11},
    {"wmma_f32_16x16x16_f16_w32_gfx12", 32, 16, 16, 16, "hh", 12},
    {"wmma_f32_16x16x16_bf16_w32_gfx12", 32, 16, 16, 16, "bb", 12},
    {"wmma_i32_16x16x16_iu8_w32_gfx12 ss", 32, 16, 16, 16, "ss", 12},
    {"wmma_i32_16x16x16_iu8_w32_gfx12 su", 32, 16, 16, 16, "su", 12},
    {"wmma_i32_16x16x16_iu8_w32_gfx12 us", 32, 16, 16, 16, "us", 12},
    {"wmma_i32_16x16x16_iu8_w32_gfx12 uu", 32, 16, 16, 16, "uu", 12},
    {"wmma_f32_16x16x16_fp8_fp8_w32_gfx12", 32, 16, 16, 16, "ee", 12},
    {"wmma_f32_16x16x16_fp8_bf8_w32_gfx12", 32, 16, 16, 16, "ev", 12},
    {"wmma_f32_16x16x16_bf8_fp8_w32_gfx12", 32, 16, 16, 16, "ve", 12},
    {"wmma_f32_16x16x16_bf8_bf8_w32_gfx12", 32, 16, 16, 16, "vv", 12},
};

const struct matrix_instruction *matrix_find(const char *name)
{
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strcmp(instructions[i].name, name) == 0)
            return &instructions[i];
    return NULL;
}

static int element_bytes(char type)
{
    return type == 'f' ? 4 : strchr("suevEV", type) ? 1 : 2;
}

static bool is_whole(char type)
{
    return type == 's' || type == 'u';
}

int matrix_operand_bytes(const struct matrix_instruction *in)
{
    const int lanes = in->generation == 11 ? 16 : in->wave; // both halves hold all of it
    return in->m * in->k / lanes * element_bytes(in->type[0]);
}

int matrix_sums(const struct matrix_instruction *in)
{
    return in->m * in->n / in->wave;
}

static struct cell operand(const struct matrix_instruction *in, int i, int k)
{
    if (in->generation == 11)
        return (struct cell){i, k};
    const int per = in->generation == 12 ? 8 : in->k / (64 / in->m);
    return (struct cell){k / per * in->m + i, k % per};
}

static struct cell result(const struct matrix_instruction *in, int i, int j)
{
    if (in->generation == 11)
        return (struct cell){16 * i % in->wave + j, 16 * i / in->wave};
    if (in->generation == 12)
        return (struct cell){i / 8 * 16 + j, i % 8};
    const int s = 64 / in->n;
    return (struct cell){i / 4 % s * in->n + j, i / (4 * s) * 4 + i % 4};
}

static float half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, part = h & 1023;
    const float size = exponent == 31  ? part ? NAN : INFINITY
                       : exponent == 0 ? ldexpf((float)part, -24)
                                       : ldexpf((float)(part + 1024), exponent - 25);
    return h >> 15 ? -size : size;
}

// OCP's kinds: E4M3 without infinities, E5M2 with them. AMD's have a bias one higher, one zero, and one NaN
// where the other would be.
static float fp8_value(char type, uint8_t x)
{
    const bool amd = type == 'E' || type == 'V', wide = type == 'v' || type == 'V';
    const int digits = wide ? 2 : 3, bias = (wide ? 15 : 7) + amd;
    const int exponent = (x & 127) >> digits, part = x & ((1 << digits) - 1);
    if (amd ? x == 128 : wide ? exponent == 31 && part : (x & 127) == 127)
        return NAN;
    const float size = type == 'v' && exponent == 31 ? INFINITY
                       : exponent == 0
                           ? ldexpf((float)part, 1 - bias - digits)
                           : ldexpf((float)(part + (1 << digits)), exponent - bias - digits);
    return x >> 7 ? -size : size;
}

static float value(char type, const void *from, int number)
{
    uint32_t bits = 0;
    float x;
    if (type == 's')
        return ((const int8_t *)from)[number];
    if (type == 'u')
        return ((const uint8_t *)from)[number];
    if (strchr("evEV", type))
        return fp8_value(type, ((const uint8_t *)from)[number]);
    if (type == 'f') {
        memcpy(&x, (const float *)from + number, sizeof x);
        return x;
    }
    memcpy(&bits, (const uint16_t *)from + number, sizeof(uint16_t));
    if (type == 'h')
        return half_value((uint16_t)bits);
    bits <<= 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool halves_agree(const struct matrix_instruction *in, const struct matrix_lane *lanes)
{
    const size_t bytes = (size_t)matrix_operand_bytes(in);
    for (int i = 0; i < 16 && in->generation == 11; i++)
        if (memcmp(lanes[i].a, lanes[i + 16].a, bytes) != 0 ||
            memcmp(lanes[i].b, lanes[i + 16].b, bytes) != 0)
            return false;
    return true;
}

static float float_sum(const float *a, const float *b, int depth, float sum)
{
    for (int k = 0; k < depth; k++)
        sum = fmaf(a[k], b[k], sum);
    return sum;
}

static int32_t whole_sum(const float *a, const float *b, int depth, int32_t sum)
{
    for (int k = 0; k < depth; k++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)(int32_t)(a[k] * b[k]));
    return sum;
}

bool matrix_multiply(const struct matrix_instruction *in, const struct matrix_lane *lanes)
{
    float a[16][MOST_DEPTH], b[16][MOST_DEPTH];
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < in->k; k++) {
            const struct cell at = operand(in, i, k);
            a[i][k] = value(in->type[0], lanes[at.lane].a, at.number);
            b[i][k] = value(in->type[1], lanes[at.lane].b, at.number);
        }
    for (int i = 0; i < in->m; i++)
        for (int j = 0; j < in->n; j++) {
            const struct cell at = result(in, i, j);
            const struct matrix_lane *lane = &lanes[at.lane];
            if (is_whole(in->type[0]))
                ((int32_t *)lane->d)[at.number] =
                    whole_sum(a[i], b[j], in->k, ((const int32_t *)lane->c)[at.number]);
            else
                ((float *)lane->d)[at.number] =
                    float_sum(a[i], b[j], in->k, ((const float *)lane->c)[at.number]);
        }
    return halves_agree(in, lanes);
}
