// SPDX-License-Identifier: MIT
// Environment variables: read here alone, once per process, and turned into options.
//
// A switch is on for 1, enable, enabled, yes and true. Whatever is not understood counts as not
// set.
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static struct mgx_api_environment environment; // constant after `once`
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_on(const char *name)
{
    static const char *const words[] = {"1", "enable", "enabled", "yes", "true"};
    const char *value = getenv(name);
    for (int i = 0; value && i < MGX_COUNT(words); i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

static int number(const char *name, int lowest, int highest)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return 0;
    char *end;
    const long n = strtol(value, &end, 10);
    return *end || n < lowest || n > highest ? 0 : (int)n;
}

// Of a list: OpenMP has a number for each level of nesting.
static int first_number(const char *name, int highest)
{
    const char *value = getenv(name);
    char *end = NULL;
    const long n = value ? strtol(value, &end, 10) : 0;
    const bool whole = end && end != value && (!*end || *end == ',');
    return whole && n > 0 && n <= highest ? (int)n : 0;
}

// A copy: the process may change its environment later.
static const char *text(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? strdup(value) : NULL;
}

static void split_disabled(void)
{
    char *value = (char *)text("MIGRAPHX_DISABLE_PASSES");
    if (!value)
        return;
    int count = 1;
    for (const char *c = value; *c; c++)
        count += *c == ',';
    const char **list = calloc((size_t)count, sizeof *list);
    char *rest = NULL;
    for (char *word = list ? strtok_r(value, ",", &rest) : NULL; word;
         word = strtok_r(NULL, ",", &rest))
        list[environment.disabled_count++] = word;
    environment.disabled_passes = list;
}

// The folder of compiled kernels: as named ("none": nowhere), or below the user's cache.
static const char *kernel_folder(void)
{
    const char *named = getenv("MIGRAPHX_KERNEL_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME"), *below = "/.cache";
    struct mgx_str path = {0};
    if (named && *named)
        return strcmp(named, "none") == 0 ? NULL : strdup(named);
    if (cache && *cache == '/')
        home = cache, below = "";
    if (!home || *home != '/')
        return NULL;
    mgx_str_printf(&path, "%s%s/migraphx/kernels", home, below);
    return mgx_str_take(&path);
}

static void read_all(void)
{
    environment.trace_compile = is_on("MIGRAPHX_TRACE_COMPILE");
    environment.trace_passes = is_on("MIGRAPHX_TRACE_PASSES");
    environment.time_passes = is_on("MIGRAPHX_TIME_PASSES");
    environment.trace_eval = number("MIGRAPHX_TRACE_EVAL", 0, INT_MAX);
    environment.threads = number("MIGRAPHX_NUM_THREADS", 0, 4096);
    if (!environment.threads)
        environment.threads = first_number("OMP_NUM_THREADS", 4096);
    environment.isa = text("MIGRAPHX_CPU_ISA");
    environment.tuning_cache = text("MIGRAPHX_PROBLEM_CACHE");
    environment.gpu_device = text("MIGRAPHX_GPU_DEVICE");
    environment.gpu_tf32 = is_on("MIGRAPHX_GPU_TF32");
    environment.gemm_provider = text("MIGRAPHX_SET_GEMM_PROVIDER");
    environment.kernel_folder = kernel_folder();
    split_disabled();
}

const struct mgx_api_environment *mgx_api_environment(void)
{
    pthread_once(&once, read_all);
    return &environment;
}
