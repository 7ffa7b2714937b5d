// SPDX-License-Identifier: MIT
// hipBLASLt without a card: the calls that hipblaslt.c makes, on the stand-in for HIP's runtime. Three
// algorithms for a product, as standin_cublaslt.c has them. Descriptors are objects that must be
// given back.
#include "standin_blas.h"

enum { OK = 0, NO_MEMORY = 2, INVALID = 3, NO_CODE = 8, NOT_SUPPORTED = 7 };
enum { DESC = 0xde5c, LAYOUT = 0x1a70, PREFERENCE = 0x93ef, ALGORITHM = 60, WORKSPACE = 1000 };

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (blas_fails(__func__))                                                                  \
            return NO_MEMORY;                                                                      \
    } while (0)

struct object {
    unsigned magic;
    int type, batches, transposed[2], epilogue, bias_type;
    uint64_t rows, columns, workspace;
    int64_t line, stride;
    const void *bias;
};

struct answer {
    uint32_t solution, rest[3];
    size_t most;
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct answer) == 56, "hipblasLtMatmulHeuristicResult_t");

static int handle;

static int make(struct object **out, struct object o)
{
    *out = malloc(sizeof o);
    if (!*out)
        return NO_MEMORY;
    **out = o;
    blas_live++;
    return OK;
}

static int unmake(struct object *o, unsigned magic)
{
    if (o->magic != magic)
        abort();
    o->magic = 0;
    blas_live--;
    free(o);
    return OK;
}

USER(hipblasLtCreate, void **out)
{
    MAY_FAIL();
    *out = &handle;
    return OK;
}

USER(hipblasLtDestroy, void *own)
{
    return own == &handle ? OK : INVALID;
}

USER(hipblasLtGetVersion, void *own, int *version)
{
    const char *other = getenv("STANDIN_VENDOR_VERSION");
    MAY_FAIL();
    *version = other ? atoi(other) : 1200;
    return own == &handle ? OK : INVALID;
}

USER(hipblasLtMatmulDescCreate, struct object **out, int compute, int scale)
{
    MAY_FAIL();
    if ((compute != 2 && compute != 6) || scale != 0)
        return NOT_SUPPORTED;
    return make(out, (struct object){.magic = DESC, .transposed = {111, 111}, .epilogue = 1});
}

USER(hipblasLtMatmulDescDestroy, struct object *o)
{
    return unmake(o, DESC);
}

static int set(void *to, size_t room, const void *value, size_t size)
{
    if (room != size)
        return INVALID;
    memcpy(to, value, size);
    return OK;
}

USER(hipblasLtMatmulDescSetAttribute, struct object *o, int attribute, const void *value,
     size_t size)
{
    MAY_FAIL();
    if (o->magic != DESC)
        abort();
    return attribute == 0   ? set(&o->transposed[0], 4, value, size)
           : attribute == 1 ? set(&o->transposed[1], 4, value, size)
           : attribute == 2 ? set(&o->epilogue, 4, value, size)
           : attribute == 3 ? set(&o->bias, 8, value, size)
           : attribute == 4 ? set(&o->bias_type, 4, value, size)
                            : INVALID;
}

USER(hipblasLtMatrixLayoutCreate, struct object **out, int type, uint64_t rows, uint64_t columns,
     int64_t line)
{
    MAY_FAIL();
    return make(out, (struct object){.magic = LAYOUT,
                                     .type = type,
                                     .batches = 1,
                                     .rows = rows,
                                     .columns = columns,
                                     .line = line});
}

USER(hipblasLtMatrixLayoutDestroy, struct object *o)
{
    return unmake(o, LAYOUT);
}

USER(hipblasLtMatrixLayoutSetAttribute, struct object *o, int attribute, const void *value,
     size_t size)
{
    MAY_FAIL();
    if (o->magic != LAYOUT)
        abort();
    return attribute == 0   ? set(&o->batches, 4, value, size)
           : attribute == 1 ? set(&o->stride, 8, value, size)
                            : INVALID;
}

USER(hipblasLtMatmulPreferenceCreate, struct object **out)
{
    MAY_FAIL();
    return make(out, (struct object){.magic = PREFERENCE});
}

USER(hipblasLtMatmulPreferenceDestroy, struct object *o)
{
    return unmake(o, PREFERENCE);
}

USER(hipblasLtMatmulPreferenceSetAttribute, struct object *o, int attribute, const void *value,
     size_t size)
{
    MAY_FAIL();
    if (o->magic != PREFERENCE)
        abort();
    return attribute == 1 ? set(&o->workspace, 8, value, size) : INVALID;
}

USER(hipblasLtMatmulAlgoGetHeuristic, void *own, const struct object *desc, const struct object *a,
     const struct object *b, const struct object *c, const struct object *d, const struct object *p,
     int most, struct answer *answers, int *count)
{
    const struct object *const all[] = {a, b, c, d};
    MAY_FAIL();
    *count = 0;
    if (own != &handle || desc->magic != DESC || p->magic != PREFERENCE ||
        p->workspace < WORKSPACE || (desc->epilogue & BLAS_BIAS && desc->bias_type != d->type))
        return INVALID;
    for (int i = 0; i < 4; i++)
        if (all[i]->magic != LAYOUT)
            return INVALID;
    if (getenv("STANDIN_NO_ALGORITHM"))
        return NOT_SUPPORTED;
    for (int i = 0; i < 4 && i < most; i++)
        answers[(*count)++] = (struct answer){.solution = ALGORITHM + (unsigned)i,
                                              .workspace = i == 1 ? WORKSPACE : 0,
                                              .status = i == 3 ? NOT_SUPPORTED : OK};
    return OK;
}

static struct blas_matrix matrix(const void *data, const struct object *l)
{
    return (struct blas_matrix){(void *)data, (int64_t)l->rows, (int64_t)l->columns, l->line,
                                l->stride};
}

USER(hipblasLtMatmul, void *own, const struct object *desc, const float *alpha, const void *a,
     const struct object *al, const void *b, const struct object *bl, const float *beta,
     const void *c, const struct object *cl, void *d, const struct object *dl,
     const uint32_t *algorithm, void *workspace, size_t workspace_bytes, void *stream)
{
    MAY_FAIL();
    if (own != &handle || desc->magic != DESC || *alpha != 1)
        return INVALID;
    if (algorithm[0] == ALGORITHM + 2)
        return NO_CODE;
    if (algorithm[0] == ALGORITHM + 1 && workspace_bytes < WORKSPACE)
        return INVALID;
    const bool transposed[2] = {desc->transposed[0] == 112, desc->transposed[1] == 112};
    const struct blas p = {.type = al->type == 0   ? BLAS_FLOAT
                                   : al->type == 2 ? BLAS_HALF
                                                   : BLAS_BF16,
                           .last = desc->epilogue & (BLAS_BIAS | BLAS_RELU | BLAS_GELU),
                           .batches = dl->batches,
                           .transposed = {transposed[0], transposed[1]},
                           .beta = (double)*beta,
                           .m = (int64_t)dl->rows,
                           .n = (int64_t)dl->columns,
                           .k = (int64_t)(transposed[0] ? al->rows : al->columns),
                           .a = matrix(a, al),
                           .b = matrix(b, bl),
                           .c = matrix(c, cl),
                           .d = matrix(d, dl),
                           .bias = desc->bias,
                           .workspace = workspace,
                           .workspace_bytes = workspace_bytes};
    return blas_is_sound(&p) ? blas_launch("libamdhip64.so.7", stream, &p) : INVALID;
}
