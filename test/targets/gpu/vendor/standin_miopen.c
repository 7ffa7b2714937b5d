// SPDX-License-Identifier: MIT
// MIOpen without a card: the calls that miopen.c makes, on the stand-in for HIP's runtime. Of four
// solutions the second wants a workspace, the third is Winograd's, the fourth has no code for the card
// (status 7 when it is run).
#include "standin_window.h"

enum { OK = 0, BAD = 3, NO_MEMORY = 4, NO_CODE = 7 };
enum { TENSOR = 0x7e50, WINDOW = 0x31d0, SOLUTIONS = 4, FIRST = 80, WORKSPACE = 1000 };

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (blas_fails(__func__))                                                                  \
            return NO_MEMORY;                                                                      \
    } while (0)

struct object {
    unsigned magic;
    int type, axes, groups, lens[5], strides[5], padding[3], steps[3], dilations[3];
};

struct solution {
    float time;
    size_t workspace;
    uint64_t number;
    int algorithm;
};
_Static_assert(sizeof(struct solution) == 32, "miopenConvSolution_t");

static struct {
    void *stream;
} handle;

USER(miopenCreate, void **out)
{
    MAY_FAIL();
    *out = &handle;
    return OK;
}

USER(miopenSetStream, void *own, void *stream)
{
    MAY_FAIL();
    handle.stream = stream;
    return own == &handle ? OK : BAD;
}

USER(miopenGetVersion, size_t *major, size_t *minor, size_t *patch)
{
    *major = getenv("STANDIN_VENDOR_VERSION") ? 99 : 3;
    *minor = 2;
    *patch = 0;
    return OK;
}

API const char *miopenGetErrorString(int status);
API const char *miopenGetErrorString(int status)
{
    return status == NO_CODE ? "miopenStatusUnknownError" : "miopenStatusOther";
}

static int make(struct object **out, unsigned magic)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return NO_MEMORY;
    (*out)->magic = magic;
    blas_live++;
    return OK;
}

static struct object *of(struct object *o, unsigned magic)
{
    if (!o || o->magic != magic)
        abort();
    return o;
}

static int unmake(struct object *o, unsigned magic)
{
    of(o, magic)->magic = 0;
    blas_live--;
    free(o);
    return OK;
}

USER(miopenCreateTensorDescriptor, struct object **out)
{
    MAY_FAIL();
    return make(out, TENSOR);
}

USER(miopenDestroyTensorDescriptor, struct object *o)
{
    return unmake(o, TENSOR);
}

USER(miopenSetTensorDescriptor, struct object *o, int type, int axes, const int *lens,
     const int *strides)
{
    MAY_FAIL();
    of(o, TENSOR)->type = type;
    o->axes = axes;
    if (axes < 3 || axes > 5)
        return BAD;
    memcpy(o->lens, lens, sizeof(int) * (size_t)axes);
    memcpy(o->strides, strides, sizeof(int) * (size_t)axes);
    return OK;
}

USER(miopenCreateConvolutionDescriptor, struct object **out)
{
    MAY_FAIL();
    return make(out, WINDOW);
}

USER(miopenDestroyConvolutionDescriptor, struct object *o)
{
    return unmake(o, WINDOW);
}

USER(miopenInitConvolutionNdDescriptor, struct object *o, int axes, const int *padding,
     const int *steps, const int *dilations, int mode)
{
    MAY_FAIL();
    of(o, WINDOW)->axes = axes;
    memcpy(o->padding, padding, sizeof(int) * (size_t)axes);
    memcpy(o->steps, steps, sizeof(int) * (size_t)axes);
    memcpy(o->dilations, dilations, sizeof(int) * (size_t)axes);
    return mode == 0 ? OK : BAD;
}

USER(miopenSetConvolutionGroupCount, struct object *o, int groups)
{
    MAY_FAIL();
    of(o, WINDOW)->groups = groups;
    return OK;
}

USER(miopenConvolutionForwardGetSolution, void *own, struct object *w, struct object *x,
     struct object *window, struct object *y, size_t most, size_t *count, struct solution *out)
{
    MAY_FAIL();
    if (own != &handle || of(window, WINDOW)->axes + 2 != of(x, TENSOR)->axes ||
        of(w, TENSOR)->type != x->type || of(y, TENSOR)->type != x->type)
        return BAD;
    *count = 0;
    for (int i = 0; i < SOLUTIONS && (size_t)i < most && !getenv("STANDIN_NO_ALGORITHM"); i++)
        out[(*count)++] =
            (struct solution){1, i == 1 ? WORKSPACE : 0, FIRST + (uint64_t)i, i == 2 ? 3 : 1};
    return OK;
}

USER(miopenConvolutionForwardCompileSolution, void *own, struct object *w, struct object *x,
     struct object *window, struct object *y, uint64_t number)
{
    MAY_FAIL();
    of(w, TENSOR), of(x, TENSOR), of(window, WINDOW), of(y, TENSOR);
    return own == &handle && number >= FIRST && number < FIRST + SOLUTIONS ? OK : BAD;
}

static void take(struct blas_window *p, int i, const struct object *t, const void *data)
{
    p->data[i] = (void *)data;
    for (int k = 0; k < t->axes; k++) {
        p->lens[i][k] = t->lens[k];
        p->strides[i][k] = t->strides[k];
    }
}

USER(miopenConvolutionForwardImmediate, void *own, struct object *w, const void *wd,
     struct object *x, const void *xd, struct object *window, struct object *y, void *yd,
     void *workspace, size_t bytes, uint64_t number)
{
    MAY_FAIL();
    int64_t after[3];
    struct blas_window p = {.type = of(x, TENSOR)->type == 1 ? BLAS_FLOAT
                                    : x->type == 0           ? BLAS_HALF
                                                             : BLAS_BF16,
                            .axes = of(window, WINDOW)->axes,
                            .workspace = workspace,
                            .workspace_bytes = number == FIRST + 1 ? WORKSPACE : 0};
    if (number == FIRST + 3)
        return NO_CODE;
    take(&p, 0, x, xd);
    take(&p, 1, of(w, TENSOR), wd);
    take(&p, 2, of(y, TENSOR), yd);
    for (int i = 0; i < p.axes; i++) {
        p.step[i] = window->steps[i];
        p.far[i] = window->dilations[i];
        p.before[i] = after[i] = window->padding[i];
    }
    if (own != &handle || bytes < p.workspace_bytes || !blas_window_is_sound(&p, after) ||
        window->groups != p.lens[0][1] / p.lens[1][1])
        return BAD;
    return blas_give("libamdhip64.so.7", handle.stream, blas_convolve, &p, sizeof p);
}
