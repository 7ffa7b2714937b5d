// SPDX-License-Identifier: MIT
// CUDA's driver and NVRTC without a card: the stand-in for HIP's runtime under CUDA's names, and the
// few calls that differ. Tests load it as libcuda and libnvrtc; its kernels are standin_idle.c's.
#define STANDIN_ARCH_OPTION "--gpu-architecture="
#define hipInit cuInit
#define hipGetDeviceCount cuDeviceGetCount
#define hipMemGetInfo cuMemGetInfo_v2
#define hipMalloc cuMemAlloc_v2
#define hipFree cuMemFree_v2
#define hipMemGetAddressRange cuMemGetAddressRange_v2
#define hipHostMalloc cuMemHostAlloc
#define hipHostFree cuMemFreeHost
#define hipHostGetFlags cuMemHostGetFlags
#define hipMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define hipMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define hipMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define hipMemsetD8Async cuMemsetD8Async
#define hipStreamCreateWithFlags cuStreamCreate
#define hipStreamDestroy cuStreamDestroy_v2
#define hipStreamSynchronize cuStreamSynchronize
#define hipDeviceSynchronize cuCtxSynchronize
#define hipStreamWaitEvent cuStreamWaitEvent
#define hipEventCreateWithFlags cuEventCreate
#define hipEventDestroy cuEventDestroy_v2
#define hipEventRecord cuEventRecord
#define hipEventSynchronize cuEventSynchronize
#define hipEventElapsedTime cuEventElapsedTime
#define hipModuleLoadData cuModuleLoadData
#define hipModuleUnload cuModuleUnload
#define hipModuleGetFunction cuModuleGetFunction
#define hipModuleLaunchKernel cuLaunchKernel
#define hipStreamBeginCapture cuStreamBeginCapture_v2
#define hipStreamEndCapture cuStreamEndCapture
#define hipGraphInstantiateWithFlags cuGraphInstantiateWithFlags
#define hipGraphExecUpdate cuGraphExecUpdate
#define hipGraphLaunch cuGraphLaunch
#define hipGraphDestroy cuGraphDestroy
#define hipGraphExecDestroy cuGraphExecDestroy
#define hiprtcCreateProgram nvrtcCreateProgram
#define hiprtcCompileProgram nvrtcCompileProgram
#define hiprtcGetProgramLogSize nvrtcGetProgramLogSize
#define hiprtcGetProgramLog nvrtcGetProgramLog
#define hiprtcGetCodeSize nvrtcGetCUBINSize
#define hiprtcGetCode nvrtcGetCUBIN
#define hiprtcDestroyProgram nvrtcDestroyProgram
#define hiprtcGetErrorString nvrtcGetErrorString
#include <stdint.h>

#include "standin_hip.c"

#ifndef STANDIN_MAJOR
#define STANDIN_MAJOR 8
#endif
#ifndef STANDIN_MINOR
#define STANDIN_MINOR 0
#endif
enum { SHARED = STANDIN_MAJOR < 9 ? 166912 : 232448 }; // bytes that a block may have

static int contexts[COUNT]; // a device's is the address of its number

USER(cuDeviceGetAttribute, int *value, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } known[] = {{1, 1024},           {10, 32},           {16, 132}, {38, 50 << 20}, {97, SHARED},
                 {75, STANDIN_MAJOR}, {76, STANDIN_MINOR}};
    MAY_FAIL();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return device < COUNT ? OK : INVALID;
        }
    return INVALID;
}

USER(cuDeviceGetName, char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stand-in %d", device);
    return OK;
}

USER(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    *bytes = standin_card()->memory;
    return device < COUNT ? OK : INVALID;
}

USER(cuGetErrorString, int status, const char **text)
{
    *text = hipGetErrorString(status);
    return OK;
}

USER(cuDevicePrimaryCtxRetain, void **context, int device)
{
    MAY_FAIL();
    *context = &contexts[device];
    return OK;
}

USER(cuDevicePrimaryCtxRelease_v2, int device)
{
    return device < COUNT ? OK : INVALID;
}

USER(cuCtxGetCurrent, void **context)
{
    *context = current ? &contexts[current - 1] : NULL;
    return OK;
}

USER(cuCtxSetCurrent, void *context)
{
    MAY_FAIL();
    current = context ? (int)((int *)context - contexts) + 1 : 0;
    return OK;
}

USER(cuFuncSetAttribute, void *function, int attribute, int value)
{
    return function && attribute && value ? OK : INVALID;
}

#if STANDIN_MAJOR >= 9
struct launch_config { // CUlaunchConfig
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
};

USER(cuLaunchKernelEx, const struct launch_config *c, void *function, void **params, void **extra)
{
    return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                          c->block[2], c->shared, c->stream, params, extra);
}

// What the copy engine asks of a tensor: lines of 16 bytes, lengths within its counters.
static bool is_tensor(unsigned rank, const void *address, const uint64_t *lens,
                      const uint64_t *strides, unsigned box, const unsigned *steps)
{
    bool good = rank >= 1 && rank <= 5 && (uintptr_t)address % 16 == 0 && box >= 1;
    for (unsigned i = 0; i < rank && good; i++)
        good = lens[i] >= 1 && lens[i] <= (uint64_t)1 << 32 && steps[i] >= 1 && steps[i] <= 8;
    for (unsigned i = 0; i + 1 < rank && good; i++)
        good = strides[i] % 16 == 0 && strides[i] < (uint64_t)1 << 40;
    return good;
}

USER(cuTensorMapEncodeTiled, void *map, int type, unsigned rank, void *address,
     const uint64_t *lens, const uint64_t *strides, const unsigned *box, const unsigned *steps,
     int interleave, int swizzle, int promotion, int fill)
{
    memset(map, type, 128);
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return box[1] <= 256 && is_tensor(rank, address, lens, strides, box[0], steps) ? OK : INVALID;
}

USER(cuTensorMapEncodeIm2col, void *map, int type, unsigned rank, void *address,
     const uint64_t *lens, const uint64_t *strides, const int *low, const int *high,
     unsigned channels, unsigned places, const unsigned *steps, int interleave, int swizzle,
     int promotion, int fill)
{
    static const int most[6] = {0, 0, 0, 32768, 128, 16}; // of a corner, by rank
    bool good = rank >= 3 && channels <= 256 && places <= 1024 &&
                is_tensor(rank, address, lens, strides, places, steps);
    for (unsigned i = 0; i + 2 < rank && good; i++)
        good = low[i] >= -most[rank] && low[i] < most[rank] && high[i] >= -most[rank] &&
               high[i] < most[rank];
    memset(map, type, 128);
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return good ? OK : INVALID;
}
#endif
