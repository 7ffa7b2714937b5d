// SPDX-License-Identifier: MIT
// The calls of the libraries' files against stand-ins for them (standin_*.c), which multiply in the
// host's memory: random products of every layout, type and epilogue against loops in double, and an
// error at every call.
//
// CMake puts the stand-ins' folders into LD_LIBRARY_PATH; without them there is nothing to test here.
#include <dlfcn.h>

#include "base/half.h"
#include "check.h"
#include "targets/gpu/vendor/vendor.h"

enum { MOST = 1 << 14, PRODUCTS = 40 };

struct kit { // a library and its stand-in
    const char *name, *card, *runtime, *library, *create;
};

static const struct kit kits[] = {
    {"cublaslt", "cuda", "libcuda.so.1", "libcublasLt.so.13", "cublasLtCreate"},
    {"hipblaslt", "hip", "libamdhip64.so.7", "libhipblaslt.so.1", "hipblasLtCreate"},
    {"rocblas", "hip", "libamdhip64.so.7", "librocblas.so.5", "rocblas_create_handle"},
    {"cudnn", "cuda", "libcuda.so.1", "libcudnn.so.9", "cudnnCreate"},
    {"miopen", "hip", "libamdhip64.so.7", "libMIOpen.so.1", "miopenCreate"},
};

static void (*set_failing)(const char *call, int after);
static int (*count_live)(void), (*count_vendor_live)(void);

static bool find_standin(const struct kit *kit)
{
    void *runtime = dlopen(kit->runtime, RTLD_NOW), *library = dlopen(kit->library, RTLD_NOW);
    set_failing = NULL;
    count_live = NULL;
    if (runtime)
        *(void **)&count_live = dlsym(runtime, "standin_live");
    if (library) {
        *(void **)&set_failing = dlsym(library, "standin_vendor_fail");
        *(void **)&count_vendor_live = dlsym(library, "standin_vendor_live");
    }
    return set_failing && count_live;
}

// --- random products ---

static uint64_t seed = 1;

static int below(int bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)bound);
}

static struct gpu_vendor_matrix random_matrix(int64_t rows, int64_t columns, bool by_column,
                                              bool shared)
{
    const int64_t lines = by_column ? columns : rows, length = by_column ? rows : columns;
    struct gpu_vendor_matrix m = {.line = length + below(5), .by_column = by_column};
    m.batch = shared ? 0 : m.line * lines + below(7);
    return m;
}

// Strides of these lengths in a random order of memory, with gaps.
static void lay_out(struct gpu_vendor_tensor *t, int rank)
{
    int order[GPU_VENDOR_AXES + 2];
    int64_t stride = 1;
    for (int i = 0; i < rank; i++) {
        const int at = below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < rank; i++) {
        t->strides[order[i]] = stride;
        stride *= t->lens[order[i]] + (below(3) == 0);
    }
}

static struct gpu_vendor_product random_window(bool same_padding)
{
    struct gpu_vendor_product p = {
        .type = below(2) ? MGX_HALF : MGX_BF16, .alignment = 2, .batches = 1};
    struct gpu_vendor_window *w = &p.window;
    const int64_t groups = 1 + below(3);
    w->axes = 1 + below(GPU_VENDOR_AXES);
    w->weights.lens[0] = groups * (1 + below(4));
    w->weights.lens[1] = 1 + below(4);
    w->image.lens[0] = w->result.lens[0] = 1 + below(2);
    w->image.lens[1] = groups * w->weights.lens[1];
    w->result.lens[1] = w->weights.lens[0];
    for (int i = 0; i < w->axes; i++) {
        w->weights.lens[i + 2] = 1 + below(3);
        w->step[i] = 1 + below(2);
        w->far[i] = 1 + below(2);
        w->before[i] = below(3);
        w->after[i] = same_padding ? w->before[i] : below(3);
        const int64_t spans = (w->weights.lens[i + 2] - 1) * w->far[i] + 1;
        w->image.lens[i + 2] = spans + below(3);
        w->result.lens[i + 2] =
            (w->image.lens[i + 2] + w->before[i] + w->after[i] - spans) / w->step[i] + 1;
    }
    lay_out(&w->image, w->axes + 2);
    lay_out(&w->weights, w->axes + 2);
    lay_out(&w->result, w->axes + 2);
    return p;
}

