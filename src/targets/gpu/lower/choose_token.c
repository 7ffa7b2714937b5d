// SPDX-License-Identifier: MIT
// choose_token on the card (kernel/choose_token.gpu): slices of the words, then a block a text.
//
// A text without a temperature needs the best word alone: the two kernels between return at once.
// Which of both a text is, only the run says, so all four are launched.
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/choice.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { SCORES, KNOBS, SEEN, BIAS };
enum { SLICE = 4096, BINS = 1024, MOST_WORDS = 1 << 18 };
enum { SCORE, WEIGH, ADD, DRAW, PARTS };

struct choice {
    struct gpu_call call; // the first kernel's
    void *kernel[PARTS];
    struct gpu_launch how[PARTS];
    int seen_row;             // tokens that a row of `seen` has room for
    int64_t score_row, first; // from a text's scores to the next one's; where the last token's are
};

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_choose_token)
        return "not a choice of tokens";
    const struct mgx_shape *scores = &c->in[SCORES];
    const int64_t words = scores->lens[scores->rank - 1];
    if (!gpu_has_double(c) || words < 1 || words > MOST_WORDS || c->out->lens[0] < 1 ||
        c->out->lens[0] > 65535 || c->in[SEEN].lens[1] > INT32_MAX)
        return "a card without doubles, or too many words";
    for (int i = SCORES; i <= BIAS; i++)
        if (!mgx_shape_is_standard(&c->in[i]))
            return "operands that do not lie in order";
    return NULL;
}

// Of the workspace, for each text.
static int64_t words_of_text(int64_t words, int64_t slices)
{
    return words + 2 * slices + 3 * BINS / 2 + slices / 2 + 4;
}

static unsigned cut_threads(const struct mgx_plan_offer *c)
{
    unsigned threads = 512; // so many registers are always there
    while (threads > (unsigned)gpu_machine(c->machine)->device->properties.max_threads)
        threads /= 2;
    return threads;
}

static void emit_knobs(struct mgx_str *out)
{
    mgx_str_printf(out,
                   "#define KNOBS %d\n#define TEMPERATURE %d\n#define TOP_K %d\n#define TOP_P %d\n"
                   "#define MIN_P %d\n#define REPETITION %d\n#define DRAW %d\n"
                   "#define SEEN_COUNT %d\n#define BIASED %d\n",
                   MGX_CHOICE_KNOBS, MGX_CHOICE_TEMPERATURE, MGX_CHOICE_TOP_K, MGX_CHOICE_TOP_P,
                   MGX_CHOICE_MIN_P, MGX_CHOICE_REPETITION, MGX_CHOICE_DRAW, MGX_CHOICE_SEEN,
                   MGX_CHOICE_BIASED);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int64_t words, int64_t slices)
{
    const struct mgx_shape *scores = &c->in[SCORES];
    int bits = 0; // of a number below that of the words
    while (INT64_C(1) << bits < words)
        bits++;
    mgx_str_printf(out,
                   "#define WORDS %" PRId64 "\n#define SLICE %d\n#define SLICES %" PRId64
                   "\n#define BINS %d\n#define TEXT_WORDS %" PRId64
                   "\n#define Q_SCALE 0x1p%d\n#define CUT_THREADS %u\n#define S_TYPE %s\n",
                   words, SLICE, slices, BINS, words_of_text(words, slices), 62 - bits,
                   cut_threads(c), gpu_type_memory(scores->type));
    emit_knobs(out);
    mgx_str_put(out, "FUNCTION float load_score(const GLOBAL S_TYPE *scores, i64 at)\n{\n"
                     "    return (float)");
    gpu_emit_load(out, scores->type, "scores", "at");
    mgx_str_put(out, ";\n}\n");
    GPU_PUT(out, choose_token);
}

static void describe(struct choice *k, const struct mgx_plan_offer *c, unsigned slices)
{
    const unsigned texts = (unsigned)c->out->lens[0], cut = cut_threads(c);
    const struct mgx_shape *scores = &c->in[SCORES];
    const int64_t words = scores->lens[scores->rank - 1],
                  tokens = scores->rank == 3 ? scores->lens[1] : 1;
    k->seen_row = (int)c->in[SEEN].lens[1];
    k->score_row = tokens * words;
    k->first = (tokens - 1) * words;
    const bool dependent = gpu_machine(c->machine)->device->properties.features & GPU_DEPENDENT;
    for (int i = 0; i < PARTS; i++)
        k->how[i] =
            (struct gpu_launch){.grid = {i < DRAW ? slices : texts, i < DRAW ? texts : 1, 1},
                                .block = {i < ADD ? GPU_THREADS : cut, 1, 1},
                                .dependent = dependent};
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    const int64_t words = c->in[BIAS].lens[1], slices = (words + SLICE - 1) / SLICE;
    struct choice *k = MGX_NEW(c->arena, struct choice);
    if (!k)
        return mgx_plan_no_memory(c);
    describe(k, c, (unsigned)slices);
    emit(&text, c, words, slices);
    c->workspace =
        mgx_align64((size_t)(c->out->lens[0] * words_of_text(words, slices)) * sizeof(double));
    c->detail = "slices of the words, then a block a text";
    return gpu_take_call(c, &k->call, &text, &k->how[SCORE], NULL, c->in_count);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct choice *k = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    void *stream = gpu_queue_stream(args->queue);
    const struct gpu_arg out = {&args->out, sizeof(void *), true},
                         work = {&args->workspace, sizeof(void *), true};
    struct gpu_arg in[BIAS + 1];
    for (int i = SCORES; i <= BIAS; i++)
        in[i] = (struct gpu_arg){&args->in[i], sizeof(void *), true};
    const struct gpu_arg score[] = {work,
                                    in[SCORES],
                                    in[KNOBS],
                                    in[SEEN],
                                    in[BIAS],
                                    {&k->seen_row, sizeof k->seen_row, false},
                                    {&k->score_row, sizeof k->score_row, false},
                                    {&k->first, sizeof k->first, false}},
                         between[] = {work, in[KNOBS]}, last[] = {out, work, in[KNOBS]};
    TRY(d->api->launch(d, stream, k->kernel[SCORE], &k->how[SCORE], score, 8, diag));
    TRY(d->api->launch(d, stream, k->kernel[WEIGH], &k->how[WEIGH], between, 2, diag));
    TRY(d->api->launch(d, stream, k->kernel[ADD], &k->how[ADD], between, 2, diag));
    return d->api->launch(d, stream, k->kernel[DRAW], &k->how[DRAW], last, 3, diag);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    static const char *const names[PARTS] = {"score", "weigh", "add", "draw"};
    struct choice *k = step->state;
    (void)plan;
    for (int i = 0; i < PARTS; i++)
        TRY(gpu_unit_kernel(k->call.unit, names[i], 0, &k->kernel[i], diag));
    return MGX_OK;
}

static const struct gpu_family family = {finish};
const struct mgx_plan_kernel gpu_kernel_choose_token = {
    .name = "gpu::choose_token", .prepare = prepare, .run = run, .more = &family};
