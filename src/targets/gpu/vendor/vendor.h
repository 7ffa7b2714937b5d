// SPDX-License-Identifier: MIT
// Products and convolutions by the libraries of a card's maker: candidates beside our own kernels, never a condition.
//
//     struct gpu_vendor            cuBLASLt, hipBLASLt, rocBLAS, cuDNN, MIOpen: one const object each
//       struct gpu_vendor_library  it, open on one card; one for the process, kept to its end
//         choice                   one of its algorithms for a product, by name
//           call                   a product by that algorithm, with nothing left to decide
//
// A library is opened by name at run time, with declarations of our own, and only when somebody
// asks for it: an ordinary compilation loads none. What a file names the version range of holds for
// the declarations in it.
//
// Holds: all of it may be called from any thread; a call may be run by several threads at once, on
// several streams, and while a stream is recorded. Running allocates nothing of ours and no memory of
// the card's: the library works in `workspace`. Every failure is a status with one sentence; a
// product that a library has no algorithm for is no failure, it has no choices.
#pragma once

#include "ir/type.h"
#include "targets/gpu/device/device.h"

enum gpu_vendor_last { // what is done to the sum, in this order
    GPU_VENDOR_ADD = 1,
    GPU_VENDOR_BIAS = 2,
    GPU_VENDOR_RELU = 4,
    GPU_VENDOR_GELU = 8, // by tanh
};

struct gpu_vendor_matrix { // in elements
    int64_t line;          // from one line to the next
    int64_t batch;         // from one batch entry to the next; 0: all are the same
    bool by_column;        // lines are columns
};

enum { GPU_VENDOR_AXES = 3 }; // of an image, at most

struct gpu_vendor_tensor { // images or output channels, channels, height, width, ...
    int64_t lens[GPU_VENDOR_AXES + 2], strides[GPU_VENDOR_AXES + 2];
};

struct gpu_vendor_window {
    int axes; // of an image; 0: this is no convolution
    int64_t step[GPU_VENDOR_AXES], far[GPU_VENDOR_AXES];
    int64_t before[GPU_VENDOR_AXES], after[GPU_VENDOR_AXES]; // padding
    struct gpu_vendor_tensor image, weights, result;         // groups by their channels
};

// out = last(a b): rows x depth times depth x columns, for every batch entry. Sums are floats of 32
// bits; of floats they are made without rounding operands, unless `tf32` allows it.
struct gpu_vendor_product {
    enum mgx_type type; // of all operands and of the result: half, bf16 or float
    bool tf32;
    int64_t rows, columns, depth, batches;
    bool matrices;                           // are these what they are? Else it is but a window
    struct gpu_vendor_matrix a, b, add, out; // the last two by rows
    struct gpu_vendor_window window;         // image a, weights b
    unsigned last;                           // enum gpu_vendor_last; the bias is one line of `out`
    unsigned alignment;                      // bytes that all addresses are multiples of
};

enum {
    GPU_VENDOR_CHOICES = 8, // of one library
    GPU_VENDOR_NAME = 96,
    GPU_VENDOR_ALGORITHM = 64,
    GPU_VENDOR_ALIGNMENT = 256, // of a workspace
    GPU_VENDOR_WORKSPACE = 32 << 20
};

struct gpu_vendor_choice {
    char name[GPU_VENDOR_NAME]; // "cublaslt 130401 a66 t20 s35": library, version, algorithm
    size_t workspace;
    _Alignas(8) unsigned char algorithm[GPU_VENDOR_ALGORITHM]; // what the library says of it
};

struct gpu_vendor;

struct gpu_vendor_library {
    const struct gpu_vendor *vendor;
    struct gpu_device *device;
    void *handle;
    size_t version;
};

struct gpu_vendor_call { // first member of a library's own
    const struct gpu_vendor_library *library;
};

struct gpu_vendor_args {
    const void *a, *b, *add, *bias;
    void *out, *workspace, *stream;
};

// Its functions find the card current.
struct gpu_vendor {
    const char *name, *title; // "cublaslt", "cuBLASLt"
    const struct gpu_api *api;
    unsigned last; // what it does to sums
    bool windows;  // convolutions are what it does; else products of matrices
    enum mgx_status (*open)(struct gpu_vendor_library *library, struct mgx_diag *diag);
    // The best choices first, as the library guesses.
    enum mgx_status (*rank)(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *product,
                            struct gpu_vendor_choice *choices, int *count, struct mgx_diag *diag);
    enum mgx_status (*make)(const struct gpu_vendor_library *library,
                            const struct gpu_vendor_product *product,
                            const struct gpu_vendor_choice *choice, struct gpu_vendor_call **out,
                            struct mgx_diag *diag);
    enum mgx_status (*run)(const struct gpu_vendor_call *call, const struct gpu_vendor_args *args,
                           struct mgx_diag *diag);
    void (*destroy)(struct gpu_vendor_call *call);
};

extern const struct gpu_vendor gpu_vendor_cublaslt, gpu_vendor_hipblaslt, gpu_vendor_rocblas,
    gpu_vendor_cudnn, gpu_vendor_miopen;

// All of them; ends with NULL.
extern const struct gpu_vendor *const gpu_vendors[];

// The library of that name; NULL: there is none.
const struct gpu_vendor *gpu_vendor_find(const char *name);
// Opens a library on a card, or shares the one that is open. What failed once is asked again.
enum mgx_status gpu_vendor_open(const struct gpu_vendor *vendor, struct gpu_device *device,
                                const struct gpu_vendor_library **out,
                                struct mgx_diag *diag) MGX_NODISCARD;
// GPU_VENDOR_CHOICES at most, each under a name of its own.
enum mgx_status gpu_vendor_rank(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *product,
                                struct gpu_vendor_choice *choices, int *count,
                                struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_vendor_make(const struct gpu_vendor_library *library,
                                const struct gpu_vendor_product *product,
                                const struct gpu_vendor_choice *choice,
                                struct gpu_vendor_call **out, struct mgx_diag *diag) MGX_NODISCARD;
// Gives the product to a stream.
enum mgx_status gpu_vendor_run(const struct gpu_vendor_call *call,
                               const struct gpu_vendor_args *args,
                               struct mgx_diag *diag) MGX_NODISCARD;
void gpu_vendor_destroy(struct gpu_vendor_call *call); // NULL is allowed
