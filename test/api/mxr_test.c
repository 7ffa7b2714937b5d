// SPDX-License-Identifier: MIT
// Compiled programs in files (docs/mxr.md): they come back with their packed constants, a damaged
// file is refused or gives the right answer, a file for other machines or kernels is compiled anew,
// and whatever happens to who writes one, the old file stays.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/mxr_support.h"

static migraphx_program_t make_compiled(void)
{
    migraphx_program_t p = make_program();
    compile_one_thread(p, NULL);
    return p;
}

static char *save_threads(int threads, size_t *size)
{
    migraphx_program_t p = make_program();
    compile_threads(p, NULL, threads);
    migraphx_file_options_t options = msgpack();
    char *bytes;
    must(migraphx_save_buffer(&bytes, size, p, options));
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    return bytes;
}

static char *save_compiled(size_t *size)
{
    return save_threads(1, size);
}

static void temporary(char path[32])
{
    strcpy(path, "/tmp/mgx_mxr_test_XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0)
        exit(2);
    close(fd);
}

// --- coming back ---

CASE(packed_constants_come_back)
{
    char path[32];
    temporary(path);
    migraphx_program_t p = make_compiled(), q, r;
    migraphx_file_options_t options = msgpack();
    bool compiled = false;
    CHECK(gives_the_answer(p));
    OK(migraphx_save(p, path, options));
    OK(migraphx_load(&q, path, options));
    unlink(path); // the mapping stays
    OK(migraphx_program_is_compiled(&compiled, q));
    CHECK(compiled);
    CHECK(gives_the_answer(q));
    CHECK_INT(explained(q, "from the file: "), 2);
    CHECK_INT(explained(q, "\npacked constants: "), 0);
    CHECK_INT(explained(q, "threads: "), 1); // options come back as well
    OK(migraphx_save(q, path, options));     // and what was loaded can be saved
    OK(migraphx_load(&r, path, options));
    unlink(path);
    CHECK(gives_the_answer(r));
    CHECK_INT(explained(r, "from the file: "), 2);
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_program_destroy(r);
}

// What was measured is in the file, and counts on whatever number of threads.
CASE(tuning_travels)
{
    migraphx_program_t p = make_program(), q;
    migraphx_target_t target;
    migraphx_compile_options_t options;
    migraphx_file_options_t file = msgpack();
    char *bytes;
    size_t size;
    OK(migraphx_target_create(&target, "cpu"));
    OK(migraphx_compile_options_create(&options));
    OK(migraphx_compile_options_set_exhaustive_tune_flag(options, true));
    OK(migraphx_program_compile(p, target, options));
    const long tuned = explained(p, "tuned: ");
    CHECK(tuned > 0);
    OK(migraphx_save_buffer(&bytes, &size, p, file));
    OK(migraphx_load_buffer(&q, bytes, size, file));
    CHECK_INT(explained(q, "tuned: "), tuned);
    CHECK_INT(explained(q, " steps, "), 0); // measured now
    CHECK_INT(explained(q, "from the file: "), 2);
    CHECK(gives_the_answer(q));
    migraphx_string_destroy(bytes);
    migraphx_program_destroy(p);
    migraphx_program_destroy(q);
    migraphx_compile_options_destroy(options);
    migraphx_target_destroy(target);
    migraphx_file_options_destroy(file);
}

CASE(buffers_come_back)
{
    size_t size;
    char *bytes = save_compiled(&size);
    char *moved = malloc(size + 1); // at an odd address, and gone after loading
    migraphx_file_options_t options = msgpack();
    migraphx_program_t q;
    memcpy(moved + 1, bytes, size);
    OK(migraphx_load_buffer(&q, moved + 1, size, options));
    memset(moved, 0, size + 1);
    free(moved);
    CHECK(gives_the_answer(q));
    CHECK_INT(explained(q, "from the file: "), 2);
    migraphx_program_destroy(q);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

CASE(a_copy_can_be_compiled_again)
{
    size_t size;
    char *bytes = save_compiled(&size);
    migraphx_file_options_t options = msgpack();
    migraphx_program_t q, copy;
    must(migraphx_program_create(&copy));
    OK(migraphx_load_buffer(&q, bytes, size, options));
    OK(migraphx_program_assign_to(copy, q));
    migraphx_program_destroy(q);
    compile_for(copy, "ref");
    CHECK(gives_the_answer(copy));
    migraphx_program_destroy(copy);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

// Without an instruction set in its options it takes this machine's, or the environment's.
CASE(another_machine_compiles_anew)
{
    char path[32], *text;
    temporary(path);
    migraphx_program_t p = make_program(), q;
    migraphx_file_options_t options = msgpack();
    compile_one_thread(p, "generic");
    char *bytes;
    size_t size;
    OK(migraphx_save_buffer(&bytes, &size, p, options));
    OK(migraphx_load_buffer(&q, bytes, size, options));
    OK(migraphx_program_explain(&text, q));
    CHECK(strstr(text, "isa: generic")); // it was asked for
    CHECK(strstr(text, "from the file: "));
    CHECK(gives_the_answer(q));
    migraphx_string_destroy(text);
    migraphx_string_destroy(bytes);
    migraphx_program_destroy(q);
    migraphx_program_destroy(p);
    migraphx_file_options_destroy(options);
    unlink(path);
}

// --- damage ---

// Loads what it can; counts into *loaded. False when a wrong answer came.
static bool survives(const char *bytes, size_t size, migraphx_file_options_t options, int *loaded)
{
    migraphx_program_t q = NULL;
    if (migraphx_load_buffer(&q, bytes, size, options) != migraphx_status_success)
        return last_error()[0] != '\0';
    (*loaded)++;
    const bool good = gives_the_answer(q);
    migraphx_program_destroy(q);
    return good;
}

static void flip_bytes(int threads, size_t step)
{
    size_t size;
    char *bytes = save_threads(threads, &size);
    migraphx_file_options_t options = msgpack();
    int loaded = 0;
    for (size_t at = 0; at < size; at += step) {
        const char bit = (char)(1 << (at * 2654435761u >> 7 & 7));
        bytes[at] ^= bit;
        if (!survives(bytes, size, options, &loaded))
            CHECK_FAIL("wrong after a flip in byte %zu of %zu", at, size);
        bytes[at] ^= bit;
    }
    CHECK(loaded > 0); // gaps between sections mean nothing
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

// With several threads constants are checked while the program is built.
CASE(every_flipped_byte_is_noticed)
{
    flip_bytes(1, 1);
    flip_bytes(2, 7);
}

CASE(every_truncation_is_refused)
{
    size_t size;
    char *bytes = save_compiled(&size);
    migraphx_file_options_t options = msgpack();
    migraphx_program_t q;
    for (size_t n = 0; n < size; n++)
        if (migraphx_load_buffer(&q, bytes, n, options) == migraphx_status_success)
            CHECK_FAIL("loaded %zu of %zu bytes", n, size);
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

CASE(a_newer_format_is_named)
{
    size_t size;
    char *bytes = save_compiled(&size);
    migraphx_file_options_t options = msgpack();
    migraphx_program_t q;
    bytes[8] = 9;
    CHECK_INT(migraphx_load_buffer(&q, bytes, size, options), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "format version 9"));
    migraphx_string_destroy(bytes);
    migraphx_file_options_destroy(options);
}

// --- writing that fails ---

// Runs in a child: saves with this limit on the size of files. 0: saved; 1: refused.
static int save_limited(const char *path, rlim_t limit)
{
    const pid_t child = fork();
    if (child == 0) {
        migraphx_program_t p = make_compiled();
        migraphx_file_options_t options = msgpack();
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
        _exit(migraphx_save(p, path, options) != migraphx_status_success);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_the_old_file(const char *path)
{
    char got[4] = {0};
    FILE *file = fopen(path, "r");
    const bool good = file && fread(got, 1, 3, file) == 3 && strcmp(got, "old") == 0;
    if (file)
        fclose(file);
    return good;
}

static void write_old_file(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs("old", file) < 0 || fclose(file) != 0)
        exit(2);
}

CASE(a_full_disk_keeps_the_old_file)
{
    char path[32];
    size_t size;
    temporary(path);
    write_old_file(path);
    migraphx_string_destroy(save_compiled(&size));
    for (rlim_t limit = 0; limit < size; limit += size / 16) {
        CHECK_INT(save_limited(path, limit), 1);
        CHECK(is_the_old_file(path));
    }
    CHECK_INT(save_limited(path, size), 0);
    CHECK(!is_the_old_file(path));
    unlink(path);
}

CASE(a_folder_that_may_not_be_written)
{
    migraphx_program_t p = make_compiled();
    migraphx_file_options_t options = msgpack();
    CHECK(migraphx_save(p, "/proc/model.mxr", options) != migraphx_status_success);
    CHECK(strstr(last_error(), "/proc/model.mxr"));
    CHECK(migraphx_save(p, "/no/such/folder/model.mxr", options) != migraphx_status_success);
    CHECK(strstr(last_error(), "/no/such/folder/model.mxr"));
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
}

// Killed after some time, again and again: the file is always whole.
CASE(a_killed_writer_leaves_a_whole_file)
{
    char path[32];
    int loaded = 0;
    temporary(path);
    migraphx_file_options_t options = msgpack();
    migraphx_program_t first = make_compiled();
    must(migraphx_save(first, path, options));
    migraphx_program_destroy(first);
    for (int round = 0; round < 20; round++) {
        const pid_t child = fork();
        if (child == 0) {
            migraphx_program_t p = make_compiled();
            for (;;)
                must(migraphx_save(p, path, options));
        }
        usleep(2000 + 700 * (useconds_t)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        migraphx_program_t q;
        OK(migraphx_load(&q, path, options));
        loaded += gives_the_answer(q);
        migraphx_program_destroy(q);
    }
    CHECK_INT(loaded, 20);
    unlink(path);
    migraphx_file_options_destroy(options);
}

// --- files of every format there was ---

CASE(old_files_load)
{
    static const char *const paths[] = {
        "test/api/saved/program_8.mxr",   "test/api/saved/program_8.json",
        "test/api/saved/compiled_8.mxr",  "test/api/saved/container_1.mxr",
        "test/api/saved/container_2.mxr", "test/api/saved/forms_2.mxr",
        "test/api/saved/container_3.mxr", "test/api/saved/forms_3.mxr"};
    for (int i = 0; i < (int)(sizeof paths / sizeof *paths); i++) {
        migraphx_file_options_t options = msgpack();
        migraphx_program_t p;
        bool compiled;
        if (strstr(paths[i], ".json"))
            must(migraphx_file_options_set_file_format(options, "json"));
        OK(migraphx_load(&p, paths[i], options));
        OK(migraphx_program_is_compiled(&compiled, p));
        CHECK_INT(compiled, i >= 2);
        if (!gives_the_answer(p))
            CHECK_FAIL("%s gives another answer", paths[i]);
        migraphx_program_destroy(p);
        migraphx_file_options_destroy(options);
    }
}

TEST_MAIN(ROW(packed_constants_come_back) ROW(tuning_travels) ROW(buffers_come_back)
              ROW(a_copy_can_be_compiled_again) ROW(another_machine_compiles_anew)
                  ROW(every_flipped_byte_is_noticed) ROW(every_truncation_is_refused)
                      ROW(a_newer_format_is_named) ROW(a_full_disk_keeps_the_old_file)
                          ROW(a_folder_that_may_not_be_written)
                              ROW(a_killed_writer_leaves_a_whole_file) ROW(old_files_load))
