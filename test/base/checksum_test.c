// SPDX-License-Identifier: MIT
// The checksum of files: as its definition, word by word, on whatever machine; damage changes it.
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "check.h"

enum { LANES = 64, MOST = 70000 };

static uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane << 29 | lane >> 35;
}

// Word i of the bytes, zeros behind them, goes to lane i modulo 64.
static uint64_t by_definition(const uint8_t *p, size_t size)
{
    uint32_t lane[LANES];
    uint64_t h[4] = {size * 0x9e3779b97f4a7c15u + 1, 2, 3, 4};
    for (uint32_t i = 0; i < LANES; i++)
        lane[i] = 0x9e3779b1u * (i + 1);
    for (size_t at = 0; at < (size + 255) / 256 * 256; at += 4) {
        uint32_t word = 0;
        for (size_t k = 0; k < 4 && at + k < size; k++)
            word |= (uint32_t)p[at + k] << 8 * k;
        uint32_t *l = &lane[at / 4 % LANES];
        *l = (*l ^ word) * 0x9e3779b1u;
        *l = *l << 13 | *l >> 19;
    }
    for (int i = 0; i < LANES / 2; i++)
        h[i % 4] = mix(h[i % 4], lane[2 * i] | (uint64_t)lane[2 * i + 1] << 32);
    for (int j = 1; j < 4; j++)
        h[0] = mix(h[0], h[j]);
    h[0] = (h[0] ^ h[0] >> 32) * 0x9e3779b97f4a7c15u;
    return h[0] ^ h[0] >> 29;
}

static uint8_t *random_bytes(void)
{
    uint8_t *bytes = malloc(MOST + 1);
    uint32_t state = 1;
    if (!bytes)
        exit(2);
    for (int i = 0; i <= MOST; i++)
        bytes[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

static bool agrees(const uint8_t *p, size_t size)
{
    const uint64_t want = by_definition(p, size);
    return mgx_checksum(p, size) == want && mgx_checksum_plain(p, size) == want;
}

CASE(as_defined)
{
    uint8_t *bytes = random_bytes();
    for (size_t size = 0; size < 1100; size++)
        if (!agrees(bytes, size) || !agrees(bytes + 1, size))
            CHECK_FAIL("another sum of %zu bytes", size);
    CHECK(agrees(bytes, 65536) && agrees(bytes + 1, MOST));
    free(bytes);
}

CASE(damage_changes_it)
{
    uint8_t *bytes = random_bytes();
    for (size_t size = 1; size <= 2048; size = size * 2 + 3) {
        const uint64_t whole = mgx_checksum(bytes, size), old = mgx_checksum_old(bytes, size);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (mgx_checksum(bytes, size) == whole || mgx_checksum_old(bytes, size) == old)
                CHECK_FAIL("the same sum with bit %zu of %zu bytes flipped", bit, size);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    free(bytes);
}

// Zeros in place of a page, two pages exchanged, bytes missing at the end, sizes of zeros.
CASE(so_does_what_happens_to_files)
{
    uint8_t *bytes = random_bytes(), *hurt = malloc(65536);
    const uint64_t whole = mgx_checksum(bytes, 65536);
    for (int page = 0; hurt && page < 15; page++) {
        memcpy(hurt, bytes, 65536);
        memset(hurt + page * 4096, 0, 4096);
        CHECK(mgx_checksum(hurt, 65536) != whole);
        memcpy(hurt, bytes, 65536);
        memcpy(hurt + page * 4096, bytes + (page + 1) * 4096, 4096);
        memcpy(hurt + (page + 1) * 4096, bytes + page * 4096, 4096);
        CHECK(mgx_checksum(hurt, 65536) != whole);
        CHECK(mgx_checksum(bytes, 65535 - (size_t)page) != whole);
    }
    memset(hurt, 0, 65536);
    for (size_t size = 0; size < 600; size++)
        CHECK(mgx_checksum(hurt, size) != mgx_checksum(hurt, size + 1));
    free(hurt);
    free(bytes);
}

TEST_MAIN(ROW(as_defined) ROW(damage_changes_it) ROW(so_does_what_happens_to_files))
