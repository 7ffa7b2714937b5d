// SPDX-License-Identifier: MIT
// cuDNN's convolutions, by its backend descriptors (versions 8 and 9, whose attributes have the same
// numbers):
//
//     image, weights, result + window -> operation -> graph -> engine configurations, best guess
//     first -> plan; a run makes a pack of addresses and executes the plan
//
// Of floats of 32 bits it multiplies TF32 when it likes, so it is asked for them only where that is
// allowed; engines that add up in less than float are left out. The stream belongs to the handle, so
// a launch takes a lock; a pack of addresses is an object of the library's, made and dropped there.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/gpu/device/library.h"
#include "targets/gpu/vendor/vendor.h"

enum { // cudnnDataType_t, cudnnBackendAttributeType_t
    DATA_FLOAT = 0,
    DATA_HALF = 2,
    DATA_BF16 = 9,
    TYPE_HANDLE = 0,
    TYPE_DATA = 1,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_POINTER = 6,
    TYPE_CONVOLUTION = 7,
    TYPE_HEURISTIC = 8,
    TYPE_NOTE = 11,
    TYPE_DESCRIPTOR = 15,
};
enum { // cudnnBackendDescriptorType_t
    CONVOLUTION = 1,
    ENGINE = 2,
    CONFIG = 3,
    HEURISTIC = 4,
    PLAN = 5,
    OPERATION = 10,
    GRAPH = 15,
    PACK = 16,
    TENSOR = 17,
};
enum { // cudnnBackendAttributeName_t
    CONVOLUTION_TYPE = 100,
    CONVOLUTION_MODE = 101,
    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_STEPS = 103,
    CONVOLUTION_AFTER = 104,
    CONVOLUTION_BEFORE = 105,
    CONVOLUTION_AXES = 106,
    HEURISTIC_MODE = 200,
    HEURISTIC_GRAPH = 201,
    HEURISTIC_RESULTS = 202,
    CONFIG_ENGINE = 300,
    PLAN_HANDLE = 400,
    PLAN_CONFIG = 401,
    PLAN_WORKSPACE = 402,
    OPERATION_ALPHA = 700,
    OPERATION_BETA = 701,
    OPERATION_CONVOLUTION = 702,
    OPERATION_WEIGHTS = 703,
    OPERATION_IMAGE = 704,
    OPERATION_RESULT = 705,
    GRAPH_HANDLE = 800,
    GRAPH_OPERATIONS = 801,
    TENSOR_ALIGNMENT = 900,
    TENSOR_TYPE = 901,
    TENSOR_LENS = 902,
    TENSOR_STRIDES = 903,
    TENSOR_NAME = 906,
    PACK_NAMES = 1000,
    PACK_ADDRESSES = 1001,
    PACK_WORKSPACE = 1003,
    ENGINE_NOTES = 1303,
};
enum { CROSS_CORRELATION = 1, MODE_A = 3, NOTE_DOWN_CONVERT = 1, NOTE_LOW_SUMS = 2, NOTES = 16 };
enum { IMAGE, WEIGHTS, RESULT, TENSORS };

static struct calls {
    size_t (*version)(void);
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*make)(int type, void **descriptor);
    int (*drop)(void *descriptor);
    int (*finalize)(void *descriptor);
    int (*set)(void *descriptor, int name, int type, int64_t count, const void *values);
    int (*get)(void *descriptor, int name, int type, int64_t most, int64_t *count, void *values);
    int (*execute)(void *handle, void *plan, void *pack);
    const char *(*error_text)(int status);
} dnn;

#define AT(member) offsetof(struct calls, member)
static const struct gpu_symbol symbols[] = {
    {"cudnnGetVersion", AT(version), false},
    {"cudnnCreate", AT(create), false},
    {"cudnnSetStream", AT(set_stream), false},
    {"cudnnBackendCreateDescriptor", AT(make), false},
    {"cudnnBackendDestroyDescriptor", AT(drop), false},
    {"cudnnBackendFinalize", AT(finalize), false},
    {"cudnnBackendSetAttribute", AT(set), false},
    {"cudnnBackendGetAttribute", AT(get), false},
    {"cudnnBackendExecute", AT(execute), false},
    {"cudnnGetErrorString", AT(error_text), true},
};
#undef AT