static struct gpu_vendor_product random_product(const struct gpu_vendor *vendor)
{
    if (vendor->windows)
        return random_window(vendor == &gpu_vendor_miopen);
    static const enum mgx_type types[] = {MGX_FLOAT, MGX_HALF, MGX_BF16};
    struct gpu_vendor_product p = {.type = types[below(3)],
                                   .rows = 1 + below(30),
                                   .columns = 1 + below(30),
                                   .depth = 1 + below(30),
                                   .batches = 1 + below(3),
                                   .alignment = 4,
                                   .matrices = true};
    p.a = random_matrix(p.rows, p.depth, below(2), below(4) == 0);
    p.b = random_matrix(p.depth, p.columns, below(2), below(2));
    p.add = random_matrix(p.rows, p.columns, false, below(4) == 0);
    p.out = random_matrix(p.rows, p.columns, false, false);
    p.last = (unsigned)below(16) & vendor->last;
    if (p.last & GPU_VENDOR_RELU)
        p.last &= ~(unsigned)GPU_VENDOR_GELU;
    return p;
}

static int64_t place(const struct gpu_vendor_matrix *m, int64_t batch, int64_t i, int64_t j)
{
    return batch * m->batch + (m->by_column ? j * m->line + i : i * m->line + j);
}

// --- values of a type ---

static void put(enum mgx_type type, void *data, int64_t at, double x)
{
    if (type == MGX_FLOAT)
        ((float *)data)[at] = (float)x;
    else
        ((uint16_t *)data)[at] =
            type == MGX_HALF ? mgx_half_from_double(x) : mgx_bf16_from_double(x);
}

static double get(enum mgx_type type, const void *data, int64_t at)
{
    if (type == MGX_FLOAT)
        return (double)((const float *)data)[at];
    const uint16_t bits = ((const uint16_t *)data)[at];
    return (double)(type == MGX_HALF ? mgx_half_to_float(bits) : mgx_bf16_to_float(bits));
}

enum { A, B, ADD, BIAS, OUT, WORK, BUFFERS };

struct bench {
    struct gpu_device *d;
    void *stream, *on_card[BUFFERS];
    float host[BUFFERS][MOST]; // also of narrower types
};

static enum mgx_status bench_make(struct bench *b, const struct kit *kit, struct mgx_diag *diag)
{
    TRY(gpu_device_open(kit->card, 0, &b->d, diag));
    TRY(b->d->api->stream_create(b->d, &b->stream, diag));
    for (int i = 0; i < BUFFERS; i++)
        TRY(b->d->api->alloc(b->d, sizeof b->host[i], &b->on_card[i], diag));
    return MGX_OK;
}

static void bench_fini(struct bench *b)
{
    for (int i = 0; i < BUFFERS; i++)
        b->d->api->free(b->d, b->on_card[i]);
    b->d->api->stream_destroy(b->d, b->stream);
    gpu_device_close(b->d);
}

static enum mgx_status bench_fill(struct bench *b, enum mgx_type type, struct mgx_diag *diag)
{
    for (int i = 0; i < BUFFERS; i++) {
        for (int k = 0; k < MOST; k++)
            put(type, b->host[i], k, (below(2001) - 1000) * 1e-3);
        TRY(b->d->api->copy_in(b->d, b->stream, b->on_card[i], b->host[i], sizeof b->host[i],
                               diag));
    }
    return MGX_OK;
}

static struct gpu_vendor_args args_of(const struct bench *b)
{
    return (struct gpu_vendor_args){.a = b->on_card[A],
                                    .b = b->on_card[B],
                                    .add = b->on_card[ADD],
                                    .bias = b->on_card[BIAS],
                                    .out = b->on_card[OUT],
                                    .workspace = b->on_card[WORK],
                                    .stream = b->stream};
}

static double expected(const struct bench *b, const struct gpu_vendor_product *p, int64_t batch,
                       int64_t i, int64_t j)
{
    double x = 0;
    for (int64_t k = 0; k < p->depth; k++)
        x += get(p->type, b->host[A], place(&p->a, batch, i, k)) *
             get(p->type, b->host[B], place(&p->b, batch, k, j));
    if (p->last & GPU_VENDOR_ADD)
        x += get(p->type, b->host[ADD], place(&p->add, batch, i, j));
    if (p->last & GPU_VENDOR_BIAS)
        x += get(p->type, b->host[BIAS], j);
    if (p->last & GPU_VENDOR_RELU)
        x = x > 0 ? x : 0;
    if (p->last & GPU_VENDOR_GELU)
        x = 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return x;
}

