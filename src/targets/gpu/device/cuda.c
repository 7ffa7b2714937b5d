// SPDX-License-Identifier: MIT
// NVIDIA cards: CUDA's driver library and NVRTC, declared here and opened at run time.
//
// A device is its primary context, the one that CUDA's runtime and PyTorch use too, so that their
// streams and addresses are good here. Needs a driver of CUDA 11.4 or newer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/driver.h"
#include "targets/gpu/device/rtc.h"

enum { // CUdevice_attribute, CUfunction_attribute, CUlaunchAttributeID
    MAX_THREADS_PER_BLOCK = 1,
    WARP_SIZE = 10,
    MULTIPROCESSOR_COUNT = 16,
    L2_CACHE_SIZE = 38,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76,
    MAX_SHARED_MEMORY_OPTIN = 97,
    FUNCTION_MAX_DYNAMIC_SHARED = 8,
    FUNCTION_SHARED_CARVEOUT = 9,
    LAUNCH_CLUSTER = 4,
    LAUNCH_DEPENDENT = 6,
    MAP_UINT8 = 0,
    MAP_FLOAT16 = 6,
    MAP_FLOAT32 = 7,
    MAP_BFLOAT16 = 9,
    MAP_TFLOAT32 = 11,
    MAP_SWIZZLE_64 = 2,
    MAP_SWIZZLE_128 = 3,
    MAP_PROMOTE_256 = 3,
};

struct launch_attribute {
    int id;
    int pad;
    union {
        unsigned cluster[3];
        int allowed;
        char size[64];
    } value;
};

struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct launch_attribute *attributes;
    unsigned attribute_count;
};

static struct cuda_calls {
    struct driver_calls shared;
    int (*attribute)(int *value, int attribute, int device);
    int (*name)(char *name, int size, int device);
    int (*memory)(size_t *bytes, int device);
    int (*error_text)(int status, const char **text);
    int (*context_retain)(void **context, int device);
    int (*context_release)(int device);
    int (*context_current)(void **context);
    int (*context_set)(void *context);
    int (*context_reach)(void *context, unsigned flags);
    int (*function_set)(void *function, int attribute, int value);
    int (*launch_extended)(const struct launch_config *config, void *function, void **params,
                           void **extra);
    int (*map_tiled)(void *map, int type, unsigned rank, void *address, const uint64_t *lens,
                     const uint64_t *strides, const unsigned *box, const unsigned *steps,
                     int interleave, int swizzle, int promotion, int fill);
    int (*map_image)(void *map, int type, unsigned rank, void *address, const uint64_t *lens,
                     const uint64_t *strides, const int *low, const int *high, unsigned channels,
                     unsigned places, const unsigned *steps, int interleave, int swizzle,
                     int promotion, int fill);
} cuda;

