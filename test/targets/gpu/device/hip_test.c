// SPDX-License-Identifier: MIT
// The calls of hip.c against a stand-in for HIP's runtime (standin_hip.c), with errors injected.
//
// CMake puts the stand-in's folder into LD_LIBRARY_PATH; without it (a real runtime was loaded)
// there is nothing to test here.
#include <dlfcn.h>

#include "check.h"
#include "targets/gpu/device/device.h"

enum { COUNT = 300 };

static void (*set_failing)(const char *call, int after);
static int (*count_live)(void);

static bool find_standin(void)
{
    void *library = dlopen("libamdhip64.so.7", RTLD_NOW);
    if (library) {
        *(void **)&set_failing = dlsym(library, "standin_fail");
        *(void **)&count_live = dlsym(library, "standin_live");
    }
    return set_failing && count_live;
}

static const char text[] = "void axpy();\n";

struct run {
    struct gpu_device *d;
    void *stream, *module, *kernel, *x, *y, *graph;
    struct mgx_str binary;
};

static enum mgx_status prepare(struct run *r, struct mgx_diag *diag)
{
    const struct gpu_source source = {.name = "axpy", .text = text};
    TRY(gpu_device_open("hip:1", 0, &r->d, diag));
    const struct gpu_api *api = r->d->api;
    TRY(api->stream_create(r->d, &r->stream, diag));
    TRY(api->alloc(r->d, COUNT * sizeof(float), &r->x, diag));
    TRY(api->alloc(r->d, COUNT * sizeof(float), &r->y, diag));
    TRY(api->compile(r->d, &source, &r->binary, NULL, diag));
    mgx_str_putc(&r->binary, '\0');
    TRY(api->module_load(r->d, r->binary.text, r->binary.size, &r->module, diag));
    return api->kernel_find(r->d, r->module, "axpy", 0, &r->kernel, diag);
}

static enum mgx_status compute(struct run *r, const float *x, float *y, struct mgx_diag *diag)
{
    const struct gpu_api *api = r->d->api;
    const float a = 3;
    const int count = COUNT;
    const struct gpu_arg args[] = {{&r->y, sizeof r->y, true},
                                   {&r->x, sizeof r->x, true},
                                   {&a, sizeof a, false},
                                   {&count, sizeof count, false}};
    const struct gpu_launch how = {.grid = {3, 1, 1}, .block = {100, 1, 1}};
    TRY(api->copy_in(r->d, r->stream, r->x, x, COUNT * sizeof *x, diag));
    TRY(api->copy_in(r->d, r->stream, r->y, y, COUNT * sizeof *y, diag));
    TRY(api->launch(r->d, r->stream, r->kernel, &how, args, 4, diag));
    TRY(api->copy_out(r->d, r->stream, y, r->y, COUNT * sizeof *y, diag));
    TRY(api->capture_begin(r->d, r->stream, diag));
    TRY(api->fill(r->d, r->stream, r->x, 0, COUNT * sizeof *x, diag));
    TRY(api->capture_end(r->d, r->stream, &r->graph, diag));
    TRY(api->graph_launch(r->d, r->graph, r->stream, diag));
    return api->stream_wait(r->d, r->stream, diag);
}

static void finish(struct run *r)
{
    if (r->d) {
        r->d->api->graph_destroy(r->d, r->graph);
        r->d->api->module_unload(r->d, r->module);
        r->d->api->free(r->d, r->x);
        r->d->api->free(r->d, r->y);
        r->d->api->stream_destroy(r->d, r->stream);
    }
    mgx_str_fini(&r->binary);
    gpu_device_close(r->d);
}

static enum mgx_status run_once(float *y, struct mgx_diag *diag)
{
    struct run r = {0};
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    enum mgx_status status = prepare(&r, diag);
    if (status == MGX_OK)
        status = compute(&r, x, y, diag);
    finish(&r);
    return status;
}

CASE(a_run_calls_the_runtime_as_it_wants)
{
    struct mgx_diag diag = {.status = MGX_OK};
    float y[COUNT];
    if (!find_standin())
        return;
    set_failing(NULL, 0);
    CHECK_OK(run_once(y, &diag), diag);
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(y[i], 3.0 * i + 1, 0);
    CHECK_INT(count_live(), 0);
}

CASE(properties_are_read_from_the_old_structure)
{
    struct mgx_diag diag = {.status = MGX_OK};
    struct gpu_device *d;
    if (!find_standin())
        return;
    set_failing(NULL, 0);
    CHECK_OK(gpu_device_open("hip", 0, &d, &diag), diag);
    CHECK_TEXT(d->properties.name, "Stand-in 0");
    CHECK_TEXT(d->properties.arch, "gfx90a:sramecc+:xnack-");
    CHECK_INT(d->properties.warp, 64);
    CHECK_INT(d->properties.units, 104);
    CHECK_INT(d->properties.l2_bytes, 8 << 20);
    gpu_device_close(d);
}

CASE(every_call_may_fail_and_nothing_is_lost)
{
    static const char *const calls[] = {"hipInit",
                                        "hipGetDeviceCount",
                                        "hipGetDeviceProperties",
                                        "hipSetDevice",
                                        "hipMalloc",
                                        "hipStreamCreateWithFlags",
                                        "hipMemcpyHtoDAsync",
                                        "hipMemcpyDtoHAsync",
                                        "hipMemsetD8Async",
                                        "hipStreamBeginCapture",
                                        "hipGraphInstantiateWithFlags",
                                        "hipGraphLaunch",
                                        "hipStreamSynchronize",
                                        "hipModuleLoadData",
                                        "hipModuleGetFunction",
                                        "hipModuleLaunchKernel",
                                        "hiprtcCreateProgram",
                                        "hiprtcCompileProgram"};
    if (!find_standin())
        return;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int after = 0; after < 3; after++) {
            struct mgx_diag diag = {.status = MGX_OK};
            float y[COUNT];
            set_failing(calls[i], after);
            const enum mgx_status status = run_once(y, &diag);
            set_failing(NULL, 0);
            if (after == 0 && status == MGX_OK)
                CHECK_FAIL("%s failed, and nobody said so", calls[i]);
            if (status != MGX_OK)
                CHECK(strstr(diag.text, "hip"));
            if (strcmp(calls[i], "hipSetDevice") == 0)
                continue; // what cannot be made current cannot be freed either
            CHECK_INT(count_live(), 0);
        }
}

CASE(whether_there_is_a_card_is_known_without_opening_it)
{
    struct mgx_diag diag = {.status = MGX_OK};
    if (!find_standin())
        return;
    set_failing("hipGetDeviceProperties", 0); // opening asks for them
    const enum mgx_status status = gpu_device_usable("hip", &diag);
    set_failing(NULL, 0);
    CHECK_INT(status, MGX_OK);
    CHECK_INT(gpu_device_usable("hip:4096", &diag), MGX_NOT_FOUND);
    CHECK(strstr(diag.text, "there is no number 4096"));
}

TEST_MAIN(ROW(a_run_calls_the_runtime_as_it_wants) ROW(properties_are_read_from_the_old_structure)
              ROW(every_call_may_fail_and_nothing_is_lost)
                  ROW(whether_there_is_a_card_is_known_without_opening_it))