// One result of a convolution, by its place.
static double expected_window(const struct bench *b, const struct gpu_vendor_product *p,
                              const int64_t *y)
{
    const struct gpu_vendor_window *w = &p->window;
    const int64_t *lens = w->weights.lens;
    const int64_t first = y[1] / (lens[0] / (w->image.lens[1] / lens[1])) * lens[1];
    int64_t taps = lens[1];
    double x = 0;
    for (int i = 0; i < w->axes; i++)
        taps *= lens[i + 2];
    for (int64_t e = 0; e < taps; e++) {
        int64_t rest = e / lens[1], channel = e % lens[1];
        int64_t from = y[1] * w->weights.strides[0] + channel * w->weights.strides[1];
        int64_t at = y[0] * w->image.strides[0] + (first + channel) * w->image.strides[1];
        bool inside = true;
        for (int i = 0; i < w->axes; rest /= lens[i + 2], i++) {
            const int64_t tap = rest % lens[i + 2];
            const int64_t place = y[i + 2] * w->step[i] + tap * w->far[i] - w->before[i];
            inside = inside && place >= 0 && place < w->image.lens[i + 2];
            from += tap * w->weights.strides[i + 2];
            at += place * w->image.strides[i + 2];
        }
        if (inside)
            x += get(p->type, b->host[A], at) * get(p->type, b->host[B], from);
    }
    return x;
}

static int64_t find_result(const struct bench *b, const struct gpu_vendor_product *p, int64_t e,
                           double *want)
{
    const struct gpu_vendor_window *w = &p->window;
    int64_t y[GPU_VENDOR_AXES + 2], at = 0;
    if (!w->axes) {
        const int64_t j = e % p->columns, i = e / p->columns % p->rows;
        const int64_t batch = e / p->columns / p->rows;
        *want = expected(b, p, batch, i, j);
        return place(&p->out, batch, i, j);
    }
    for (int k = w->axes + 1; k >= 0; e /= w->result.lens[k--]) {
        y[k] = e % w->result.lens[k];
        at += y[k] * w->result.strides[k];
    }
    *want = expected_window(b, p, y);
    return at;
}

static int64_t count_results(const struct gpu_vendor_product *p)
{
    int64_t count = p->window.axes ? 1 : p->batches * p->rows * p->columns;
    for (int k = 0; p->window.axes && k < p->window.axes + 2; k++)
        count *= p->window.result.lens[k];
    return count;
}

// Everything that the product has no business with stays as it was.
static void compare(const struct bench *b, const struct gpu_vendor_product *p, const char *name)
{
    static float got[MOST];
    static bool seen[MOST];
    const double unit = p->type == MGX_FLOAT ? 0x1p-24 : p->type == MGX_HALF ? 0x1p-11 : 0x1p-8;
    struct mgx_diag diag = {.status = MGX_OK};
    memset(seen, 0, sizeof seen);
    CHECK_OK(b->d->api->copy_out(b->d, b->stream, got, b->on_card[OUT], sizeof got, &diag), diag);
    for (int64_t e = 0; e < count_results(p); e++) {
        double want;
        const int64_t at = find_result(b, p, e, &want);
        const double x = get(p->type, got, at);
        seen[at] = true;
        if (!(fabs(x - want) <= 1.01 * unit * fabs(want) + 1e-7))
            CHECK_FAIL("%s: %dx%dx%d, %d of them, last %u, %d axes: result %d is %.9g, not %.9g",
                       name, (int)p->rows, (int)p->columns, (int)p->depth, (int)p->batches, p->last,
                       p->window.axes, (int)e, x, want);
    }
    for (int k = 0; k < MOST; k++)
        if (!seen[k] && get(p->type, got, k) != get(p->type, b->host[OUT], k))
            CHECK_FAIL("%s: element %d of the result's memory was written", name, k);
}

// --- a product from the library to the result ---

