// SPDX-License-Identifier: MIT
// The emulator's layouts of matrix instructions (emulated/matrix.c, written from element to
// register), held against what AMD's documents print the other way round, from register to element:
//
//     MFMA 16 x 16      a: i = lane % 16, k = n * (lane / 16) + number, n values a lane (bytes too)
//                       d: i = 4 * (lane / 16) + number, j = lane % 16
//     WMMA, RDNA 3      a: i = lane % 16, k = number; d: i = 2 * number + lane / 16, j = lane % 16
//     WMMA, RDNA 4      a: i = lane % 16, k = 8 * (lane / 16) + number
//                       d: i = 8 * (lane / 16) + number, j = lane % 16
//
// A matrix of distinct numbers times unit columns, and unit rows times it, come out as they went in.
#include "emulated/matrix.c"

#include "check.h"

enum { SIDE = 16, MOST = 16 };

struct wave {
    float in[2][SIDE][MOST_DEPTH]; // a[i][k] and b[j][k]
    float c[MATRIX_LANES][MOST], d[MATRIX_LANES][MOST], f[2][MATRIX_LANES][MOST];
    int32_t whole[2][MATRIX_LANES][MOST]; // c and d of bytes
    uint16_t h[2][MATRIX_LANES][MOST];
    uint8_t bytes[2][MATRIX_LANES][MOST];
};

static bool of_bytes(const struct matrix_instruction *in)
{
    return element_bytes(in->type[0]) == 1;
}

// Of fp8 the one that stands for the number.
static uint8_t byte_of(char type, float x)
{
    if (is_whole(type) || !strchr("evEV", type))
        return (uint8_t)(int)x;
    int byte = 0;
    while (byte < 255 && fp8_value(type, (uint8_t)byte) != x)
        byte++;
    return (uint8_t)byte;
}

// Small whole numbers, which 16 bits hold exactly.
static uint16_t narrowed(char type, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == 'b')
        return (uint16_t)(bits >> 16);
    return (uint16_t)(x == 0 ? 0 : ((bits >> 23) - 112) << 10 | (bits >> 13 & 1023));
}

static int depth_of(const struct matrix_instruction *in, int lane, int number)
{
    if (in->generation == 11)
        return number;
    return lane / 16 * (in->generation == 12 ? 8 : in->k / 4) + number;
}

static int row_of(const struct matrix_instruction *in, int lane, int number)
{
    return in->generation == 11   ? 2 * number + lane / 16
           : in->generation == 12 ? 8 * (lane / 16) + number
                                  : 4 * (lane / 16) + number;
}

// The result's [i][j], or INFINITY where lanes that must agree did not.
static void multiply(const struct matrix_instruction *in, struct wave *w, float (*out)[SIDE])
{
    struct matrix_lane lanes[MATRIX_LANES];
    const int held = matrix_operand_bytes(in) / element_bytes(in->type[0]);
    for (int l = 0; l < in->wave; l++) {
        for (int o = 0; o < 2; o++)
            for (int n = 0; n < held; n++) {
                const float x = w->in[o][l % 16][depth_of(in, l, n)];
                w->f[o][l][n] = x;
                w->h[o][l][n] = of_bytes(in) ? 0 : narrowed(in->type[o], x);
                w->bytes[o][l][n] = byte_of(in->type[o], x);
            }
        const void *of[2];
        for (int o = 0; o < 2; o++)
            of[o] = of_bytes(in)         ? (void *)w->bytes[o][l]
                    : in->type[o] == 'f' ? (void *)w->f[o][l]
                                         : w->h[o][l];
        lanes[l] = is_whole(in->type[0])
                       ? (struct matrix_lane){of[0], of[1], w->whole[0][l], w->whole[1][l]}
                       : (struct matrix_lane){of[0], of[1], w->c[l], w->d[l]};
    }
    const bool agree = matrix_multiply(in, lanes);
    for (int l = 0; l < in->wave; l++)
        for (int n = 0; n < matrix_sums(in); n++)
            out[row_of(in, l, n)][l % 16] = !agree                  ? INFINITY
                                            : is_whole(in->type[0]) ? (float)w->whole[1][l][n]
                                                                    : w->d[l][n];
}

// Distinct ones, as far as bytes go.
static float number_at(const struct matrix_instruction *in, int operand, int line, int k)
{
    const int number = (line * in->k + k) * 5 + line / 8;
    const char type = in->type[operand];
    return type == 's'            ? (float)(int8_t)number
           : type == 'u'          ? (float)(uint8_t)number
           : strchr("evEV", type) ? fp8_value(type, (uint8_t)(number & 0x77)) // no NaN, no infinity
                                  : (float)(line * 16 + k);
}

CASE(a_matrix_comes_out_as_it_went_in)
{
    for (size_t q = 0; q < sizeof instructions / sizeof *instructions; q++)
        for (int turned = 0; turned < 2; turned++) {
            struct wave w = {0};
            float out[SIDE][SIDE];
            const struct matrix_instruction *in = &instructions[q];
            // Of 32 deep the unit columns are those of one half of the depth, then of the other.
            for (int from = 0; from < in->k; from += SIDE) {
                for (int i = 0; i < SIDE; i++)
                    for (int k = 0; k < in->k; k++) {
                        w.in[turned][i][k] = number_at(in, turned, i, k);
                        w.in[!turned][i][k] = from + i == k;
                    }
                multiply(in, &w, out);
                for (int i = 0; i < SIDE; i++)
                    for (int j = 0; j < SIDE; j++) {
                        const int line = turned ? j : i, k = from + (turned ? i : j);
                        CHECK_NEAR(out[i][j], k < in->k ? number_at(in, turned, line, k) : 0, 0);
                    }
            }
        }
}

CASE(sums_are_added_to)
{
    const struct matrix_instruction *in = matrix_find("wmma_f32_16x16x16_f16_w32");
    struct wave w = {0};
    float out[SIDE][SIDE];
    for (int l = 0; l < in->wave; l++)
        for (int n = 0; n < matrix_sums(in); n++)
            w.c[l][n] = (float)(row_of(in, l, n) * 100 + l % 16);
    multiply(in, &w, out);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            CHECK_NEAR(out[i][j], i * 100 + j, 0);
    CHECK(!matrix_find("mfma_f32_4x4x1f32"));
}

TEST_MAIN(ROW(a_matrix_comes_out_as_it_went_in) ROW(sums_are_added_to))
