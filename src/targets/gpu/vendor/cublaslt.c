// SPDX-License-Identifier: MIT
// cuBLASLt, for NVIDIA's cards.
//
// Declarations as of CUDA 11.1 to 13: numbers of attributes and the size of a heuristic's answer have
// not changed in that time; descriptors have grown, so they are begun by the library in room that is
// larger than any of them, and it refuses room that is too small. They are plain bytes: a run copies
// the product's and puts the bias's address into its copy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/library.h"
#include "targets/gpu/vendor/blas.h"

enum { // cublasStatus_t, cudaDataType_t, cublasComputeType_t, cublasOperation_t
    NOT_SUPPORTED = 15,
    REAL_32F = 0,
    REAL_16F = 2,
    REAL_16BF = 14,
    COMPUTE_32F = 68,
    COMPUTE_TF32 = 77,
    TRANSPOSED = 1,
};
enum { // attributes of layouts, products, preferences and algorithms
    LAYOUT_BATCHES = 5,
    LAYOUT_BATCH_STRIDE = 6,
    DESC_TRANSPOSED_A = 3,
    DESC_TRANSPOSED_B = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS = 8,
    PREFER_WORKSPACE = 1,
    PREFER_ALIGNMENT_A = 5, // and b, c, d
};
enum { WORDS = 64 }; // of 64 bits: room for a descriptor, which has 32 at most in CUDA 13

struct answer { // cublasLtMatmulHeuristicResult_t
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

static struct calls {
    size_t (*version)(void);
    int (*create)(void **handle);
    int (*desc_init)(void *desc, size_t size, int compute, int scale);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t size);
    int (*layout_init)(void *layout, size_t size, int type, uint64_t rows, uint64_t columns,
                       int64_t line);
    int (*layout_set)(void *layout, int attribute, const void *value, size_t size);
    int (*prefer_init)(void *preference, size_t size);
    int (*prefer_set)(void *preference, int attribute, const void *value, size_t size);
    int (*rank)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                int most, struct answer *answers, int *count);
    int (*config)(const void *algorithm, int attribute, void *value, size_t size, size_t *written);
    int (*multiply)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                    const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                    void *d, void *d_layout, const void *algorithm, void *workspace,
                    size_t workspace_bytes, void *stream);
    const char *(*status_name)(int status);
} lt;

#define AT(member) offsetof(struct calls, member)
static const struct gpu_symbol symbols[] = {
    {"cublasLtGetVersion", AT(version), false},
    {"cublasLtCreate", AT(create), false},
    {"cublasLtMatmulDescInit_internal", AT(desc_init), false},
    {"cublasLtMatmulDescSetAttribute", AT(desc_set), false},
    {"cublasLtMatrixLayoutInit_internal", AT(layout_init), false},
    {"cublasLtMatrixLayoutSetAttribute", AT(layout_set), false},
    {"cublasLtMatmulPreferenceInit_internal", AT(prefer_init), false},
    {"cublasLtMatmulPreferenceSetAttribute", AT(prefer_set), false},
    {"cublasLtMatmulAlgoGetHeuristic", AT(rank), false},
    {"cublasLtMatmulAlgoConfigGetAttribute", AT(config), false},
    {"cublasLtMatmul", AT(multiply), false},
    {"cublasLtGetStatusName", AT(status_name), true},
};
#undef AT

static const char *const names[] = {"libcublasLt.so.13",
                                    "libcublasLt.so.12",
                                    "libcublasLt.so.11",
                                    "libcublasLt.so",
                                    "/usr/local/cuda/lib64/libcublasLt.so",
                                    NULL};

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    const char *name = status && lt.status_name ? lt.status_name(status) : NULL;
    return status == 0 ? MGX_OK
                       : mgx_fail(diag, MGX_DEVICE, "cuBLASLt: %s: %s (%d)", what,
                                  name ? name : "unknown error", status);
}

static enum mgx_status open_library(struct gpu_vendor_library *library, struct mgx_diag *diag)
{
    TRY(gpu_library_open("cuBLASLt", names, symbols, MGX_COUNT(symbols), &lt, diag));
    library->version = lt.version();
    return check(lt.create(&library->handle), "opening the library", diag);
}

