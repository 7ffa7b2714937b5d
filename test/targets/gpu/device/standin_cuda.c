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
#include "standin_hip.c"

static int contexts[COUNT]; // a device's is the address of its number

USER(cuDeviceGetAttribute, int *value, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } known[] = {{1, 1024}, {10, 32}, {16, 132}, {38, 50 << 20}, {97, 166912}, {75, 8}, {76, 0}};
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