#define AT(member) offsetof(struct cuda_calls, member)
static const struct gpu_symbol symbols[] = {
    {"cuInit", AT(shared.init), false},
    {"cuDeviceGetCount", AT(shared.device_count), false},
    {"cuDeviceGetAttribute", AT(attribute), false},
    {"cuDeviceGetName", AT(name), false},
    {"cuDeviceTotalMem_v2", AT(memory), false},
    {"cuMemGetInfo_v2", AT(shared.memory_info), false},
    {"cuMemAlloc_v2", AT(shared.alloc), false},
    {"cuMemFree_v2", AT(shared.free), false},
    {"cuMemGetAddressRange_v2", AT(shared.find_range), false},
    {"cuMemHostAlloc", AT(shared.alloc_host), false},
    {"cuMemFreeHost", AT(shared.free_host), false},
    {"cuMemHostGetFlags", AT(shared.host_flags), true},
    {"cuMemcpyHtoDAsync_v2", AT(shared.copy_in), false},
    {"cuMemcpyDtoHAsync_v2", AT(shared.copy_out), false},
    {"cuMemcpyDtoDAsync_v2", AT(shared.copy), false},
    {"cuMemsetD8Async", AT(shared.fill), false},
    {"cuStreamCreate", AT(shared.stream_create), false},
    {"cuStreamDestroy_v2", AT(shared.stream_destroy), false},
    {"cuStreamSynchronize", AT(shared.stream_wait), false},
    {"cuCtxSynchronize", AT(shared.device_wait), false},
    {"cuStreamWaitEvent", AT(shared.stream_follow), false},
    {"cuEventCreate", AT(shared.event_create), false},
    {"cuEventDestroy_v2", AT(shared.event_destroy), false},
    {"cuEventRecord", AT(shared.event_record), false},
    {"cuEventSynchronize", AT(shared.event_wait), false},
    {"cuEventElapsedTime", AT(shared.event_elapsed), false},
    {"cuModuleLoadData", AT(shared.module_load), false},
    {"cuModuleUnload", AT(shared.module_unload), false},
    {"cuModuleGetFunction", AT(shared.module_function), false},
    {"cuLaunchKernel", AT(shared.launch), false},
    {"cuStreamBeginCapture_v2", AT(shared.capture_begin), false},
    {"cuStreamEndCapture", AT(shared.capture_end), false},
    {"cuGraphInstantiateWithFlags", AT(shared.graph_make), false},
    {"cuGraphExecUpdate", AT(shared.graph_update), false},
    {"cuGraphLaunch", AT(shared.graph_launch), false},
    {"cuGraphDestroy", AT(shared.graph_free), false},
    {"cuGraphExecDestroy", AT(shared.graph_unmake), false},
    {"cuGetErrorString", AT(error_text), false},
    {"cuDevicePrimaryCtxRetain", AT(context_retain), false},
    {"cuDevicePrimaryCtxRelease_v2", AT(context_release), false},
    {"cuCtxGetCurrent", AT(context_current), false},
    {"cuCtxSetCurrent", AT(context_set), false},
    {"cuCtxEnablePeerAccess", AT(context_reach), true},
    {"cuDeviceCanAccessPeer", AT(shared.can_reach), true},
    {"cuFuncSetAttribute", AT(function_set), false},
    {"cuLaunchKernelEx", AT(launch_extended), true},
    {"cuTensorMapEncodeTiled", AT(map_tiled), true},
    {"cuTensorMapEncodeIm2col", AT(map_image), true},
};
#undef AT

static struct rtc_calls nvrtc_calls;
#define AT(member) offsetof(struct rtc_calls, member)
static const struct gpu_symbol nvrtc_symbols[] = {
    {"nvrtcCreateProgram", AT(create), false},       {"nvrtcCompileProgram", AT(compile), false},
    {"nvrtcGetProgramLogSize", AT(log_size), false}, {"nvrtcGetProgramLog", AT(log), false},
    {"nvrtcGetCUBINSize", AT(code_size), false},     {"nvrtcGetCUBIN", AT(code), false},
    {"nvrtcDestroyProgram", AT(destroy), false},     {"nvrtcGetErrorString", AT(error_text), false},
};
#undef AT

static const char *const nvrtc_libraries[] = {"libnvrtc.so.13",
                                              "libnvrtc.so.12",
                                              "libnvrtc.so.11.2",
                                              "libnvrtc.so",
                                              "/usr/local/cuda/lib64/libnvrtc.so",
                                              NULL};

static const struct rtc nvrtc = {"NVRTC", nvrtc_libraries, nvrtc_symbols, MGX_COUNT(nvrtc_symbols),
                                 &nvrtc_calls};

struct cuda_device {
    struct driver_device base;
    void *context;
    char arch_option[GPU_ARCH_SIZE + 32];
};

static const char *error_text(int status)
{
    const char *text = NULL;
    return cuda.error_text(status, &text) == 0 ? text : NULL;
}

