// SPDX-License-Identifier: MIT
// Depthwise convolution: groups of one channel, or of as many in as out, up to 8, or of one in and
// several out. The output's rows are dealt to tasks in blocks, or vectors of channels when the
// image is small; see dw.h for what is done in a row.
//
//     task: a range of blocks of rows, a range of vectors of channels
//       block: so many rows that their input stays in L2
//         strip of vectors of channels
//           pair of rows
//             7 pixels
//               vector of channels
//
// Vectors come before pixels, so memory is read in the order in which it lies. Pixels lie a
// multiple of a power of 2 apart in most networks: those of one vector fall into few sets of the L1
// cache, and no prefetcher follows them.
//
// Everything is multiplied as floats, which are exact for bytes: the sums of 512 products stay
// below 2^24. Input lines of other types are converted into a ring of lines that the kernel's
// height needs, results leave through a row of scratch; their blocks are single rows. So are those
// of groups with several channels out: in the ring each input channel stands once for each of them.
//
// With a feed the input of a block is made in a ring of rows, those that are not there yet: each
// thread has a ring, and every task begins with an empty one. The rows stay in L2, which is what it
// is for: an expansion by 6 is written and read once each otherwise, often past L2.
//
// Weights are packed [vector of channels][kernel row][member][kernel column][lane], zero beyond the
// last channel.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "targets/cpu/kernel/image/conv_plan.h"
#include "targets/cpu/kernel/image/dw.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/product/output.h"

// BLOCK_BYTES: of L2, for a block's input lines. The results of a step, 14 pixels of STEP_VECTORS,
// stay in L1 until they are finished.
enum {
    MAX_BYTE_PRODUCTS = 512,
    MAX_COPIES = 8,
    BLOCK_BYTES = 384 << 10,
    STEP_VECTORS = 24,
    MAX_BLOCK_ROWS = 64,
    MIN_TASK_BLOCKS = 4, // with a feed
    RING_GAP = 16 // floats between the rows of a ring, which keep them apart in the feed's walk
};

static bool makes_floats(const struct mgx_conv_desc *f)
{
    const bool narrow = f->type == MGX_KERNEL_BF16 && f->x_type == f->type &&
                        f->w_type == f->type && mgx_kernel_is_plain(f->y_type);
    return narrow || (mgx_conv_floats(f) && mgx_kernel_is_plain(f->type));
}

static bool feed_fits(const struct mgx_conv_desc *d)
{
    const struct mgx_conv_desc *f = d->feed;
    bool fits = (mgx_conv_floats(d) || mgx_conv_rounds(d)) && makes_floats(f) &&
                mgx_kernel_is_plain(d->type) && f->batch == d->batch && f->groups == 1 &&
                f->out_channels == d->in_channels && !f->x_scaled && !f->transposed && !f->feed &&
                d->in[0] == 1 && d->out[0] == 1 && d->kernel[0] == 1;
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        fits = fits && f->out[i] == d->in[i];
    return fits;
}

// Output channels of each input channel; 1 where groups have as many in as out.
static int64_t copies_of(const struct mgx_conv_plan *plan)
{
    return plan->group_in == 1 && plan->d.groups > 1 ? plan->group_out : 1;
}

// Whether the kernel reads input lines, and writes results, where they lie in memory.
static bool works_in_place(const struct mgx_conv_plan *plan)
{
    return (mgx_conv_floats(&plan->d) || mgx_conv_rounds(&plan->d)) && copies_of(plan) == 1;
}

static bool depthwise_fits(const struct mgx_conv_plan *plan)
{
    const int64_t members = plan->group_in, copies = copies_of(plan);
    if (copies > MAX_COPIES || (copies > 1 && (plan->d.feed || !mgx_conv_floats(&plan->d))))
        return false;
    const struct mgx_end_step *reader = mgx_end_reader(&plan->d.end);
    if (reader && reader->kind != MGX_END_MIX && !mgx_conv_rounds(&plan->d) &&
        reader->type != plan->d.y_type)
        return false;
    return !plan->d.transposed && members * copies == plan->group_out &&
           (plan->d.feed ? feed_fits(&plan->d) : plan->d.x_channel == 1) &&
           (mgx_kernel_is_float(plan->d.type) ||
            mgx_conv_taps(&plan->d) * members <= MAX_BYTE_PRODUCTS) &&
           (members == 1 || members == 2 || members == 4 || members == 8) &&
           plan->kernel->vector % members == 0;
}

