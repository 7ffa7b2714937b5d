// SPDX-License-Identifier: MIT
// Pages of memory. Weights and activations that are read in long streams are better off in pages of
// 2 MiB: address translation costs 1 to 4 % of a large matrix multiplication in pages of 4 KiB.
#pragma once

#include <stddef.h>

// Asks for large pages for the whole ones within [data, data + size); a hint, before the first
// touch.
void mgx_page_large(void *data, size_t size);