static enum mgx_status run_choice(const struct bench *b, const struct gpu_vendor_library *library,
                                  const struct gpu_vendor_product *p,
                                  const struct gpu_vendor_choice *choice, struct mgx_diag *diag)
{
    const struct gpu_vendor_args args = args_of(b);
    struct gpu_vendor_call *call;
    TRY(gpu_vendor_make(library, p, choice, &call, diag));
    enum mgx_status status = gpu_vendor_run(call, &args, diag);
    if (status == MGX_OK)
        status = b->d->api->stream_wait(b->d, b->stream, diag);
    gpu_vendor_destroy(call);
    return status;
}

static enum mgx_status run_first(struct bench *b, const struct gpu_vendor *vendor,
                                 const struct gpu_vendor_product *p, struct mgx_diag *diag)
{
    const struct gpu_vendor_library *library;
    struct gpu_vendor_choice choices[GPU_VENDOR_CHOICES];
    int count;
    TRY(bench_fill(b, p->type, diag));
    TRY(gpu_vendor_open(vendor, b->d, &library, diag));
    TRY(gpu_vendor_rank(library, p, choices, &count, diag));
    return count ? run_choice(b, library, p, &choices[0], diag)
                 : mgx_fail(diag, MGX_INTERNAL, "no choices");
}

// First, while the library is not open: what failed once is asked again.
static void open_after_failure(const struct kit *kit, struct bench *b)
{
    struct mgx_diag diag = {.status = MGX_OK};
    const struct gpu_vendor *vendor = gpu_vendor_find(kit->name);
    const struct gpu_vendor_product p = random_product(vendor);
    set_failing(kit->create, 0);
    CHECK(run_first(b, vendor, &p, &diag) != MGX_OK);
    CHECK(strstr(diag.text, vendor->title));
    set_failing(NULL, 0);
    diag = (struct mgx_diag){.status = MGX_OK};
    CHECK_OK(run_first(b, vendor, &p, &diag), diag);
}

static void run_products(const struct kit *kit, struct bench *b)
{
    const struct gpu_vendor *vendor = gpu_vendor_find(kit->name);
    const struct gpu_vendor_library *library;
    struct mgx_diag diag = {.status = MGX_OK};
    CHECK_OK(gpu_vendor_open(vendor, b->d, &library, &diag), diag);
    for (int i = 0; i < PRODUCTS; i++) {
        const struct gpu_vendor_product p = random_product(vendor);
        struct gpu_vendor_choice choices[GPU_VENDOR_CHOICES];
        int count, ran = 0;
        CHECK_OK(gpu_vendor_rank(library, &p, choices, &count, &diag), diag);
        for (int k = 0; k < count; k++) {
            struct mgx_diag mine = {.status = MGX_OK};
            CHECK(choices[k].workspace <= sizeof b->host[WORK]);
            CHECK_OK(bench_fill(b, p.type, &diag), diag);
            if (run_choice(b, library, &p, &choices[k], &mine) == MGX_OK) {
                compare(b, &p, choices[k].name);
                ran++;
            } else {
                CHECK(strstr(mine.text, vendor->title));
            }
        }
        CHECK_INT(ran, 2); // the third has no code for the card
        CHECK_INT(count, 3);
    }
}

