// SPDX-License-Identifier: MIT
// Errors, logs and types.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend.h"

enum { TEXT_ROOM = 2048 };

// --- errors ---

TritonError *fail(int code, const char *fmt, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return TRITONSERVER_ErrorNew(code, text);
}

TritonError *no_memory(void)
{
    return TRITONSERVER_ErrorNew(TRITON_UNAVAILABLE, "migraphx: no memory left");
}

TritonError *pass_on(const char *what, migraphx_status status)
{
    const int code = status == migraphx_status_bad_param   ? TRITON_INVALID_ARGUMENT
                     : status == migraphx_status_cancelled ? TRITON_CANCELLED
                                                           : TRITON_INTERNAL;
    return fail(code, "migraphx: %s: %s", what, migraphx_last_error());
}

void drop(TritonError *error)
{
    if (!error)
        return;
    say(TRITON_LOG_ERROR, "%s", TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
}

void say(int level, const char *fmt, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    TritonError *error = TRITONSERVER_LogMessage(level, "migraphx", 0, text);
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// --- types ---

static const struct {
    const char *name, *engine;
    size_t bytes;
} types[] = {
    [TRITON_NO_TYPE] = {"TYPE_INVALID", NULL, 0},   [TRITON_BOOL] = {"TYPE_BOOL", "bool", 1},
    [TRITON_UINT8] = {"TYPE_UINT8", "uint8", 1},    [TRITON_UINT16] = {"TYPE_UINT16", "uint16", 2},
    [TRITON_UINT32] = {"TYPE_UINT32", "uint32", 4}, [TRITON_UINT64] = {"TYPE_UINT64", "uint64", 8},
    [TRITON_INT8] = {"TYPE_INT8", "int8", 1},       [TRITON_INT16] = {"TYPE_INT16", "int16", 2},
    [TRITON_INT32] = {"TYPE_INT32", "int32", 4},    [TRITON_INT64] = {"TYPE_INT64", "int64", 8},
    [TRITON_FP16] = {"TYPE_FP16", "half", 2},       [TRITON_FP32] = {"TYPE_FP32", "float", 4},
    [TRITON_FP64] = {"TYPE_FP64", "double", 8},     [TRITON_BYTES] = {"TYPE_STRING", "string", 0},
    [TRITON_BF16] = {"TYPE_BF16", "bf16", 2},
};
enum { TYPES = sizeof types / sizeof *types };

bool type_engine(int type, migraphx_shape_datatype_t *out)
{
    return type > TRITON_NO_TYPE && type < TYPES &&
           migraphx_type_find(out, types[type].engine) == migraphx_status_success;
}

int type_server(migraphx_shape_datatype_t engine)
{
    for (int i = TRITON_NO_TYPE + 1; i < TYPES; i++) {
        migraphx_shape_datatype_t one;
        if (type_engine(i, &one) && one == engine)
            return i;
    }
    return TRITON_NO_TYPE;
}

int type_named(const char *name)
{
    for (int i = 0; name && i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return TRITON_NO_TYPE;
}

const char *type_name(int type)
{
    return types[type > 0 && type < TYPES ? type : TRITON_NO_TYPE].name;
}

size_t type_bytes(int type)
{
    return type > 0 && type < TYPES ? types[type].bytes : 0;
}

bool count_elements(const int64_t *lens, size_t rank, uint64_t *out)
{
    *out = 1;
    for (size_t i = 0; i < rank; i++)
        if (lens[i] < 0 || __builtin_mul_overflow(*out, (uint64_t)lens[i], out))
            return false;
    return true;
}

bool scratch_reserve(struct scratch *s, size_t size)
{
    if (size <= s->size)
        return true;
    free(s->data);
    *s = (struct scratch){0};
    const size_t room = (size + 4095) / 4096 * 4096;
    s->data = room < size ? NULL : aligned_alloc(64, room);
    if (s->data)
        s->size = room;
    return s->data;
}
