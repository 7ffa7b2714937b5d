// SPDX-License-Identifier: MIT
// Programs and arguments in files and buffers: what is saved comes back, and no damaged file does
// harm.
#include <unistd.h>

#include "api/support.h"

static const char text[] =
    "module: \"main\"\n"
    "main:@0 = @literal{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11} -> float_type, {3, 4}, {4, 1}\n"
    "main:@1 = @literal{0.5} -> float_type, {1}, {0}\n"
    "y = @param:y -> float_type, {2, 4}, {4, 1}\n"
    "c = @param:c -> bool_type, {1}, {1}\n"
    "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
    "main:@5 = dot(x,main:@0) -> float_type, {2, 4}, {4, 1}\n"
    "main:@6 = multibroadcast[out_lens={2, 4},out_dyn_dims={}](main:@1) -> float_type, {2, 4}, {0, "
    "0}\n"
    "main:@7 = if(c), [then, other] -> [float_type, {2, 4}, {4, 1}]\n"
    "main:@8 = get_tuple_elem[index=0](main:@7) -> float_type, {2, 4}, {4, 1}\n"
    "main:@9 = softmax[axis=1](main:@8) -> float_type, {2, 4}, {4, 1}\n"
    "main:@10 = @return(main:@9)\n"
    "\n"
    "module: \"then\"\n"
    "then:@0 = add(main:@5,y) -> float_type, {2, 4}, {4, 1}\n"
    "then:@1 = @return(then:@0)\n"
    "\n"
    "module: \"other\"\n"
    "other:@0 = mul(main:@5,main:@6) -> float_type, {2, 4}, {4, 1}\n"
    "other:@1 = @return(other:@0)\n"
    "\n";

static migraphx_program_t make_program(void)
{
    migraphx_program_t p;
    must(migraphx_program_parse(&p, text, strlen(text)));
    return p;
}

static migraphx_file_options_t form(const char *name)
{
    migraphx_file_options_t options;
    must(migraphx_file_options_create(&options));
    must(migraphx_file_options_set_file_format(options, name));
    return options;
}

static bool same(migraphx_program_t a, migraphx_program_t b)
{
    bool equal = false;
    must(migraphx_program_equal(&equal, a, b));
    return equal;
}

CASE(no_options_are_the_defaults)
{
    char path[] = "/tmp/mgx-file-XXXXXX", *bytes;
    size_t size;
    migraphx_program_t p = make_program(), q, r;
    const int file = mkstemp(path);
    must(migraphx_save(p, path, NULL));
    must(migraphx_load(&q, path, NULL));
    must(migraphx_save_buffer(&bytes, &size, p, NULL));
    must(migraphx_load_buffer(&r, bytes, size, NULL));
    CHECK(file >= 0 && same(p, q) && same(p, r));
    close(file);
    unlink(path);
    must(migraphx_string_destroy(bytes));
    must(migraphx_program_destroy(r));
    must(migraphx_program_destroy(q));
    must(migraphx_program_destroy(p));
}

CASE(buffers_come_back)
{
    static const char *const forms[] = {"msgpack", "json"};
    for (int i = 0; i < 2; i++) {
        migraphx_program_t p = make_program(), q;
        migraphx_file_options_t options = form(forms[i]);
        char *bytes;
        size_t size;
        OK(migraphx_save_buffer(&bytes, &size, p, options));
        OK(migraphx_load_buffer(&q, bytes, size, options));
        CHECK(same(p, q));
        migraphx_program_parameter_shapes_t shapes;
        const char *names[3];
        OK(migraphx_program_get_parameter_shapes(&shapes, q));
        OK(migraphx_program_parameter_shapes_names(names, shapes));
        CHECK_TEXT(names[0], "x");
        CHECK_TEXT(names[2], "y");
        migraphx_program_parameter_shapes_destroy(shapes);
        migraphx_string_destroy(bytes);
        migraphx_file_options_destroy(options);
        migraphx_program_destroy(p);
        migraphx_program_destroy(q);
    }
}

static double run_softmax(migraphx_program_t p)
{
    migraphx_program_parameters_t params;
    migraphx_program_parameter_shapes_t shapes;
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    const char *names[3];
    double v[8];
    must(migraphx_program_parameters_create(&params));
    must(migraphx_program_get_parameter_shapes(&shapes, p));
    must(migraphx_program_parameter_shapes_names(names, shapes));
    for (int i = 0; i < 3; i++) {
        const_migraphx_shape_t shape;
        migraphx_argument_t argument;
        must(migraphx_program_parameter_shapes_get(&shape, shapes, names[i]));
        must(migraphx_argument_generate(&argument, shape, (size_t)i));
        must(migraphx_program_parameters_add(params, names[i], argument));
        migraphx_argument_destroy(argument);
    }
    must(migraphx_program_run(&results, p, params));
    must(migraphx_arguments_get(&result, results, 0));
    must(migraphx_argument_values(v, 8, result));
    migraphx_arguments_destroy(results);
    migraphx_program_parameter_shapes_destroy(shapes);
    migraphx_program_parameters_destroy(params);
    return v[0] + 2 * v[1] + 3 * v[6];
}

CASE(a_compiled_program_comes_back_compiled)
{
    char path[] = "/tmp/mgx_file_test_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    migraphx_program_t p = make_program(), q;
    migraphx_file_options_t options = form("msgpack");
    bool compiled = false;
    compile_for(p, "ref");
    OK(migraphx_save(p, path, options));
    OK(migraphx_load(&q, path, options));
    unlink(path); // the mapping stays
    OK(migraphx_program_is_compiled(&compiled, q));
    CHECK(compiled);
    CHECK_NEAR(run_softmax(q), run_softmax(p), 0);
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
}

