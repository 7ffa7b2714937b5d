// SPDX-License-Identifier: MIT
// sum_over_cards on the card (kernel/sum_over_cards.gpu): a kernel for every GPU_BOX_WORDS words, of
// few blocks, all of which are at work at once, as those of the other cards are.
#include "base/size.h"
#include "op/op.h"
#include "op/rule/exchange.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"
#include "targets/gpu/machine/exchange.h"

enum { MOST_BLOCKS = 64, LOOKS = 1 << 28 }; // a look takes a third of a microsecond

struct sum {
    struct gpu_call call;
    const struct gpu_exchange_card *card;
    int64_t words;
};

static const char *refuses(const struct mgx_plan_offer *c)
{
    const struct mgx_sum_over_cards *a = c->ins->attr;
    const struct gpu_machine *m = gpu_machine(c->machine);
    const int64_t size = (int64_t)mgx_type_size(c->out->type);
    if (!m->exchange || m->exchange->base.count != a->cards)
        return "compiled for one card";
    if (m->exchange->card[a->card].device != m->device)
        return "compiled for another card of those that go together";
    if (c->out->type != MGX_FLOAT && !mgx_type_is_half_or_bf16(c->out->type))
        return "values that are not computed in float";
    if (!mgx_shape_is_static(c->out) || mgx_shape_elements(c->out) * size % 4)
        return "a size that only the run says, or no whole words";
    return mgx_shape_elements(c->out) * size / 4 <= INT32_MAX ? NULL : "too many words";
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_sum_over_cards *a = c->ins->attr;
    mgx_str_printf(out,
                   "#define CARDS %d\n#define CARD %d\n#define BOX_WORDS %d\n#define NUMBER %d\n"
                   "#define DONE %d\n#define STOPPED %d\n#define LOOKS %du\n#define ELEMENTS %d\n",
                   (int)a->cards, (int)a->card, GPU_BOX_WORDS, GPU_EXCHANGE_NUMBER,
                   GPU_EXCHANGE_DONE, GPU_EXCHANGE_STOPPED, LOOKS,
                   4 / (int)mgx_type_size(c->out->type));
    if (c->out->type == MGX_FLOAT)
        mgx_str_put(out, "#define E_OF(word, e) FLOAT_OF_BITS(word)\n"
                         "#define E_PUT(sum) BITS_OF_FLOAT((sum)[0])\n");
    else
        mgx_str_printf(out,
                       "#define E_OF(word, e) of_%s((u16)((word) >> 16 * (e)))\n"
                       "#define E_PUT(sum) (to_%s((sum)[0]) | (u32)to_%s((sum)[1]) << 16)\n",
                       c->out->type == MGX_HALF ? "half" : "bf16",
                       c->out->type == MGX_HALF ? "half" : "bf16",
                       c->out->type == MGX_HALF ? "half" : "bf16");
    GPU_PUT(out, sum_over_cards);
}

static struct gpu_launch launch_for(const struct mgx_plan_offer *c, int64_t words)
{
    const int64_t most = mgx_min_i64(words, GPU_BOX_WORDS);
    const int64_t blocks = mgx_min_i64((most + GPU_THREADS - 1) / GPU_THREADS, MOST_BLOCKS);
    return (struct gpu_launch){.grid = {(unsigned)mgx_max_i64(blocks, 1), 1, 1},
                               .block = {GPU_THREADS, 1, 1},
                               .dependent = gpu_machine(c->machine)->device->properties.features &
                                            GPU_DEPENDENT};
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_sum_over_cards)
        return gpu_decline(c, "not a sum over cards");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    if (!mgx_shape_is_standard(&c->in[0])) {
        (void)mgx_plan_wish(c, 0, MGX_PLAN_ROW_MAJOR, "a value that does not lie in order");
        return mgx_plan_refuse(c);
    }
    if (!mgx_shape_is_standard(c->out))
        return gpu_decline(c, "a result that does not lie in order");
    const struct mgx_sum_over_cards *a = c->ins->attr;
    struct sum *s = MGX_NEW(c->arena, struct sum);
    if (!s)
        return mgx_plan_no_memory(c);
    s->card = &gpu_machine(c->machine)->exchange->card[a->card];
    s->words = mgx_shape_elements(c->out) * (int64_t)mgx_type_size(c->out->type) / 4;
    const struct gpu_launch how = launch_for(c, s->words);
    emit(&text, c);
    if (c->in_count > 1)
        c->skip_in[1] = true;
    c->detail = "words of eight bytes, each with its sum's number";
    return gpu_take_call(c, &s->call, &text, &how, (const int[]){0}, 1);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct sum *s = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    const struct gpu_exchange_card *card = s->card;
    for (int64_t at = 0; at < s->words; at += GPU_BOX_WORDS) {
        const int first = (int)at, count = (int)mgx_min_i64(s->words - at, GPU_BOX_WORDS);
        const struct gpu_arg list[] = {{&args->out, sizeof args->out, true},
                                       {&args->in[0], sizeof args->in[0], true},
                                       {&card->boxes, sizeof card->boxes, true},
                                       {&card->state, sizeof card->state, true},
                                       {&first, sizeof first, false},
                                       {&count, sizeof count, false}};
        TRY(d->api->launch(d, gpu_queue_stream(args->queue), s->call.kernel, &s->call.how, list,
                           MGX_COUNT(list), diag));
    }
    return MGX_OK;
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct sum *s = step->state;
    (void)plan;
    return gpu_unit_kernel(s->call.unit, "run", 0, &s->call.kernel, diag);
}

static const struct gpu_family family = {finish};
const struct mgx_plan_kernel gpu_kernel_sum_over_cards = {
    .name = "gpu::sum_over_cards", .prepare = prepare, .run = run, .more = &family};
