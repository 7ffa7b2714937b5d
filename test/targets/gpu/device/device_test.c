// SPDX-License-Identifier: MIT
// The device layer, on every API that this machine has: memory, order, modules, launches, graphs.
//
//     test-targets-gpu-device-device [CASE]      MGX_TEST_DEVICE=cuda|hip|opencl[:n], else each
//
// Without any API there is nothing to test but the sentence that says so.
#include "targets/gpu/device/device.h"

#include "base/half.h"
#include "check.h"
#include "targets/gpu/kernel/text.h"

enum { COUNT = 100003, BLOCK_THREADS = 128 };

static const char kernels[] =
    "KERNEL void axpy(GLOBAL float *y, const GLOBAL float *x, float a, int count)\n"
    "{\n"
    "    const int i = BLOCK * THREADS + THREAD;\n"
    "    if (i < count)\n"
    "        y[i] = a * x[i] + y[i];\n"
    "}\n"
    "KERNEL void block_sums(GLOBAL float *sums, const GLOBAL float *x, int count)\n"
    "{\n"
    "    SHARED float part[128];\n"
    "    const int i = BLOCK * THREADS + THREAD;\n"
    "    part[THREAD] = i < count ? x[i] : 0.0f;\n"
    "    for (int step = THREADS / 2; step > 0; step /= 2) {\n"
    "        BARRIER();\n"
    "        if (THREAD < step)\n"
    "            part[THREAD] += part[THREAD + step];\n"
    "    }\n"
    "    if (THREAD == 0)\n"
    "        sums[BLOCK] = part[0];\n"
    "}\n"
    "KERNEL void narrow(GLOBAL u16 *half_out, GLOBAL u16 *bf16_out, const GLOBAL float *x,\n"
    "                   GLOBAL float *back, int count)\n"
    "{\n"
    "    const int i = BLOCK * THREADS + THREAD;\n"
    "    if (i >= count)\n"
    "        return;\n"
    "    store_half(half_out, i, x[i]);\n"
    "    store_bf16(bf16_out, i, x[i]);\n"
    "    back[i] = load_half(half_out, i) + load_bf16(bf16_out, i);\n"
    "}\n";

struct fixture {
    struct gpu_device *d;
    const struct gpu_api *api;
    void *stream, *module;
};

static bool compile(struct fixture *f, const char *text, struct mgx_diag *diag)
{
    struct mgx_str all = {0}, binary = {0};
    mgx_str_put(&all, gpu_text_prelude);
    mgx_str_put(&all, text);
    const struct gpu_source source = {.name = "test", .text = mgx_str_text(&all)};
    const bool ok = f->api->compile(f->d, &source, &binary, NULL, diag) == MGX_OK &&
                    f->api->module_load(f->d, binary.text, binary.size, &f->module, diag) == MGX_OK;
    mgx_str_fini(&all);
    mgx_str_fini(&binary);
    return ok;
}

static bool open_fixture(struct fixture *f, const char *choice, struct mgx_diag *diag)
{
    memset(f, 0, sizeof *f);
    if (gpu_device_open(choice, 0, &f->d, diag) != MGX_OK)
        return false;
    f->api = f->d->api;
    return f->api->stream_create(f->d, &f->stream, diag) == MGX_OK && compile(f, kernels, diag);
}

static void close_fixture(struct fixture *f)
{
    f->api->module_unload(f->d, f->module);
    f->api->stream_destroy(f->d, f->stream);
    gpu_device_close(f->d);
}

static float value(int i)
{
    return (float)((i * 7919) % 1009) * 0.25f - 100.0f;
}

static struct gpu_arg address(void **p)
{
    return (struct gpu_arg){p, sizeof *p, true};
}

