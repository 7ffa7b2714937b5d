// SPDX-License-Identifier: MIT
// Containers from inside: what other kernels or another kind of machine packed is not read, and
// literals that are packed are not touched.
#include "format/container.h"
#include "format/mxr.h"
#include "targets/target.h"

#include "api/api.h"
#include "api/support.h"

#include <unistd.h>

enum { ROWS = 256, COLUMNS = 128 }; // weights of 128 KiB, more than a chunk

static double w_at(int i)
{
    return (i * 37 % 101 - 50) / 64.0;
}

// y = x w, for one row of x.
static struct mgx_program *make_program(void)
{
    struct mgx_program *p;
    struct mgx_diag diag = {0};
    if (mgx_program_create(&p, &mgx_ops, &diag) != MGX_OK)
        exit(2);
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape x = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){1, ROWS});
    const struct mgx_shape w = mgx_shape_make(MGX_FLOAT, 2, (int64_t[]){ROWS, COLUMNS});
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &w, &diag) != MGX_OK)
        exit(2);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ((float *)t.data)[i] = (float)w_at(i);
    struct mgx_ins *in = mgx_add_parameter(m, "x", &x);
    struct mgx_ins *y = mgx_emit(m, &mgx_op_dot, NULL, MGX_IN(in, mgx_add_literal(m, &t)));
    mgx_add_return(m, &y, 1);
    mgx_tensor_release(&t);
    const struct mgx_compile_options options = {.fast_math = true, .threads = 1};
    if (mgx_program_compile(p, &mgx_target_cpu, &options, &diag) != MGX_OK)
        exit(2);
    return p;
}

static bool gives_the_answer(migraphx_program_t p)
{
    static float x[ROWS];
    static double y[COLUMNS];
    migraphx_arguments_t results = NULL;
    const_migraphx_argument_t result;
    for (int i = 0; i < ROWS; i++)
        x[i] = (float)(i % 7 - 3);
    migraphx_program_parameters_t params = one_parameter("x", 2, SIZES(1, ROWS), x);
    bool good = migraphx_program_run(&results, p, params) == migraphx_status_success;
    if (good) {
        must(migraphx_arguments_get(&result, results, 0));
        must(migraphx_argument_values(y, COLUMNS, result));
    }
    for (int k = 0; good && k < COLUMNS; k++) {
        double want = 0; // 1/64ths: exact
        for (int i = 0; i < ROWS; i++)
            want += x[i] * w_at(i * COLUMNS + k);
        good = fabs(y[k] - want) <= 1e-3;
    }
    migraphx_arguments_destroy(results);
    migraphx_program_parameters_destroy(params);
    return good;
}

// Saved as if by these kernels on this kind of machine; NULL: by ours, on ours.
static struct mgx_str save_threads(const char *kernels, const char *kind, int threads)
{
    struct mgx_program *p = make_program();
    struct mgx_carry *c = mgx_carry_create();
    struct mgx_str ours = {0}, out = {0};
    struct mgx_diag diag = {0};
    const struct mgx_compile_options options = {.threads = 1};
    if (!c || mgx_target_cpu.kind(&options, &ours, &diag) != MGX_OK ||
        mgx_target_cpu.carry(p, c, &diag) != MGX_OK)
        exit(2);
    strcpy(c->target, "cpu");
    c->options.threads = threads;
    c->kind = kind ? kind : mgx_str_text(&ours);
    c->kernels = kernels ? kernels : c->kernels;
    if (mgx_mxr_save_buffer(p, c, MGX_FORM_MSGPACK, &out, &diag) != MGX_OK)
        exit(2);
    mgx_carry_destroy(c);
    mgx_str_fini(&ours);
    mgx_program_destroy(p);
    return out;
}

static struct mgx_str save(const char *kernels, const char *kind)
{
    return save_threads(kernels, kind, 1);
}

static migraphx_status load(const struct mgx_str *file, migraphx_program_t *out)
{
    migraphx_file_options_t options;
    must(migraphx_file_options_create(&options));
    const migraphx_status status = migraphx_load_buffer(out, file->text, file->size, options);
    migraphx_file_options_destroy(options);
    return status;
}

static bool says(migraphx_program_t p, const char *words)
{
    char *text;
    must(migraphx_program_explain(&text, p));
    const bool found = strstr(text, words) != NULL;
    migraphx_string_destroy(text);
    return found;
}

static void comes_back(const char *kernels, const char *kind, const char *words)
{
    struct mgx_str file = save(kernels, kind);
    migraphx_program_t p;
    OK(load(&file, &p));
    if (!says(p, words))
        CHECK_FAIL("explain lacks: %s", words);
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    mgx_str_fini(&file);
}

CASE(our_own_is_used)
{
    comes_back(NULL, NULL, "\nfrom the file: 1 packed constants");
}

CASE(other_kernels_compile_anew)
{
    comes_back("others", NULL, "\nwarning: the file was compiled for kernels of another version");
}

CASE(another_machine_compiles_anew)
{
    comes_back(NULL, "cpu abacus", "\nwarning: the file was compiled for cpu abacus, this is cpu");
}

// --- what is read ---

// Where literals and packed constants begin and end in the file.
static bool find_data(const struct mgx_str *file, size_t *packed)
{
    struct mgx_container c;
    struct mgx_arena arena;
    struct mgx_diag diag = {0};
    const uint8_t *packs;
    size_t size;
    uint64_t head[3] = {0};
    mgx_arena_init(&arena);
    const bool good = mgx_container_open(&c, &arena, file->text, file->size, &diag) == MGX_OK &&
                      mgx_container_find(&c, "packs", &packs, &size, &diag) == MGX_OK &&
                      size >= sizeof head;
    if (good)
        memcpy(head, packs, sizeof head);
    mgx_arena_fini(&arena);
    *packed = MGX_CONTAINER_DATA + (size_t)head[1];
    return good;
}

