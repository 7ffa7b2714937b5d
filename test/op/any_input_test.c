// SPDX-License-Identifier: MIT
// Every operator with inputs and attributes nobody would choose: random types, ranks, zero lengths,
// strides, tuples, strings; attributes of small random numbers. It may refuse; if it accepts, the
// result must have a shape that its rule promised, without values and with them.
#include "check.h"
#include "op/eval/eval.h"
#include "op/op.h"

static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

static enum mgx_type random_type(void)
{
    static const enum mgx_type usual[] = {MGX_FLOAT, MGX_INT64, MGX_INT32, MGX_BOOL, MGX_INT8};
    return below(4) ? usual[below(5)] : (enum mgx_type)below(MGX_TYPE_COUNT);
}

static struct mgx_shape random_shape(enum mgx_type type, int rank)
{
    static struct mgx_shape members[2];
    if (type == MGX_TUPLE || type == MGX_SEQUENCE) {
        members[0] = mgx_shape_vector(MGX_FLOAT, 2);
        members[1] = mgx_shape_scalar(MGX_INT64);
        return type == MGX_TUPLE ? mgx_shape_tuple(members, 2) : mgx_shape_sequence(members);
    }
    int64_t lens[MGX_MAX_RANK];
    const int base = 1 + below(4);
    for (int i = 0; i < rank; i++)
        lens[i] = below(3) ? base : below(5);
    struct mgx_shape s = mgx_shape_make(type, rank, lens);
    for (int i = 0; i < rank && below(8) == 0; i++)
        s.strides[i] = below(4);
    return s;
}

static void fill(struct mgx_tensor *t, bool indices)
{
    mgx_tensor_generate(t, (uint64_t)below(1000));
    for (int64_t i = 0; indices && i < mgx_shape_space(&t->shape); i++)
        if (mgx_type_is_number(t->shape.type))
            mgx_store_int(t->shape.type, t->data, i, below(5) - 1);
}

static struct mgx_attr random_attr(const struct mgx_field *f)
{
    static int64_t ints[4];
    static double reals[4];
    for (int i = 0; i < 4; i++) {
        ints[i] = below(12) ? below(6) - 1 : (int64_t)((uint64_t)below(1 << 20) << below(44));
        reals[i] = below(9) / 2.0 - 1;
    }
    switch (f->kind) {
    case MGX_FIELD_INT:
    case MGX_FIELD_BOOL:
        return mgx_int(f->name, ints[0]);
    case MGX_FIELD_ENUM: {
        int count = 0;
        while (f->names[count])
            count++;
        return mgx_int(f->name, below(count + 1));
    }
    case MGX_FIELD_TYPE:
        return mgx_int(f->name, below(MGX_TYPE_COUNT));
    case MGX_FIELD_FLOAT:
        return mgx_real(f->name, reals[0]);
    case MGX_FIELD_INTS:
        return mgx_ints(f->name, ints, below(5));
    case MGX_FIELD_FLOATS:
        return mgx_reals(f->name, reals, below(5));
    default:
        return (struct mgx_attr){0};
    }
}

enum { MAX_IN = 5, MAX_FIELDS = 32 };

struct trial {
    const struct mgx_op *op;
    void *attr;
    struct mgx_tensor in[MAX_IN];
    const struct mgx_tensor *in_list[MAX_IN];
    const struct mgx_shape *shapes[MAX_IN];
    int count;
    struct mgx_arena arena;
};