static void check_axpy(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    static float x[COUNT], y[COUNT], out[COUNT];
    void *dx, *dy, *kernel;
    for (int i = 0; i < COUNT; i++) {
        x[i] = value(i);
        y[i] = value(i + 5);
        out[i] = -1.0f;
    }
    CHECK_OK(f->api->alloc(f->d, sizeof x, &dx, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, sizeof y, &dy, &diag), diag);
    CHECK_OK(f->api->copy_in(f->d, f->stream, dx, x, sizeof x, &diag), diag);
    CHECK_OK(f->api->copy_in(f->d, f->stream, dy, y, sizeof y, &diag), diag);
    CHECK_OK(f->api->kernel_find(f->d, f->module, "axpy", 0, &kernel, &diag), diag);
    const float a = 0.5f;
    const int count = COUNT - 4; // the last ones stay; addresses are offset by one
    void *at_x = (float *)dx + 1, *at_y = (float *)dy + 1;
    const struct gpu_arg args[] = {
        address(&at_y), address(&at_x), {&a, sizeof a, false}, {&count, sizeof count, false}};
    const struct gpu_launch how = {.grid = {(COUNT + BLOCK_THREADS - 1) / BLOCK_THREADS, 1, 1},
                                   .block = {BLOCK_THREADS, 1, 1}};
    CHECK_OK(f->api->launch(f->d, f->stream, kernel, &how, args, 4, &diag), diag);
    CHECK_OK(f->api->launch(f->d, f->stream, kernel, &how, args, 4, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, out, dy, sizeof out, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, f->stream, &diag), diag);
    for (int i = 0; i < COUNT; i++) {
        const bool touched = i >= 1 && i <= count;
        CHECK_NEAR(out[i], touched ? a * x[i] + (a * x[i] + y[i]) : y[i], 1e-4);
    }
    f->api->free(f->d, dx);
    f->api->free(f->d, dy);
}

static void check_sums(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    enum { BLOCKS = (COUNT + BLOCK_THREADS - 1) / BLOCK_THREADS };
    static float x[COUNT], sums[BLOCKS];
    void *dx, *ds, *kernel;
    for (int i = 0; i < COUNT; i++)
        x[i] = value(i);
    CHECK_OK(f->api->alloc(f->d, sizeof x, &dx, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, sizeof sums, &ds, &diag), diag);
    CHECK_OK(f->api->copy_in(f->d, f->stream, dx, x, sizeof x, &diag), diag);
    CHECK_OK(f->api->kernel_find(f->d, f->module, "block_sums", 0, &kernel, &diag), diag);
    const int count = COUNT;
    const struct gpu_arg args[] = {address(&ds), address(&dx), {&count, sizeof count, false}};
    const struct gpu_launch how = {.grid = {BLOCKS, 1, 1}, .block = {BLOCK_THREADS, 1, 1}};
    CHECK_OK(f->api->launch(f->d, f->stream, kernel, &how, args, 3, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, sums, ds, sizeof sums, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, f->stream, &diag), diag);
    for (int b = 0; b < BLOCKS; b++) {
        double sum = 0;
        for (int i = b * BLOCK_THREADS; i < (b + 1) * BLOCK_THREADS && i < COUNT; i++)
            sum += x[i];
        CHECK_NEAR(sums[b], sum, 1e-2);
    }
    f->api->free(f->d, dx);
    f->api->free(f->d, ds);
}

// Every float whose upper half is one of all 65,536, and one between, against base/half.
static void check_narrow(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    enum { VALUES = 1 << 17 };
    static float x[VALUES], back[VALUES];
    static uint16_t half[VALUES], bf16[VALUES];
    void *dx, *dh, *db, *dback, *kernel;
    for (int i = 0; i < VALUES; i++) {
        const uint32_t bits =
            (uint32_t)(i >> 1) << 16 | (i & 1 ? 0x2345u * (unsigned)i & 0xffff : 0);
        memcpy(&x[i], &bits, sizeof bits);
    }
    CHECK_OK(f->api->alloc(f->d, sizeof x, &dx, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, sizeof half, &dh, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, sizeof bf16, &db, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, sizeof back, &dback, &diag), diag);
    CHECK_OK(f->api->copy_in(f->d, f->stream, dx, x, sizeof x, &diag), diag);
    CHECK_OK(f->api->kernel_find(f->d, f->module, "narrow", 0, &kernel, &diag), diag);
    const int count = VALUES;
    const struct gpu_arg args[] = {
        address(&dh), address(&db), address(&dx), address(&dback), {&count, sizeof count, false}};
    const struct gpu_launch how = {.grid = {VALUES / BLOCK_THREADS, 1, 1},
                                   .block = {BLOCK_THREADS, 1, 1}};
    CHECK_OK(f->api->launch(f->d, f->stream, kernel, &how, args, 5, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, half, dh, sizeof half, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, bf16, db, sizeof bf16, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, back, dback, sizeof back, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, f->stream, &diag), diag);
    for (int i = 0; i < VALUES; i++) {
        if (isnan(x[i])) {
            CHECK(isnan(mgx_half_to_float(half[i])) && isnan(mgx_bf16_to_float(bf16[i])));
            continue;
        }
        CHECK_INT(half[i], mgx_half_from_double(x[i]));
        CHECK_INT(bf16[i], mgx_bf16_from_double(x[i]));
        CHECK_NEAR(back[i], mgx_half_to_float(half[i]) + mgx_bf16_to_float(bf16[i]), 0);
    }
    f->api->free(f->d, dx);
    f->api->free(f->d, dh);
    f->api->free(f->d, db);
    f->api->free(f->d, dback);
}

