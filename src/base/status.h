// SPDX-License-Identifier: MIT
// Status and diagnosis: how anything in the engine says that it could not.
//
// A function that can fail on bad input or a missing resource returns an enum mgx_status and takes
// a struct mgx_diag * last. The diagnosis is a plain object of fixed size, so that reporting a lack
// of memory needs no memory. The first failure wins; outer levels add only *where* it happened:
//
//     axis 5 is out of range for rank 4
//       in node "cat_3" (Concat), model.onnx
//
// Broken invariants of our own are asserts, never statuses. Nothing in the library prints or exits.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

// One row per status: enumerator, text. A new code needs a caller that would act differently.
#define MGX_STATUS_LIST(X)                                                                         \
    X(MGX_OK, "ok")                                                                                \
    X(MGX_NO_MEMORY, "out of memory")                                                              \
    X(MGX_INVALID, "invalid input")                                                                \
    X(MGX_UNSUPPORTED, "not supported")                                                            \
    X(MGX_NOT_FOUND, "not found")                                                                  \
    X(MGX_IO, "input/output error")                                                                \
    X(MGX_LIMIT, "a limit was exceeded")                                                           \
    X(MGX_DEVICE, "device error")                                                                  \
    X(MGX_CANCELLED, "cancelled")                                                                  \
    X(MGX_INTERNAL, "internal error")

enum mgx_status {
#define X(name, text) name,
    MGX_STATUS_LIST(X)
#undef X
};

enum { MGX_DIAG_TEXT_SIZE = 2048 };

struct mgx_diag {
    enum mgx_status status; // MGX_OK while nothing failed
    int os_error;           // errno where the system refused something, else 0
    char text[MGX_DIAG_TEXT_SIZE];
};

#if defined(__GNUC__)
#define MGX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MGX_NODISCARD __attribute__((warn_unused_result))
#else
#define MGX_PRINTF(fmt, args)
#define MGX_NODISCARD
#endif

// The one macro of control flow: hands a failure to the caller unchanged.
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        const enum mgx_status try_status_ = (expr);                                                \
        if (try_status_ != MGX_OK)                                                                 \
            return try_status_;                                                                    \
    } while (0)

void mgx_diag_clear(struct mgx_diag *diag);

// Raises a failure: records status and message unless one is recorded already, and returns
// `status`. Message law: one line, lower case, no full stop, no "failed to"; names the thing and
// the two values that disagree. `diag` may be NULL (the caller does not care why).
enum mgx_status mgx_fail(struct mgx_diag *diag, enum mgx_status status, const char *fmt, ...)
    MGX_PRINTF(3, 4);
enum mgx_status mgx_vfail(struct mgx_diag *diag, enum mgx_status status, const char *fmt,
                          va_list args);

// The system refused `what`, a file mostly, with this errno: MGX_NOT_FOUND or MGX_IO, "what: why".
enum mgx_status mgx_fail_os(struct mgx_diag *diag, int os_error, const char *what);

// The usual reply to a NULL from an allocator.
enum mgx_status mgx_fail_memory(struct mgx_diag *diag);

// Appends a line "  in <fmt...>" to a recorded failure; does nothing while there is none.
void mgx_where(struct mgx_diag *diag, const char *fmt, ...) MGX_PRINTF(2, 3);

const char *mgx_status_text(enum mgx_status status);

// A failure that says nothing of what was tried: whoever would try something else passes it on.
static inline bool mgx_status_is_final(enum mgx_status status)
{
    return status == MGX_NO_MEMORY || status == MGX_CANCELLED;
}
