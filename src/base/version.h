// SPDX-License-Identifier: MIT
// The version that files written by this engine carry: that of MIGraphX whose interface it serves.
// The public header says the same to callers; src/api/error.c asserts that the two agree.
#pragma once

#define MGX_VERSION_MAJOR 2
#define MGX_VERSION_MINOR 16
#define MGX_VERSION_PATCH 0

#define MGX_VERSION_TEXT_(x) #x
#define MGX_VERSION_TEXT(x) MGX_VERSION_TEXT_(x)
#define MGX_VERSION                                                                                \
    MGX_VERSION_TEXT(MGX_VERSION_MAJOR)                                                            \
    "." MGX_VERSION_TEXT(MGX_VERSION_MINOR) "." MGX_VERSION_TEXT(MGX_VERSION_PATCH)