// A product every cycle at best, and load-bound.
static double depthwise_cost(const struct mgx_conv_plan *plan)
{
    const double vectors = (double)mgx_ceil_div(plan->d.out_channels, plan->kernel->vector);
    const double products = (double)(mgx_conv_taps(&plan->d) * plan->group_in);
    const struct mgx_conv_desc *d = &plan->d;
    const double copied =
        copies_of(plan) > 1
            ? (double)(d->batch * d->in[0] * d->in[1] * d->in[2]) * (double)d->out_channels
            : 0;
    return mgx_conv_seconds(
        plan, 1.5 * (double)mgx_conv_pixels(d) * vectors * (products + 4) + copied, 0);
}

static int64_t vectors_of(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(plan->d.out_channels, plan->depthwise->vector);
}

// Most input lines of a pair of output rows.
static int64_t lines_of(const struct mgx_conv_desc *d)
{
    return 2 * d->kernel[0] * d->kernel[1];
}

// Input lines along dimension i that the kernel reaches from one output row.
static int64_t reach_of(const struct mgx_conv_desc *d, int i)
{
    assert(i >= 0 && i < MGX_CONV_DIMS);
    const int64_t reach = (mgx_max_i64(d->kernel[i], 1) - 1) * d->dilation[i] + 1;
    return mgx_max_i64(mgx_min_i64(reach, d->in[i]), 1);
}

static int64_t slots_of(const struct mgx_conv_desc *d)
{
    return reach_of(d, 0) * reach_of(d, 1);
}

// Channels of one part, at most.
static int64_t part_channels(const struct mgx_conv_plan *plan)
{
    return mgx_ceil_div(vectors_of(plan), plan->n_parts) * plan->depthwise->vector;
}

// Scratch of a thread: the pairs of rows of a block; their lines and two kernel rows of each; for
// types other than float
// the ring of converted lines, which line each slot holds, a row of results and one of residuals.
// Behind them the rows of the feed's ring, and its scratch.
struct layout {
    size_t lines, kernel_rows, tags, ring, results, residual, made, feed, end;
};

// One or two rows of the output, and where their lines are in the block's list.
struct pair {
    int64_t y;
    int rows, first_line, line_count;
};

static struct layout layout_of(const struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const size_t channels = (size_t)part_channels(plan) * sizeof(float);
    const bool floats = works_in_place(plan);
    const size_t line = floats ? 0 : mgx_align64((size_t)d->in[2] * channels),
                 residual = floats ? 0 : mgx_align64((size_t)d->out[2] * channels),
                 result = floats && mgx_conv_rounds(d)
                              ? mgx_align64((size_t)(plan->block_rows * d->out[2]) * channels)
                              : residual,
                 slots = floats ? 0 : (size_t)slots_of(d);
    const size_t pairs = (size_t)(plan->block_rows + 1) / 2, lines = pairs * (size_t)lines_of(d);
    struct layout l;
    l.lines = mgx_align64(pairs * sizeof(struct pair));
    l.kernel_rows = l.lines + mgx_align64(lines * sizeof(float *));
    l.tags = l.kernel_rows + mgx_align64(2 * lines * sizeof(int));
    l.ring = l.tags + mgx_align64(slots * sizeof(int64_t));
    l.results = l.ring + slots * line;
    l.residual = l.results + result;
    l.made = l.residual + residual;
    l.feed = l.made +
             (plan->feed ? mgx_align64((size_t)(plan->ring * d->x_space[1]) * sizeof(float)) : 0);
    l.end = l.feed + (plan->feed ? plan->feed->thread_workspace : 0);
    return l;
}

