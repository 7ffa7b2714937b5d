// SPDX-License-Identifier: MIT
// MIOpen's convolutions in its immediate mode, for AMD's cards:
//
//     image, weights, result + window -> solutions, the fastest by its records first -> one of them,
//     compiled once, then run by its number
//
// Declarations as of ROCm 5 to 7. Solutions by Fourier transforms and Winograd's method round in
// between and are left out; padding must be the same on both sides. The stream belongs to the handle,
// so a launch takes a lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/library.h"
#include "targets/gpu/vendor/vendor.h"

enum { // miopenDataType_t, miopenConvolutionMode_t, miopenConvAlgorithm_t
    DATA_HALF = 0,
    DATA_FLOAT = 1,
    DATA_BF16 = 5,
    MODE_CONVOLUTION = 0,
    BY_FFT = 2,
    BY_WINOGRAD = 3,
};
enum { IMAGE, WEIGHTS, RESULT, TENSORS, MOST_LENGTH = INT32_MAX };

struct solution { // miopenConvSolution_t
    float time;
    size_t workspace;
    uint64_t number;
    int algorithm;
};

static struct calls {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*version)(size_t *major, size_t *minor, size_t *patch);
    int (*tensor_create)(void **tensor);
    int (*tensor_set)(void *tensor, int type, int axes, const int *lens, const int *strides);
    int (*tensor_destroy)(void *tensor);
    int (*window_create)(void **window);
    int (*window_set)(void *window, int axes, const int *padding, const int *steps,
                      const int *dilations, int mode);
    int (*window_groups)(void *window, int groups);
    int (*window_destroy)(void *window);
    int (*solutions)(void *handle, void *weights, void *image, void *window, void *result,
                     size_t most, size_t *count, struct solution *solutions);
    int (*compile)(void *handle, void *weights, void *image, void *window, void *result,
                   uint64_t number);
    int (*convolve)(void *handle, void *weights, const void *w, void *image, const void *x,
                    void *window, void *result, void *y, void *workspace, size_t bytes,
                    uint64_t number);
    const char *(*error_text)(int status);
} dnn;

#define AT(member) offsetof(struct calls, member)
static const struct gpu_symbol symbols[] = {
    {"miopenCreate", AT(create), false},
    {"miopenSetStream", AT(set_stream), false},
    {"miopenGetVersion", AT(version), false},
    {"miopenCreateTensorDescriptor", AT(tensor_create), false},
    {"miopenSetTensorDescriptor", AT(tensor_set), false},
    {"miopenDestroyTensorDescriptor", AT(tensor_destroy), false},
    {"miopenCreateConvolutionDescriptor", AT(window_create), false},
    {"miopenInitConvolutionNdDescriptor", AT(window_set), false},
    {"miopenSetConvolutionGroupCount", AT(window_groups), false},
    {"miopenDestroyConvolutionDescriptor", AT(window_destroy), false},
    {"miopenConvolutionForwardGetSolution", AT(solutions), false},
    {"miopenConvolutionForwardCompileSolution", AT(compile), false},
    {"miopenConvolutionForwardImmediate", AT(convolve), false},
    {"miopenGetErrorString", AT(error_text), true},
};
#undef AT

static const char *const names[] = {"libMIOpen.so.1", "libMIOpen.so", "/opt/rocm/lib/libMIOpen.so",
                                    "/opt/dtk/lib/libMIOpen.so", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all handles

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    const char *text = status && dnn.error_text ? dnn.error_text(status) : NULL;
    return status == 0 ? MGX_OK
                       : mgx_fail(diag, MGX_DEVICE, "MIOpen: %s: %s (%d)", what,
                                  text ? text : "miopenStatus_t", status);
}

static enum mgx_status open_library(struct gpu_vendor_library *library, struct mgx_diag *diag)
{
    size_t major = 0, minor = 0, patch = 0;
    TRY(gpu_library_open("MIOpen", names, symbols, MGX_COUNT(symbols), &dnn, diag));
    if (dnn.version(&major, &minor, &patch) == 0)
        library->version = major * 10000 + minor * 100 + patch;
    return check(dnn.create(&library->handle), "opening the library", diag);
}

// --- descriptors ---

struct call {
    struct gpu_vendor_call base;
    void *tensor[TENSORS], *window;
    uint64_t number;
    size_t workspace;
};

static void destroy(struct gpu_vendor_call *call)
{
    struct call *k = (struct call *)call;
    for (int i = 0; i < TENSORS; i++)
        if (k->tensor[i])
            dnn.tensor_destroy(k->tensor[i]);
    if (k->window)
        dnn.window_destroy(k->window);
    free(k);
}

static int make_tensor(void **out, const struct gpu_vendor_product *p,
                       const struct gpu_vendor_tensor *t)
{
    const int type = p->type == MGX_HALF ? DATA_HALF : p->type == MGX_BF16 ? DATA_BF16 : DATA_FLOAT;
    const int rank = p->window.axes + 2;
    int lens[GPU_VENDOR_AXES + 2], strides[GPU_VENDOR_AXES + 2];
    for (int i = 0; i < rank; i++) {
        lens[i] = (int)t->lens[i];
        strides[i] = (int)t->strides[i];
    }
    const int status = dnn.tensor_create(out);
    return status == 0 ? dnn.tensor_set(*out, type, rank, lens, strides) : status;
}

