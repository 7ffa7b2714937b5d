// SPDX-License-Identifier: MIT
// External data: where it may lie, what its entries may say, and that it is mapped once.
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import.h"
#include "targets/target.h"

static char root[] = "/tmp/mgx_external_XXXXXX";
static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};

static const char *in_root(const char *name)
{
    static _Thread_local char path[4][256];
    static _Thread_local int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void put(const char *name, const void *data, size_t size)
{
    FILE *f = fopen(in_root(name), "w");
    fwrite(data, 1, size, f);
    fclose(f);
}

static void entry(struct pb *tensor, const char *key, const char *value)
{
    struct pb e = {0};
    pb_text(&e, 1, key);
    pb_text(&e, 2, value);
    pb_message(tensor, 13, &e);
}

// Entries as "key=value;key=value".
static struct pb external(const char *name, const int64_t dim, const char *entries)
{
    struct pb t = pb_tensor(name, 1, 1, (int64_t[]){dim});
    pb_int(&t, 14, 1);
    char text[512];
    snprintf(text, sizeof text, "%s", entries);
    for (char *part = text; *part;) {
        char *end = strchrnul(part, ';');
        const bool last = !*end;
        *end = '\0';
        char *equals = strchr(part, '=');
        *equals = '\0';
        entry(&t, part, equals + 1);
        part = last ? end : end + 1;
    }
    return t;
}

static struct mgx_program *import(struct pb *take_model, const struct mgx_onnx_options *options,
                                  struct mgx_diag *diag)
{
    struct mgx_program *p = NULL;
    put("model/model.onnx", take_model->data, take_model->size);
    pb_free(take_model);
    mgx_diag_clear(diag);
    (void)!mgx_onnx_import_file(&p, in_root("model/model.onnx"), options, diag);
    return p;
}

static struct pb model_of(int64_t dim, const char *entries)
{
    struct pb g = {0}, t = external("w", dim, entries);
    pb_initializer(&g, &t);
    pb_output(&g, "w");
    return pb_model(&g, 17);
}

static bool accepts(int64_t dim, const char *entries, double first)
{
    struct pb m = model_of(dim, entries);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    const bool ok =
        p && *(float *)mgx_module_result(mgx_program_main(p), 0)->literal->data == (float)first;
    if (!ok)
        printf("%s: %s\n", entries, diag.text);
    mgx_program_destroy(p);
    return ok;
}

static bool rejects(int64_t dim, const char *entries, const char *text)
{
    struct pb m = model_of(dim, entries);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    const bool ok = !p && strstr(diag.text, text);
    if (!ok)
        printf("%s: %s\n", entries, p ? "(imported)" : diag.text);
    mgx_program_destroy(p);
    return ok;
}

CASE(reads_regions_of_a_file)
{
    CHECK(accepts(8, "location=data", 1));
    CHECK(accepts(2, "location=data;offset=8", 3));
    CHECK(accepts(2, "length=8;offset=24;location=data", 7));
    CHECK(accepts(2, "location=data;offset=8;length=8;checksum=da39a3ee", 3));
    CHECK(accepts(2, "location=odd;offset=3;length=8", 1)); // misaligned
    CHECK(accepts(8, "location=sub/data", 1));
}

CASE(entries_must_be_true)
{
    CHECK(rejects(8, "location=data;offset=4", "beyond the 32 bytes"));
    CHECK(rejects(2, "location=data;offset=32", "beyond the 32 bytes"));
    CHECK(rejects(2, "location=data;offset=18446744073709551612;length=8", "beyond the 32 bytes"));
    CHECK(rejects(2, "location=data;offset=18446744073709551616", "is not a size"));
    CHECK(rejects(2, "location=data;offset=-8", "is not a size"));
    CHECK(rejects(2, "location=data;offset= 8", "is not a size"));
    CHECK(rejects(2, "location=data;offset=0x8", "is not a size"));
    CHECK(rejects(2, "location=data;offset=", "is not a size"));
    CHECK(rejects(2, "location=data;length=-1", "is not a size"));
    CHECK(rejects(2, "location=data;length=12", "12 bytes for a tensor of 8 bytes"));
    CHECK(rejects(2, "location=data;length=4", "4 bytes for a tensor of 8 bytes"));
    CHECK(rejects(2, "location=data;location=data", "twice"));
    CHECK(rejects(2, "location=data;offset=0;offset=0", "twice"));
    CHECK(rejects(2, "location=data;mode=exec", "unknown key \"mode\""));
    CHECK(rejects(2, "offset=0", "no location"));
    CHECK(rejects((int64_t)1 << 40, "location=data", "above the limit"));
}

CASE(locations_stay_in_the_directory)
{
    static const char *const bad[] = {"location=../secret",
                                      "location=sub/../../secret",
                                      "location=..\\secret",
                                      "location=C:secret",
                                      "location=",
                                      "location=sub//data",
                                      "location=data ",
                                      "location=data.",
                                      "location=/etc/passwd",
                                      "location=link",
                                      "location=up/secret",
                                      "location=pipe",
                                      "location=sub",
                                      "location=DATA",
                                      "location=sub/../data",
                                      "location=/dev/zero",
                                      "location=absent"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pb m = model_of(8, bad[i]);
        struct mgx_diag diag;
        struct mgx_program *p = import(&m, NULL, &diag);
        if (p)
            CHECK_FAIL("imported %s", bad[i]);
        CHECK(strstr(diag.text, "tensor \"w\"")); // the place is named
    }
}

// A package cache: the model and its data are links to files elsewhere, side by side under names of
// their own. Stores of equal files are hard links.
CASE(caches_of_links_load)
{
    struct pb m = model_of(8, "location=data");
    struct mgx_diag diag;
    struct mgx_program *p = NULL;
    mkdir(in_root("blobs"), 0700);
    mkdir(in_root("snapshot"), 0700);
    put("blobs/1", m.data, m.size);
    put("blobs/2", values, sizeof values);
    pb_free(&m);
    CHECK(symlink("../blobs/1", in_root("snapshot/model.onnx")) == 0);
    CHECK(symlink("../blobs/2", in_root("snapshot/data")) == 0);
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_onnx_import_file(&p, in_root("snapshot/model.onnx"), NULL, &diag), diag);
    CHECK(*(float *)mgx_module_result(mgx_program_main(p), 0)->literal->data == values[0]);
    mgx_program_destroy(p);
    // What the model's real file does not stand beside is not read.
    CHECK(unlink(in_root("snapshot/data")) == 0);
    CHECK(symlink("../secret", in_root("snapshot/data")) == 0);
    CHECK_INT(mgx_onnx_import_file(&p, in_root("snapshot/model.onnx"), NULL, &diag), MGX_IO);
    CHECK(strstr(diag.text, "outside the directories that the model may read"));
    CHECK(accepts(8, "location=hard", values[0]));
}

