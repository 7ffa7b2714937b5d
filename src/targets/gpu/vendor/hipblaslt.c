// SPDX-License-Identifier: MIT
// hipBLASLt, for AMD's cards from gfx90a on.
//
// Declarations as of ROCm 6 and 7 (hipBLASLt 0.6 and newer; before that types had other numbers, so
// older ones are refused). Descriptors are objects of the library's, so a call's own hold all that is
// fixed. The bias's address is a part of one: it is put there, and the product given to the stream,
// under the call's lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/library.h"
#include "targets/gpu/vendor/blas.h"

enum { // hipblasStatus_t, hipDataType, hipblasComputeType_t, hipblasOperation_t
    NOT_SUPPORTED = 7,
    REAL_32F = 0,
    REAL_16F = 2,
    REAL_16BF = 14,
    COMPUTE_32F = 2,
    COMPUTE_TF32 = 6,
    PLAIN = 111,
    TRANSPOSED = 112,
};
enum { // attributes of layouts, products and preferences
    LAYOUT_BATCHES = 0,
    LAYOUT_BATCH_STRIDE = 1,
    DESC_TRANSPOSED_A = 0,
    DESC_TRANSPOSED_B = 1,
    DESC_EPILOGUE = 2,
    DESC_BIAS = 3,
    DESC_BIAS_TYPE = 4,
    PREFER_WORKSPACE = 1,
};
enum { OLDEST = 600 }; // 100000 major + 100 minor + patch

struct answer { // hipblasLtMatmulHeuristicResult_t
    uint64_t algorithm[3];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

static struct calls {
    int (*version)(void *handle, int *version);
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*desc_create)(void **desc, int compute, int scale);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t size);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t line);
    int (*layout_destroy)(void *layout);
    int (*layout_set)(void *layout, int attribute, const void *value, size_t size);
    int (*prefer_create)(void **preference);
    int (*prefer_destroy)(void *preference);
    int (*prefer_set)(void *preference, int attribute, const void *value, size_t size);
    int (*rank)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                int most, struct answer *answers, int *count);
    int (*multiply)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                    const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                    void *d, void *d_layout, const void *algorithm, void *workspace,
                    size_t workspace_bytes, void *stream);
} lt;

#define AT(member) offsetof(struct calls, member)
static const struct gpu_symbol symbols[] = {
    {"hipblasLtGetVersion", AT(version), false},
    {"hipblasLtCreate", AT(create), false},
    {"hipblasLtDestroy", AT(destroy), false},
    {"hipblasLtMatmulDescCreate", AT(desc_create), false},
    {"hipblasLtMatmulDescDestroy", AT(desc_destroy), false},
    {"hipblasLtMatmulDescSetAttribute", AT(desc_set), false},
    {"hipblasLtMatrixLayoutCreate", AT(layout_create), false},
    {"hipblasLtMatrixLayoutDestroy", AT(layout_destroy), false},
    {"hipblasLtMatrixLayoutSetAttribute", AT(layout_set), false},
    {"hipblasLtMatmulPreferenceCreate", AT(prefer_create), false},
    {"hipblasLtMatmulPreferenceDestroy", AT(prefer_destroy), false},
    {"hipblasLtMatmulPreferenceSetAttribute", AT(prefer_set), false},
    {"hipblasLtMatmulAlgoGetHeuristic", AT(rank), false},
    {"hipblasLtMatmul", AT(multiply), false},
};
#undef AT

static const char *const names[] = {"libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so",
                                    "/opt/rocm/lib/libhipblaslt.so", NULL};

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    return status == 0
               ? MGX_OK
               : mgx_fail(diag, MGX_DEVICE, "hipBLASLt: %s: hipblasStatus_t %d", what, status);
}

