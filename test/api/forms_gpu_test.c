// SPDX-License-Identifier: MIT
// Programs for a card in files: their kernels come along, are run only when the reader trusts the
// file, and damage in them is noticed. On PoCL where there is no card; without either nothing is
// tested.
#include "api/mxr_support.h"

static bool has_card(void)
{
    setenv("MIGRAPHX_GPU_DEVICE", "opencl", 1);
    setenv("MIGRAPHX_KERNEL_CACHE", "none", 1); // what is not in the file is compiled
    migraphx_target_t target;
    if (migraphx_target_create(&target, "gpu") != migraphx_status_success) // no OpenCL loader here
        return false;
    migraphx_program_t p = make_program();
    migraphx_compile_options_t options;
    must(migraphx_compile_options_create(&options));
    const bool good = migraphx_program_compile(p, target, options) == migraphx_status_success;
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_program_destroy(p);
    return good;
}

static migraphx_program_t compiled_for_card(void)
{
    migraphx_program_t p = make_program();
    migraphx_target_t target;
    migraphx_compile_options_t options;
    must(migraphx_target_create(&target, "gpu"));
    must(migraphx_compile_options_create(&options));
    must(migraphx_compile_options_set_offload_copy(options, true));
    must(migraphx_program_compile(p, target, options));
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    return p;
}

static char *save_for_card(size_t *size)
{
    migraphx_program_t p = compiled_for_card();
    migraphx_file_options_t options = msgpack();
    char *bytes;
    must(migraphx_save_buffer(&bytes, size, p, options));
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    return bytes;
}

static migraphx_file_options_t trusting(bool trusted)
{
    migraphx_file_options_t options = msgpack();
    must(migraphx_file_options_set_trusted(options, trusted));
    return options;
}

// How many units the process has compiled so far, and how many it took from files.
static void count(migraphx_program_t p, int *compiled, int *carried)
{
    char *text;
    int kernels, from_disk;
    must(migraphx_program_explain(&text, p));
    const char *at = strstr(text, "kernels: ");
    if (!at || sscanf(at, "kernels: %d (%d compiled, %d from disk, %d from files)", &kernels,
                      compiled, &from_disk, carried) != 4)
        exit(2);
    migraphx_string_destroy(text);
}

CASE(kernels_are_run_when_the_file_is_trusted)
{
    size_t size;
    if (!has_card())
        return;
    char *bytes = save_for_card(&size), *text;
    for (int trusted = 0; trusted < 2; trusted++) {
        migraphx_file_options_t options = trusting(trusted);
        migraphx_program_t p = compiled_for_card(), q;
        int compiled[2], carried[2];
        count(p, &compiled[0], &carried[0]);
        migraphx_program_destroy(p); // its kernels are nobody's now
        OK(migraphx_load_buffer(&q, bytes, size, options));
        count(q, &compiled[1], &carried[1]);
        CHECK((compiled[1] == compiled[0]) == trusted);
        CHECK((carried[1] > carried[0]) == trusted);
        OK(migraphx_program_explain(&text, q));
        CHECK((strstr(text, "the file's compiled kernels: not used") != NULL) == !trusted);
        CHECK(!strstr(text, "compiled anew") && explained(q, "kernels: ") > 0);
        migraphx_string_destroy(text);
        CHECK(gives_the_answer(q));
        migraphx_program_destroy(q);
        migraphx_file_options_destroy(options);
    }
    migraphx_string_destroy(bytes);
}

// One file with a form for the card and one for the CPU: either is found, and where the card is not
// there the CPU's is taken.
CASE(a_form_for_the_card_and_one_without)
{
    if (!has_card())
        return;
    migraphx_program_t p = make_program(), q = make_program(), card = compiled_for_card();
    migraphx_file_options_t options = msgpack();
    char *bytes, *text;
    size_t size;
    compile_one_thread(q, "generic");
    OK(migraphx_file_options_add_form(options, q));
    OK(migraphx_file_options_add_form(options, card));
    OK(migraphx_save_buffer(&bytes, &size, p, options));
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_program_destroy(card);
    for (int cpu = 0; cpu < 2; cpu++) {
        OK(migraphx_file_options_set_target(options, cpu ? "cpu" : NULL));
        OK(migraphx_load_buffer(&q, bytes, size, options));
        OK(migraphx_program_explain(&text, q));
        CHECK(strstr(text, cpu ? "form: cpu generic, of" : "form: gpu opencl"));
        migraphx_string_destroy(text);
        CHECK(gives_the_answer(q));
        migraphx_program_destroy(q);
    }
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

// Every kernel of the file, here and there: the flip is found by the section's sum.
CASE(damaged_kernels_are_refused)
{
    size_t size;
    if (!has_card())
        return;
    char *bytes = save_for_card(&size);
    migraphx_file_options_t options = trusting(true);
    migraphx_program_t q;
    int refused = 0;
    for (size_t at = size / 2; at < size; at += size / 23) {
        bytes[at] ^= 4;
        if (migraphx_load_buffer(&q, bytes, size, options) == migraphx_status_success) {
            CHECK(gives_the_answer(q));
            migraphx_program_destroy(q);
        } else {
            refused += strstr(last_error(), "damaged") != NULL;
        }
        bytes[at] ^= 4;
    }
    CHECK(refused > 0);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

TEST_MAIN(ROW(kernels_are_run_when_the_file_is_trusted) ROW(a_form_for_the_card_and_one_without)
              ROW(damaged_kernels_are_refused))