// --- descriptors ---

struct call {
    struct gpu_vendor_call base;
    uint64_t desc[WORDS], layout[GPU_BLAS_MATRICES][WORDS];
    uint64_t algorithm[GPU_VENDOR_ALGORITHM / 8];
    size_t workspace;
    bool bias, adds;
};

static int type_of(enum mgx_type type)
{
    return type == MGX_HALF ? REAL_16F : type == MGX_BF16 ? REAL_16BF : REAL_32F;
}

static enum mgx_status describe_product(uint64_t *desc, const struct gpu_vendor_product *p,
                                        const struct gpu_blas *b, struct mgx_diag *diag)
{
    const int compute = p->type == MGX_FLOAT && p->tf32 ? COMPUTE_TF32 : COMPUTE_32F;
    const int epilogue = gpu_blas_epilogue(p->last);
    const void *aligned = (void *)(uintptr_t)p->alignment; // looked at, not read
    int status = lt.desc_init(desc, WORDS * sizeof *desc, compute, REAL_32F);
    for (int i = 0; i < 2 && status == 0; i++) {
        const int transposed = b->transposed[i] ? TRANSPOSED : 0;
        status = lt.desc_set(desc, DESC_TRANSPOSED_A + i, &transposed, sizeof transposed);
    }
    if (status == 0)
        status = lt.desc_set(desc, DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == 0 && p->last & GPU_VENDOR_BIAS)
        status = lt.desc_set(desc, DESC_BIAS, &aligned, sizeof aligned);
    return check(status, "describing a product", diag);
}

