// SPDX-License-Identifier: MIT
// One file for several machines (docs/mxr.md): the best form that fits is taken, the portable
// program is compiled where none does, equal bytes are kept once, and damage anywhere is refused or
// changes nothing.
#include "api/mxr_support.h"

#if defined(__x86_64__)
#define BETTER "avx2"
#else
#define BETTER "generic"
#endif

static migraphx_program_t compiled_for(migraphx_program_t from, const char *target, const char *isa)
{
    migraphx_program_t p;
    must(migraphx_program_create(&p));
    must(migraphx_program_assign_to(p, from));
    if (strcmp(target, "cpu") == 0)
        compile_one_thread(p, isa);
    else
        compile_for(p, target);
    return p;
}

// Is there this set of instructions here?
static bool has(const char *isa)
{
    migraphx_program_t p = make_program();
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, "cpu"));
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_isa(options, isa));
    const bool good = migraphx_program_compile(p, target, options) == migraphx_status_success;
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_program_destroy(p);
    return good;
}

struct bytes {
    char *data;
    size_t size;
};

// The portable program with forms for these sets, ended by NULL, and one for `other`.
static struct bytes save_forms(const char *const *isas, const char *other)
{
    migraphx_program_t p = make_program(), form[8];
    migraphx_file_options_t options = msgpack();
    struct bytes out;
    int count = 0;
    for (; isas[count]; count++)
        form[count] = compiled_for(p, "cpu", isas[count]);
    if (other)
        form[count++] = compiled_for(p, other, NULL);
    for (int i = 0; i < count; i++)
        must(migraphx_file_options_add_form(options, form[i]));
    must(migraphx_save_buffer(&out.data, &out.size, p, options));
    for (int i = 0; i < count; i++)
        migraphx_program_destroy(form[i]);
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    return out;
}

static migraphx_program_t load(const struct bytes *file, const char *target)
{
    migraphx_file_options_t options = msgpack();
    migraphx_program_t p = NULL;
    must(migraphx_file_options_set_target(options, target));
    must(migraphx_load_buffer(&p, file->data, file->size, options));
    migraphx_file_options_destroy(options);
    return p;
}

static bool says(migraphx_program_t p, const char *words)
{
    char *text;
    must(migraphx_program_explain(&text, p));
    const bool found = strstr(text, words) != NULL;
    migraphx_string_destroy(text);
    return found;
}

CASE(the_best_form_is_taken)
{
    const bool better = has(BETTER);
    struct bytes file =
        save_forms((const char *const[]){"generic", better ? BETTER : "generic", NULL}, "ref");
    migraphx_program_t p = load(&file, NULL);
    CHECK(says(p, better ? "form: cpu " BETTER ", of cpu generic, cpu " BETTER ", ref\n"
                         : "form: cpu generic, of cpu generic, cpu generic, ref\n"));
    CHECK(explained(p, "from the file: ") == 2);
    CHECK_INT(explained(p, "\npacked constants: "), 0);
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    p = load(&file, "ref");
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    migraphx_string_destroy(file.data);
}

CASE(equal_bytes_are_kept_once)
{
    struct bytes one = save_forms((const char *const[]){"generic", NULL}, NULL);
    struct bytes three =
        save_forms((const char *const[]){"generic", "generic", "generic", NULL}, NULL);
    migraphx_program_t p = load(&three, NULL);
    CHECK(three.size - one.size < 16384); // two trees and tables more, no weights
    CHECK(explained(p, "from the file: ") == 2);
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    migraphx_string_destroy(one.data);
    migraphx_string_destroy(three.data);
}

// --- what fits none ---

// Not compiled: the text is that of the program before, and any target may be chosen.
CASE(the_portable_program_comes_back)
{
    struct bytes file = save_forms((const char *const[]){"generic", NULL}, NULL);
    migraphx_file_options_t options = msgpack();
    migraphx_program_t p = make_program(), q;
    bool compiled = true, equal = false;
    OK(migraphx_file_options_set_portable(options, true));
    OK(migraphx_load_buffer(&q, file.data, file.size, options));
    OK(migraphx_program_is_compiled(&compiled, q));
    OK(migraphx_program_equal(&equal, p, q));
    CHECK(!compiled && equal);
    compile_one_thread(q, NULL);
    CHECK(gives_the_answer(q));
    migraphx_program_destroy(q);
    migraphx_program_destroy(p);
    migraphx_file_options_destroy(options);
    migraphx_string_destroy(file.data);
}

CASE(another_target_is_compiled_from_the_portable_program)
{
    struct bytes file = save_forms((const char *const[]){NULL}, "ref");
    migraphx_program_t p = load(&file, "cpu");
    CHECK(says(p, "\nwarning: the file has ref, none of them is for this machine: its portable "
                  "program is compiled for cpu\n"));
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    migraphx_string_destroy(file.data);
}

CASE(without_a_portable_program_other_targets_are_refused)
{
    migraphx_program_t p = make_program(), q;
    migraphx_file_options_t options = msgpack();
    char *data;
    size_t size;
    compile_one_thread(p, "generic");
    OK(migraphx_save_buffer(&data, &size, p, options));
    OK(migraphx_file_options_set_target(options, "ref"));
    CHECK_INT(migraphx_load_buffer(&q, data, size, options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "none is for ref") && strstr(last_error(), "cpu generic"));
    CHECK_INT(migraphx_file_options_set_target(options, "abacus"), migraphx_status_bad_param);
    migraphx_string_destroy(data);
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
}

