// SPDX-License-Identifier: MIT
// Compiled kernels: shared in the process, kept in a folder, and not taken from a file that does
// not fit. On whatever device there is; without one only the files are tested.
#include "targets/gpu/machine/code.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/machine/store.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/mgx-code-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    strcat(folder, "/a/b"); // made by the first write
}

// Calls fn for every file; returns their number.
static int each_file(void (*fn)(const char *path))
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[512];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        count++;
        if (fn)
            fn(path);
    }
    if (dir)
        closedir(dir);
    return count;
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void remove_folder(void)
{
    each_file(remove_file);
    for (int i = 0; i < 3; i++) {
        rmdir(folder);
        *strrchr(folder, '/') = '\0';
    }
}

static bool reads_back(const struct gpu_store_key *key, const char *binary)
{
    struct mgx_str out = {0};
    const bool found = gpu_store_read(folder, key, &out) && strcmp(mgx_str_text(&out), binary) == 0;
    mgx_str_fini(&out);
    return found;
}

// Records of 1, 2, ... bytes: each is found, of no length of the whole anything beyond its end.
CASE(carried_kernels_are_found_inside_their_bytes)
{
    enum { RECORDS = 9 };
    static const char zeros[8];
    struct mgx_str all = {0};
    size_t size;
    for (uint64_t i = 1; i <= RECORDS; i++) {
        const uint64_t head[3] = {i, ~i, i};
        mgx_str_putn(&all, (const char *)head, sizeof head);
        for (uint64_t k = 0; k < i; k++)
            mgx_str_putc(&all, (char)('a' + i));
        mgx_str_putn(&all, zeros, -i & 7);
    }
    for (size_t length = 0; length <= all.size; length++)
        for (uint64_t i = 1; i <= RECORDS; i++) {
            const char *at = gpu_carried_find(all.text, length, (const uint64_t[]){i, ~i}, &size);
            if (at && (size != i || at + size > all.text + length || at[0] != (char)('a' + i)))
                CHECK_FAIL("record %d of %zu bytes", (int)i, length);
            if (length == all.size && !at)
                CHECK_FAIL("record %d is not found", (int)i);
        }
    CHECK(!gpu_carried_find(all.text, all.size, (const uint64_t[]){1, 1}, &size));
    CHECK(!gpu_carried_find(NULL, 0, (const uint64_t[]){1, 1}, &size));
    mgx_str_fini(&all);
}

CASE(a_binary_is_found_by_text_and_card)
{
    const struct gpu_store_key a = {"sm_90a", "one text"}, b = {"gfx90a", "one text"},
                               c = {"sm_90a", "other text"};
    make_folder();
    CHECK(!reads_back(&a, "binary"));
    gpu_store_write(folder, &a, "binary", 6, 1 << 20);
    gpu_store_write(folder, &c, "of c", 4, 1 << 20);
    CHECK(reads_back(&a, "binary") && reads_back(&c, "of c") && !reads_back(&b, "binary"));
    gpu_store_write(folder, &a, "newer", 5, 1 << 20);
    CHECK(reads_back(&a, "newer"));
    CHECK_INT(each_file(NULL), 2);
    struct stat st;
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 077) == 0);
    remove_folder();
}

// What others may write runs on nobody's card.
CASE(a_folder_that_others_write_to_is_not_used)
{
    const struct gpu_store_key key = {"sm_90a", "one text"};
    make_folder();
    gpu_store_write(folder, &key, "binary", 6, 1 << 20);
    CHECK(reads_back(&key, "binary"));
    CHECK(chmod(folder, 0770) == 0 && !reads_back(&key, "binary"));
    CHECK(chmod(folder, 0703) == 0 && !reads_back(&key, "binary"));
    gpu_store_write(folder, &key, "newer", 5, 1 << 20);
    CHECK(chmod(folder, 0755) == 0 && reads_back(&key, "binary"));
    if (geteuid() == 0)
        CHECK(chown(folder, 4321, 4321) == 0 && !reads_back(&key, "binary") &&
              chown(folder, 0, 0) == 0);
    CHECK(reads_back(&key, "binary"));
    remove_folder();
}

static long flip_at;

static void flip(const char *path)
{
    FILE *f = fopen(path, "r+b");
    fseek(f, flip_at, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, flip_at, SEEK_SET);
    fputc(c ^ 0x10, f);
    fclose(f);
}

static void cut(const char *path)
{
    if (truncate(path, flip_at) != 0)
        abort();
}