// The same rules wherever a tensor stands.
CASE(sparse_tensors_and_attributes_obey_too)
{
    struct mgx_diag diag;
    struct pb g = {0}, s = {0}, v = external("w", 1, "location=../secret");
    struct pb i = pb_tensor_raw("", 7, 1, (int64_t[]){1}, "\0\0\0\0\0\0\0\0", 8);
    pb_message(&s, 1, &v);
    pb_message(&s, 2, &i);
    pb_int(&s, 3, 4);
    pb_message(&g, 15, &s);
    pb_output(&g, "w");
    struct pb m = pb_model(&g, 17);
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(!p && strstr(diag.text, "leaves its directory"));

    struct pb attrs = {0}, t = external("", 1, "location=../secret");
    pb_attr_tensor(&attrs, "value", &t);
    pb_node(&g, "Constant", "", "y", &attrs);
    pb_output(&g, "y");
    m = pb_model(&g, 17);
    p = import(&m, NULL, &diag);
    CHECK(!p && strstr(diag.text, "leaves its directory"));
}

CASE(data_inside_and_outside_is_a_contradiction)
{
    struct pb g = {0}, t = external("w", 8, "location=data");
    pb_bytes(&t, 9, values, sizeof values);
    pb_initializer(&g, &t);
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(!p && strstr(diag.text, "both inside the model and in an external file"));
}

