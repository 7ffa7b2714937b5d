// SPDX-License-Identifier: MIT
// Matrix multiplication:  C[m][n] = end(sum over k of A[m][k] * B[k][n]),  batched.
//
//     packed B (a constant, packed once)              B: [panel][k][32 columns], the last panel
//     +------+------+----+                               16 wide when it has 16 columns or fewer
//     |      |      |    |
//     | k    |  k   | k  |   one panel is streamed through the caches while the block of A stays;
//     |      |      |    |   the next is prefetched during it
//     +------+------+----+
//     A block: rows of A that leave room for two panels in an L2 cache of 1 MiB, cut into equal
//     tiles of at most 14 rows. Where L2 is 2 MiB or more and there are rows enough, panels are 64
//     columns wide and tiles 6 rows high
//
// B may also be given raw, with any strides: panels are then packed as they come into per-thread
// scratch, or, for few rows, read in place (columns contiguous) or multiplied as dot products
// (depth contiguous). A with any strides is copied block by block unless its depth is contiguous.
//
// Strides: when rows of A lie a multiple of 4096 bytes apart, all rows of a tile fall into the same
// set of the L1 cache. Such rows are copied too, once for every thread.
//
// Types: f32, f16 and bf16 operands are multiplied as f32, or as bf16 with sums in f32 when asked
// for and the machine can; signed or unsigned bytes times signed ones give int32, or floats by a
// scale per column. What is not of the type that is multiplied is converted where it is copied
// anyway: A block by block, B when packed, C and residual at the tile. Packed B may stay in 16 bits
// or fewer (narrow.h): few rows are multiplied from it as it lies, for more rows each panel is
// unpacked into scratch once per block of rows.
//
// The plan is made once per shape; running it neither allocates nor fails. The result depends on
// the shape and the instruction set, never on the number of threads.
#pragma once

#include <stddef.h>

#include "targets/cpu/kernel/product/ahead.h"
#include "targets/cpu/kernel/tile/narrow.h"
#include "targets/cpu/kernel/tile/panel.h"
#include "targets/cpu/kernel/tile/tile.h"
#include "targets/cpu/machine/pool.h"

enum { MGX_GEMM_BATCH = 3 }; // batch dimensions

// Strides are in elements; those of batches may be 0 (the operand is the same for all).
struct mgx_gemm_desc {
    enum mgx_kernel_type type; // multiplied as F32, BF16 (or F32 without the instruction), S8
    enum mgx_kernel_type a_type, b_type, c_type; // in memory; the residual is of c's type
    mgx_isa isa;
    int threads; // the pool's
    int panel;   // columns of a panel, where there are such; 0: as suits the sizes and this machine
    int64_t m, n, k;
    int64_t batch[MGX_GEMM_BATCH]; // 0 counts as 1
    int64_t a_row, a_col, a_batch[MGX_GEMM_BATCH];
    int64_t b_row, b_col, b_batch[MGX_GEMM_BATCH]; // of raw B: what is packed, or multiplied
    int64_t c_row, c_batch[MGX_GEMM_BATCH];        // columns are contiguous
    int64_t residual_row, residual_batch[MGX_GEMM_BATCH];
    int a_zero;            // of bytes: what stands for zero, taken off every value of A
    const int32_t *b_zero; // [n] or NULL: the same of the columns of B, whose panels are wider
    bool packed;           // runs get B from mgx_gemm_pack
    // What will be packed, where that is known and is one matrix: how bytes are packed depends on
    // their values. NULL: it is not.
    const void *weights;
    struct mgx_narrow narrow; // packed B stays narrow; one matrix for all batches. Blocks are
                              // packed by mgx_narrow_pack_blocks, not here
    bool any_rows;            // other numbers of rows will want the same packed B
    bool hook_only;           // there is no C: the hook takes the values, from a tile in scratch
    struct mgx_end end;
};

enum mgx_gemm_method { MGX_GEMM_PANELS, MGX_GEMM_ROWS, MGX_GEMM_DOT, MGX_GEMM_NARROW };

struct mgx_gemm_plan {
    struct mgx_gemm_desc desc;
    const struct mgx_gemm_kernel *kernel;
    const struct mgx_end_kernel *ends; // of tiles in memory
    enum mgx_gemm_method method;
    int batches, m_parts, n_parts;
    int64_t units;                   // the product: rectangles of the output
    int tasks;                       // runs of units, dealt to threads
    int64_t groups;                  // of 32 bits along the depth
    int many;                        // rows that narrow panels are multiplied by at once; 0: few
    int64_t panel_chunks;            // of the largest panel, where there are such (chunk.h)
    int64_t block_rows, block_depth; // depth in groups
    int64_t copy_row, copy_bytes;    // of a block of A that is copied
    bool holds_a;                    // a thread keeps its copy from one unit to the next
    bool converts_c;                 // tiles are finished in scratch, then stored
    size_t packed_bytes;             // of all of B; 0 unless packed
    size_t thread_workspace;         // bytes for one thread, a multiple of 64
};

struct mgx_gemm_args {
    const void *a, *b;  // b: raw or packed, as planned; packed B is aligned to 64 bytes
    const float *bias;  // [n]; may be NULL
    const float *scale; // [n]; integer sums become floats by it; needed unless they stay
    // What integer sums begin with, where a_zero is known only now, for all columns of all panels:
    // that zero point, made larger by mgx_kernel_shift(), times minus the column's sum. NULL:
    // a_zero is what it is.
    const int32_t *start;
    const void *residual;
    void *c;
    void *workspace; // mgx_gemm_workspace() bytes, aligned to 64
    void *hook_user;
    const struct mgx_ahead *next; // by thread: what a later step reads first; NULL: not known
};

// MGX_INVALID for negative sizes, MGX_LIMIT when a size does not fit, MGX_UNSUPPORTED for types
// that do not go together, and for an epilogue on int32.
enum mgx_status mgx_gemm_plan_init(struct mgx_gemm_plan *plan, const struct mgx_gemm_desc *desc,
                                   struct mgx_diag *diag) MGX_NODISCARD;

size_t mgx_gemm_workspace(const struct mgx_gemm_plan *plan);

// Writes plan->packed_bytes bytes.
void mgx_gemm_pack(const struct mgx_gemm_plan *plan, const void *b, void *packed);
// A share of the same, in any order and by any thread; it reads about that share of B. A float B
// may lie at any address.
void mgx_gemm_pack_part(const struct mgx_gemm_plan *plan, const void *b, void *packed, int part,
                        int parts);

// What `thread` reads first of packed weights.
struct mgx_ahead mgx_gemm_first_read(const struct mgx_gemm_plan *plan, const void *packed,
                                     int thread);

void mgx_gemm_run(const struct mgx_gemm_plan *plan, const struct mgx_gemm_args *args,
                  struct mgx_pool *pool);
