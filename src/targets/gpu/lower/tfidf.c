// SPDX-License-Identifier: MIT
// tfidf_vectorizer of integers: a row and a place of the result a thread, which counts the n-grams of
// that place wherever they occur in the row.
//
// The pool is a table of the text, its n-grams listed by their places. Cost: for every n-gram all
// positions of the row at all distances. Large pools are the host's, which looks n-grams up.
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { MOST = 4096 }; // numbers of a table
enum mode { TF, IDF, TFIDF };

struct pool {
    struct mgx_ints items, begins, places;
    int64_t low, high; // lengths of the n-grams that count
};

struct gram {
    int64_t at, length, place; // in the pool, in items, in the result
    int number;
};

static struct pool pool_of(const struct mgx_ins *ins)
{
    return (struct pool){mgx_ins_ints(ins, "pool_int64s"), mgx_ins_ints(ins, "ngram_counts"),
                         mgx_ins_ints(ins, "ngram_indexes"), mgx_ins_int(ins, "min_gram_length"),
                         mgx_ins_int(ins, "max_gram_length")};
}

static bool same_items(const struct pool *p, const struct gram *a, const struct gram *b)
{
    return a->length == b->length && memcmp(p->items.v + a->at, p->items.v + b->at,
                                            (size_t)a->length * sizeof *p->items.v) == 0;
}

// Those that count; of equal ones the last, as the reference has it.
static int list_grams(const struct pool *p, struct gram *list)
{
    int count = 0, number = 0;
    for (int n = 1; n <= p->begins.count; n++) {
        const int64_t end = n < p->begins.count ? p->begins.v[n] : p->items.count;
        for (int64_t at = p->begins.v[n - 1]; at < end; at += n, number++) {
            const struct gram g = {at, n, p->places.v[number], number};
            int same = 0;
            if (n < p->low || n > p->high)
                continue;
            while (same < count && !same_items(p, &list[same], &g))
                same++;
            list[same] = g;
            count += same == count;
        }
    }
    return count;
}

static void open_table(struct mgx_str *out, const char *type, const char *name, int count)
{
    mgx_str_printf(out, "CONSTANT %s %s[%d] = {", type, name, count);
}

// The n-grams place by place: where each begins in `pool`, its length and its weight.
static void emit_tables(struct mgx_str *out, const struct mgx_plan_offer *c, const struct pool *p,
                        const struct gram *list, int count)
{
    const struct mgx_doubles weights = mgx_attr_reals(c->ins->op, c->ins->attr, "weights");
    const int64_t width = c->out->lens[c->out->rank - 1];
    struct mgx_str begin = {0}, at = {0}, length = {0}, weight = {0};
    int before = 0;
    for (int64_t place = 0; place <= width; place++) {
        mgx_str_printf(&begin, "%d, ", before);
        for (int i = 0; i < count && place < width; i++) {
            if (list[i].place != place)
                continue;
            mgx_str_printf(&at, "%" PRId64 ", ", list[i].at);
            mgx_str_printf(&length, "%" PRId64 ", ", list[i].length);
            gpu_emit_real(&weight, weights.count ? weights.v[list[i].number] : 1);
            mgx_str_put(&weight, ", ");
            before++;
        }
    }
    open_table(out, "int", "begin", (int)width + 1);
    mgx_str_printf(out, "%s};\n", mgx_str_text(&begin));
    open_table(out, "int", "gram_at", count + 1);
    mgx_str_printf(out, "%s0};\n", mgx_str_text(&at));
    open_table(out, "int", "gram_length", count + 1);
    mgx_str_printf(out, "%s0};\n", mgx_str_text(&length));
    open_table(out, "float", "gram_weight", count + 1);
    mgx_str_printf(out, "%s0};\n", mgx_str_text(&weight));
    open_table(out, "i64", "pool", p->items.count);
    for (int i = 0; i < p->items.count; i++)
        mgx_str_printf(out, "(i64)((u64)%" PRIu64 "u), ", (uint64_t)p->items.v[i]);
    mgx_str_put(out, "};\n");
    mgx_str_fini(&begin);
    mgx_str_fini(&at);
    mgx_str_fini(&length);
    mgx_str_fini(&weight);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    static const char *const counts[] = {
        [TF] = "y + 1", [IDF] = "gram_weight[g]", [TFIDF] = "y + gram_weight[g]"};
    const struct mgx_shape *x = &c->in[0];
    const int last = x->rank - 1;
    const int64_t length = x->lens[last];
    gpu_define(out, "STEPS", mgx_min_i64(mgx_ins_int(c->ins, "max_skip_count"), length) + 1);
    gpu_define(out, "LENGTH", length);
    gpu_define(out, "STEP", x->strides[last]);
    mgx_str_printf(out, "#define A_TYPE %s\n#define COUNTED(y, g) (%s)\n", gpu_type_memory(x->type),
                   counts[mgx_ins_int(c->ins, "mode")]);
    GPU_PUT(out, tfidf);
    gpu_emit_start(out, c->out, &x->type, 1);
    mgx_str_printf(out, "    out[at0] = count_of(in0, %s * %" PRId64 ", o%d);\n}\n",
                   last ? "(i64)o0" : "0", last ? x->strides[0] : 0, last);
}

// With IDF the one that occurs last gives its weight, which this walk cannot tell.
static bool shares_places(const struct gram *list, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (list[i].place == list[k].place)
                return true;
    return false;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_tfidf_vectorizer)
        return gpu_decline(c, "no n-grams to count");
    const struct pool p = pool_of(c->ins);
    const enum gpu_class class = gpu_type_class(c->in[0].type);
    if (class != GPU_SIGNED && class != GPU_UNSIGNED)
        return gpu_decline(c, "n-grams of what is no integer");
    if (!mgx_shape_elements(c->out) || !p.items.count || p.items.count > MOST ||
        c->out->lens[c->out->rank - 1] > MOST)
        return gpu_decline(c, "nothing to count, or a pool too large for a text");
    struct gram *list = MGX_NEW_ARRAY(c->arena, struct gram, p.items.count);
    if (!list)
        return mgx_plan_no_memory(c);
    const int count = list_grams(&p, list);
    if (mgx_ins_int(c->ins, "mode") == IDF && shares_places(list, count))
        return gpu_decline(c, "n-grams that share a place");
    emit_tables(&text, c, &p, list, count);
    emit(&text, c);
    const struct gpu_launch how = gpu_launch_for(mgx_shape_elements(c->out));
    c->detail = "a place of a row a thread";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_tfidf = {
    .name = "gpu::tfidf_vectorizer", .prepare = prepare, .run = gpu_run_call};