CASE(another_directory_may_be_named)
{
    const struct mgx_onnx_options there = {.external_data_path = in_root("elsewhere")};
    struct pb m = model_of(8, "location=other");
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, &there, &diag);
    if (!p)
        printf("%s\n", diag.text);
    CHECK(p);
    mgx_program_destroy(p);

    // A model from memory has no directory of its own.
    m = model_of(8, "location=other");
    CHECK(refused(&m, MGX_INVALID, "needs external_data_path"));
    m = model_of(8, "location=other");
    p = import_model(&m, &there, &diag);
    CHECK(p);
    mgx_program_destroy(p);
}

CASE(a_file_is_mapped_once)
{
    enum { MANY = 3000, LARGE = 2048 }; // few bytes would be copied
    float *large = calloc(LARGE + 2, sizeof *large);
    large[1] = 2;
    put("model/large", large, (LARGE + 2) * sizeof *large);
    free(large);
    struct pb g = {0};
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "w%d", i);
        struct pb t =
            external(name, LARGE,
                     i % 2 ? "location=large;offset=8;length=8192" : "location=large;length=8192");
        pb_initializer(&g, &t);
    }
    pb_output(&g, "w0");
    pb_output(&g, "w2");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(p);
    const struct mgx_module *main = mgx_program_main(p);
    CHECK(mgx_module_result(main, 0)->literal->data == mgx_module_result(main, 1)->literal->data);
    struct mgx_tensor share = mgx_tensor_share(mgx_module_result(main, 0)->literal);
    mgx_program_destroy(p);
    CHECK(((float *)share.data)[1] == 2); // the mapping lives as long as a share in it
    mgx_tensor_release(&share);
}

