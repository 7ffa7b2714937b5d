// SPDX-License-Identifier: MIT
// rocBLAS, for AMD's cards.
//
// Declarations as of ROCm 5 to 7. It adds one operand and does nothing else behind a product. Stream
// and workspace belong to its handle, of which there is one: they are set, and the product given to
// the stream, under a lock. The workspace is always ours, for a handle without one allocates.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/library.h"
#include "targets/gpu/vendor/blas.h"

enum { // rocblas_datatype, rocblas_operation, rocblas_gemm_algo
    REAL_16F = 150,
    REAL_32F = 151,
    REAL_16BF = 168,
    PLAIN = 111,
    TRANSPOSED = 112,
    STANDARD = 0,
    BY_INDEX = 1,
};
enum { LEAST_WORKSPACE = 4096 };

#define PRODUCT                                                                                    \
    void *handle, int transposed_a, int transposed_b, int m, int n, int k, const void *alpha,      \
        const void *a, int a_type, int a_line, int64_t a_stride, const void *b, int b_type,        \
        int b_line, int64_t b_stride, const void *beta, const void *c, int c_type, int c_line,     \
        int64_t c_stride, void *d, int d_type, int d_line, int64_t d_stride, int batches,          \
        int compute, int algorithm

static struct calls {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*version)(char *text, size_t size);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *address, size_t bytes);
    int (*start_query)(void *handle);
    int (*stop_query)(void *handle, size_t *bytes);
    int (*multiply)(PRODUCT, int32_t solution, uint32_t flags);
    int (*solutions)(PRODUCT, uint32_t flags, int32_t *list, int32_t *count);
    const char *(*status_text)(int status);
} blas;

#define AT(member) offsetof(struct calls, member)
static const struct gpu_symbol symbols[] = {
    {"rocblas_create_handle", AT(create), false},
    {"rocblas_destroy_handle", AT(destroy), false},
    {"rocblas_get_version_string", AT(version), false},
    {"rocblas_set_stream", AT(set_stream), false},
    {"rocblas_set_workspace", AT(set_workspace), false},
    {"rocblas_start_device_memory_size_query", AT(start_query), false},
    {"rocblas_stop_device_memory_size_query", AT(stop_query), false},
    {"rocblas_gemm_strided_batched_ex", AT(multiply), false},
    {"rocblas_gemm_strided_batched_ex_get_solutions", AT(solutions), true},
    {"rocblas_status_to_string", AT(status_text), true},
};
#undef AT

static const char *const names[] = {"librocblas.so.5",
                                    "librocblas.so.4",
                                    "librocblas.so.3",
                                    "librocblas.so.0",
                                    "librocblas.so",
                                    "/opt/rocm/lib/librocblas.so",
                                    "/opt/dtk/lib/librocblas.so",
                                    NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all handles

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    const char *text = status && blas.status_text ? blas.status_text(status) : NULL;
    return status == 0 ? MGX_OK
                       : mgx_fail(diag, MGX_DEVICE, "rocBLAS: %s: %s (%d)", what,
                                  text ? text : "rocblas_status", status);
}

// "4.2.0.abc" is 40200.
static size_t read_version(void)
{
    char text[256] = "";
    unsigned major = 0, minor = 0, patch = 0;
    if (blas.version(text, sizeof text) == 0)
        (void)!sscanf(text, "%u.%u.%u", &major, &minor, &patch);
    return (size_t)major * 10000 + minor % 100 * 100 + patch % 100;
}

static enum mgx_status open_library(struct gpu_vendor_library *library, struct mgx_diag *diag)
{
    TRY(gpu_library_open("rocBLAS", names, symbols, MGX_COUNT(symbols), &blas, diag));
    library->version = read_version();
    return check(blas.create(&library->handle), "opening the library", diag);
}

// --- a product ---

struct algorithm {
    int32_t kind, solution;
};

struct call {
    struct gpu_vendor_call base;
    struct gpu_blas b;
    int type, batches;
    struct algorithm algorithm;
    size_t workspace;
    bool adds;
};

static struct call describe(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct algorithm algorithm)
{
    return (struct call){.base = {library},
                         .b = gpu_blas_of(p),
                         .type = p->type == MGX_HALF   ? REAL_16F
                                 : p->type == MGX_BF16 ? REAL_16BF
                                                       : REAL_32F,
                         .batches = (int)p->batches,
                         .algorithm = algorithm,
                         .adds = p->last & GPU_VENDOR_ADD};
}

// All lines fit its 32 bits?
static bool blas_fits(const struct gpu_blas *b)
{
    for (int i = 0; i < GPU_BLAS_MATRICES; i++)
        if (b->matrix[i].line > INT32_MAX)
            return false;
    return true;
}

static const float one = 1, zero = 0;