static enum mgx_status describe_matrices(uint64_t (*layout)[WORDS],
                                         const struct gpu_vendor_product *p,
                                         const struct gpu_blas *b, struct mgx_diag *diag)
{
    const int batches = (int)p->batches;
    int status = 0;
    for (int i = 0; i < GPU_BLAS_MATRICES && status == 0; i++) {
        const int64_t stride = b->matrix[i].batch;
        status = lt.layout_init(layout[i], WORDS * sizeof **layout, type_of(p->type),
                                (uint64_t)b->matrix[i].rows, (uint64_t)b->matrix[i].columns,
                                b->matrix[i].line);
        if (status == 0 && batches > 1)
            status = lt.layout_set(layout[i], LAYOUT_BATCHES, &batches, sizeof batches);
        if (status == 0 && batches > 1)
            status = lt.layout_set(layout[i], LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
    }
    return check(status, "describing a matrix", diag);
}

static enum mgx_status describe(struct call *k, const struct gpu_vendor_product *p,
                                struct mgx_diag *diag)
{
    const struct gpu_blas b = gpu_blas_of(p);
    memset(k, 0, sizeof *k);
    k->bias = p->last & GPU_VENDOR_BIAS;
    k->adds = p->last & GPU_VENDOR_ADD;
    TRY(describe_product(k->desc, p, &b, diag));
    return describe_matrices(k->layout, p, &b, diag);
}

static enum mgx_status describe_preference(uint64_t *preference, unsigned alignment,
                                           struct mgx_diag *diag)
{
    const size_t workspace = GPU_VENDOR_WORKSPACE;
    int status = lt.prefer_init(preference, WORDS * sizeof *preference);
    if (status == 0)
        status = lt.prefer_set(preference, PREFER_WORKSPACE, &workspace, sizeof workspace);
    for (int i = 0; i < GPU_BLAS_MATRICES && status == 0; i++)
        status = lt.prefer_set(preference, PREFER_ALIGNMENT_A + i, &alignment, sizeof alignment);
    return check(status, "describing a preference", diag);
}

// --- choices ---

// "cublaslt 130401 a66 t20 k1 ...": the algorithm's configuration, as far as this version knows it.
static void name_choice(const struct gpu_vendor_library *library, struct gpu_vendor_choice *choice)
{
    static const struct {
        int attribute;
        char letter;
        size_t size;
    } parts[] = {{0, 'a', 4}, {1, 't', 4}, {6, 's', 4}, {2, 'k', 4}, {3, 'r', 4},
                 {4, 'z', 4}, {5, 'u', 4}, {7, 'i', 2}, {8, 'c', 2}};
    int at = snprintf(choice->name, sizeof choice->name, "cublaslt %zu", library->version);
    for (int i = 0; i < MGX_COUNT(parts); i++) {
        union {
            uint32_t wide;
            uint16_t narrow;
        } value = {0};
        size_t written = 0;
        if (lt.config(choice->algorithm, parts[i].attribute, &value, parts[i].size, &written) == 0)
            at += snprintf(choice->name + at, sizeof choice->name - (size_t)at, " %c%u",
                           parts[i].letter, parts[i].size == 2 ? value.narrow : value.wide);
        if (at >= (int)sizeof choice->name)
            break;
    }
}

static enum mgx_status rank(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct gpu_vendor_choice *choices,
                            int *count, struct mgx_diag *diag)
{
    struct answer answers[GPU_VENDOR_CHOICES];
    uint64_t preference[WORDS];
    struct call k;
    int found = 0;
    *count = 0;
    TRY(describe(&k, p, diag));
    TRY(describe_preference(preference, p->alignment, diag));
    const int status =
        lt.rank(library->handle, k.desc, k.layout[GPU_BLAS_FIRST], k.layout[GPU_BLAS_SECOND],
                k.layout[GPU_BLAS_ADDED], k.layout[GPU_BLAS_RESULT], preference, GPU_VENDOR_CHOICES,
                answers, &found);
    if (status == NOT_SUPPORTED)
        return MGX_OK;
    TRY(check(status, "ranking algorithms", diag));
    for (int i = 0; i < found && i < GPU_VENDOR_CHOICES; i++) {
        struct gpu_vendor_choice *choice = &choices[*count];
        if (answers[i].status != 0 || answers[i].workspace > GPU_VENDOR_WORKSPACE)
            continue;
        choice->workspace = answers[i].workspace;
        memcpy(choice->algorithm, answers[i].algorithm, sizeof choice->algorithm);
        name_choice(library, choice);
        ++*count;
    }
    return MGX_OK;
}

static enum mgx_status make(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag)
{
    struct call *k = malloc(sizeof *k);
    if (!k)
        return mgx_fail_memory(diag);
    const enum mgx_status status = describe(k, p, diag);
    if (status != MGX_OK) {
        free(k);
        return status;
    }
    k->base.library = library;
    k->workspace = choice->workspace;
    memcpy(k->algorithm, choice->algorithm, sizeof k->algorithm);
    *out = &k->base;
    return MGX_OK;
}

// The library takes descriptors that are not const, and reads them.
static enum mgx_status run(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag)
{
    static const float one = 1, zero = 0;
    struct call *k = (struct call *)call;
    uint64_t desc[WORDS];
    memcpy(desc, k->desc, sizeof desc);
    if (k->bias)
        TRY(check(lt.desc_set(desc, DESC_BIAS, &args->bias, sizeof args->bias), "placing the bias",
                  diag));
    const int status = lt.multiply(call->library->handle, desc, &one, args->b,
                                   k->layout[GPU_BLAS_FIRST], args->a, k->layout[GPU_BLAS_SECOND],
                                   k->adds ? &one : &zero, k->adds ? args->add : args->out,
                                   k->layout[GPU_BLAS_ADDED], args->out, k->layout[GPU_BLAS_RESULT],
                                   k->algorithm, args->workspace, k->workspace, args->stream);
    return check(status, "multiplying", diag);
}

static void destroy(struct gpu_vendor_call *call)
{
    free(call);
}

const struct gpu_vendor gpu_vendor_cublaslt = {.name = "cublaslt",
                                               .title = "cuBLASLt",
                                               .api = &gpu_api_cuda,
                                               .last = GPU_VENDOR_ADD | GPU_VENDOR_BIAS |
                                                       GPU_VENDOR_RELU | GPU_VENDOR_GELU,
                                               .open = open_library,
                                               .rank = rank,
                                               .make = make,
                                               .run = run,
                                               .destroy = destroy};