CASE(every_flipped_byte_and_every_cut_is_seen)
{
    const struct gpu_store_key key = {"card", "text of a kernel"};
    struct mgx_str out = {0};
    make_folder();
    for (flip_at = 0; flip_at < 40 + 4 + 16 + 6; flip_at++) {
        gpu_store_write(folder, &key, "binary", 6, 1 << 20);
        each_file(flip);
        CHECK(!gpu_store_read(folder, &key, &out));
        gpu_store_write(folder, &key, "binary", 6, 1 << 20);
        each_file(cut);
        CHECK(!gpu_store_read(folder, &key, &out));
    }
    gpu_store_write(folder, &key, "binary", 6, 1 << 20);
    CHECK(gpu_store_read(folder, &key, &out));
    mgx_str_fini(&out);
    remove_folder();
}

CASE(the_folder_stays_below_its_bound)
{
    enum { FILES = 40, SIZE = 1000, BOUND = 16000 };
    static char binary[SIZE];
    make_folder();
    for (int i = 0; i < FILES; i++) {
        char text[32];
        snprintf(text, sizeof text, "text %d", i);
        const struct gpu_store_key key = {"card", text};
        gpu_store_write(folder, &key, binary, SIZE, BOUND);
        CHECK(each_file(NULL) * SIZE <= BOUND);
    }
    const struct gpu_store_key last = {"card", "text 39"}, first = {"card", "text 0"};
    struct mgx_str out = {0};
    CHECK(gpu_store_read(folder, &last, &out) && !gpu_store_read(folder, &first, &out));
    mgx_str_fini(&out);
    remove_folder();
}

static struct gpu_unit *share(struct gpu_device *d, const char *text)
{
    struct mgx_str all = {0};
    mgx_str_put(&all, gpu_text_prelude);
    mgx_str_put(&all, text);
    struct gpu_unit *u = gpu_unit_share(d, "test", mgx_str_text(&all));
    mgx_str_fini(&all);
    return u;
}

CASE(units_are_compiled_once_and_loaded_afterwards)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    const char *choice = getenv("MGX_TEST_DEVICE");
    if (gpu_device_open(choice ? choice : "opencl", 0, &d, &diag) != MGX_OK)
        return;
    make_folder();
    const struct gpu_code code = {.device = d, .folder = folder, .threads = 3};
    for (int round = 0; round < 2; round++) {
        const struct gpu_code_counts before = gpu_code_counts();
        struct gpu_unit *units[5];
        for (int i = 0; i < 5; i++) {
            char text[96];
            snprintf(text, sizeof text,
                     "KERNEL void run(GLOBAL float *out)\n{\n    out[0] = %d;\n}\n",
                     i % 3); // two are shared
            CHECK((units[i] = share(d, text)));
        }
        CHECK(units[0] == units[3] && units[1] == units[4]);
        CHECK_OK(gpu_units_make(&code, units, 5, &diag), diag);
        void *kernel;
        CHECK_OK(gpu_unit_kernel(units[4], "run", 0, &kernel, &diag), diag);
        for (int i = 0; i < 5; i++)
            gpu_unit_drop(units[i]);
        const struct gpu_code_counts after = gpu_code_counts();
        CHECK_INT(after.compiled - before.compiled, round ? 0 : 3);
        CHECK_INT(after.loaded - before.loaded, round ? 3 : 0);
    }
    remove_folder();
    gpu_device_close(d);
}

CASE(a_text_that_does_not_compile_names_its_kernel)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    if (gpu_device_open("opencl", 0, &d, &diag) != MGX_OK)
        return;
    const struct gpu_code code = {.device = d, .threads = 2};
    struct gpu_unit *u = share(d, "#error nothing to run\n");
    CHECK(gpu_units_make(&code, &u, 1, &diag) != MGX_OK);
    CHECK(strstr(diag.text, "in compiling kernel test"));
    gpu_unit_drop(u);
    gpu_device_close(d);
}

TEST_MAIN(ROW(carried_kernels_are_found_inside_their_bytes) ROW(a_binary_is_found_by_text_and_card)
              ROW(a_folder_that_others_write_to_is_not_used)
                  ROW(every_flipped_byte_and_every_cut_is_seen)
                      ROW(the_folder_stays_below_its_bound)
                          ROW(units_are_compiled_once_and_loaded_afterwards)
                              ROW(a_text_that_does_not_compile_names_its_kernel))