static bool prepare(struct trial *t)
{
    struct mgx_attr attrs[MAX_FIELDS + 1] = {0};
    int count = 0;
    mgx_arena_init(&t->arena);
    for (const struct mgx_field *f = t->op->fields; f && f->kind && count < MAX_FIELDS; f++)
        if (below(2) && random_attr(f).name)
            attrs[count++] = random_attr(f);
    // Lists share their storage above, so copy one by one.
    if (mgx_attr_make(t->op, NULL, &t->arena, &t->attr, NULL) != MGX_OK)
        return false;
    if (count && mgx_attr_make(t->op, attrs, &t->arena, &t->attr, NULL) != MGX_OK)
        return false;
    const int most = t->op->in_max < 0 || t->op->in_max > MAX_IN ? MAX_IN : t->op->in_max;
    if (t->op->in_min > most)
        return false;
    t->count = t->op->in_min + below(most - t->op->in_min + 1);
    const enum mgx_type type = random_type();
    const int rank = below(5);
    const struct mgx_shape shared = random_shape(type, rank);
    for (int i = 0; i < t->count; i++) {
        const struct mgx_shape s =
            below(2) ? shared
                     : random_shape(below(3) ? type : random_type(), below(3) ? rank : below(4));
        if (mgx_tensor_create(&t->in[i], &s, NULL) != MGX_OK)
            return false;
        fill(&t->in[i], below(2));
        t->in_list[i] = &t->in[i];
        t->shapes[i] = &t->in[i].shape;
    }
    return true;
}

static bool promised(struct trial *t, bool values, struct mgx_shape *out)
{
    struct mgx_shape_call call = {.op = t->op,
                                  .attr = t->attr,
                                  .in = t->shapes,
                                  .in_count = t->count,
                                  .values = values ? t->in_list : NULL,
                                  .arena = &t->arena};
    return mgx_op_shape(&call, out) == MGX_OK;
}

// An optional is a tuple of one that may come empty.
static bool keeps(const struct mgx_shape *promise, const struct mgx_tensor *value)
{
    if (promise->type == MGX_TUPLE && promise->sub_count == 1 && value->shape.type == MGX_TUPLE &&
        !value->sub_count)
        return true;
    return promise->type == value->shape.type && mgx_shape_may_match(promise, &value->shape);
}

static void describe(struct trial *t, const struct mgx_shape *promise,
                     const struct mgx_shape *actual)
{
    struct mgx_str out = {0};
    mgx_op_print(&out, t->op, t->attr);
    for (int i = 0; i < t->count; i++) {
        mgx_str_put(&out, "\n    input ");
        mgx_shape_print(&out, t->shapes[i]);
    }
    mgx_str_put(&out, "\n    promised ");
    mgx_shape_print(&out, promise);
    mgx_str_put(&out, "\n    computed ");
    mgx_shape_print(&out, actual);
    printf("%s\n", mgx_str_text(&out));
    mgx_str_fini(&out);
}

static bool run_trial(struct trial *t, bool *accepted)
{
    struct mgx_shape blind, seeing;
    if (!prepare(t) || !t->op->compute || !promised(t, false, &blind))
        return true;
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = 1 << 16};
    struct mgx_tensor out = {0};
    struct mgx_diag diag = {0};
    bool good = true;
    if (mgx_eval_op(&e, t->op, t->attr, t->in_list, t->count, NULL, 0, &blind, &out, &diag) ==
        MGX_OK) {
        *accepted = true;
        good = keeps(&blind, &out) && promised(t, true, &seeing) && keeps(&seeing, &out);
        if (!good)
            describe(t, &blind, &out.shape);
        mgx_tensor_release(&out);
    } else {
        good = diag.text[0] != '\0';
    }
    mgx_arena_fini(&strings);
    return good;
}

CASE(operators_refuse_or_keep_their_promise)
{
    int count, unreached = 0;
    const struct mgx_op *const *all = mgx_op_all(&count);
    for (int k = 0; k < count; k++) {
        bool accepted = false, good = true;
        for (int round = 0; round < 300 && good; round++) {
            struct trial t = {.op = all[k]};
            good = run_trial(&t, &accepted);
            for (int i = 0; i < MAX_IN; i++)
                mgx_tensor_release(&t.in[i]);
            mgx_arena_fini(&t.arena);
        }
        check_failures += !good;
        unreached += !accepted;
        if (!accepted && getenv("UNREACHED"))
            printf("never accepted: %s\n", all[k]->name);
    }
    CHECK(unreached < count / 2);
}

TEST_MAIN(ROW(operators_refuse_or_keep_their_promise))
