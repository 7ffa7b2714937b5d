// SPDX-License-Identifier: MIT
// Element types; see type.h. Loads and stores are one switch each: the compiler turns it into a
// jump table. Those of many elements have loops of their own for the types that constants come in;
// whoever needs more speed has a kernel per type.
#include "ir/type.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/size.h"

// Elements as they lie in memory: a literal may be a view into a file, at any address.
#define ELEMENT __attribute__((aligned(1), may_alias))
typedef uint8_t u8 ELEMENT;
typedef int8_t s8 ELEMENT;
typedef uint16_t u16 ELEMENT;
typedef int16_t s16 ELEMENT;
typedef uint32_t u32 ELEMENT;
typedef int32_t s32 ELEMENT;
typedef uint64_t u64 ELEMENT;
typedef int64_t s64 ELEMENT;
typedef float f32 ELEMENT;
typedef double f64 ELEMENT;
#define AT(type_) (((type_ *)data)[index])

static const struct {
    const char *name;
    size_t size;
    char class;
} types[] = {
#define X(enumerator, text, bytes, class_) [enumerator] = {text, bytes, class_},
    MGX_TYPE_LIST(X)
#undef X
};

static bool known(enum mgx_type type)
{
    return (unsigned)type < MGX_TYPE_COUNT;
}

static char class_of(enum mgx_type type)
{
    assert(known(type));
    return types[type].class;
}

size_t mgx_type_size(enum mgx_type type)
{
    assert(known(type));
    return types[type].size;
}

const char *mgx_type_name(enum mgx_type type)
{
    return known(type) ? types[type].name : "unknown_type";
}

static bool same(const char *name, size_t size, const char *text)
{
    return strlen(text) == size && memcmp(name, text, size) == 0;
}

// C and numpy names that are not simply the printed name without "_type".
static const struct {
    const char *name;
    enum mgx_type type;
} synonyms[] = {
    {"int", MGX_INT32},
    {"float16", MGX_HALF},
    {"float32", MGX_FLOAT},
    {"float64", MGX_DOUBLE},
    {"bfloat16", MGX_BF16},
    {"float8e4m3fn", MGX_FP8E4M3FN},
    {"float8e4m3fnuz", MGX_FP8E4M3FNUZ},
    {"float8e5m2", MGX_FP8E5M2},
    {"float8e5m2fnuz", MGX_FP8E5M2FNUZ},
    {"float8e8m0", MGX_FP8E8M0},
    {"float4e2m1", MGX_FP4},
};

static bool skip_prefix(const char **name, size_t *size, const char *prefix)
{
    const size_t length = strlen(prefix);
    if (*size < length || memcmp(*name, prefix, length) != 0)
        return false;
    *name += length;
    *size -= length;
    return true;
}

bool mgx_type_find(const char *name, size_t size, enum mgx_type *out)
{
    if (skip_prefix(&name, &size, "migraphx::"))
        if (!skip_prefix(&name, &size, "fp8::"))
            skip_prefix(&name, &size, "shape::");
    for (int t = 0; t < MGX_TYPE_COUNT; t++) {
        const char *text = types[t].name;
        const size_t stem = strlen(text) - strlen("_type");
        const bool starts = size >= stem && memcmp(name, text, stem) == 0;
        const bool integer = types[t].class == 's' || types[t].class == 'u';
        if (starts && (size == stem || same(name + stem, size - stem, "_type") ||
                       (integer && same(name + stem, size - stem, "_t")))) {
            *out = (enum mgx_type)t;
            return true;
        }
    }
    for (int i = 0; i < MGX_COUNT(synonyms); i++)
        if (same(name, size, synonyms[i].name)) {
            *out = synonyms[i].type;
            return true;
        }
    return false;
}

bool mgx_type_is_float(enum mgx_type type)
{
    return class_of(type) == 'f';
}

bool mgx_type_is_integral(enum mgx_type type)
{
    return class_of(type) == 's' || class_of(type) == 'u';
}

bool mgx_type_is_unsigned(enum mgx_type type)
{
    return class_of(type) == 'u';
}

bool mgx_type_is_signed(enum mgx_type type)
{
    return class_of(type) == 's' || class_of(type) == 'f';
}

bool mgx_type_is_complex(enum mgx_type type)
{
    return class_of(type) == 'c';
}

bool mgx_type_is_fp8(enum mgx_type type)
{
    return type == MGX_FP8E4M3FN || type == MGX_FP8E4M3FNUZ || type == MGX_FP8E5M2 ||
           type == MGX_FP8E5M2FNUZ;
}

bool mgx_type_is_number(enum mgx_type type)
{
    return mgx_type_is_float(type) || mgx_type_is_integral(type) || type == MGX_BOOL;
}

int mgx_type_bits(enum mgx_type type)
{
    switch (type) {
    case MGX_INT4:
    case MGX_UINT4:
        return 4;
    case MGX_INT2:
    case MGX_UINT2:
        return 2;
    default:
        return (int)mgx_type_size(type) * 8;
    }
}