// Cuts planes of the output into blocks; plan->rows counts the blocks.
static void set_blocks(struct mgx_conv_plan *plan)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t line = d->in[2] * d->out_channels * (int64_t)sizeof(float);
    const int64_t lines = BLOCK_BYTES / mgx_max_i64(line, 1) - reach_of(d, 1);
    int64_t rows = mgx_min_i64(mgx_max_i64(lines / d->stride[1], 2), MAX_BLOCK_ROWS);
    rows = works_in_place(plan) ? mgx_min_i64(rows & ~(int64_t)1, d->out[1]) : 1;
    plan->block_rows = mgx_max_i64(rows, 1);
    plan->chunks = mgx_ceil_div(d->out[1], plan->block_rows);
    plan->rows = d->batch * d->out[0] * plan->chunks;
}

// A plan whose rows may be asked for one by one, by the better of the two methods for that.
static enum mgx_status create_feed(const struct mgx_conv_desc *f, struct mgx_conv_plan **out,
                                   struct mgx_diag *diag)
{
    TRY(mgx_conv_plan_start(f, out, diag));
    const bool direct = mgx_conv_direct.fits(*out);
    return mgx_conv_plan_use(*out, direct ? MGX_CONV_DIRECT : MGX_CONV_STRIP,
                             direct ? &mgx_conv_direct : &mgx_conv_strip, diag);
}

// The rows that a block reads fit in the ring, which stands for x from here on.
static enum mgx_status prepare_feed(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    struct mgx_conv_desc *d = &plan->d, f = *d->feed;
    plan->ring = (plan->block_rows - 1) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1] + 1;
    plan->ring = mgx_min_i64(plan->ring, d->in[1]);
    d->x_channel = 1;
    d->x_space[2] = d->in_channels;
    d->x_space[1] = d->in[2] * d->in_channels + RING_GAP;
    d->x_batch = d->x_space[0] = 0;
    f.threads = 1;
    f.y_batch = 0;
    memcpy(f.y_space, d->x_space, sizeof f.y_space);
    TRY(create_feed(&f, &plan->feed, diag));
    plan->feed->ring = plan->ring;
    d->feed = &plan->feed->d;
    return MGX_OK;
}

// However little there is to do with it, an image that another step's threads have made is read by
// as many: from another core's cache it would take one thread as long. A share of it is worth
// waking a thread for.
static int64_t wanted_tasks(const struct mgx_conv_desc *d)
{
    enum { SHARE = 64 << 10 };
    const double values = (double)mgx_conv_pixels(d) * (double)d->out_channels;
    const double inputs =
        (double)d->batch * (double)(d->in[0] * d->in[1] * d->in[2] * d->in_channels);
    const int64_t tasks = mgx_split_tasks(
        values * (double)(2 * mgx_conv_taps(d) + 8 * MGX_WORK_PER_BYTE), d->threads);
    const int64_t shares = (int64_t)(inputs * sizeof(float) / SHARE);
    return mgx_max_i64(tasks, mgx_min_i64(shares, d->threads));
}

// Vectors read nothing in common, blocks share the rows that their kernels overlap on. Yet rows are
// what other steps deal to the same threads: a thread that takes vectors of all rows reads half of
// them from another core's cache, which takes longer than the arithmetic. So vectors are dealt out
// where rows do not go round evenly.
static void set_parts(struct mgx_conv_plan *plan, int64_t tasks)
{
    assert(tasks >= 1);
    const int64_t threads = mgx_max_i64(plan->d.threads, 1);
    plan->m_parts = (int)mgx_min_i64(plan->rows, tasks);
    plan->n_parts = 1;
    if (tasks > 1 && plan->m_parts < 4 * threads && plan->m_parts % threads)
        plan->n_parts = (int)mgx_min_i64(vectors_of(plan), threads);
}