static int enter(struct gpu_device *d, void **before)
{
    const struct cuda_device *c = (const struct cuda_device *)d;
    const int status = cuda.context_current(before);
    if (status != 0 || *before == c->context)
        return status;
    return cuda.context_set(c->context);
}

static void leave(struct gpu_device *d, void *before)
{
    if (before != ((const struct cuda_device *)d)->context)
        cuda.context_set(before);
}

static int reach(const struct gpu_device *other)
{
    return cuda.context_reach ? cuda.context_reach(((const struct cuda_device *)other)->context, 0)
                              : DRIVER_NOT_SUPPORTED;
}

static int allow_shared(void *function, size_t bytes)
{
    return cuda.function_set(function, FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes);
}

static int prefer_cache(void *function)
{
    enum { PERCENT = 5 }; // of the most; the driver takes what the kernel needs if that is more
    return cuda.function_set(function, FUNCTION_SHARED_CARVEOUT, PERCENT);
}

static int launch_extended(void *function, void *stream, const struct gpu_launch *how,
                           void **params)
{
    struct launch_attribute attributes[2];
    struct launch_config config = {.grid = {how->grid[0], how->grid[1], how->grid[2]},
                                   .block = {how->block[0], how->block[1], how->block[2]},
                                   .shared = (unsigned)how->shared,
                                   .stream = stream,
                                   .attributes = attributes};
    if (how->cluster > 1)
        attributes[config.attribute_count++] =
            (struct launch_attribute){.id = LAUNCH_CLUSTER, .value.cluster = {how->cluster, 1, 1}};
    if (how->dependent)
        attributes[config.attribute_count++] =
            (struct launch_attribute){.id = LAUNCH_DEPENDENT, .value.allowed = 1};
    return cuda.launch_extended(&config, function, params, NULL);
}

static const struct driver driver = {.calls = &cuda.shared,
                                     .error_text = error_text,
                                     .enter = enter,
                                     .leave = leave,
                                     .reach = reach,
                                     .allow_shared = allow_shared,
                                     .prefer_cache = prefer_cache,
                                     .launch_extended = launch_extended};

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    return status == 0 ? MGX_OK : driver_fail(&driver, "cuda", what, status, diag);
}

static enum mgx_status count(int *count, struct mgx_diag *diag)
{
    static const char *const libraries[] = {"libcuda.so.1", NULL};
    TRY(gpu_library_open("CUDA's driver", libraries, symbols, MGX_COUNT(symbols), &cuda, diag));
    const int status = cuda.shared.init(0);
    if (status == DRIVER_NO_DEVICE)
        return mgx_fail(diag, MGX_NOT_FOUND, "cuda has no device");
    TRY(check(status, "cuInit", diag));
    return check(cuda.shared.device_count(count), "counting devices", diag);
}

static enum mgx_status read_properties(int index, struct gpu_properties *p, struct mgx_diag *diag)
{
    int l2 = 0, shared = 0, major = 0, minor = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {{MAX_THREADS_PER_BLOCK, &p->max_threads},
                  {WARP_SIZE, &p->warp},
                  {MULTIPROCESSOR_COUNT, &p->units},
                  {L2_CACHE_SIZE, &l2},
                  {MAX_SHARED_MEMORY_OPTIN, &shared},
                  {CAPABILITY_MAJOR, &major},
                  {CAPABILITY_MINOR, &minor}};
    for (int i = 0; i < MGX_COUNT(wanted); i++)
        TRY(check(cuda.attribute(wanted[i].value, wanted[i].attribute, index),
                  "reading an attribute", diag));
    TRY(check(cuda.name(p->name, sizeof p->name, index), "reading a name", diag));
    TRY(check(cuda.memory(&p->memory_bytes, index), "reading memory's size", diag));
    p->l2_bytes = (size_t)l2;
    p->shared_bytes = (size_t)shared;
    p->version = 10 * major + minor;
    p->features = GPU_GRAPHS | GPU_DOUBLE | GPU_HALF_MATH;
    if (major >= 9 && cuda.launch_extended)
        p->features |= GPU_CLUSTERS | GPU_DEPENDENT;
    if (major == 9 && cuda.map_tiled && cuda.map_image)
        p->features |= GPU_TENSOR_MAPS;
    // From Hopper on the tensor cores' own instructions belong to one generation: the "a".
    snprintf(p->arch, sizeof p->arch, "sm_%d%s", p->version, major >= 9 ? "a" : "");
    return MGX_OK;
}

