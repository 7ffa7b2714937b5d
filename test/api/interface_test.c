// SPDX-License-Identifier: MIT
// The interface as such: every function exists with its exact type, answers NULLs with bad_param,
// and the numbers and macros of the header are MIGraphX's.
#include <migraphx/extensions.h>
#include <migraphx/version.h>

#include "check.h"
#undef ROW

// A conflicting type does not compile, a missing function does not link.
#define ROW(name, types, zeros) static migraphx_status(*const has_##name) types = migraphx_##name;
#include "api/functions.inc"
#undef ROW

CASE(all_functions_are_there)
{
    int count = 0;
#define ROW(name, types, zeros) count += has_##name != NULL;
#include "api/functions.inc"
#undef ROW
    CHECK_INT(count, 167);
}

static const char *last(void)
{
    const char *text = NULL;
    migraphx_get_last_error(&text);
    return text;
}

// Destroying nothing is allowed; everything else needs its handles and places.
static bool refuses(const char *name, migraphx_status status)
{
    const char *end = strstr(name, "_destroy");
    const bool destroys = end && end[strlen("_destroy")] == '\0';
    if (destroys)
        return status == migraphx_status_success;
    return status == migraphx_status_bad_param && strstr(last(), "is NULL");
}

CASE(nulls_are_bad_parameters)
{
#define ROW(name, types, zeros)                                                                    \
    if (!refuses(#name, migraphx_##name zeros))                                                    \
        CHECK_FAIL("migraphx_%s accepts NULL: %s", #name, last());
#include "api/functions.inc"
#undef ROW
#define ROW(name, zeros)                                                                           \
    if (!refuses(#name, migraphx_##name zeros))                                                    \
        CHECK_FAIL("migraphx_%s accepts NULL: %s", #name, last());
#include "api/extensions.inc"
#undef ROW
}

CASE(the_error_names_function_and_parameter)
{
    CHECK_INT(migraphx_shape_create(NULL, migraphx_shape_float_type, NULL, 0),
              migraphx_status_bad_param);
    CHECK_TEXT(last(), "migraphx_shape_create: out is NULL");
}

CASE(statuses_and_types_have_their_numbers)
{
    CHECK_INT(migraphx_status_success, 0);
    CHECK_INT(migraphx_status_bad_param, 1);
    CHECK_INT(migraphx_status_unknown_target, 3);
    CHECK_INT(migraphx_status_unknown_error, 4);
    CHECK_INT(migraphx_shape_tuple_type, 0);
    CHECK_INT(migraphx_shape_fp4x2_type, 1);
    CHECK_INT(migraphx_shape_bool_type, 2);
    CHECK_INT(migraphx_shape_half_type, 3);
    CHECK_INT(migraphx_shape_float_type, 4);
    CHECK_INT(migraphx_shape_double_type, 5);
    CHECK_INT(migraphx_shape_uint8_type, 6);
    CHECK_INT(migraphx_shape_int8_type, 7);
    CHECK_INT(migraphx_shape_uint16_type, 8);
    CHECK_INT(migraphx_shape_int16_type, 9);
    CHECK_INT(migraphx_shape_int32_type, 10);
    CHECK_INT(migraphx_shape_int64_type, 11);
    CHECK_INT(migraphx_shape_uint32_type, 12);
    CHECK_INT(migraphx_shape_uint64_type, 13);
    CHECK_INT(migraphx_shape_fp8e4m3fnuz_type, 14);
    CHECK_INT(migraphx_shape_fp8e4m3fn_type, 15);
    CHECK_INT(migraphx_shape_fp8e5m2_type, 16);
    CHECK_INT(migraphx_shape_bf16_type, 17);
    CHECK_INT(migraphx_shape_fp8e5m2fnuz_type, 18);
}

CASE(every_type_has_its_name_and_size)
{
    int count = 0;
#define VISIT(x, t)                                                                                \
    {                                                                                              \
        const char *name;                                                                          \
        migraphx_shape_datatype_t back;                                                            \
        CHECK_INT(migraphx_type_name(&name, migraphx_shape_##x), 0);                               \
        CHECK_TEXT(name, #x);                                                                      \
        CHECK_INT(migraphx_type_find(&back, #x), 0);                                               \
        CHECK_INT(back, migraphx_shape_##x);                                                       \
        count++;                                                                                   \
    }
    MIGRAPHX_SHAPE_VISIT_TYPES(VISIT)
    CHECK_INT(count, 17);
    size_t size;
    CHECK_INT(migraphx_type_size(&size, migraphx_shape_bf16_type), 0);
    CHECK_INT(size, 2);
    CHECK_INT(migraphx_type_attribute_number(&size, migraphx_shape_float_type), 0);
    CHECK_INT(size, 2);
    CHECK_INT(migraphx_type_name(&(const char *){NULL}, (migraphx_shape_datatype_t)1000),
              migraphx_status_bad_param);
}

CASE(version)
{
    const char *version;
    CHECK_INT(migraphx_get_version(&version), 0);
    CHECK_TEXT(version, "2.16.0." MIGRAPHX_VERSION_TWEAK);
    CHECK_INT(MIGRAPHX_VERSION_MAJOR, 2);
    CHECK_INT(MIGRAPHX_VERSION_MINOR, 16);
    CHECK_INT(MIGRAPHX_VERSION_PATCH, 0);
    CHECK_INT(MIGRAPHX_SO_MAJOR_VERSION, 3);
}

#define ROW(name) {#name, name},
TEST_MAIN(ROW(all_functions_are_there) ROW(nulls_are_bad_parameters)
              ROW(the_error_names_function_and_parameter) ROW(statuses_and_types_have_their_numbers)
                  ROW(every_type_has_its_name_and_size) ROW(version))