// Damage where nobody reads changes nothing; damage in what is read is noticed; and when the packed
// form is of no use, its literal is read and its damage noticed.
CASE(a_literal_that_is_packed_is_not_read)
{
    struct mgx_str file = save(NULL, NULL), other = save("others", NULL);
    migraphx_program_t p;
    size_t packed;
    CHECK(find_data(&file, &packed));
    const size_t literal = MGX_CONTAINER_DATA + 1000;
    CHECK(packed >= MGX_CONTAINER_DATA + ROWS * COLUMNS * sizeof(float));
    file.text[literal] ^= 1;
    OK(load(&file, &p));
    CHECK(gives_the_answer(p));
    migraphx_file_options_t options;
    must(migraphx_file_options_create(&options));
    char *bytes;
    size_t size; // saving it reads it
    CHECK_INT(migraphx_save_buffer(&bytes, &size, p, options), migraphx_status_unknown_error);
    migraphx_file_options_destroy(options);
    migraphx_program_destroy(p);
    file.text[literal] ^= 1;
    file.text[packed + 1000] ^= 1;
    CHECK_INT(load(&file, &p), migraphx_status_unknown_error);
    CHECK(strstr(last_error(), "damaged"));
    other.text[literal] ^= 1;
    CHECK_INT(load(&other, &p), migraphx_status_unknown_error);
    other.text[literal] ^= 1;
    other.text[packed + 1000] ^= 1;
    OK(load(&other, &p));
    CHECK(gives_the_answer(p));
    migraphx_program_destroy(p);
    mgx_str_fini(&file);
    mgx_str_fini(&other);
}

// By one thread when the program is built, by another while it is.
CASE(damage_anywhere_in_a_packed_constant)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct mgx_str file = save_threads(NULL, NULL, threads);
        migraphx_program_t p;
        size_t packed;
        CHECK(find_data(&file, &packed));
        for (size_t at = 0; at < ROWS * COLUMNS * sizeof(float); at += 4093) {
            file.text[packed + at] ^= 64;
            CHECK_INT(load(&file, &p), migraphx_status_unknown_error);
            CHECK(strstr(last_error(), "damaged"));
            file.text[packed + at] ^= 64;
        }
        OK(load(&file, &p));
        CHECK(gives_the_answer(p));
        migraphx_program_destroy(p);
        mgx_str_fini(&file);
    }
}

CASE(the_file_is_read_where_it_is_mapped)
{
    struct mgx_str file = save(NULL, NULL);
    char path[] = "/tmp/mgx_container_test_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, file.text, file.size) == (ssize_t)file.size);
    close(fd);
    struct mgx_program *p;
    struct mgx_diag diag = {0};
    CHECK_OK(mgx_mxr_load(&p, &mgx_ops, path, MGX_FORM_MSGPACK, NULL, &diag), diag);
    unlink(path);
    const struct mgx_carry *c = p->carry;
    CHECK(c && c->file && c->file->bytes == file.size);
    CHECK_INT(c->packs.count + (int64_t)c->by_key.count, 1);
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (ins->literal)
            CHECK((const uint8_t *)ins->literal->data >= c->data &&
                  (const uint8_t *)ins->literal->data < c->data + c->data_bytes &&
                  ins->literal->storage == c->file);
    mgx_program_destroy(p);
    mgx_str_fini(&file);
}

// A file says a target's settings by name: those that the target keeps in files count when it is
// loaded, others (here a folder that no file may choose) do not.
CASE(settings_of_a_target_travel)
{
    struct mgx_str file = {0};
    struct mgx_diag diag = {0};
    struct mgx_program *p = make_program(), *q;
    struct mgx_carry *c = mgx_carry_create();
    migraphx_program_t loaded;
    CHECK(p && c);
    strcpy(c->target, "cpu");
    c->options.own = MGX_SETTINGS({"isa", "generic"}, {"tf32", "1"}, {"kernel_folder", "/tmp"});
    CHECK_OK(mgx_mxr_save_buffer(p, c, MGX_FORM_MSGPACK, &file, &diag), diag);
    CHECK_OK(mgx_mxr_load_buffer(&q, &mgx_ops, file.text, file.size, MGX_FORM_MSGPACK, NULL, &diag),
             diag);
    const struct mgx_settings *read = &q->carry->options.own;
    CHECK_INT(read->count, 3);
    CHECK_TEXT(mgx_setting(read, "isa"), "generic");
    CHECK(mgx_setting_is_on(read, "tf32"));
    OK(load(&file, &loaded));
    const struct mgx_settings *kept = &loaded->p->executable->options.own;
    CHECK_INT(kept->count, 1);
    CHECK_TEXT(mgx_setting(kept, "isa"), "generic");
    CHECK(gives_the_answer(loaded));
    migraphx_program_destroy(loaded);
    mgx_program_destroy(q);
    mgx_program_destroy(p);
    mgx_carry_destroy(c);
    mgx_str_fini(&file);
}

TEST_MAIN(ROW(our_own_is_used) ROW(other_kernels_compile_anew) ROW(another_machine_compiles_anew)
              ROW(a_literal_that_is_packed_is_not_read) ROW(damage_anywhere_in_a_packed_constant)
                  ROW(the_file_is_read_where_it_is_mapped) ROW(settings_of_a_target_travel))