static void close_device(struct gpu_device *d)
{
    cuda.context_release(d->index);
    free(d);
}

static enum mgx_status open_device(int index, struct gpu_device **out, struct mgx_diag *diag)
{
    struct cuda_device *c = calloc(1, sizeof *c);
    if (!c)
        return mgx_fail_memory(diag);
    c->base.driver = &driver;
    enum mgx_status status = read_properties(index, &c->base.base.properties, diag);
    if (status == MGX_OK)
        status = check(cuda.context_retain(&c->context, index), "opening the device", diag);
    if (status != MGX_OK) {
        free(c);
        return status;
    }
    snprintf(c->arch_option, sizeof c->arch_option, "--gpu-architecture=%s",
             c->base.base.properties.arch);
    *out = &c->base.base;
    return MGX_OK;
}

static enum mgx_status tensor_map(struct gpu_device *d, const struct gpu_tensor_map *t, void *out,
                                  struct mgx_diag *diag)
{
    static const int types[] = {[GPU_MAP_HALF] = MAP_FLOAT16,
                                [GPU_MAP_BF16] = MAP_BFLOAT16,
                                [GPU_MAP_BYTE] = MAP_UINT8,
                                [GPU_MAP_FLOAT] = MAP_FLOAT32,
                                [GPU_MAP_TF32] = MAP_TFLOAT32};
    static const unsigned sizes[] = {[GPU_MAP_HALF] = 2,
                                     [GPU_MAP_BF16] = 2,
                                     [GPU_MAP_BYTE] = 1,
                                     [GPU_MAP_FLOAT] = 4,
                                     [GPU_MAP_TF32] = 4};
    const int type = types[t->type], swizzle = t->narrow ? MAP_SWIZZLE_64 : MAP_SWIZZLE_128;
    const unsigned values = (t->narrow ? 64 : 128) / sizes[t->type];
    const unsigned box[2] = {values, t->box};
    unsigned steps[5] = {1, 1, 1, 1, 1};
    for (int i = 0; t->image && i < t->rank - 2; i++)
        steps[i + 1] = t->step[i];
    void *before = NULL;
    int status = enter(d, &before);
    if (status == 0) {
        status = t->image
                     ? cuda.map_image(out, type, (unsigned)t->rank, t->address, t->lens,
                                      t->strides + 1, t->low, t->high, values, t->box, steps, 0,
                                      swizzle, MAP_PROMOTE_256, 0)
                     : cuda.map_tiled(out, type, (unsigned)t->rank, t->address, t->lens,
                                      t->strides + 1, box, steps, 0, swizzle, MAP_PROMOTE_256, 0);
        leave(d, before);
    }
    return check(status, "describing a tensor to the copy engine", diag);
}

static enum mgx_status compile(struct gpu_device *d, const struct gpu_source *source,
                               struct mgx_str *out, struct mgx_str *log, struct mgx_diag *diag)
{
    return rtc_compile(&nvrtc, ((const struct cuda_device *)d)->arch_option, source, out, log,
                       diag);
}

const struct gpu_api gpu_api_cuda = {.name = "cuda",
                                     .count = count,
                                     .open = open_device,
                                     .close = close_device,
                                     .compile = compile,
                                     .tensor_map = tensor_map,
                                     .kernel_streams = driver_kernel_streams,
                                     DRIVER_API};
