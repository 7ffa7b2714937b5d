// SPDX-License-Identifier: MIT
// rocBLAS without a card: the calls that rocblas.c makes, on the stand-in for HIP's runtime. Beside its
// own choice there are two solutions: the first wants a workspace, for the second's kind the card has
// no code (status 15 when it is run).
#include "standin_blas.h"

enum { OK = 0, INVALID = 11, NO_MEMORY = 5, NO_CODE = 15, SIZE_INCREASED = 9 };
enum { HANDLE = 0x4a9d, WORKSPACE = 10000, FIRST = 60, SOLUTIONS = 2 };

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (blas_fails(__func__))                                                                  \
            return NO_MEMORY;                                                                      \
    } while (0)

static struct handle {
    unsigned magic;
    void *stream;
    unsigned char *workspace;
    size_t bytes, asked;
    bool asking;
} handle = {.magic = HANDLE};

static struct handle *of(void *own)
{
    struct handle *h = own;
    if (h->magic != HANDLE)
        abort();
    return h;
}

USER(rocblas_create_handle, void **out)
{
    MAY_FAIL();
    *out = &handle;
    return OK;
}

USER(rocblas_destroy_handle, void *own)
{
    return of(own) ? OK : INVALID;
}

USER(rocblas_get_version_string, char *text, size_t size)
{
    const char *other = getenv("STANDIN_VENDOR_VERSION");
    snprintf(text, size, "%s.1.2.abc-dirty", other ? "99" : "4");
    return OK;
}

USER(rocblas_set_stream, void *own, void *stream)
{
    MAY_FAIL();
    of(own)->stream = stream;
    return OK;
}

USER(rocblas_set_workspace, void *own, void *address, size_t bytes)
{
    MAY_FAIL();
    of(own)->workspace = address;
    of(own)->bytes = bytes;
    return address && bytes ? OK : INVALID; // it would allocate one in the run
}

USER(rocblas_start_device_memory_size_query, void *own)
{
    MAY_FAIL();
    of(own)->asking = true;
    of(own)->asked = 0;
    return OK;
}

USER(rocblas_stop_device_memory_size_query, void *own, size_t *bytes)
{
    of(own)->asking = false;
    MAY_FAIL();
    *bytes = of(own)->asked;
    return OK;
}

API const char *rocblas_status_to_string(int status);
API const char *rocblas_status_to_string(int status)
{
    return status == NO_CODE ? "rocblas_status_arch_mismatch" : "rocblas_status_other";
}

#define PRODUCT                                                                                    \
    void *own, int transposed_a, int transposed_b, int m, int n, int k, const float *alpha,        \
        const void *a, int a_type, int a_line, int64_t a_stride, const void *b, int b_type,        \
        int b_line, int64_t b_stride, const float *beta, const void *c, int c_type, int c_line,    \
        int64_t c_stride, void *d, int d_type, int d_line, int64_t d_stride, int batches,          \
        int compute, int algorithm

USER(rocblas_gemm_strided_batched_ex, PRODUCT, int32_t solution, uint32_t flags)
{
    struct handle *h = of(own);
    if (h->asking) {
        h->asked = solution == FIRST ? WORKSPACE : 0;
        return SIZE_INCREASED;
    }
    MAY_FAIL();
    if (a_type != b_type || b_type != c_type || c_type != d_type || compute != 151 || flags ||
        *alpha != 1 || algorithm != (solution != 0))
        return INVALID;
    if (solution == FIRST + 1)
        return NO_CODE;
    if (solution == FIRST && h->bytes < WORKSPACE)
        return NO_MEMORY;
    const bool ta = transposed_a == 112, tb = transposed_b == 112;
    const struct blas p = {.type = a_type == 151   ? BLAS_FLOAT
                                   : a_type == 150 ? BLAS_HALF
                                                   : BLAS_BF16,
                           .batches = batches,
                           .transposed = {ta, tb},
                           .beta = (double)*beta,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = {(void *)a, ta ? k : m, ta ? m : k, a_line, a_stride},
                           .b = {(void *)b, tb ? n : k, tb ? k : n, b_line, b_stride},
                           .c = {(void *)c, m, n, c_line, c_stride},
                           .d = {d, m, n, d_line, d_stride},
                           .workspace = h->workspace,
                           .workspace_bytes = h->bytes};
    return blas_is_sound(&p) ? blas_launch("libamdhip64.so.7", h->stream, &p) : INVALID;
}

// What is not filled stays as it was, and nobody says how much that is.
USER(rocblas_gemm_strided_batched_ex_get_solutions, PRODUCT, uint32_t flags, int32_t *list,
     int32_t *count)
{
    MAY_FAIL();
    (void)transposed_a, (void)transposed_b, (void)m, (void)n, (void)k, (void)alpha, (void)a;
    (void)a_type, (void)a_line, (void)a_stride, (void)b, (void)b_type, (void)b_line;
    (void)b_stride, (void)beta, (void)c, (void)c_type, (void)c_line, (void)c_stride, (void)d;
    (void)d_type, (void)d_line, (void)d_stride, (void)batches, (void)compute, (void)flags;
    if (!of(own) || algorithm != 1)
        return INVALID;
    for (int i = 0; list && i < SOLUTIONS && i < *count; i++)
        list[i] = FIRST + i;
    if (!list)
        *count = SOLUTIONS;
    return OK;
}