// Scales, axes and sizes are read in every run: that the file beside is written anew meanwhile does
// not change them.
CASE(few_bytes_do_not_stay_in_the_file)
{
    static const float other[8] = {0};
    struct pb g = {0}, t = external("w", 8, "location=rewritten");
    put("model/rewritten", values, sizeof values);
    pb_initializer(&g, &t);
    pb_node(&g, "Neg", "w", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(p);
    put("model/rewritten", other, sizeof other);
    double y[8];
    CHECK_INT(run_model(p, NULL, 0, NULL, y, 8), 8);
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(y[i], -values[i], 0);
    mgx_program_destroy(p);
}

CASE(overlapping_regions_are_read_only)
{
    struct pb g = {0}, a = external("a", 4, "location=data"),
              b = external("b", 4, "location=data;offset=8");
    pb_initializer(&g, &a);
    pb_initializer(&g, &b);
    pb_node(&g, "Neg", "a", "na", NULL);
    pb_node(&g, "Add", "na,b", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(p);
    double y[4];
    CHECK_INT(run_model(p, NULL, 0, NULL, y, 4), 4);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(y[i], 2, 0);
    mgx_program_destroy(p);
}

CASE(a_model_file_that_shrank_is_an_error)
{
    // Shrinking between mapping and reading cannot be arranged from outside; a file whose data
    // promises more than it has is the same to the reader.
    struct pb m = model_of(8, "location=data");
    m.size -= 3;
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    CHECK(!p && diag.status == MGX_INVALID);
}

// The file shrinks under the program: after import, or between two runs.
static bool vanishing(const char *target, bool before_compiling)
{
    enum { COUNT = 1 << 18 };
    float *many = calloc(COUNT, sizeof *many);
    put("model/vanishing", many, COUNT * sizeof *many);
    free(many);
    struct pb g = {0}, t = external("w", COUNT, "location=vanishing");
    pb_initializer(&g, &t);
    pb_input(&g, "x", 1, 1, (int64_t[]){COUNT});
    pb_node(&g, "Mul", "x,w", "y", NULL);
    pb_output(&g, "y");
    struct pb m = pb_model(&g, 17);
    struct mgx_diag diag;
    struct mgx_program *p = import(&m, NULL, &diag);
    const struct mgx_compile_options options = {.offload_copy = true};
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, COUNT);
    struct mgx_tensor results[1] = {0};
    struct mgx_named_tensor x = {.name = "x"};
    enum mgx_status status = p ? mgx_tensor_create(&x.tensor, &shape, &diag) : diag.status;
    if (status == MGX_OK)
        memset(x.tensor.data, 0, COUNT * sizeof *many);
    if (before_compiling)
        put("model/vanishing", "", 0);
    if (status == MGX_OK)
        status = mgx_program_compile(p, mgx_target_find(target), &options, &diag);
    put("model/vanishing", "", 0);
    struct mgx_run run = {.params = &x, .param_count = 1, .results = results, .result_count = 1};
    if (status == MGX_OK)
        status = mgx_program_run(p, &run, &diag);
    const bool ok = status == MGX_IO && strstr(diag.text, "became shorter");
    if (!ok)
        printf("%s: %d %s\n", target, status, diag.text);
    mgx_tensor_release(&x.tensor);
    mgx_tensor_release(&results[0]);
    mgx_program_destroy(p);
    return ok;
}

CASE(weights_that_vanish_are_an_error)
{
    CHECK(vanishing("ref", false));
    CHECK(vanishing("ref", true));
    CHECK(vanishing("cpu", false));
    CHECK(vanishing("cpu", true));
}

// Mappings come and go in one table; each thread imports, reads and destroys on its own.
static void *import_often(void *failed)
{
    for (int i = 0; i < 50; i++) {
        struct mgx_program *p = NULL;
        if (mgx_onnx_import_file(&p, in_root("model/threads.onnx"), NULL, NULL) != MGX_OK) {
            *(bool *)failed = true;
            return NULL;
        }
        const struct mgx_tensor *w = mgx_module_result(mgx_program_main(p), 0)->literal;
        if (((const float *)w->data)[7] != 8)
            *(bool *)failed = true;
        mgx_program_destroy(p);
    }
    return NULL;
}

CASE(threads_import_at_once)
{
    enum { THREADS = 4 };
    struct pb m = model_of(8, "location=data");
    put("model/threads.onnx", m.data, m.size);
    pb_free(&m);
    pthread_t threads[THREADS];
    bool failed[THREADS] = {false};
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, import_often, &failed[i]) == 0);
    bool any = false;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        any |= failed[i];
    }
    CHECK(!any);
}

static void make_files(void)
{
    char odd[35] = "abc";
    memcpy(odd + 3, values, sizeof values);
    mkdir(in_root("model"), 0700);
    mkdir(in_root("model/sub"), 0700);
    mkdir(in_root("elsewhere"), 0700);
    put("secret", values, sizeof values);
    put("model/data", values, sizeof values);
    put("model/sub/data", values, sizeof values);
    put("model/odd", odd, sizeof odd);
    put("elsewhere/other", values, sizeof values);
    if (symlink("../secret", in_root("model/link")) || symlink("..", in_root("model/up")) ||
        link(in_root("secret"), in_root("model/hard")) || mkfifo(in_root("model/pipe"), 0600))
        abort();
}

static const struct check_case cases[] = {
    ROW(reads_regions_of_a_file) ROW(entries_must_be_true) ROW(locations_stay_in_the_directory)
        ROW(caches_of_links_load) ROW(sparse_tensors_and_attributes_obey_too)
            ROW(data_inside_and_outside_is_a_contradiction) ROW(another_directory_may_be_named)
                ROW(a_file_is_mapped_once) ROW(few_bytes_do_not_stay_in_the_file)
                    ROW(overlapping_regions_are_read_only) ROW(a_model_file_that_shrank_is_an_error)
                        ROW(threads_import_at_once)
                            ROW(weights_that_vanish_are_an_error){NULL, NULL}};

int main(int argc, char **argv)
{
    if (!mkdtemp(root))
        return 1;
    make_files();
    const int status = check_run(cases, argc, argv);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) != 0 || status;
}
