// SPDX-License-Identifier: MIT
// cuDNN without a card: the calls that cudnn.c makes, on the stand-in for CUDA's driver. Descriptors
// hold what is set, in the type it must have, and do so only until they are finalized. Four engines for
// a convolution: the second wants a workspace, the third adds up in half, the fourth has no code for the
// card (status 5000 when it is run).
#include "standin_window.h"

enum { OK = 0, NO_MEMORY = 1003, BAD = 2000, NOT_SUPPORTED = 3000, NO_CODE = 5000 };
enum { VALUES = 12, ATTRIBUTES = 12, ENGINES = 4, WORKSPACE = 1000, MAGIC = 0xcdd };

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (blas_fails(__func__))                                                                  \
            return NO_MEMORY;                                                                      \
    } while (0)

struct attribute {
    int name, type;
    int64_t count;
    unsigned char bytes[VALUES * 8];
};

struct descriptor {
    unsigned magic;
    int type, engine, count;
    bool final;
    struct attribute attributes[ATTRIBUTES];
};

static struct {
    void *stream;
} handle;

API size_t cudnnGetVersion(void);
API size_t cudnnGetVersion(void)
{
    const char *other = getenv("STANDIN_VENDOR_VERSION");
    return other ? (size_t)atoi(other) : 92600;
}

API const char *cudnnGetErrorString(int status);
API const char *cudnnGetErrorString(int status)
{
    return status == NO_CODE ? "CUDNN_STATUS_EXECUTION_FAILED" : "CUDNN_STATUS_OTHER";
}

USER(cudnnCreate, void **out)
{
    MAY_FAIL();
    *out = &handle;
    return OK;
}

USER(cudnnSetStream, void *own, void *stream)
{
    MAY_FAIL();
    handle.stream = stream;
    return own == &handle ? OK : BAD;
}

USER(cudnnBackendCreateDescriptor, int type, struct descriptor **out)
{
    MAY_FAIL();
    *out = calloc(1, sizeof **out);
    if (!*out)
        return NO_MEMORY;
    (*out)->magic = MAGIC;
    (*out)->type = type;
    blas_live++;
    return OK;
}

static struct descriptor *of(struct descriptor *d)
{
    if (!d || d->magic != MAGIC)
        abort();
    return d;
}

USER(cudnnBackendDestroyDescriptor, struct descriptor *d)
{
    of(d)->magic = 0;
    blas_live--;
    free(d);
    return OK;
}

static size_t size_of(int type)
{
    return type == 1 || type == 4 || type == 7 || type == 8 || type == 11 ? 4 : 8;
}

USER(cudnnBackendSetAttribute, struct descriptor *d, int name, int type, int64_t count,
     const void *values)
{
    MAY_FAIL();
    if (of(d)->final || count < 1 || count > VALUES || d->count == ATTRIBUTES)
        return BAD;
    struct attribute *a = &d->attributes[d->count++];
    *a = (struct attribute){.name = name, .type = type, .count = count};
    memcpy(a->bytes, values, (size_t)count * size_of(type));
    return OK;
}

static const void *find(const struct descriptor *d, int name, int type, int64_t count)
{
    for (int i = 0; i < d->count; i++)
        if (d->attributes[i].name == name && d->attributes[i].type == type &&
            d->attributes[i].count == count)
            return d->attributes[i].bytes;
    return NULL;
}

static struct descriptor *part(const struct descriptor *d, int name, int type)
{
    struct descriptor *const *p = find(d, name, 15, 1);
    return p && of(*p)->type == type && (*p)->final ? *p : NULL;
}

static int64_t axes_of(const struct descriptor *op)
{
    const struct descriptor *convolution = part(op, 702, 1);
    const int64_t *axes = convolution ? find(convolution, 106, 3, 1) : NULL;
    return axes ? *axes : 0;
}

