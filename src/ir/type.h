// SPDX-License-Identifier: MIT
// Element types.
//
// The first nineteen values are MIGraphX's internal numbering: they appear in printed attributes
// (`target_type=2`) and in saved programs, so they never change. What follows is our own: types
// that only the ONNX suite needs. Types narrower than a byte (int4 ... fp4) take one byte per
// element in memory; only fp4x2 is packed, two values a byte, as MIGraphX has it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(enumerator, printed name, bytes per element, class)
// Classes: b bool, f float, u unsigned, s signed, c complex, t string, x aggregate or opaque.
#define MGX_TYPE_LIST(X)                                                                           \
    X(MGX_BOOL, "bool_type", 1, 'b')                                                               \
    X(MGX_HALF, "half_type", 2, 'f')                                                               \
    X(MGX_FLOAT, "float_type", 4, 'f')                                                             \
    X(MGX_DOUBLE, "double_type", 8, 'f')                                                           \
    X(MGX_UINT8, "uint8_type", 1, 'u')                                                             \
    X(MGX_INT8, "int8_type", 1, 's')                                                               \
    X(MGX_UINT16, "uint16_type", 2, 'u')                                                           \
    X(MGX_INT16, "int16_type", 2, 's')                                                             \
    X(MGX_INT32, "int32_type", 4, 's')                                                             \
    X(MGX_INT64, "int64_type", 8, 's')                                                             \
    X(MGX_UINT32, "uint32_type", 4, 'u')                                                           \
    X(MGX_UINT64, "uint64_type", 8, 'u')                                                           \
    X(MGX_FP8E4M3FNUZ, "fp8e4m3fnuz_type", 1, 'f')                                                 \
    X(MGX_FP8E4M3FN, "fp8e4m3fn_type", 1, 'f')                                                     \
    X(MGX_FP8E5M2, "fp8e5m2_type", 1, 'f')                                                         \
    X(MGX_BF16, "bf16_type", 2, 'f')                                                               \
    X(MGX_FP8E5M2FNUZ, "fp8e5m2fnuz_type", 1, 'f')                                                 \
    X(MGX_TUPLE, "tuple_type", 0, 'x')                                                             \
    X(MGX_FP4X2, "fp4x2_type", 1, 'x')                                                             \
    X(MGX_INT4, "int4_type", 1, 's')                                                               \
    X(MGX_UINT4, "uint4_type", 1, 'u')                                                             \
    X(MGX_INT2, "int2_type", 1, 's')                                                               \
    X(MGX_UINT2, "uint2_type", 1, 'u')                                                             \
    X(MGX_FP4, "fp4e2m1_type", 1, 'f')                                                             \
    X(MGX_FP8E8M0, "fp8e8m0_type", 1, 'f')                                                         \
    X(MGX_STRING, "string_type", 16, 't')                                                          \
    X(MGX_COMPLEX64, "complex64_type", 8, 'c')                                                     \
    X(MGX_COMPLEX128, "complex128_type", 16, 'c')                                                  \
    X(MGX_SEQUENCE, "sequence_type", 0, 'x')

enum mgx_type {
#define X(name, text, size, class) name,
    MGX_TYPE_LIST(X)
#undef X
        MGX_TYPE_COUNT
};

// An element of a string tensor. The bytes belong to the tensor's storage (results, literals) or to
// the arena of the run (intermediates); moving an element moves the pointer, not the bytes.
struct mgx_string {
    const char *text; // not NUL-terminated
    size_t size;
};

size_t mgx_type_size(enum mgx_type type);
const char *mgx_type_name(enum mgx_type type);

// Accepts "float_type", "float" and the C names of MIGraphX's Python module (int64_t, half, bool,
// ...).
bool mgx_type_find(const char *name, size_t size, enum mgx_type *out);

bool mgx_type_is_float(enum mgx_type type);
bool mgx_type_is_integral(enum mgx_type type); // signed and unsigned integers, not bool
bool mgx_type_is_unsigned(enum mgx_type type);
bool mgx_type_is_signed(enum mgx_type type); // signed integers and floats
bool mgx_type_is_complex(enum mgx_type type);
static inline bool mgx_type_is_byte(enum mgx_type type) // an integer of eight bits
{
    return type == MGX_INT8 || type == MGX_UINT8;
}
static inline bool mgx_type_is_half_or_bf16(enum mgx_type type) // the floats of 16 bits
{
    return type == MGX_HALF || type == MGX_BF16;
}
bool mgx_type_is_fp8(
    enum mgx_type type); // a float of eight bits with a mantissa: not the powers of two
int mgx_type_bits(enum mgx_type type); // of value in an integer of this type
bool mgx_type_is_number(
    enum mgx_type type); // bool, integers and floats: what load/store below take

// Smallest and largest finite value of a number type, as a double.
double mgx_type_lowest(enum mgx_type type);
double mgx_type_highest(enum mgx_type type);

// Element access by index (in elements, not bytes) for number types. A store converts as C does,
// rounds floats to nearest even and wraps integers; floats beyond a narrow float's range become its
// infinity or NaN (fp8 without infinity: NaN); doubles outside an integer's range saturate, NaN
// becomes 0. Integers of 64 bits lose bits as doubles: use the _int forms for them.
double mgx_load_double(enum mgx_type type, const void *data, int64_t index);
void mgx_store_double(enum mgx_type type, void *data, int64_t index, double value);
int64_t mgx_load_int(enum mgx_type type, const void *data, int64_t index);
void mgx_store_int(enum mgx_type type, void *data, int64_t index, int64_t value);

// `count` elements from `index` on, `step` apart, as the above have each of them: the same values,
// some times as fast.
void mgx_load_doubles(enum mgx_type type, const void *data, int64_t index, int64_t step,
                      int64_t count, double *out);
void mgx_store_doubles(enum mgx_type type, void *data, int64_t index, int64_t step, int64_t count,
                       const double *values);