static enum mgx_status depthwise_prepare(struct mgx_conv_plan *plan, struct mgx_diag *diag)
{
    const struct mgx_conv_desc *d = &plan->d;
    plan->depthwise = mgx_dw_kernel(d->isa);
    plan->kernel = mgx_gemm_kernel(MGX_KERNEL_F32, d->isa);
    const int64_t floats =
        vectors_of(plan) * mgx_conv_taps(d) * plan->group_in * plan->depthwise->vector;
    if (!mgx_mul_size((size_t)floats, sizeof(float), &plan->packed_bytes))
        return mgx_fail(diag, MGX_LIMIT, "packed weights of %lld channels do not fit",
                        (long long)d->out_channels);
    set_blocks(plan);
    const int64_t tasks = wanted_tasks(d);
    if (d->feed) {
        // Tasks make the rows that their kernels overlap on twice: few tasks.
        TRY(prepare_feed(plan, diag));
        plan->n_parts = 1;
        plan->m_parts = (int)mgx_min_i64(
            tasks, mgx_max_i64(plan->rows / MIN_TASK_BLOCKS, mgx_min_i64(plan->rows, d->threads)));
        plan->m_parts = plan->m_parts > 1 ? plan->m_parts : 1;
        plan->thread_workspace = layout_of(plan).end;
        return MGX_OK;
    }
    set_parts(plan, tasks);
    plan->thread_workspace = layout_of(plan).end;
    return MGX_OK;
}

// The weight of kernel element (z, y, x) from member m to an output channel.
static float weight_at(const struct mgx_conv_plan *plan, const char *weights, int64_t channel,
                       int64_t m, const int64_t at[MGX_CONV_DIMS])
{
    assert(channel >= 0);
    const struct mgx_conv_desc *d = &plan->d;
    if (channel >= d->out_channels)
        return 0.0f;
    int64_t offset = plan->w_first + channel / plan->group_out * d->w_group +
                     channel % plan->group_out * d->w_out + m * d->w_in;
    for (int i = 0; i < MGX_CONV_DIMS; i++)
        offset += at[i] * d->w_space[i];
    float value;
    mgx_convert(d->isa, d->w_type, MGX_KERNEL_F32)(weights + offset * mgx_kernel_size(d->w_type),
                                                   &value, 1);
    return d->w_zero ? value - (float)d->w_zero[channel] : value;
}

static void depthwise_pack(const struct mgx_conv_plan *plan, const void *weights, void *packed,
                           int part, int parts)
{
    const struct mgx_conv_desc *d = &plan->d;
    const int vector = plan->depthwise->vector;
    const int64_t begin = mgx_part_begin(vectors_of(plan), part, parts);
    const int64_t end = mgx_part_begin(vectors_of(plan), part + 1, parts);
    float *to = (float *)packed + begin * vector * mgx_conv_taps(d) * plan->group_in;
    int64_t at[MGX_CONV_DIMS];
    for (int64_t v = begin; v < end; v++)
        for (at[0] = 0; at[0] < d->kernel[0]; at[0]++)
            for (at[1] = 0; at[1] < d->kernel[1]; at[1]++)
                for (int64_t m = 0; m < plan->group_in; m++)
                    for (at[2] = 0; at[2] < d->kernel[2]; at[2]++)
                        for (int lane = 0; lane < vector; lane++)
                            *to++ = weight_at(plan, weights, v * vector + lane, m, at);
}

// --- running ---

struct job {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
};

// A range of rows and of channels.
struct part {
    const struct mgx_conv_plan *plan;
    const struct mgx_conv_args *args;
    int64_t v_begin, v_end;
    int64_t first, channels; // those of the vectors
    int thread;
    // scratch; see struct layout
    struct pair *pairs;
    const float **lines;
    int *kernel_rows;
    int64_t *tags;
    float *ring, *results, *residual;
    struct mgx_conv_args feed; // y: the ring of rows
    char *feed_own;
    int64_t made_n, made_end; // rows of which image are in it, up to which
    // of the current block
    int64_t n, z, y;
    int pair_count, line_count;
};

// An input line, of the part's channels.
static const float *direct_line(const struct part *part, int64_t z, int64_t y)
{
    const struct mgx_conv_desc *d = &part->plan->d;
    if (part->plan->feed)
        return (const float *)part->feed.y + y % part->plan->ring * d->x_space[1] + part->first;
    return (const float *)part->args->x + part->n * d->x_batch + z * d->x_space[0] +
           y * d->x_space[1] + part->first;
}