// Has it all that its kind needs?
static bool is_whole(const struct descriptor *d)
{
    const int64_t *axes = find(d, 106, 3, 1);
    void *const *own = find(d, d->type == 15 ? 800 : 400, 0, 1);
    switch (d->type) {
    case 1:
        return axes && find(d, 100, 1, 1) && find(d, 101, 7, 1) && find(d, 102, 3, *axes) &&
               find(d, 103, 3, *axes) && find(d, 104, 3, *axes) && find(d, 105, 3, *axes);
    case 4:
        return part(d, 201, 15) && find(d, 200, 8, 1);
    case 5:
        return own && *own == &handle && find(d, 401, 15, 1);
    case 10:
        return axes_of(d) && part(d, 703, 17) && part(d, 704, 17) && part(d, 705, 17) &&
               find(d, 700, 4, 1) && find(d, 701, 4, 1);
    case 15:
        return own && *own == &handle && part(d, 801, 10);
    case 16:
        return find(d, 1000, 3, 3) && find(d, 1001, 6, 3) && find(d, 1003, 6, 1);
    case 17:
        return find(d, 900, 3, 1) && find(d, 901, 1, 1) && find(d, 906, 3, 1);
    default:
        return true;
    }
}

USER(cudnnBackendFinalize, struct descriptor *d)
{
    MAY_FAIL();
    of(d)->final = is_whole(d);
    if (d->type == 4 && getenv("STANDIN_NO_ALGORITHM"))
        return NOT_SUPPORTED;
    return d->final ? OK : BAD;
}

USER(cudnnBackendGetAttribute, struct descriptor *d, int name, int type, int64_t most,
     int64_t *count, void *values)
{
    MAY_FAIL();
    struct descriptor **list = values;
    *count = 1;
    if (of(d)->type == 4 && name == 202 && type == 15 && d->final) {
        for (*count = 0; *count < most && *count < ENGINES; ++*count) {
            of(list[*count])->engine = (int)*count + 1;
            memcpy(list[*count]->attributes, d->attributes, sizeof d->attributes);
            list[*count]->count = d->count;
        }
    } else if (d->type == 3 && name == 300 && type == 15) {
        of(list[0])->engine = d->engine;
    } else if (d->type == 2 && name == 1303 && type == 11) {
        *count = d->engine == 3 ? 2 : 1;
        memcpy(values, (int[]){0, 2}, (size_t)*count * 4);
    } else if (d->type == 5 && name == 402 && type == 3) {
        const struct descriptor *config = *(struct descriptor *const *)find(d, 401, 15, 1);
        *(int64_t *)values = config->engine == 2 ? WORKSPACE : 0;
    } else {
        return BAD;
    }
    return OK;
}

// --- a run ---

static bool read_tensors(struct blas_window *w, const struct descriptor *op)
{
    static const int names[] = {704, 703, 705};
    for (int i = 0; i < 3; i++) {
        const struct descriptor *t = part(op, names[i], 17);
        const int64_t *name = find(t, 906, 3, 1);
        const void *lens = find(t, 902, 3, w->axes + 2), *strides = find(t, 903, 3, w->axes + 2);
        if (!lens || !strides || *name != i + 1)
            return false;
        memcpy(w->lens[i], lens, sizeof(int64_t) * (size_t)(w->axes + 2));
        memcpy(w->strides[i], strides, sizeof(int64_t) * (size_t)(w->axes + 2));
        const int type = *(const int *)find(t, 901, 1, 1);
        w->type = type == 0 ? BLAS_FLOAT : type == 2 ? BLAS_HALF : BLAS_BF16;
    }
    return true;
}

USER(cudnnBackendExecute, void *own, struct descriptor *plan, struct descriptor *pack)
{
    MAY_FAIL();
    if (own != &handle || !of(plan)->final || !of(pack)->final)
        return BAD;
    const struct descriptor *config = *(struct descriptor *const *)find(plan, 401, 15, 1);
    const struct descriptor *op = part(part(config, 201, 15), 801, 10);
    const struct descriptor *convolution = part(op, 702, 1);
    struct blas_window w = {.axes = (int)axes_of(op)};
    const size_t bytes = sizeof(int64_t) * (size_t)w.axes;
    if (config->engine == 4)
        return NO_CODE;
    if (!read_tensors(&w, op))
        return BAD;
    memcpy(w.far, find(convolution, 102, 3, w.axes), bytes);
    memcpy(w.step, find(convolution, 103, 3, w.axes), bytes);
    memcpy(w.before, find(convolution, 105, 3, w.axes), bytes);
    memcpy(w.data, find(pack, 1001, 6, 3), sizeof w.data);
    w.workspace = *(void *const *)find(pack, 1003, 6, 1);
    w.workspace_bytes = config->engine == 2 ? WORKSPACE : 0;
    if (!blas_window_is_sound(&w, find(convolution, 104, 3, w.axes)))
        return BAD;
    return blas_give("libcuda.so.1", handle.stream, blas_convolve, &w, sizeof w);
}