static int make_window(void **out, const struct gpu_vendor_window *w)
{
    int padding[GPU_VENDOR_AXES], steps[GPU_VENDOR_AXES], dilations[GPU_VENDOR_AXES];
    for (int i = 0; i < w->axes; i++) {
        padding[i] = (int)w->before[i];
        steps[i] = (int)w->step[i];
        dilations[i] = (int)w->far[i];
    }
    int status = dnn.window_create(out);
    if (status == 0)
        status = dnn.window_set(*out, w->axes, padding, steps, dilations, MODE_CONVOLUTION);
    return status == 0 ? dnn.window_groups(*out, (int)(w->image.lens[1] / w->weights.lens[1]))
                       : status;
}

static enum mgx_status describe(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *p, struct call **out,
                                struct mgx_diag *diag)
{
    const struct gpu_vendor_window *w = &p->window;
    struct call *k = calloc(1, sizeof *k);
    if (!k)
        return mgx_fail_memory(diag);
    k->base.library = library;
    int status = make_tensor(&k->tensor[IMAGE], p, &w->image);
    if (status == 0)
        status = make_tensor(&k->tensor[WEIGHTS], p, &w->weights);
    if (status == 0)
        status = make_tensor(&k->tensor[RESULT], p, &w->result);
    if (status == 0)
        status = make_window(&k->window, w);
    *out = status == 0 ? k : NULL;
    if (status != 0)
        destroy(&k->base);
    return check(status, "describing a convolution", diag);
}

// --- choices ---

static bool window_fits(const struct gpu_vendor_window *w)
{
    const struct gpu_vendor_tensor *const all[] = {&w->image, &w->weights, &w->result};
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] != w->after[i])
            return false;
    for (int t = 0; t < TENSORS; t++)
        for (int i = 0; i < w->axes + 2; i++)
            if (all[t]->lens[i] > MOST_LENGTH || all[t]->strides[i] > MOST_LENGTH)
                return false;
    return true;
}

// "miopen 30200 s85": the library's number of the solution.
static enum mgx_status rank(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct gpu_vendor_choice *choices,
                            int *count, struct mgx_diag *diag)
{
    struct solution solutions[GPU_VENDOR_CHOICES];
    struct call *k;
    size_t found = 0;
    *count = 0;
    if (!window_fits(&p->window))
        return MGX_OK;
    TRY(describe(library, p, &k, diag));
    pthread_mutex_lock(&lock);
    const int status =
        dnn.solutions(library->handle, k->tensor[WEIGHTS], k->tensor[IMAGE], k->window,
                      k->tensor[RESULT], GPU_VENDOR_CHOICES, &found, solutions);
    pthread_mutex_unlock(&lock);
    destroy(&k->base);
    for (size_t i = 0; i < found && i < GPU_VENDOR_CHOICES && status == 0; i++) {
        const struct solution *s = &solutions[i];
        struct gpu_vendor_choice *choice = &choices[*count];
        if (s->algorithm == BY_FFT || s->algorithm == BY_WINOGRAD ||
            s->workspace > GPU_VENDOR_WORKSPACE)
            continue;
        choice->workspace = s->workspace;
        memcpy(choice->algorithm, &s->number, sizeof s->number);
        snprintf(choice->name, sizeof choice->name, "miopen %zu s%llu", library->version,
                 (unsigned long long)s->number);
        ++*count;
    }
    return check(status, "listing solutions", diag);
}

static enum mgx_status make(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag)
{
    struct call *k;
    TRY(describe(library, p, &k, diag));
    memcpy(&k->number, choice->algorithm, sizeof k->number);
    k->workspace = choice->workspace;
    pthread_mutex_lock(&lock);
    const int status = dnn.compile(library->handle, k->tensor[WEIGHTS], k->tensor[IMAGE], k->window,
                                   k->tensor[RESULT], k->number);
    pthread_mutex_unlock(&lock);
    if (status == 0)
        *out = &k->base;
    else
        destroy(&k->base);
    return check(status, "compiling a solution", diag);
}

static enum mgx_status run(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag)
{
    const struct call *k = (const struct call *)call;
    void *handle = call->library->handle;
    pthread_mutex_lock(&lock);
    int status = dnn.set_stream(handle, args->stream);
    if (status == 0)
        status =
            dnn.convolve(handle, k->tensor[WEIGHTS], args->b, k->tensor[IMAGE], args->a, k->window,
                         k->tensor[RESULT], args->out, args->workspace, k->workspace, k->number);
    pthread_mutex_unlock(&lock);
    return check(status, "convolving", diag);
}

const struct gpu_vendor gpu_vendor_miopen = {.name = "miopen",
                                             .title = "MIOpen",
                                             .api = &gpu_api_hip,
                                             .windows = true,
                                             .open = open_library,
                                             .rank = rank,
                                             .make = make,
                                             .run = run,
                                             .destroy = destroy};
