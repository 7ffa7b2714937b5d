// SPDX-License-Identifier: MIT
// cuBLASLt without a card: the calls that cublaslt.c makes, on the stand-in for CUDA's driver. Three
// algorithms for a product; the second wants a workspace, of the third's kind the card has no code
// (status 8 when it is run), the last one says that it cannot.
#include "standin_blas.h"

enum { OK = 0, NO_MEMORY = 3, INVALID = 7, NO_CODE = 8, NOT_SUPPORTED = 15 };
enum { DESC = 0xde5c, LAYOUT = 0x1a70, PREFERENCE = 0x93ef, ALGORITHM = 0xa190 };
enum { DESC_BYTES = 256, LAYOUT_BYTES = 112, PREFERENCE_BYTES = 96, WORKSPACE = 1000 };

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (blas_fails(__func__))                                                                  \
            return NO_MEMORY;                                                                      \
    } while (0)

struct desc {
    unsigned magic;
    int compute, scale, transposed[2], epilogue;
    const void *bias;
};

struct layout {
    unsigned magic;
    int type, batches;
    uint64_t rows, columns;
    int64_t line, stride;
};

struct preference {
    unsigned magic;
    uint64_t workspace;
    uint32_t alignment[4];
};

struct answer {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

static int handle;

API size_t cublasLtGetVersion(void);
API size_t cublasLtGetVersion(void)
{
    const char *version = getenv("STANDIN_VENDOR_VERSION");
    return version ? (size_t)atoi(version) : 130401;
}

API const char *cublasLtGetStatusName(int status);
API const char *cublasLtGetStatusName(int status)
{
    return status == NO_CODE ? "CUBLAS_STATUS_ARCH_MISMATCH" : "CUBLAS_STATUS_OTHER";
}

USER(cublasLtCreate, void **out)
{
    MAY_FAIL();
    *out = &handle;
    return OK;
}

USER(cublasLtMatmulDescInit_internal, struct desc *d, size_t size, int compute, int scale)
{
    MAY_FAIL();
    if (size < DESC_BYTES)
        return NO_MEMORY;
    memset(d, 0, DESC_BYTES);
    *d = (struct desc){DESC, compute, scale, {0, 0}, 1, NULL};
    return compute == 68 || compute == 77 ? OK : NOT_SUPPORTED;
}

USER(cublasLtMatmulDescSetAttribute, struct desc *d, int attribute, const void *value, size_t size)
{
    MAY_FAIL();
    if (d->magic != DESC)
        abort();
    if (attribute == 3 && size == 4)
        memcpy(&d->transposed[0], value, 4);
    else if (attribute == 4 && size == 4)
        memcpy(&d->transposed[1], value, 4);
    else if (attribute == 7 && size == 4)
        memcpy(&d->epilogue, value, 4);
    else if (attribute == 8 && size == 8)
        memcpy(&d->bias, value, 8);
    else
        return INVALID;
    return OK;
}

USER(cublasLtMatrixLayoutInit_internal, struct layout *l, size_t size, int type, uint64_t rows,
     uint64_t columns, int64_t line)
{
    MAY_FAIL();
    if (size < LAYOUT_BYTES)
        return NO_MEMORY;
    memset(l, 0, LAYOUT_BYTES);
    *l = (struct layout){LAYOUT, type, 1, rows, columns, line, 0};
    return OK;
}

USER(cublasLtMatrixLayoutSetAttribute, struct layout *l, int attribute, const void *value,
     size_t size)
{
    MAY_FAIL();
    if (l->magic != LAYOUT)
        abort();
    if (attribute == 5 && size == 4)
        memcpy(&l->batches, value, 4);
    else if (attribute == 6 && size == 8)
        memcpy(&l->stride, value, 8);
    else
        return INVALID;
    return OK;
}

USER(cublasLtMatmulPreferenceInit_internal, struct preference *p, size_t size)
{
    MAY_FAIL();
    if (size < PREFERENCE_BYTES)
        return NO_MEMORY;
    memset(p, 0, PREFERENCE_BYTES);
    p->magic = PREFERENCE;
    return OK;
}

USER(cublasLtMatmulPreferenceSetAttribute, struct preference *p, int attribute, const void *value,
     size_t size)
{
    MAY_FAIL();
    if (p->magic != PREFERENCE)
        abort();
    if (attribute == 1 && size == 8)
        memcpy(&p->workspace, value, 8);
    else if (attribute >= 5 && attribute <= 8 && size == 4)
        memcpy(&p->alignment[attribute - 5], value, 4);
    else
        return INVALID;
    return OK;
}

static bool is_type(int type)
{
    return type == 0 || type == 2 || type == 14;
}

USER(cublasLtMatmulAlgoGetHeuristic, void *own, const struct desc *desc, const struct layout *a,
     const struct layout *b, const struct layout *c, const struct layout *d,
     const struct preference *p, int most, struct answer *answers, int *count)
{
    const struct layout *const all[] = {a, b, c, d};
    MAY_FAIL();
    *count = 0;
    if (own != &handle || desc->magic != DESC || p->magic != PREFERENCE || p->workspace < WORKSPACE)
        return INVALID;
    for (int i = 0; i < 4; i++)
        if (all[i]->magic != LAYOUT || !is_type(all[i]->type) || !p->alignment[i])
            return INVALID;
    if (getenv("STANDIN_NO_ALGORITHM"))
        return NOT_SUPPORTED;
    for (int i = 0; i < 4 && i < most; i++)
        answers[(*count)++] = (struct answer){{ALGORITHM, 60 + (uint64_t)i},
                                              i == 1 ? WORKSPACE : 0,
                                              i == 3 ? NOT_SUPPORTED : OK,
                                              1,
                                              {0}};
    return OK;
}

USER(cublasLtMatmulAlgoConfigGetAttribute, const uint64_t *algorithm, int attribute, void *value,
     size_t size, size_t *written)
{
    MAY_FAIL();
    if (algorithm[0] != ALGORITHM || (attribute == 0 && size != 4) || attribute > 6)
        return INVALID;
    memset(value, 0, size);
    if (attribute == 0)
        memcpy(value, &algorithm[1], 4);
    *written = size;
    return OK;
}

static struct blas_matrix matrix(const void *data, const struct layout *l)
{
    return (struct blas_matrix){(void *)data, (int64_t)l->rows, (int64_t)l->columns, l->line,
                                l->stride};
}

USER(cublasLtMatmul, void *own, const struct desc *desc, const float *alpha, const void *a,
     const struct layout *al, const void *b, const struct layout *bl, const float *beta,
     const void *c, const struct layout *cl, void *d, const struct layout *dl,
     const uint64_t *algorithm, void *workspace, size_t workspace_bytes, void *stream)
{
    MAY_FAIL();
    if (own != &handle || desc->magic != DESC || algorithm[0] != ALGORITHM || *alpha != 1)
        return INVALID;
    if (algorithm[1] == 62)
        return NO_CODE;
    if (algorithm[1] == 61 && workspace_bytes < WORKSPACE)
        return INVALID;
    const struct blas p = {.type = al->type == 0   ? BLAS_FLOAT
                                   : al->type == 2 ? BLAS_HALF
                                                   : BLAS_BF16,
                           .last = desc->epilogue & (BLAS_BIAS | BLAS_RELU | BLAS_GELU),
                           .batches = dl->batches,
                           .transposed = {desc->transposed[0] == 1, desc->transposed[1] == 1},
                           .beta = (double)*beta,
                           .m = (int64_t)dl->rows,
                           .n = (int64_t)dl->columns,
                           .k = (int64_t)(desc->transposed[0] ? al->rows : al->columns),
                           .a = matrix(a, al),
                           .b = matrix(b, bl),
                           .c = matrix(c, cl),
                           .d = matrix(d, dl),
                           .bias = desc->bias,
                           .workspace = workspace,
                           .workspace_bytes = workspace_bytes};
    return blas_is_sound(&p) ? blas_launch("libcuda.so.1", stream, &p) : INVALID;
}