static void fail_every_call(const struct kit *kit, struct bench *b)
{
    static const char *const calls[] = {"cublasLtMatmulDescInit_internal",
                                        "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatrixLayoutInit_internal",
                                        "cublasLtMatrixLayoutSetAttribute",
                                        "cublasLtMatmulPreferenceInit_internal",
                                        "cublasLtMatmulPreferenceSetAttribute",
                                        "cublasLtMatmulAlgoGetHeuristic",
                                        "cublasLtMatmul",
                                        "hipblasLtMatmulDescCreate",
                                        "hipblasLtMatmulDescSetAttribute",
                                        "hipblasLtMatrixLayoutCreate",
                                        "hipblasLtMatrixLayoutSetAttribute",
                                        "hipblasLtMatmulPreferenceCreate",
                                        "hipblasLtMatmulPreferenceSetAttribute",
                                        "hipblasLtMatmulAlgoGetHeuristic",
                                        "hipblasLtMatmul",
                                        "rocblas_set_stream",
                                        "rocblas_set_workspace",
                                        "rocblas_gemm_strided_batched_ex",
                                        "cudnnSetStream",
                                        "cudnnBackendCreateDescriptor",
                                        "cudnnBackendSetAttribute",
                                        "cudnnBackendGetAttribute",
                                        "cudnnBackendFinalize",
                                        "cudnnBackendExecute",
                                        "miopenSetStream",
                                        "miopenCreateTensorDescriptor",
                                        "miopenSetTensorDescriptor",
                                        "miopenCreateConvolutionDescriptor",
                                        "miopenInitConvolutionNdDescriptor",
                                        "miopenSetConvolutionGroupCount",
                                        "miopenConvolutionForwardGetSolution",
                                        "miopenConvolutionForwardCompileSolution",
                                        "miopenConvolutionForwardImmediate"};
    const struct gpu_vendor *vendor = gpu_vendor_find(kit->name);
    const size_t prefix = strlen(vendor->name);
    struct gpu_vendor_product p = random_product(vendor);
    p.batches = 2;
    p.last = GPU_VENDOR_BIAS & vendor->last;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strncasecmp(calls[i], vendor->name, prefix) != 0)
            continue;
        for (int after = 0; after < 60; after += after < 20 ? 1 : 7) {
            struct mgx_diag diag = {.status = MGX_OK};
            set_failing(calls[i], after);
            const enum mgx_status status = run_first(b, vendor, &p, &diag);
            set_failing(NULL, 0);
            if (after == 0 && status == MGX_OK)
                CHECK_FAIL("%s failed, and nobody said so", calls[i]);
            if (status != MGX_OK) // an algorithm that cannot be asked about is none
                CHECK(strstr(diag.text, vendor->title) || strcmp(diag.text, "no choices") == 0);
        }
    }
}

static void on_every_kit(void (*fn)(const struct kit *kit, struct bench *b))
{
    static struct bench b;
    for (size_t i = 0; i < sizeof kits / sizeof *kits; i++) {
        struct mgx_diag diag = {.status = MGX_OK};
        if (!find_standin(&kits[i]))
            continue;
        memset(&b, 0, sizeof b);
        set_failing(NULL, 0);
        CHECK_OK(bench_make(&b, &kits[i], &diag), diag);
        const int live = count_live();
        fn(&kits[i], &b);
        CHECK_INT(count_live(), live);
        CHECK_INT(count_vendor_live(), 0);
        bench_fini(&b);
    }
}

CASE(what_failed_once_is_asked_again)
{
    on_every_kit(open_after_failure);
}

CASE(products_are_those_of_plain_loops)
{
    on_every_kit(run_products);
}

CASE(every_call_may_fail_and_nothing_is_lost)
{
    on_every_kit(fail_every_call);
}

// What rocBLAS says beside its products is a help, not a condition.
CASE(rocblas_need_not_know_its_solutions)
{
    static const char *const calls[] = {"rocblas_start_device_memory_size_query",
                                        "rocblas_stop_device_memory_size_query",
                                        "rocblas_gemm_strided_batched_ex_get_solutions"};
    static struct bench b;
    struct mgx_diag diag = {.status = MGX_OK};
    const struct kit *kit = &kits[2];
    if (!find_standin(kit))
        return;
    CHECK_OK(bench_make(&b, kit, &diag), diag);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct gpu_vendor *vendor = gpu_vendor_find(kit->name);
        const struct gpu_vendor_product p = random_product(vendor);
        set_failing(calls[i], 0);
        const enum mgx_status status = run_first(&b, vendor, &p, &diag);
        set_failing(NULL, 0);
        CHECK_OK(status, diag);
        compare(&b, &p, calls[i]);
    }
    bench_fini(&b);
}

CASE(a_library_is_for_its_own_cards)
{
    struct mgx_diag diag = {.status = MGX_OK};
    const struct gpu_vendor_library *library;
    struct gpu_device other = {.api = &gpu_api_opencl};
    CHECK(gpu_vendor_open(&gpu_vendor_cublaslt, &other, &library, &diag) == MGX_NOT_FOUND);
    CHECK_TEXT(diag.text, "cuBLASLt is for cuda, the card is opencl's");
    CHECK(!library);
    CHECK(!gpu_vendor_find("blas"));
}

TEST_MAIN(ROW(what_failed_once_is_asked_again) ROW(products_are_those_of_plain_loops)
              ROW(every_call_may_fail_and_nothing_is_lost) ROW(rocblas_need_not_know_its_solutions)
                  ROW(a_library_is_for_its_own_cards))