CASE(what_is_no_form_is_refused)
{
    migraphx_program_t p = make_program(), q = compiled_for(p, "cpu", "generic");
    migraphx_file_options_t options = msgpack();
    char *data;
    size_t size;
    CHECK_INT(migraphx_file_options_add_form(options, p), migraphx_status_bad_param);
    for (int i = 0; i < 8; i++)
        OK(migraphx_file_options_add_form(options, q));
    CHECK_INT(migraphx_file_options_add_form(options, q), migraphx_status_bad_param);
    CHECK_INT(migraphx_save_buffer(&data, &size, q, options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "is compiled"));
    OK(migraphx_file_options_set_file_format(options, "json"));
    CHECK_INT(migraphx_save_buffer(&data, &size, p, options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "msgpack"));
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(q);
    migraphx_program_destroy(p);
}

// --- free sizes ---

// Loaded, it makes programs for single sizes as the one that was saved does.
CASE(free_sizes_stay_free)
{
    static const char text[] =
        "module: \"main\"\n"
        "main:@0 = @literal{1, 2, 3, 4, 5, 6} -> float_type, {2, 3}, {3, 1}\n"
        "x = @param:x -> dynamic, float_type, {[1..8], 2}\n"
        "main:@2 = dot(x,main:@0) -> dynamic, float_type, {[1..8], 3}\n"
        "main:@3 = @return(main:@2)\n";
    migraphx_program_t p, q, fixed;
    migraphx_file_options_t options = msgpack();
    char *bytes;
    size_t size;
    OK(migraphx_program_parse(&p, text, strlen(text)));
    compile_one_thread(p, "generic");
    OK(migraphx_save_buffer(&bytes, &size, p, options));
    OK(migraphx_load_buffer(&q, bytes, size, options));
    OK(migraphx_program_specialise(&fixed, q, (const char *const[]){"x"}, (const size_t[]){2, 2},
                                   (const size_t[]){2}, 1));
    float x[] = {1, 2, 3, 4};
    double y[6];
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(2, 2), x);
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    OK(migraphx_program_run(&results, fixed, params));
    OK(migraphx_arguments_get(&result, results, 0));
    OK(migraphx_argument_values(y, 6, result));
    for (int i = 0; i < 6; i++)
        CHECK(y[i] == ((const double[]){9, 12, 15, 19, 26, 33})[i]);
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    migraphx_program_destroy(fixed);
    migraphx_program_destroy(q);
    migraphx_program_destroy(p);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

// --- damage ---

static bool survives(const struct bytes *file, migraphx_file_options_t options, int *loaded)
{
    migraphx_program_t q = NULL;
    if (migraphx_load_buffer(&q, file->data, file->size, options) != migraphx_status_success)
        return last_error()[0] != '\0';
    (*loaded)++;
    const bool good = gives_the_answer(q);
    migraphx_program_destroy(q);
    return good;
}

// Each load takes another part of the file, one after the other.
CASE(every_flipped_byte_is_noticed)
{
    struct bytes file = save_forms((const char *const[]){"generic", "native", NULL}, "ref");
    migraphx_file_options_t options[3] = {msgpack(), msgpack(), msgpack()};
    int loaded[3] = {0};
    OK(migraphx_file_options_set_target(options[1], "ref"));
    OK(migraphx_file_options_set_portable(options[2], true));
    for (size_t at = 0; at < file.size; at++) {
        const char bit = (char)(1 << (at * 2654435761u >> 7 & 7));
        file.data[at] ^= bit;
        if (!survives(&file, options[at % 3], &loaded[at % 3]))
            CHECK_FAIL("wrong after a flip in byte %zu of %zu", at, file.size);
        file.data[at] ^= bit;
    }
    for (int i = 0; i < 3; i++) {
        CHECK(loaded[i] > 0); // what the others read
        migraphx_file_options_destroy(options[i]);
    }
    migraphx_string_destroy(file.data);
}

CASE(every_truncation_is_refused)
{
    struct bytes file = save_forms((const char *const[]){"generic", "native", NULL}, "ref");
    migraphx_file_options_t options = msgpack();
    migraphx_program_t q;
    for (size_t n = 0; n < file.size; n++)
        if (migraphx_load_buffer(&q, file.data, n, options) == migraphx_status_success)
            CHECK_FAIL("loaded %zu of %zu bytes", n, file.size);
    migraphx_string_destroy(file.data);
    migraphx_file_options_destroy(options);
}

TEST_MAIN(ROW(the_best_form_is_taken) ROW(equal_bytes_are_kept_once)
              ROW(the_portable_program_comes_back)
                  ROW(another_target_is_compiled_from_the_portable_program)
                      ROW(without_a_portable_program_other_targets_are_refused)
                          ROW(what_is_no_form_is_refused) ROW(free_sizes_stay_free)
                              ROW(every_flipped_byte_is_noticed) ROW(every_truncation_is_refused))