// Floats of a line, each of them as often as it has channels out.
static void copy_line(const struct part *part, const float *from, float *line)
{
    const struct mgx_conv_desc *d = &part->plan->d;
    const int64_t copies = copies_of(part->plan), skipped = part->first % copies;
    for (int64_t x = 0; x < d->in[2]; x++, from += d->x_space[2], line += part->channels) {
        int64_t c = 0;
        if (copies == 2 && !skipped)
            for (; c + 1 < part->channels; c += 2)
                line[c] = line[c + 1] = from[c / 2];
        for (; c < part->channels; c++)
            line[c] = from[(skipped + c) / copies];
    }
}

// The same converted, less the zero point, from the ring when it is there.
static const float *converted_line(const struct part *part, int64_t z, int64_t y)
{
    const struct mgx_conv_desc *d = &part->plan->d;
    const int64_t size = mgx_kernel_size(d->x_type);
    const int64_t across = reach_of(d, 1), slot = z % reach_of(d, 0) * across + y % across;
    const int64_t tag = (part->n * d->in[0] + z) * d->in[1] + y + 1;
    float *line =
        part->ring + slot * (int64_t)(mgx_align64((size_t)(d->in[2] * part_channels(part->plan)) *
                                                  sizeof(float)) /
                                      sizeof(float));
    if (part->tags[slot] == tag)
        return line;
    part->tags[slot] = tag;
    const mgx_convert_fn convert = mgx_convert(d->isa, d->x_type, MGX_KERNEL_F32);
    const int64_t at = part->n * d->x_batch + z * d->x_space[0] + y * d->x_space[1] +
                       part->first / copies_of(part->plan);
    const char *from = (const char *)part->args->x + at * size;
    if (copies_of(part->plan) > 1)
        copy_line(part, (const float *)(const void *)from, line);
    else if (d->x_space[2] == part->channels)
        convert(from, line, d->in[2] * part->channels);
    else
        for (int64_t x = 0; x < d->in[2]; x++)
            convert(from + x * d->x_space[2] * size, line + x * part->channels, part->channels);
    for (int64_t i = 0; d->x_zero && i < d->in[2] * part->channels; i++)
        line[i] -= (float)d->x_zero;
    return line;
}

// The kernel row that input line y is to output row `row`, or -1.
static int kernel_row_of(const struct mgx_conv_desc *d, int64_t y, int64_t row)
{
    const int64_t from_top = y - row * d->stride[1] + d->pad[1], ky = from_top / d->dilation[1];
    const bool reads = from_top >= 0 && from_top % d->dilation[1] == 0 && ky < d->kernel[1];
    return reads ? (int)ky : -1;
}

// Adds the lines of plane kz that the pair reads.
static void find_plane(struct part *part, struct pair *pair, int64_t kz)
{
    const struct mgx_conv_desc *d = &part->plan->d;
    const int64_t z = part->z * d->stride[0] - d->pad[0] + kz * d->dilation[0];
    const int64_t top = pair->y * d->stride[1] - d->pad[1];
    const int64_t end = top + (pair->rows - 1) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1];
    if (z < 0 || z >= d->in[0])
        return;
    for (int64_t y = mgx_max_i64(top, 0); y <= mgx_min_i64(end, d->in[1] - 1); y++) {
        const int first = kernel_row_of(d, y, pair->y),
                  second = pair->rows == 2 ? kernel_row_of(d, y, pair->y + 1) : -1;
        if (first < 0 && second < 0)
            continue;
        const int at = part->line_count++, plane = (int)(kz * d->kernel[1]);
        part->lines[at] = part->tags ? converted_line(part, z, y) : direct_line(part, z, y);
        part->kernel_rows[2 * at] = first < 0 ? -1 : plane + first;
        part->kernel_rows[2 * at + 1] = second < 0 ? -1 : plane + second;
        pair->line_count++;
    }
}

