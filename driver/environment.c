// SPDX-License-Identifier: MIT
// The environment variables that the engine and the driver read: for the man page, and to name in
// the log what was used and what is probably misspelt.
#include "verbs.h"

extern char **environ;

const struct variable driver_variables[] = {
    {"MIGRAPHX_TRACE_COMPILE", "1: print the program before and after compilation"},
    {"MIGRAPHX_TRACE_PASSES", "1: print every pass, and the program where it changed something"},
    {"MIGRAPHX_TIME_PASSES", "1: print the time of every pass"},
    {"MIGRAPHX_DISABLE_PASSES", "names of passes to skip, with commas between"},
    {"MIGRAPHX_TRACE_EVAL",
     "1: print every instruction of a run and its time; 2: values and statistics; 3: all values"},
    {"MIGRAPHX_NUM_THREADS", "threads per run"},
    {"MIGRAPHX_CPU_ISA",
     "instruction set of the CPU target: generic, avx2, avx512, with features (native-avx512f)"},
    {"MIGRAPHX_PROBLEM_CACHE", "file that keeps what tuning measured"},
    {"MIGRAPHX_GPU_DEVICE", "card of the GPU target: cuda, hip or opencl, maybe with :n"},
    {"MIGRAPHX_GPU_TF32", "1: products of floats on the GPU target may be TF32"},
    {"MIGRAPHX_SET_GEMM_PROVIDER",
     "products of the GPU target: own, cublaslt, hipblaslt, rocblas, cudnn, miopen or auto"},
    {"MIGRAPHX_KERNEL_CACHE", "folder of compiled GPU kernels; none: nothing is kept"},
    {"MIGRAPHX_LOG_LEVEL", "none, error, warn, info, debug or trace, for the driver's log lines"},
    {NULL, NULL}};

static bool is_known(const char *name, size_t length)
{
    for (const struct variable *v = driver_variables; v->name; v++)
        if (strlen(v->name) == length && strncmp(name, v->name, length) == 0)
            return true;
    return false;
}

void log_environment(void)
{
    for (char **e = environ; *e; e++) {
        if (strncmp(*e, "MIGRAPHX", 8) != 0)
            continue;
        const size_t length = strcspn(*e, "=");
        if (is_known(*e, length))
            log_info("%s\\", *e);
        else
            log_warn("Unused environment variable: %.*s", (int)length, *e);
    }
}
