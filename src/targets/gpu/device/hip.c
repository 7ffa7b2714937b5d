// SPDX-License-Identifier: MIT
// AMD and DCU cards: HIP's runtime and hiprtc, declared here and opened at run time.
//
// ROCm 5 to 7 and DTK, which carries HIP's names in a library of its own. What differs between them
// is kept out of the way: the numbers of attributes changed with ROCm 5, but not in DTK, so
// properties are read from the structure that hipGetDeviceProperties has filled since ROCm 4 in all
// of them (headers of ROCm 6 send their users to a newer one, under another name). hiprtc lies in
// the runtime or in a library of its own.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/driver.h"
#include "targets/gpu/device/rtc.h"

struct properties { // what hipGetDeviceProperties fills, up to the last member needed
    char name[256];
    size_t memory, shared;
    int registers, warp, max_threads, max_block[3], max_grid[3], clock, memory_clock, bus;
    size_t constant;
    int major, minor, units, l2, max_threads_per_unit, compute_mode, instruction_clock;
    unsigned features;
    int concurrent, pci[3];
    size_t shared_per_unit;
    int several, maps_host, number;
    char arch[256];
    char rest[4096]; // more than any release writes behind it
};

static struct hip_calls {
    struct driver_calls shared;
    const char *(*error_text)(int status);
    int (*properties)(void *properties, int device);
    int (*device_current)(int *device);
    int (*device_set)(int device);
    int (*device_reach)(int device, unsigned flags);
} hip;

#define AT(member) offsetof(struct hip_calls, member)
static const struct gpu_symbol symbols[] = {
    {"hipInit", AT(shared.init), false},
    {"hipGetDeviceCount", AT(shared.device_count), false},
    {"hipMemGetInfo", AT(shared.memory_info), false},
    {"hipMalloc", AT(shared.alloc), false},
    {"hipExtMallocWithFlags", AT(shared.alloc_reached), true},
    {"hipFree", AT(shared.free), false},
    {"hipMemGetAddressRange", AT(shared.find_range), false},
    {"hipHostMalloc", AT(shared.alloc_host), false},
    {"hipHostFree", AT(shared.free_host), false},
    {"hipHostGetFlags", AT(shared.host_flags), true},
    {"hipMemcpyHtoDAsync", AT(shared.copy_in), false},
    {"hipMemcpyDtoHAsync", AT(shared.copy_out), false},
    {"hipMemcpyDtoDAsync", AT(shared.copy), false},
    {"hipMemsetD8Async", AT(shared.fill), false},
    {"hipStreamCreateWithFlags", AT(shared.stream_create), false},
    {"hipStreamDestroy", AT(shared.stream_destroy), false},
    {"hipStreamSynchronize", AT(shared.stream_wait), false},
    {"hipDeviceSynchronize", AT(shared.device_wait), false},
    {"hipStreamWaitEvent", AT(shared.stream_follow), false},
    {"hipEventCreateWithFlags", AT(shared.event_create), false},
    {"hipEventDestroy", AT(shared.event_destroy), false},
    {"hipEventRecord", AT(shared.event_record), false},
    {"hipEventSynchronize", AT(shared.event_wait), false},
    {"hipEventElapsedTime", AT(shared.event_elapsed), false},
    {"hipModuleLoadData", AT(shared.module_load), false},
    {"hipModuleUnload", AT(shared.module_unload), false},
    {"hipModuleGetFunction", AT(shared.module_function), false},
    {"hipModuleLaunchKernel", AT(shared.launch), false},
    {"hipStreamBeginCapture", AT(shared.capture_begin), false},
    {"hipStreamEndCapture", AT(shared.capture_end), false},
    {"hipGraphInstantiateWithFlags", AT(shared.graph_make), false},
    {"hipGraphExecUpdate", AT(shared.graph_update), false},
    {"hipGraphLaunch", AT(shared.graph_launch), false},
    {"hipGraphDestroy", AT(shared.graph_free), false},
    {"hipGraphExecDestroy", AT(shared.graph_unmake), false},
    {"hipGetErrorString", AT(error_text), false},
    {"hipGetDeviceProperties", AT(properties), false},
    {"hipGetDevice", AT(device_current), false},
    {"hipSetDevice", AT(device_set), false},
    {"hipDeviceEnablePeerAccess", AT(device_reach), true},
    {"hipDeviceCanAccessPeer", AT(shared.can_reach), true},
};
#undef AT

static struct rtc_calls hiprtc_calls;
#define AT(member) offsetof(struct rtc_calls, member)
static const struct gpu_symbol hiprtc_symbols[] = {
    {"hiprtcCreateProgram", AT(create), false},
    {"hiprtcCompileProgram", AT(compile), false},
    {"hiprtcGetProgramLogSize", AT(log_size), false},
    {"hiprtcGetProgramLog", AT(log), false},
    {"hiprtcGetCodeSize", AT(code_size), false},
    {"hiprtcGetCode", AT(code), false},
    {"hiprtcDestroyProgram", AT(destroy), false},
    {"hiprtcGetErrorString", AT(error_text), false},
};
#undef AT