double mgx_type_highest(enum mgx_type type)
{
    switch (type) {
    case MGX_BOOL:
        return 1;
    case MGX_HALF:
        return 65504;
    case MGX_FLOAT:
        return FLT_MAX;
    case MGX_DOUBLE:
        return DBL_MAX;
    case MGX_BF16:
        return 0x1.fep127;
    case MGX_FP8E4M3FNUZ:
        return 240;
    case MGX_FP8E4M3FN:
        return 448;
    case MGX_FP8E5M2:
    case MGX_FP8E5M2FNUZ:
        return 57344;
    case MGX_FP4:
        return 6;
    case MGX_FP8E8M0:
        return 0x1p127;
    default:
        assert(mgx_type_is_integral(type));
        // 2^63 - 1 and 2^64 - 1 become the nearest doubles, 2^63 and 2^64.
        return ldexp(1, mgx_type_bits(type) - (class_of(type) == 's')) - 1;
    }
}

double mgx_type_lowest(enum mgx_type type)
{
    if (type == MGX_FP8E8M0)
        return 0x1p-127;
    if (mgx_type_is_float(type))
        return -mgx_type_highest(type);
    return class_of(type) == 's' ? -ldexp(1, mgx_type_bits(type) - 1) : 0;
}

static int64_t sign_extend(uint8_t byte, int bits)
{
    assert(bits == 2 || bits == 4);
    const int low = byte & ((1 << bits) - 1);
    return low >= 1 << (bits - 1) ? low - (1 << bits) : low;
}

static float load_narrow_float(enum mgx_type type, const void *data, int64_t index)
{
    switch (type) {
    case MGX_HALF:
        return mgx_half_to_float(AT(const u16));
    case MGX_BF16:
        return mgx_bf16_to_float(AT(const u16));
    case MGX_FP8E4M3FNUZ:
        return mgx_fp8_to_float(MGX_F8_E4M3FNUZ, AT(const u8));
    case MGX_FP8E4M3FN:
        return mgx_fp8_to_float(MGX_F8_E4M3FN, AT(const u8));
    case MGX_FP8E5M2:
        return mgx_fp8_to_float(MGX_F8_E5M2, AT(const u8));
    case MGX_FP8E5M2FNUZ:
        return mgx_fp8_to_float(MGX_F8_E5M2FNUZ, AT(const u8));
    case MGX_FP4:
        return mgx_fp4_to_float(AT(const u8));
    default:
        assert(type == MGX_FP8E8M0);
        return mgx_e8m0_to_float(AT(const u8));
    }
}

static int64_t load_integer(enum mgx_type type, const void *data, int64_t index)
{
    switch (type) {
    case MGX_BOOL:
        return AT(const u8) != 0;
    case MGX_UINT8:
        return AT(const u8);
    case MGX_INT8:
        return AT(const s8);
    case MGX_UINT16:
        return AT(const u16);
    case MGX_INT16:
        return AT(const s16);
    case MGX_UINT32:
        return AT(const u32);
    case MGX_INT32:
        return AT(const s32);
    case MGX_UINT64:
        return (int64_t)AT(const u64);
    case MGX_INT64:
        return AT(const s64);
    case MGX_INT4:
    case MGX_INT2:
        return sign_extend(AT(const u8), mgx_type_bits(type));
    default:
        assert(type == MGX_UINT4 || type == MGX_UINT2);
        return AT(const u8) & ((1 << mgx_type_bits(type)) - 1);
    }
}

double mgx_load_double(enum mgx_type type, const void *data, int64_t index)
{
    assert(data && index >= 0);
    if (type == MGX_FLOAT)
        return AT(const f32);
    if (type == MGX_DOUBLE)
        return AT(const f64);
    if (type == MGX_UINT64)
        return (double)AT(const u64);
    if (mgx_type_is_float(type))
        return load_narrow_float(type, data, index);
    return (double)load_integer(type, data, index);
}

// Nearest-toward-zero integer within [-2^63, 2^63), NaN as 0.
static int64_t saturate_i64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

int64_t mgx_load_int(enum mgx_type type, const void *data, int64_t index)
{
    assert(data && index >= 0);
    if (mgx_type_is_float(type))
        return saturate_i64(mgx_load_double(type, data, index));
    return load_integer(type, data, index);
}

