// SPDX-License-Identifier: MIT
// Sums over cards by kernels that write into each other's memory (kernel/sum_over_cards.gpu).
//
// Each card has a box, in its own memory, that the others write and it reads:
//
//     box of card r    [card that writes] [even, odd sums] [BOX_WORDS words of 8 bytes]
//     word             4 bytes of a value, and the number of the sum that they belong to
//
// A word is written and read at once, so its number tells that the value is there, without a fence.
// A box has room for two sums: when a card writes its n-th, the others have read its (n - 2)-th,
// for it has their (n - 1)-th.
//
// Cost: 8 MiB a card for each pair of cards; a sum of some kilobytes costs the link's latency twice
// over and a kernel.
#pragma once

#include "plan/exchange.h"
#include "targets/gpu/device/device.h"

enum { GPU_BOX_WORDS = 256 << 10 }; // of one sum of one card: 1 MiB of values
enum { GPU_EXCHANGE_NUMBER, GPU_EXCHANGE_DONE, GPU_EXCHANGE_STOPPED, GPU_EXCHANGE_STATE };

struct gpu_exchange_card {
    struct gpu_device *device;
    void *box;
    void *boxes; // addresses of all cards' boxes, 8 bytes each
    void *state; // u32: the last sum's number, blocks that are done with this one, whether to stop
};

struct gpu_exchange {
    struct mgx_exchange base;
    struct gpu_exchange_card card[MGX_EXCHANGE_CARDS];
};

// Cards `cards` of what `choice` stands for (device.h); each must reach all others.
enum mgx_status gpu_exchange_create(const char *choice, const int *cards, int count,
                                    struct mgx_exchange **out, struct mgx_diag *diag) MGX_NODISCARD;