// Lists the pairs of rows y, ... < end and their lines.
static void find_pairs(struct part *part, int64_t y, int64_t end)
{
    part->pair_count = part->line_count = 0;
    for (; y < end; y += 2) {
        struct pair *pair = &part->pairs[part->pair_count++];
        *pair = (struct pair){y, end - y > 1 ? 2 : 1, part->line_count, 0};
        for (int64_t kz = 0; kz < part->plan->d.kernel[0]; kz++)
            find_plane(part, pair, kz);
    }
}

// Place of the row's first value of the part's first channel.
static int64_t row_at(const struct part *part, int64_t y, int64_t first, int64_t batch,
                      const int64_t *space)
{
    return first + part->n * batch + part->z * space[0] + y * space[1] + part->first;
}

// Where a pair's results go, and its residual: in memory, or, of single rows, in scratch.
struct target {
    float *y;
    const float *residual; // NULL: none
    int64_t y_pixel, residual_pixel;
};

static struct target target_of(const struct part *part, const struct pair *pair)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const bool reads = mgx_end_reader(&d->end) != NULL;
    const int64_t y = row_at(part, pair->y, plan->y_first, d->y_batch, d->y_space),
                  r = row_at(part, pair->y, plan->residual_first, d->residual_batch,
                             d->residual_space);
    if (!part->tags && part->results)
        return (struct target){part->results + (pair->y - part->y) * d->out[2] * part->channels,
                               reads ? (const float *)part->args->residual + r : NULL,
                               part->channels, d->residual_space[2]};
    if (!part->tags)
        return (struct target){(float *)part->args->y + y,
                               reads ? (const float *)part->args->residual + r : NULL,
                               d->y_space[2], d->residual_space[2]};
    const bool adds = reads && !mgx_end_reads_bytes(&d->end); // bytes come last
    const struct target t = {part->results, adds ? part->residual : NULL, part->channels,
                             part->channels};
    const mgx_convert_fn convert = mgx_convert(d->isa, d->y_type, MGX_KERNEL_F32);
    const int64_t size = mgx_kernel_size(d->y_type);
    for (int64_t x = 0; t.residual && x < d->out[2]; x++)
        convert((const char *)part->args->residual + (r + x * d->residual_space[2]) * size,
                part->residual + x * part->channels, part->channels);
    return t;
}

// What the kernel's `finish` knows of the pair that is running.
struct finisher {
    const struct part *part;
    const struct pair *pair;
    const float *residual;
    int64_t residual_pixel, channel;
};

static void finish_pixels(void *user, const struct mgx_dw_args *args, int64_t at, int pixels)
{
    const struct finisher *f = user;
    const struct part *part = f->part;
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_end *end = &plan->d.end;
    for (int row = 0; row < args->rows; row++) {
        const struct mgx_tile tile = {
            .data = args->y + row * args->y_row + at * args->y_pixel,
            .stride = args->y_pixel,
            .row = plan->pixel_first + part->n * plan->pixel_batch +
                   part->z * plan->pixel_space[0] + (f->pair->y + row) * plan->pixel_space[1] +
                   at * plan->pixel_space[2],
            .row_step = plan->pixel_space[2],
            .col = f->channel,
            .rows = pixels,
            .cols = args->channels,
            .thread = part->thread,
        };
        const float *residual = f->residual;
        if (residual)
            residual += row * args->residual_row + at * f->residual_pixel;
        const struct mgx_end_place place = {.operand = residual,
                                            .operand_row =
                                                f->residual_pixel * (int64_t)sizeof(float),
                                            .hook_user = part->args->hook_user};
        mgx_end_tile(end, mgx_end_in_registers(end), mgx_end_bytes(end), plan->ends, &tile, &place);
    }
}

static void store_row(const struct part *part, int64_t row)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t size = mgx_kernel_size(d->y_type);
    const int64_t residual =
        row_at(part, row, plan->residual_first, d->residual_batch, d->residual_space);
    const struct mgx_tile tile = {.data = part->results,
                                  .stride = part->channels,
                                  .col = part->first,
                                  .rows = (int)d->out[2],
                                  .cols = (int)part->channels};
    const struct mgx_end_place place = {
        .operand =
            mgx_end_reads_bytes(&d->end) ? (const char *)part->args->residual + residual : NULL,
        .operand_row = d->residual_space[2],
        .out =
            (char *)part->args->y + row_at(part, row, plan->y_first, d->y_batch, d->y_space) * size,
        .out_row = d->y_space[2] * size,
        .type = d->y_type};
    mgx_end_tile(&d->end, mgx_end_bytes(&d->end), d->end.count, plan->ends, &tile, &place);
}