// Bytes through two streams: the second waits for an event of the first.
static void check_events(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    enum { BYTES = 3 << 20 };
    static unsigned char in[BYTES], out[BYTES];
    void *a, *b, *other, *begin, *end;
    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(i * 31 >> 3);
    CHECK_OK(f->api->alloc(f->d, BYTES, &a, &diag), diag);
    CHECK_OK(f->api->alloc(f->d, BYTES, &b, &diag), diag);
    CHECK_OK(f->api->stream_create(f->d, &other, &diag), diag);
    CHECK_OK(f->api->event_create(f->d, &begin, &diag), diag);
    CHECK_OK(f->api->event_create(f->d, &end, &diag), diag);
    CHECK_OK(f->api->event_record(f->d, begin, f->stream, &diag), diag);
    CHECK_OK(f->api->copy_in(f->d, f->stream, a, in, BYTES, &diag), diag);
    CHECK_OK(f->api->fill(f->d, f->stream, (char *)a + 7, 0xa5, 1001, &diag), diag);
    CHECK_OK(f->api->event_record(f->d, end, f->stream, &diag), diag);
    CHECK_OK(f->api->event_follow(f->d, other, end, &diag), diag);
    CHECK_OK(f->api->copy(f->d, other, b, a, BYTES, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, other, out, b, BYTES, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, other, &diag), diag);
    memset(in + 7, 0xa5, 1001);
    CHECK(memcmp(in, out, BYTES) == 0);
    float ms = -1;
    CHECK_OK(f->api->event_elapsed(f->d, begin, end, &ms, &diag), diag);
    CHECK(ms >= 0 && ms < 60e3f);
    f->api->event_destroy(f->d, begin);
    f->api->event_destroy(f->d, end);
    f->api->stream_destroy(f->d, other);
    f->api->free(f->d, a);
    f->api->free(f->d, b);
}

// A captured run, again with other bytes, and after an update with another address.
static void check_graph(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    if (!(f->d->properties.features & GPU_GRAPHS))
        return;
    void *buffer[2], *graph;
    unsigned char out[64];
    for (int i = 0; i < 2; i++)
        CHECK_OK(f->api->alloc(f->d, 64, &buffer[i], &diag), diag);
    CHECK_OK(f->api->capture_begin(f->d, f->stream, &diag), diag);
    CHECK_OK(f->api->fill(f->d, f->stream, buffer[0], 0x11, 64, &diag), diag);
    CHECK_OK(f->api->capture_end(f->d, f->stream, &graph, &diag), diag);
    for (int i = 0; i < 2; i++)
        CHECK_OK(f->api->fill(f->d, f->stream, buffer[i], 0x77, 64, &diag), diag);
    CHECK_OK(f->api->graph_launch(f->d, graph, f->stream, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, out, buffer[0], 64, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, f->stream, &diag), diag);
    CHECK_INT(out[63], 0x11);
    CHECK_OK(f->api->capture_begin(f->d, f->stream, &diag), diag);
    CHECK_OK(f->api->fill(f->d, f->stream, buffer[1], 0x22, 64, &diag), diag);
    CHECK_OK(f->api->capture_update(f->d, f->stream, graph, &diag), diag);
    CHECK_OK(f->api->graph_launch(f->d, graph, f->stream, &diag), diag);
    CHECK_OK(f->api->copy_out(f->d, f->stream, out, buffer[1], 64, &diag), diag);
    CHECK_OK(f->api->stream_wait(f->d, f->stream, &diag), diag);
    CHECK_INT(out[0], 0x22);
    f->api->graph_destroy(f->d, graph);
    for (int i = 0; i < 2; i++)
        f->api->free(f->d, buffer[i]);
}