CASE(arguments_come_back)
{
    char path[] = "/tmp/mgx_file_test_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    migraphx_shape_t shape;
    migraphx_argument_t a, b, texts, group, back;
    migraphx_shape_datatype_t string_type;
    bool equal = false;
    OK(migraphx_shape_create_with_strides(&shape, migraphx_shape_half_type, SIZES(2, 3), 2,
                                          SIZES(1, 2), 2));
    OK(migraphx_argument_generate(&a, shape, 3));
    OK(migraphx_argument_save(a, path));
    OK(migraphx_argument_load(&b, path));
    OK(migraphx_argument_equal(&equal, a, b));
    CHECK(equal);
    migraphx_shape_destroy(shape);
    OK(migraphx_type_find(&string_type, "string_type"));
    shape = make_shape(string_type, 1, SIZES(2));
    OK(migraphx_argument_create_strings(&texts, shape, (const char *const[]){"a", "bcd"},
                                        SIZES(1, 3), 2));
    OK(migraphx_argument_create_group(&group, (const const_migraphx_argument_t[]){texts, a}, 2,
                                      false));
    OK(migraphx_argument_save(group, path));
    OK(migraphx_argument_load(&back, path));
    OK(migraphx_argument_equal(&equal, group, back));
    CHECK(equal);
    unlink(path);
    migraphx_argument_t all[] = {a, b, texts, group, back};
    for (int i = 0; i < 5; i++)
        migraphx_argument_destroy(all[i]);
    migraphx_shape_destroy(shape);
}

CASE(every_truncation_is_refused)
{
    static const char *const forms[] = {"msgpack", "json"};
    for (int i = 0; i < 2; i++) {
        migraphx_program_t p = make_program(), q;
        migraphx_file_options_t options = form(forms[i]);
        char *bytes;
        size_t size;
        OK(migraphx_save_buffer(&bytes, &size, p, options));
        for (size_t n = 0; n < size; n++)
            CHECK_INT(migraphx_load_buffer(&q, bytes, n, options), migraphx_status_unknown_error);
        migraphx_string_destroy(bytes);
        migraphx_file_options_destroy(options);
        migraphx_program_destroy(p);
    }
}

// Whatever a damaged file gives, it gives a program that passes the verifier, or an error.
CASE(damage_does_no_harm)
{
    static const char *const forms[] = {"msgpack", "json"};
    uint64_t random = 88172645463325252u;
    int loaded = 0;
    for (int i = 0; i < 2; i++) {
        migraphx_program_t p = make_program();
        migraphx_file_options_t options = form(forms[i]);
        char *bytes;
        size_t size;
        OK(migraphx_save_buffer(&bytes, &size, p, options));
        for (int round = 0; round < 3000; round++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            const size_t at = (size_t)(random >> 16) % size;
            const char before = bytes[at];
            bytes[at] = (char)random;
            migraphx_program_t q = NULL;
            if (migraphx_load_buffer(&q, bytes, size, options) == migraphx_status_success) {
                OK(migraphx_program_verify(q));
                loaded++;
            }
            migraphx_program_destroy(q);
            bytes[at] = before;
        }
        migraphx_string_destroy(bytes);
        migraphx_file_options_destroy(options);
        migraphx_program_destroy(p);
    }
    CHECK(loaded > 0 && loaded < 6000);
}

CASE(other_versions_are_named)
{
    static const char old[] = "{\"version\":6,\"modules\":{},\"targets\":[],\"contexts\":[]}";
    migraphx_file_options_t options = form("json");
    migraphx_program_t q;
    CHECK_INT(migraphx_load_buffer(&q, old, strlen(old), options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "Program version mismatch. MXR file was created using program file "
                               "version: 6"));
    CHECK_INT(migraphx_load(&q, "/no/such/file.mxr", options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "/no/such/file.mxr"));
    migraphx_file_options_destroy(options);
}

CASE(strings_come_back)
{
    static const char *const texts[] = {"a", "bc", "", "d", "e", "fgh"};
    migraphx_shape_datatype_t type;
    migraphx_shape_t plain;
    migraphx_argument_t argument, back;
    char path[] = "/tmp/mgx-strings-XXXXXX";
    char *printed;
    OK(migraphx_type_find(&type, "string_type"));
    plain = make_shape(type, 2, SIZES(2, 3));
    OK(migraphx_argument_create_strings(&argument, plain, texts, SIZES(1, 2, 0, 1, 1, 3), 6));
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    OK(migraphx_argument_save(argument, path));
    OK(migraphx_argument_load(&back, path));
    unlink(path);
    OK(migraphx_argument_to_string(&printed, back));
    CHECK_TEXT(printed, "\"a\", \"bc\", \"\", \"d\", \"e\", \"fgh\"");
    migraphx_string_destroy(printed);
    migraphx_argument_destroy(back);
    migraphx_argument_destroy(argument);
    migraphx_shape_destroy(plain);
}

TEST_MAIN(ROW(strings_come_back) ROW(no_options_are_the_defaults) ROW(buffers_come_back)
              ROW(a_compiled_program_comes_back_compiled) ROW(arguments_come_back)
                  ROW(every_truncation_is_refused) ROW(damage_does_no_harm)
                      ROW(other_versions_are_named))