// The rows of a block that are rounded.
static void store_rows(const struct part *part, int64_t end)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const mgx_convert_fn convert = mgx_convert(d->isa, MGX_KERNEL_F32, d->y_type);
    const int64_t line = d->out[2] * part->channels;
    const bool whole = d->y_space[2] == part->channels;
    for (int64_t row = part->y; row < end; row++) {
        const float *from = part->results + (row - part->y) * line;
        uint16_t *y =
            (uint16_t *)part->args->y + row_at(part, row, plan->y_first, d->y_batch, d->y_space);
        if (whole)
            convert(from, y, line);
        for (int64_t x = 0; x < d->out[2] && !whole; x++)
            convert(from + x * part->channels, y + x * d->y_space[2], part->channels);
    }
}

static void run_pair(const struct part *part, const struct pair *pair, int64_t channel,
                     struct mgx_dw_args *args)
{
    const struct mgx_end *end = &part->plan->d.end;
    const struct target t = target_of(part, pair);
    struct finisher f = {.part = part,
                         .pair = pair,
                         .residual = t.residual ? t.residual + args->offset : NULL,
                         .residual_pixel = t.residual_pixel,
                         .channel = channel};
    args->lines = part->lines + pair->first_line;
    args->kernel_rows = part->kernel_rows + 2 * pair->first_line;
    args->line_count = pair->line_count;
    args->rows = pair->rows;
    args->residual = mgx_end_adds_first(end) ? f.residual : NULL;
    args->residual_pixel = t.residual_pixel;
    args->y = t.y + args->offset;
    args->y_pixel = t.y_pixel;
    args->finish = mgx_output_simple(end) ? NULL : finish_pixels;
    args->user = &f;
    part->plan->depthwise->rows(args);
}

// Vectors v, ... < end of the block.
static void run_vectors(const struct part *part, int64_t v, int64_t end, struct mgx_dw_args *args)
{
    assert(v <= end);
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t vector = plan->depthwise->vector, channel = v * vector;
    const bool scaled = mgx_kernel_is_byte(d->type) && !mgx_kernel_is_sums(d->y_type);
    args->offset = channel - part->first;
    args->channels = (int)(mgx_min_i64(end * vector, d->out_channels) - channel);
    args->weights = (const float *)part->args->packed + v * args->vector_weights;
    args->bias = part->args->bias ? part->args->bias + channel : NULL;
    args->scale = scaled ? part->args->scale + channel : NULL;
    for (int p = 0; p < part->pair_count; p++)
        run_pair(part, &part->pairs[p], channel, args);
}

// Makes the rows that outputs [y, end) read and that are not in the ring.
static void make_rows(struct part *part, int64_t y, int64_t end)
{
    assert(y <= end);
    const struct mgx_conv_plan *plan = part->plan, *feed = plan->feed;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t height = d->in[1], top = y * d->stride[1] - d->pad[1];
    const int64_t reach = (end - 1 - y) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1] + 1;
    const int64_t last = mgx_min_i64(top + reach, height);
    int64_t first = mgx_max_i64(top, 0);
    if (part->made_n == part->n)
        first = mgx_max_i64(first, part->made_end);
    for (int64_t chunk = 0; chunk < feed->chunks && first < last; chunk++) {
        const int64_t row = (part->n * feed->chunks + chunk) * height;
        mgx_conv_tile_rows(feed, &part->feed, row + first, row + last, part->thread,
                           part->feed_own);
    }
    part->made_n = part->n;
    part->made_end = mgx_max_i64(last, 0);
}