static enum mgx_status open_library(struct gpu_vendor_library *library, struct mgx_diag *diag)
{
    int version = 0;
    TRY(gpu_library_open("hipBLASLt", names, symbols, MGX_COUNT(symbols), &lt, diag));
    TRY(check(lt.create(&library->handle), "opening the library", diag));
    enum mgx_status status =
        check(lt.version(library->handle, &version), "asking for its version", diag);
    if (status == MGX_OK && version < OLDEST)
        status = mgx_fail(diag, MGX_UNSUPPORTED, "hipBLASLt %d is too old: %d is the oldest known",
                          version, OLDEST);
    if (status != MGX_OK)
        lt.destroy(library->handle);
    library->version = (size_t)version;
    return status;
}

// --- descriptors ---

struct call {
    struct gpu_vendor_call base;
    void *desc, *layout[GPU_BLAS_MATRICES];
    uint64_t algorithm[3];
    size_t workspace;
    bool bias, adds;
    pthread_mutex_t lock; // of the bias's address
};

static void destroy(struct gpu_vendor_call *call)
{
    struct call *k = (struct call *)call;
    for (int i = 0; i < GPU_BLAS_MATRICES; i++)
        if (k->layout[i])
            lt.layout_destroy(k->layout[i]);
    if (k->desc)
        lt.desc_destroy(k->desc);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static int type_of(enum mgx_type type)
{
    return type == MGX_HALF ? REAL_16F : type == MGX_BF16 ? REAL_16BF : REAL_32F;
}

static enum mgx_status describe_product(struct call *k, const struct gpu_vendor_product *p,
                                        const struct gpu_blas *b, struct mgx_diag *diag)
{
    const int compute = p->type == MGX_FLOAT && p->tf32 ? COMPUTE_TF32 : COMPUTE_32F;
    const int epilogue = gpu_blas_epilogue(p->last), type = type_of(p->type);
    const void *aligned = (void *)(uintptr_t)p->alignment; // looked at, not read
    int status = lt.desc_create(&k->desc, compute, REAL_32F);
    for (int i = 0; i < 2 && status == 0; i++) {
        const int transposed = b->transposed[i] ? TRANSPOSED : PLAIN;
        status = lt.desc_set(k->desc, DESC_TRANSPOSED_A + i, &transposed, sizeof transposed);
    }
    if (status == 0)
        status = lt.desc_set(k->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == 0 && k->bias)
        status = lt.desc_set(k->desc, DESC_BIAS_TYPE, &type, sizeof type);
    if (status == 0 && k->bias)
        status = lt.desc_set(k->desc, DESC_BIAS, &aligned, sizeof aligned);
    return check(status, "describing a product", diag);
}

static enum mgx_status describe_matrices(struct call *k, const struct gpu_vendor_product *p,
                                         const struct gpu_blas *b, struct mgx_diag *diag)
{
    const int batches = (int)p->batches;
    int status = 0;
    for (int i = 0; i < GPU_BLAS_MATRICES && status == 0; i++) {
        const int64_t stride = b->matrix[i].batch;
        status = lt.layout_create(&k->layout[i], type_of(p->type), (uint64_t)b->matrix[i].rows,
                                  (uint64_t)b->matrix[i].columns, b->matrix[i].line);
        if (status == 0 && batches > 1)
            status = lt.layout_set(k->layout[i], LAYOUT_BATCHES, &batches, sizeof batches);
        if (status == 0 && batches > 1)
            status = lt.layout_set(k->layout[i], LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
    }
    return check(status, "describing a matrix", diag);
}

static enum mgx_status describe(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *p, struct call **out,
                                struct mgx_diag *diag)
{
    const struct gpu_blas b = gpu_blas_of(p);
    struct call *k = calloc(1, sizeof *k);
    if (!k)
        return mgx_fail_memory(diag);
    k->base.library = library;
    k->bias = p->last & GPU_VENDOR_BIAS;
    k->adds = p->last & GPU_VENDOR_ADD;
    pthread_mutex_init(&k->lock, NULL);
    enum mgx_status status = describe_product(k, p, &b, diag);
    if (status == MGX_OK)
        status = describe_matrices(k, p, &b, diag);
    if (status == MGX_OK)
        *out = k;
    else
        destroy(&k->base);
    return status;
}

// --- choices ---

static enum mgx_status ask(const struct gpu_vendor_library *library, const struct call *k,
                           struct answer *answers, int *found, struct mgx_diag *diag)
{
    const uint64_t workspace = GPU_VENDOR_WORKSPACE;
    void *preference = NULL;
    TRY(check(lt.prefer_create(&preference), "describing a preference", diag));
    enum mgx_status status =
        check(lt.prefer_set(preference, PREFER_WORKSPACE, &workspace, sizeof workspace),
              "describing a preference", diag);
    if (status == MGX_OK) {
        const int answer =
            lt.rank(library->handle, k->desc, k->layout[GPU_BLAS_FIRST], k->layout[GPU_BLAS_SECOND],
                    k->layout[GPU_BLAS_ADDED], k->layout[GPU_BLAS_RESULT], preference,
                    GPU_VENDOR_CHOICES, answers, found);
        if (answer == NOT_SUPPORTED)
            *found = 0;
        else
            status = check(answer, "ranking algorithms", diag);
    }
    lt.prefer_destroy(preference);
    return status;
}

// "hipblaslt 1200 s4711": the library's number of the solution.
static enum mgx_status rank(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct gpu_vendor_choice *choices,
                            int *count, struct mgx_diag *diag)
{
    struct answer answers[GPU_VENDOR_CHOICES] = {0};
    struct call *k;
    int found = 0;
    *count = 0;
    TRY(describe(library, p, &k, diag));
    const enum mgx_status status = ask(library, k, answers, &found, diag);
    destroy(&k->base);
    for (int i = 0; i < found && i < GPU_VENDOR_CHOICES && status == MGX_OK; i++) {
        struct gpu_vendor_choice *choice = &choices[*count];
        if (answers[i].status != 0 || answers[i].workspace > GPU_VENDOR_WORKSPACE)
            continue;
        choice->workspace = answers[i].workspace;
        memcpy(choice->algorithm, answers[i].algorithm, sizeof answers[i].algorithm);
        snprintf(choice->name, sizeof choice->name, "hipblaslt %zu s%u", library->version,
                 (unsigned)answers[i].algorithm[0]);
        ++*count;
    }
    return status;
}

static enum mgx_status make(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag)
{
    struct call *k;
    TRY(describe(library, p, &k, diag));
    k->workspace = choice->workspace;
    memcpy(k->algorithm, choice->algorithm, sizeof k->algorithm);
    *out = &k->base;
    return MGX_OK;
}

static enum mgx_status multiply(const struct call *k, const struct gpu_vendor_args *args,
                                struct mgx_diag *diag)
{
    static const float one = 1, zero = 0;
    if (k->bias)
        TRY(check(lt.desc_set(k->desc, DESC_BIAS, &args->bias, sizeof args->bias),
                  "placing the bias", diag));
    return check(lt.multiply(k->base.library->handle, k->desc, &one, args->b,
                             k->layout[GPU_BLAS_FIRST], args->a, k->layout[GPU_BLAS_SECOND],
                             k->adds ? &one : &zero, k->adds ? args->add : args->out,
                             k->layout[GPU_BLAS_ADDED], args->out, k->layout[GPU_BLAS_RESULT],
                             k->algorithm, args->workspace, k->workspace, args->stream),
                 "multiplying", diag);
}

static enum mgx_status run(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag)
{
    struct call *k = (struct call *)call;
    if (k->bias)
        pthread_mutex_lock(&k->lock);
    const enum mgx_status status = multiply(k, args, diag);
    if (k->bias)
        pthread_mutex_unlock(&k->lock);
    return status;
}

const struct gpu_vendor gpu_vendor_hipblaslt = {.name = "hipblaslt",
                                                .title = "hipBLASLt",
                                                .api = &gpu_api_hip,
                                                .last = GPU_VENDOR_ADD | GPU_VENDOR_BIAS |
                                                        GPU_VENDOR_RELU | GPU_VENDOR_GELU,
                                                .open = open_library,
                                                .rank = rank,
                                                .make = make,
                                                .run = run,
                                                .destroy = destroy};
