// SPDX-License-Identifier: MIT
// The compilers of CUDA (NVRTC) and HIP (hiprtc): one interface under two names.
#pragma once

#include "targets/gpu/device/device.h"
#include "targets/gpu/device/library.h"

struct rtc_calls { // statuses are 0 for success
    int (*create)(void **program, const char *text, const char *name, int header_count,
                  const char *const *headers, const char *const *names);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *text);
    int (*code_size)(void *program, size_t *size);
    int (*code)(void *program, char *code);
    int (*destroy)(void **program);
    const char *(*error_text)(int status);
};

struct rtc {
    const char *what; // "NVRTC"
    const char *const *libraries;
    const struct gpu_symbol *symbols;
    int symbol_count;
    struct rtc_calls *calls; // filled on first use
};

// Compiles `source` with its own options and `arch_option`; the library is opened on first use.
enum mgx_status rtc_compile(const struct rtc *rtc, const char *arch_option,
                            const struct gpu_source *source, struct mgx_str *out,
                            struct mgx_str *log, struct mgx_diag *diag) MGX_NODISCARD;