static void run_block(struct part *part, int64_t block)
{
    assert(block >= 0);
    const struct mgx_conv_plan *plan = part->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int64_t y = block % plan->chunks * plan->block_rows;
    const bool in_scratch = !part->tags && part->results;
    part->y = y;
    part->z = block / plan->chunks % d->out[0];
    part->n = block / plan->chunks / d->out[0];
    if (plan->feed)
        make_rows(part, y, mgx_min_i64(y + plan->block_rows, d->out[1]));
    find_pairs(part, y, mgx_min_i64(y + plan->block_rows, d->out[1]));
    struct mgx_tile_args clamp;
    mgx_output_clamp(&d->end, &clamp);
    struct mgx_dw_args args = {
        .width = d->in[2],
        .pixel = part->tags ? part->channels : d->x_space[2],
        .first = -d->pad[2],
        .kernel = d->kernel[2],
        .stride = d->stride[2],
        .dilation = d->dilation[2],
        .members = (int)plan->group_in,
        .vector_weights = mgx_conv_taps(d) * plan->group_in * plan->depthwise->vector,
        .residual_row = d->residual_space[1],
        .y_row = in_scratch ? d->out[2] * part->channels : d->y_space[1],
        .count = d->out[2],
        .clamp = clamp.clamp,
        .low = clamp.low,
        .high = clamp.high,
    };
    const int64_t vectors = part->v_end - part->v_begin;
    const int64_t strips = mgx_ceil_div(vectors, STEP_VECTORS);
    for (int64_t i = 0; i < strips; i++)
        run_vectors(part, part->v_begin + vectors * i / strips,
                    part->v_begin + vectors * (i + 1) / strips, &args);
    if (part->tags)
        store_row(part, y);
    else if (in_scratch)
        store_rows(part, mgx_min_i64(y + plan->block_rows, d->out[1]));
}

static void set_scratch(struct part *part)
{
    const struct mgx_conv_plan *plan = part->plan;
    const struct layout l = layout_of(plan);
    char *own = (char *)part->args->workspace + plan->thread_workspace * (size_t)part->thread;
    part->pairs = (struct pair *)(void *)own;
    part->lines = (const float **)(void *)(own + l.lines);
    part->kernel_rows = (int *)(void *)(own + l.kernel_rows);
    part->made_n = -1;
    if (plan->feed) {
        part->feed = *part->args->feed;
        part->feed.y = own + l.made;
        part->feed_own = own + l.feed;
    }
    part->results = mgx_conv_rounds(&plan->d) ? (float *)(void *)(own + l.results) : NULL;
    if (works_in_place(plan))
        return;
    part->tags = (int64_t *)(void *)(own + l.tags);
    part->ring = (float *)(void *)(own + l.ring);
    part->results = (float *)(void *)(own + l.results);
    part->residual = (float *)(void *)(own + l.residual);
    memset(part->tags, 0, (size_t)slots_of(&plan->d) * sizeof *part->tags);
}

static void run_task(void *user, int task, int thread)
{
    assert(task >= 0 && thread >= 0);
    const struct job *job = user;
    const struct mgx_conv_plan *plan = job->plan;
    const struct mgx_conv_desc *d = &plan->d;
    const int i = task / plan->n_parts, j = task % plan->n_parts;
    const int64_t vectors = vectors_of(plan), vector = plan->depthwise->vector;
    struct part part = {
        .plan = plan,
        .args = job->args,
        .v_begin = vectors * j / plan->n_parts,
        .v_end = vectors * (j + 1) / plan->n_parts,
        .thread = thread,
    };
    part.first = part.v_begin * vector;
    part.channels = mgx_min_i64(part.v_end * vector, d->out_channels) - part.first;
    set_scratch(&part);
    const int64_t end = plan->rows * (i + 1) / plan->m_parts;
    for (int64_t block = plan->rows * i / plan->m_parts; block < end; block++)
        run_block(&part, block);
}

static void depthwise_run(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                          struct mgx_pool *pool)
{
    struct job job = {plan, args};
    mgx_pool_run(pool, plan->m_parts * plan->n_parts, run_task, &job);
}

const struct mgx_conv_ops mgx_conv_depthwise = {depthwise_fits, depthwise_cost, depthwise_prepare,
                                                depthwise_pack, depthwise_run};