static void check_failures_of(struct fixture *f)
{
    struct mgx_diag diag = {.status = MGX_OK};
    void *p = NULL;
    CHECK_INT(f->api->alloc(f->d, (size_t)1 << 50, &p, &diag), MGX_NO_MEMORY);
    CHECK(strstr(diag.text, "1125899906842624 bytes"));
    mgx_diag_clear(&diag);
    CHECK(f->api->kernel_find(f->d, f->module, "absent", 0, &p, &diag) != MGX_OK);
    CHECK(strstr(diag.text, f->api->name));
    mgx_diag_clear(&diag);
    struct mgx_str binary = {0}, log = {0};
    const struct gpu_source wrong = {.name = "wrong", .text = "#error made so\n"};
    CHECK(f->api->compile(f->d, &wrong, &binary, &log, &diag) != MGX_OK);
    CHECK(strstr(diag.text, "wrong") && strstr(mgx_str_text(&log), "made so"));
    mgx_str_fini(&binary);
    mgx_str_fini(&log);
}

#define FOR_EACH_API(check)                                                                        \
    do {                                                                                           \
        const char *only_ = getenv("MGX_TEST_DEVICE");                                             \
        for (int i_ = 0; gpu_apis[i_]; i_++) {                                                     \
            struct mgx_diag diag_ = {.status = MGX_OK};                                            \
            struct fixture f_;                                                                     \
            if (only_ && strncmp(only_, gpu_apis[i_]->name, strlen(gpu_apis[i_]->name)) != 0)      \
                continue;                                                                          \
            if (open_fixture(&f_, only_ ? only_ : gpu_apis[i_]->name, &diag_)) {                   \
                printf("  on %s: %s, %s\n", gpu_apis[i_]->name, f_.d->properties.name,             \
                       f_.d->properties.arch);                                                     \
                check(&f_);                                                                        \
                close_fixture(&f_);                                                                \
            } else if (diag_.status != MGX_NOT_FOUND)                                              \
                CHECK_FAIL("%s", diag_.text);                                                      \
            else                                                                                   \
                printf("  not on %s\n", diag_.text);                                               \
        }                                                                                          \
    } while (0)

CASE(kernels_compute_in_order)
{
    FOR_EACH_API(check_axpy);
}

CASE(blocks_share_memory)
{
    FOR_EACH_API(check_sums);
}

CASE(narrow_floats_round_as_base_does)
{
    FOR_EACH_API(check_narrow);
}

CASE(streams_follow_events)
{
    FOR_EACH_API(check_events);
}

CASE(a_captured_run_is_launched_and_updated)
{
    FOR_EACH_API(check_graph);
}

CASE(failures_say_what_and_how_much)
{
    FOR_EACH_API(check_failures_of);
}

CASE(a_card_is_opened_once)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *a, *b;
    if (gpu_device_open("opencl", 0, &a, &diag) != MGX_OK)
        return;
    CHECK_OK(gpu_device_open("opencl:0", 5, &b, &diag), diag);
    CHECK(a == b);
    gpu_device_close(b);
    gpu_device_close(a);
}

CASE(a_choice_that_is_none_says_so)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    CHECK_INT(gpu_device_open("vulkan", 0, &d, &diag), MGX_INVALID);
    CHECK(strstr(diag.text, "'vulkan' names no device"));
    mgx_diag_clear(&diag);
    CHECK_INT(gpu_device_open("opencl:x", 0, &d, &diag), MGX_INVALID);
    mgx_diag_clear(&diag);
    CHECK_INT(gpu_device_open("opencl:999", 0, &d, &diag), MGX_NOT_FOUND);
    CHECK(diag.text[0]);
}

TEST_MAIN(ROW(kernels_compute_in_order) ROW(blocks_share_memory)
              ROW(narrow_floats_round_as_base_does) ROW(streams_follow_events)
                  ROW(a_captured_run_is_launched_and_updated) ROW(failures_say_what_and_how_much)
                      ROW(a_card_is_opened_once) ROW(a_choice_that_is_none_says_so))
