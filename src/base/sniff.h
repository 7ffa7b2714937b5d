// SPDX-License-Identifier: MIT
// What a file is that could not be read as what it should be, told by its first bytes: people hand
// over pointers, web pages, archives, and models to the wrong call.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// "a web page or XML", "a saved program (load reads those)"; NULL when nothing is recognised. Only
// for messages: it is asked after reading failed and proves nothing.
const char *mgx_sniff(const void *data, size_t size);

// Does it begin like a saved program in MessagePack?
bool mgx_sniff_is_saved(const void *data, size_t size);