static const char *const libraries[] = {
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so.4",
    "libamdhip64.so",
    "libgalaxyhip.so.5",
    "libgalaxyhip.so",
    "/opt/rocm/lib/libamdhip64.so",
    "/opt/dtk/hip/lib/libgalaxyhip.so",
    NULL,
};

// A runtime without a library of the compiler's has the compiler inside (ROCm 5.2 and before, DTK).
static const char *const hiprtc_libraries[] = {
    "libhiprtc.so.7",
    "libhiprtc.so.6",
    "libhiprtc.so.5",
    "libhiprtc.so",
    "/opt/rocm/lib/libhiprtc.so",
    "libamdhip64.so.5",
    "libamdhip64.so",
    "libgalaxyhip.so.5",
    "libgalaxyhip.so",
    "/opt/dtk/hip/lib/libgalaxyhip.so",
    NULL,
};

static const struct rtc hiprtc = {"hiprtc", hiprtc_libraries, hiprtc_symbols,
                                  MGX_COUNT(hiprtc_symbols), &hiprtc_calls};

struct hip_device {
    struct driver_device base;
    char arch_option[GPU_ARCH_SIZE + 32];
};

static const char *error_text(int status)
{
    return hip.error_text(status);
}

static int enter(struct gpu_device *d, void **before)
{
    int current = d->index;
    const int status = hip.device_current(&current);
    *before = (void *)(intptr_t)current;
    return status != 0 || current == d->index ? status : hip.device_set(d->index);
}

static void leave(struct gpu_device *d, void *before)
{
    const int current = (int)(intptr_t)before;
    if (current != d->index)
        hip.device_set(current);
}

static int reach(const struct gpu_device *other)
{
    return hip.device_reach ? hip.device_reach(other->index, 0) : DRIVER_NOT_SUPPORTED;
}

static const struct driver driver = {
    .calls = &hip.shared, .error_text = error_text, .enter = enter, .leave = leave, .reach = reach};

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    return status == 0 ? MGX_OK : driver_fail(&driver, "hip", what, status, diag);
}

static enum mgx_status count(int *count, struct mgx_diag *diag)
{
    TRY(gpu_library_open("HIP's runtime", libraries, symbols, MGX_COUNT(symbols), &hip, diag));
    *count = 0;
    int status = hip.shared.init(0);
    if (status == 0)
        status = hip.shared.device_count(count);
    if (status == DRIVER_NO_DEVICE || status == DRIVER_INVALID_DEVICE ||
        (status == 0 && *count == 0))
        return mgx_fail(diag, MGX_NOT_FOUND, "hip has no device");
    return check(status, "counting devices", diag);
}

// A layout that is not the expected one shows: warps have 32 or 64 threads, and architectures names
// that begin with "gfx".
static enum mgx_status take_properties(int index, const struct properties *raw,
                                       struct gpu_properties *p, struct mgx_diag *diag)
{
    if ((raw->warp != 32 && raw->warp != 64) || strncmp(raw->arch, "gfx", 3) != 0)
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "hip: device %d describes itself in a way that is not known", index);
    snprintf(p->name, sizeof p->name, "%.*s", GPU_NAME_SIZE - 1, raw->name);
    snprintf(p->arch, sizeof p->arch, "%.*s", GPU_ARCH_SIZE - 1, raw->arch);
    p->units = raw->units;
    p->warp = raw->warp;
    p->max_threads = raw->max_threads;
    p->shared_bytes = raw->shared;
    p->l2_bytes = (size_t)raw->l2;
    p->memory_bytes = raw->memory;
    p->features = GPU_GRAPHS | GPU_DOUBLE | GPU_HALF_MATH;
    return MGX_OK;
}

static enum mgx_status read_properties(int index, struct gpu_properties *p, struct mgx_diag *diag)
{
    struct properties *raw = calloc(1, sizeof *raw);
    if (!raw)
        return mgx_fail_memory(diag);
    enum mgx_status status = check(hip.properties(raw, index), "reading properties", diag);
    if (status == MGX_OK)
        status = take_properties(index, raw, p, diag);
    free(raw);
    return status;
}

static void close_device(struct gpu_device *d)
{
    free(d); // the runtime keeps its context to the end of the process
}

static enum mgx_status open_device(int index, struct gpu_device **out, struct mgx_diag *diag)
{
    struct hip_device *h = calloc(1, sizeof *h);
    if (!h)
        return mgx_fail_memory(diag);
    h->base.driver = &driver;
    const enum mgx_status status = read_properties(index, &h->base.base.properties, diag);
    if (status != MGX_OK) {
        free(h);
        return status;
    }
    snprintf(h->arch_option, sizeof h->arch_option, "--offload-arch=%s",
             h->base.base.properties.arch);
    *out = &h->base.base;
    return MGX_OK;
}

static enum mgx_status compile(struct gpu_device *d, const struct gpu_source *source,
                               struct mgx_str *out, struct mgx_str *log, struct mgx_diag *diag)
{
    return rtc_compile(&hiprtc, ((const struct hip_device *)d)->arch_option, source, out, log,
                       diag);
}

const struct gpu_api gpu_api_hip = {.name = "hip",
                                    .count = count,
                                    .open = open_device,
                                    .close = close_device,
                                    .compile = compile,
                                    DRIVER_API};