static const char *const names[] = {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all handles

static enum mgx_status check(int status, const char *what, struct mgx_diag *diag)
{
    const char *text = status && dnn.error_text ? dnn.error_text(status) : NULL;
    return status == 0 ? MGX_OK
                       : mgx_fail(diag, MGX_DEVICE, "cuDNN: %s: %s (%d)", what,
                                  text ? text : "cudnnStatus_t", status);
}

static enum mgx_status open_library(struct gpu_vendor_library *library, struct mgx_diag *diag)
{
    TRY(gpu_library_open("cuDNN", names, symbols, MGX_COUNT(symbols), &dnn, diag));
    library->version = dnn.version();
    return check(dnn.create(&library->handle), "opening the library", diag);
}

// --- descriptors ---

struct call {
    struct gpu_vendor_call base;
    void *tensor[TENSORS], *convolution, *operation, *graph, *heuristic;
    void *config[GPU_VENDOR_CHOICES], *plan; // of the choice
    int config_count;
    size_t workspace;
};

static void destroy(struct gpu_vendor_call *call)
{
    struct call *k = (struct call *)call;
    void *const all[] = {k->plan,        k->heuristic,     k->graph,           k->operation,
                         k->convolution, k->tensor[IMAGE], k->tensor[WEIGHTS], k->tensor[RESULT]};
    for (int i = 0; i < GPU_VENDOR_CHOICES; i++)
        if (k->config[i])
            dnn.drop(k->config[i]);
    for (int i = 0; i < MGX_COUNT(all); i++)
        if (all[i])
            dnn.drop(all[i]);
    free(k);
}

static int set_one(void *descriptor, int name, int type, const void *value)
{
    return dnn.set(descriptor, name, type, 1, value);
}

static int make_tensor(void **out, int number, const struct gpu_vendor_product *p,
                       const struct gpu_vendor_tensor *t)
{
    const int type = p->type == MGX_HALF ? DATA_HALF : p->type == MGX_BF16 ? DATA_BF16 : DATA_FLOAT;
    const int64_t name = number + 1, alignment = p->alignment, rank = p->window.axes + 2;
    int status = dnn.make(TENSOR, out);
    if (status == 0)
        status = set_one(*out, TENSOR_TYPE, TYPE_DATA, &type);
    if (status == 0)
        status = dnn.set(*out, TENSOR_LENS, TYPE_INT64, rank, t->lens);
    if (status == 0)
        status = dnn.set(*out, TENSOR_STRIDES, TYPE_INT64, rank, t->strides);
    if (status == 0)
        status = set_one(*out, TENSOR_NAME, TYPE_INT64, &name);
    if (status == 0)
        status = set_one(*out, TENSOR_ALIGNMENT, TYPE_INT64, &alignment);
    return status == 0 ? dnn.finalize(*out) : status;
}

static int make_convolution(void **out, const struct gpu_vendor_window *w)
{
    const int type = DATA_FLOAT, mode = CROSS_CORRELATION;
    const int64_t axes = w->axes;
    const struct {
        int name;
        const int64_t *values;
    } lists[] = {{CONVOLUTION_DILATIONS, w->far},
                 {CONVOLUTION_STEPS, w->step},
                 {CONVOLUTION_BEFORE, w->before},
                 {CONVOLUTION_AFTER, w->after}};
    int status = dnn.make(CONVOLUTION, out);
    if (status == 0)
        status = set_one(*out, CONVOLUTION_TYPE, TYPE_DATA, &type);
    if (status == 0)
        status = set_one(*out, CONVOLUTION_MODE, TYPE_CONVOLUTION, &mode);
    if (status == 0)
        status = set_one(*out, CONVOLUTION_AXES, TYPE_INT64, &axes);
    for (int i = 0; i < MGX_COUNT(lists) && status == 0; i++)
        status = dnn.set(*out, lists[i].name, TYPE_INT64, axes, lists[i].values);
    return status == 0 ? dnn.finalize(*out) : status;
}

static int make_operation(struct call *k)
{
    const float one = 1, zero = 0;
    const struct {
        int name, type;
        const void *value;
    } parts[] = {{OPERATION_CONVOLUTION, TYPE_DESCRIPTOR, &k->convolution},
                 {OPERATION_IMAGE, TYPE_DESCRIPTOR, &k->tensor[IMAGE]},
                 {OPERATION_WEIGHTS, TYPE_DESCRIPTOR, &k->tensor[WEIGHTS]},
                 {OPERATION_RESULT, TYPE_DESCRIPTOR, &k->tensor[RESULT]},
                 {OPERATION_ALPHA, TYPE_FLOAT, &one},
                 {OPERATION_BETA, TYPE_FLOAT, &zero}};
    int status = dnn.make(OPERATION, &k->operation);
    for (int i = 0; i < MGX_COUNT(parts) && status == 0; i++)
        status = set_one(k->operation, parts[i].name, parts[i].type, parts[i].value);
    return status == 0 ? dnn.finalize(k->operation) : status;
}

static int make_graph(struct call *k, void *handle)
{
    int status = dnn.make(GRAPH, &k->graph);
    if (status == 0)
        status = set_one(k->graph, GRAPH_OPERATIONS, TYPE_DESCRIPTOR, &k->operation);
    if (status == 0)
        status = set_one(k->graph, GRAPH_HANDLE, TYPE_HANDLE, &handle);
    return status == 0 ? dnn.finalize(k->graph) : status;
}

static int make_configs(struct call *k)
{
    const int mode = MODE_A;
    int64_t count = 0;
    int status = dnn.make(HEURISTIC, &k->heuristic);
    if (status == 0)
        status = set_one(k->heuristic, HEURISTIC_GRAPH, TYPE_DESCRIPTOR, &k->graph);
    if (status == 0)
        status = set_one(k->heuristic, HEURISTIC_MODE, TYPE_HEURISTIC, &mode);
    if (status == 0)
        status = dnn.finalize(k->heuristic);
    for (int i = 0; i < GPU_VENDOR_CHOICES && status == 0; i++)
        status = dnn.make(CONFIG, &k->config[i]);
    if (status == 0)
        status = dnn.get(k->heuristic, HEURISTIC_RESULTS, TYPE_DESCRIPTOR, GPU_VENDOR_CHOICES,
                         &count, k->config);
    k->config_count = count < GPU_VENDOR_CHOICES ? (int)count : GPU_VENDOR_CHOICES;
    return status;
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
    int status = make_tensor(&k->tensor[IMAGE], IMAGE, p, &w->image);
    if (status == 0)
        status = make_tensor(&k->tensor[WEIGHTS], WEIGHTS, p, &w->weights);
    if (status == 0)
        status = make_tensor(&k->tensor[RESULT], RESULT, p, &w->result);
    if (status == 0)
        status = make_convolution(&k->convolution, w);
    if (status == 0)
        status = make_operation(k);
    if (status == 0)
        status = make_graph(k, library->handle);
    if (status == 0)
        status = make_configs(k);
    *out = status == 0 ? k : NULL;
    if (status != 0)
        destroy(&k->base);
    return check(status, "describing a convolution", diag);
}

// --- choices ---

// Does an engine round more than the operands' type does? One that does not say does not.
static bool rounds(void *config)
{
    int notes[NOTES];
    int64_t count = 0, found = 0;
    void *engine = NULL;
    bool low = false;
    if (dnn.make(ENGINE, &engine) != 0)
        return true;
    int status = dnn.get(config, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &found, &engine);
    if (status == 0)
        status = dnn.get(engine, ENGINE_NOTES, TYPE_NOTE, NOTES, &count, notes);
    for (int i = 0; i < count && i < NOTES && status == 0; i++)
        low = low || notes[i] == NOTE_DOWN_CONVERT || notes[i] == NOTE_LOW_SUMS;
    dnn.drop(engine);
    return low || status != 0;
}

static int make_plan(struct call *k, int number)
{
    int64_t workspace = 0, count = 0;
    int status = dnn.make(PLAN, &k->plan);
    if (status == 0)
        status = set_one(k->plan, PLAN_CONFIG, TYPE_DESCRIPTOR, &k->config[number]);
    if (status == 0)
        status = set_one(k->plan, PLAN_HANDLE, TYPE_HANDLE, &k->base.library->handle);
    if (status == 0)
        status = dnn.finalize(k->plan);
    if (status == 0)
        status = dnn.get(k->plan, PLAN_WORKSPACE, TYPE_INT64, 1, &count, &workspace);
    k->workspace = workspace > 0 ? (size_t)workspace : 0;
    return status;
}

// "cudnn 92600 #2": the third of its guesses.
static enum mgx_status rank(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p, struct gpu_vendor_choice *choices,
                            int *count, struct mgx_diag *diag)
{
    struct call *k;
    *count = 0;
    if (p->type == MGX_FLOAT && !p->tf32)
        return MGX_OK;
    TRY(describe(library, p, &k, diag));
    for (int i = 0; i < k->config_count; i++) {
        struct gpu_vendor_choice *choice = &choices[*count];
        if (!rounds(k->config[i]) && make_plan(k, i) == 0 && k->workspace <= GPU_VENDOR_WORKSPACE) {
            choice->workspace = k->workspace;
            memcpy(choice->algorithm, &i, sizeof i);
            snprintf(choice->name, sizeof choice->name, "cudnn %zu #%d", library->version, i);
            ++*count;
        }
        if (k->plan)
            dnn.drop(k->plan);
        k->plan = NULL;
    }
    destroy(&k->base);
    return MGX_OK;
}

static enum mgx_status make(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *p,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag)
{
    struct call *k;
    int number;
    memcpy(&number, choice->algorithm, sizeof number);
    TRY(describe(library, p, &k, diag));
    const int status = number < k->config_count ? make_plan(k, number) : -1;
    if (status == 0 && k->workspace <= choice->workspace) {
        *out = &k->base;
        return MGX_OK;
    }
    destroy(&k->base);
    return check(status ? status : -1, "planning a convolution", diag);
}

// --- runs ---

static int fill_pack(void *pack, const struct gpu_vendor_args *args)
{
    const int64_t name[TENSORS] = {IMAGE + 1, WEIGHTS + 1, RESULT + 1};
    const void *const address[TENSORS] = {args->a, args->b, args->out};
    int status = dnn.set(pack, PACK_NAMES, TYPE_INT64, TENSORS, name);
    if (status == 0)
        status = dnn.set(pack, PACK_ADDRESSES, TYPE_POINTER, TENSORS, address);
    if (status == 0)
        status = set_one(pack, PACK_WORKSPACE, TYPE_POINTER, &args->workspace);
    return status == 0 ? dnn.finalize(pack) : status;
}

static enum mgx_status run(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag)
{
    const struct call *k = (const struct call *)call;
    void *pack = NULL;
    int status = dnn.make(PACK, &pack);
    if (status == 0)
        status = fill_pack(pack, args);
    if (status == 0) {
        pthread_mutex_lock(&lock);
        status = dnn.set_stream(call->library->handle, args->stream);
        if (status == 0)
            status = dnn.execute(call->library->handle, k->plan, pack);
        pthread_mutex_unlock(&lock);
    }
    if (pack)
        dnn.drop(pack);
    return check(status, "convolving", diag);
}

const struct gpu_vendor gpu_vendor_cudnn = {.name = "cudnn",
                                            .title = "cuDNN",
                                            .api = &gpu_api_cuda,
                                            .windows = true,
                                            .open = open_library,
                                            .rank = rank,
                                            .make = make,
                                            .run = run,
                                            .destroy = destroy};