#define MATRIX(i) k->type, (int)k->b.matrix[i].line, k->b.matrix[i].batch
#define ARGUMENTS(A, B, C, D)                                                                      \
    k->base.library->handle, k->b.transposed[0] ? TRANSPOSED : PLAIN,                              \
        k->b.transposed[1] ? TRANSPOSED : PLAIN, (int)k->b.m, (int)k->b.n, (int)k->b.k, &one, A,   \
        MATRIX(GPU_BLAS_FIRST), B, MATRIX(GPU_BLAS_SECOND), k->adds ? &one : &zero, C,             \
        MATRIX(GPU_BLAS_ADDED), D, MATRIX(GPU_BLAS_RESULT), k->batches, REAL_32F,                  \
        k->algorithm.kind

static enum mgx_status multiply(const struct call *k, const struct gpu_vendor_args *args,
                                struct mgx_diag *diag)
{
    void *handle = k->base.library->handle;
    TRY(check(blas.set_stream(handle, args->stream), "setting the stream", diag));
    TRY(check(blas.set_workspace(handle, args->workspace, k->workspace), "setting the workspace",
              diag));
    return check(
        blas.multiply(ARGUMENTS(args->b, args->a, k->adds ? args->add : args->out, args->out),
                      k->algorithm.solution, 0),
        "multiplying", diag);
}

static enum mgx_status run(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag)
{
    pthread_mutex_lock(&lock);
    const enum mgx_status status = multiply((const struct call *)call, args, diag);
    pthread_mutex_unlock(&lock);
    return status;
}

// --- choices ---

// Asked without being run; addresses are looked at and not read.
static size_t ask_workspace(const struct call *k)
{
    void *aligned = (void *)(uintptr_t)GPU_VENDOR_ALIGNMENT, *handle = k->base.library->handle;
    size_t bytes = 0;
    if (blas.start_query(handle) != 0)
        return LEAST_WORKSPACE;
    (void)blas.multiply(ARGUMENTS(aligned, aligned, aligned, aligned), k->algorithm.solution, 0);
    if (blas.stop_query(handle, &bytes) != 0 || bytes < LEAST_WORKSPACE)
        bytes = LEAST_WORKSPACE;
    return bytes;
}

// Of a list that is too short the library fills what there is; it does not say how much that is.
static int list_solutions(const struct call *k, int32_t *list, int most)
{
    void *aligned = (void *)(uintptr_t)GPU_VENDOR_ALIGNMENT;
    int32_t count = 0;
    if (!blas.solutions ||
        blas.solutions(ARGUMENTS(aligned, aligned, aligned, aligned), 0, NULL, &count) != 0)
        return 0;
    count = count < most ? count : most;
    return count > 0 && blas.solutions(ARGUMENTS(aligned, aligned, aligned, aligned), 0, list,
                                       &count) == 0
               ? count
               : 0;
}

static void add_choice(struct call *k, struct algorithm algorithm,
                       struct gpu_vendor_choice *choices, int *count)
{
    struct gpu_vendor_choice *choice = &choices[*count];
    const size_t version = k->base.library->version;
    k->algorithm = algorithm;
    choice->workspace = ask_workspace(k);
    memcpy(choice->algorithm, &algorithm, sizeof algorithm);
    if (algorithm.kind == STANDARD)
        snprintf(choice->name, sizeof choice->name, "rocblas %zu standard", version);
    else
        snprintf(choice->name, sizeof choice->name, "rocblas %zu s%d", version, algorithm.solution);
    *count += choice->workspace <= GPU_VENDOR_WORKSPACE;
}

// Its own choice first, then solutions in its order, which is none of speed.
static enum mgx_status rank(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct gpu_vendor_choice *choices,
                            int *count, struct mgx_diag *diag)
{
    struct call k = describe(library, p, (struct algorithm){BY_INDEX, 0});
    int32_t list[GPU_VENDOR_CHOICES - 1];
    (void)diag;
    *count = 0;
    if (!blas_fits(&k.b))
        return MGX_OK;
    pthread_mutex_lock(&lock);
    const int found = list_solutions(&k, list, GPU_VENDOR_CHOICES - 1);
    add_choice(&k, (struct algorithm){STANDARD, 0}, choices, count);
    for (int i = 0; i < found; i++)
        add_choice(&k, (struct algorithm){BY_INDEX, list[i]}, choices, count);
    pthread_mutex_unlock(&lock);
    return MGX_OK;
}

static enum mgx_status make(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag)
{
    struct algorithm algorithm;
    struct call *k = malloc(sizeof *k);
    if (!k)
        return mgx_fail_memory(diag);
    memcpy(&algorithm, choice->algorithm, sizeof algorithm);
    *k = describe(library, p, algorithm);
    k->workspace = choice->workspace;
    *out = &k->base;
    return MGX_OK;
}

static void destroy(struct gpu_vendor_call *call)
{
    free(call);
}

const struct gpu_vendor gpu_vendor_rocblas = {.name = "rocblas",
                                              .title = "rocBLAS",
                                              .api = &gpu_api_hip,
                                              .last = GPU_VENDOR_ADD,
                                              .open = open_library,
                                              .rank = rank,
                                              .make = make,
                                              .run = run,
                                              .destroy = destroy};
