// SPDX-License-Identifier: MIT
// The model of a Hopper card's time beside what its matrix units do at most by their maker: what it
// says of a product lies above that, and not far above for large ones; bytes take less than 16 bits.
// (Operands lie in the cache, so memory is no bound.)
#include "targets/gpu/lower/wgmma.h"

#include "check.h"

static const double OPERATIONS = 990e6; // of 16 bits a microsecond; of bytes twice as many

static double microseconds(int64_t rows, int64_t columns, int depth, bool bytes)
{
    const int block = bytes ? 128 : 64;
    const struct gpu_wgmma_size size = {.rows = rows,
                                        .columns = columns,
                                        .unit = columns,
                                        .blocks = (depth + block - 1) / block,
                                        .units = bytes ? GPU_WGMMA_BYTES : GPU_WGMMA_NARROW,
                                        .multiprocessors = 132,
                                        .shared_bytes = 227 * 1024,
                                        .result_bytes = bytes ? 1 : 2,
                                        .pairs = !bytes};
    return gpu_wgmma_microseconds(&size);
}

static double least(int64_t rows, int64_t columns, int depth, bool bytes)
{
    return 2.0 * (double)rows * (double)columns * depth / (OPERATIONS * (bytes ? 2 : 1));
}

CASE(no_product_is_faster_than_the_units_and_bytes_are_faster_than_16_bits)
{
    for (int64_t rows = 128; rows <= 1 << 16; rows *= 4)
        for (int64_t columns = 64; columns <= 4096; columns *= 4)
            for (int depth = 256; depth <= 4096; depth *= 4) {
                const double half = microseconds(rows, columns, depth, false);
                const double bytes = microseconds(rows, columns, depth, true);
                CHECK(half > least(rows, columns, depth, false));
                CHECK(bytes > least(rows, columns, depth, true));
                CHECK(bytes < half);
            }
}

CASE(large_products_are_near_what_the_units_do)
{
    for (int bytes = 0; bytes < 2; bytes++) {
        CHECK(microseconds(16384, 3072, 4096, bytes) < 2 * least(16384, 3072, 4096, bytes));
        CHECK(microseconds(65536, 4096, 4096, bytes) < 2 * least(65536, 4096, 4096, bytes));
    }
}

TEST_MAIN(ROW(no_product_is_faster_than_the_units_and_bytes_are_faster_than_16_bits)
              ROW(large_products_are_near_what_the_units_do))