static void store_float(enum mgx_type type, void *data, int64_t index, double value)
{
    switch (type) {
    case MGX_FLOAT:
        AT(f32) = (float)value;
        break;
    case MGX_DOUBLE:
        AT(f64) = value;
        break;
    case MGX_HALF:
        AT(u16) = mgx_half_from_double(value);
        break;
    case MGX_BF16:
        AT(u16) = mgx_bf16_from_double(value);
        break;
    case MGX_FP8E4M3FNUZ:
        AT(u8) = mgx_fp8_from_double(MGX_F8_E4M3FNUZ, value, false);
        break;
    case MGX_FP8E4M3FN:
        AT(u8) = mgx_fp8_from_double(MGX_F8_E4M3FN, value, false);
        break;
    case MGX_FP8E5M2:
        AT(u8) = mgx_fp8_from_double(MGX_F8_E5M2, value, false);
        break;
    case MGX_FP8E5M2FNUZ:
        AT(u8) = mgx_fp8_from_double(MGX_F8_E5M2FNUZ, value, false);
        break;
    case MGX_FP4:
        AT(u8) = mgx_fp4_from_double(value);
        break;
    default:
        assert(type == MGX_FP8E8M0);
        AT(u8) = mgx_e8m0_from_double(value, 'n', false);
        break;
    }
}

// Stores the low bits.
static void store_integer(enum mgx_type type, void *data, int64_t index, int64_t value)
{
    switch (type) {
    case MGX_BOOL:
        AT(u8) = value != 0;
        break;
    case MGX_INT4:
    case MGX_INT2:
        AT(s8) = (int8_t)sign_extend((uint8_t)value, mgx_type_bits(type));
        break;
    case MGX_UINT4:
    case MGX_UINT2:
        AT(u8) = (uint8_t)(value & ((1 << mgx_type_bits(type)) - 1));
        break;
    default:
        assert(mgx_type_is_integral(type));
        switch (mgx_type_size(type)) {
        case 1:
            AT(u8) = (uint8_t)value;
            break;
        case 2:
            AT(u16) = (uint16_t)value;
            break;
        case 4:
            AT(u32) = (uint32_t)value;
            break;
        default:
            AT(u64) = (uint64_t)value;
            break;
        }
    }
}

void mgx_store_double(enum mgx_type type, void *data, int64_t index, double value)
{
    assert(data && index >= 0);
    if (mgx_type_is_float(type)) {
        store_float(type, data, index, value);
        return;
    }
    if (type == MGX_BOOL) {
        AT(u8) = value != 0;
        return;
    }
    int64_t integer = 0;
    if (type == MGX_UINT64 && value >= 0x1p63)
        integer = value >= 0x1p64 ? -1 : (int64_t)(uint64_t)value;
    else if (!isnan(value)) {
        if (value < mgx_type_lowest(type))
            value = mgx_type_lowest(type);
        if (value > mgx_type_highest(type))
            value = mgx_type_highest(type);
        integer = saturate_i64(value);
    }
    store_integer(type, data, index, integer);
}

// The integer as a double that rounds to any narrower float as the integer itself would: what a
// double cannot hold is folded into its last place (rounding to odd).
static double double_round_odd(int64_t value)
{
    const uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    const int excess = magnitude >> 53 ? 11 - __builtin_clzll(magnitude) : 0;
    const uint64_t lost = magnitude & (((uint64_t)1 << excess) - 1);
    const uint64_t kept = magnitude >> excess | (lost != 0);
    const double result = ldexp((double)kept, excess);
    return value < 0 ? -result : result;
}

void mgx_store_int(enum mgx_type type, void *data, int64_t index, int64_t value)
{
    assert(data && index >= 0);
    if (type == MGX_DOUBLE)
        AT(f64) = (double)value;
    else if (mgx_type_is_float(type))
        store_float(type, data, index, double_round_odd(value));
    else
        store_integer(type, data, index, value);
}

// --- many elements ---

#define LOAD_EACH(type_)                                                                           \
    for (int64_t i = 0; i < count; i++, index += step)                                             \
        out[i] = (double)AT(const type_);                                                          \
    return

void mgx_load_doubles(enum mgx_type type, const void *data, int64_t index, int64_t step,
                      int64_t count, double *out)
{
    switch (type) {
    case MGX_FLOAT:
        LOAD_EACH(f32);
    case MGX_DOUBLE:
        LOAD_EACH(f64);
    case MGX_INT8:
        LOAD_EACH(s8);
    case MGX_UINT8:
        LOAD_EACH(u8);
    case MGX_INT32:
        LOAD_EACH(s32);
    case MGX_INT64:
        LOAD_EACH(s64);
    default:
        for (int64_t i = 0; i < count; i++, index += step)
            out[i] = mgx_load_double(type, data, index);
    }
}

#define STORE_EACH(type_)                                                                          \
    for (int64_t i = 0; i < count; i++, index += step)                                             \
        AT(type_) = (type_)values[i];                                                              \
    return

void mgx_store_doubles(enum mgx_type type, void *data, int64_t index, int64_t step, int64_t count,
                       const double *values)
{
    switch (type) {
    case MGX_FLOAT:
        STORE_EACH(f32);
    case MGX_DOUBLE:
        STORE_EACH(f64);
    default:
        for (int64_t i = 0; i < count; i++, index += step)
            mgx_store_double(type, data, index, values[i]);
    }
}
