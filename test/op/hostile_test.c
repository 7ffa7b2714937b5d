// SPDX-License-Identifier: MIT
// Every operator on inputs and attributes that nobody would choose: lengths of 0, wrong ranks and
// types, NaN and 2^63 wherever a number goes, lists too short and too long; from nothing, and on
// the good cases of cases/*.txt with something of them made wrong, so that the computes are
// reached.
//
//     an operator may refuse, with a message; it may not crash, hang or fail inside
//     its result is readable, and is what its shape rule said
//     a shape rule that is told less (ranges, absent values) must not contradict one that is told
//     more: it accepts what that accepts, and what it declares contains the true result
//
// Meant above all for builds with sanitizers.
//
//     test-op-hostile [ROUNDS [SEED [OPERATOR]]]      prints where it is with an operator given
#include "case_format.h"

#include <glob.h>

#include "base/size.h"
#include "op/eval/eval.h"

static uint64_t state;
static int accepted; // computes that succeeded

static int64_t pick(int64_t low, int64_t high)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (int64_t)(state % (uint64_t)(high - low + 1));
}

// --- nonsense ---

static int64_t odd_int(void)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1,
                                  INT64_MAX, INT32_MAX,
                                  INT32_MIN, 16,
                                  17,        31,
                                  64,        255,
                                  -17,       1 << 20,
                                  1000000,   (int64_t)1 << 31,
                                  -3,        (int64_t)1 << 40};
    return pick(0, 7) ? pick(-2, 4) : odd[pick(0, MGX_COUNT(odd) - 1)];
}

static double odd_real(void)
{
    static const double odd[] = {NAN,  INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -0.0,
                                 1e30, -1e9,     0x1p63,    255.5, 1e18,   1e-9,   0.1};
    return pick(0, 3) ? (double)pick(-8, 8) / 4 : odd[pick(0, MGX_COUNT(odd) - 1)];
}

static enum mgx_type odd_type(void)
{
    return pick(0, 1) ? MGX_FLOAT : (enum mgx_type)pick(0, MGX_TYPE_COUNT - 1);
}

static struct mgx_shape odd_shape(enum mgx_type type)
{
    int64_t lens[MGX_MAX_RANK] = {0}, strides[MGX_MAX_RANK] = {0}, step = 1;
    const int rank = (int)(pick(0, 15) ? pick(0, 4) : pick(5, 8));
    if (type == MGX_TUPLE || type == MGX_SEQUENCE)
        type = MGX_FLOAT;
    for (int i = 0; i < rank; i++)
        lens[i] = pick(0, 9) ? pick(1, 3) : 0;
    const bool forward = pick(0, 1);
    for (int k = 0; k < rank; k++) {
        const int i = forward ? k : rank - 1 - k;
        strides[i] = pick(0, 5) ? step : 0;
        step *= lens[i] ? lens[i] : 1;
    }
    return pick(0, 1) ? mgx_shape_make(type, rank, lens)
                      : mgx_shape_strided(type, rank, lens, strides);
}

static const char *odd_text(void)
{
    static const char *const odd[] = {
        "",     "a",      "LOWER", "(a|b)*[", "(((((", "tanh",  "sigmoid",    ".",
        "same", "linear", "cubic", "nearest", "half",  "float", "half_pixel", "reverse"};
    return odd[pick(0, MGX_COUNT(odd) - 1)];
}

static void *odd_list(struct mgx_arena *arena, const struct mgx_field *f, int count)
{
    int64_t *ints = MGX_NEW_ARRAY(arena, int64_t, count);
    double *reals = MGX_NEW_ARRAY(arena, double, count);
    const char **texts = MGX_NEW_ARRAY(arena, const char *, count);
    struct mgx_shape *shapes = MGX_NEW_ARRAY(arena, struct mgx_shape, count);
    struct mgx_dim *dims = MGX_NEW_ARRAY(arena, struct mgx_dim, count);
    for (int i = 0; i < count; i++) {
        ints[i] = odd_int();
        reals[i] = odd_real();
        texts[i] = odd_text();
        shapes[i] = odd_shape(odd_type());
        dims[i].min = pick(0, 3);
        dims[i].max = dims[i].min + pick(0, 2);
    }
    switch (f->kind) {
    case MGX_FIELD_INTS:
        return ints;
    case MGX_FIELD_FLOATS:
        return reals;
    case MGX_FIELD_STRINGS:
        return texts;
    case MGX_FIELD_SHAPES:
        return shapes;
    default:
        return dims;
    }
}

struct any_list {
    const void *v;
    int count;
};

static void odd_field(struct mgx_arena *arena, const struct mgx_field *f, void *slot)
{
    switch (f->kind) {
    case MGX_FIELD_INT:
        *(int64_t *)slot = odd_int();
        break;
    case MGX_FIELD_BOOL:
        *(bool *)slot = pick(0, 1);
        break;
    case MGX_FIELD_FLOAT:
        *(double *)slot = odd_real();
        break;
    case MGX_FIELD_STRING:
        *(const char **)slot = odd_text();
        break;
    case MGX_FIELD_ENUM: { // readers of attributes let nothing else through
        int count = 0;
        while (f->names[count])
            count++;
        *(int64_t *)slot = pick(0, count - 1);
        break;
    }
    case MGX_FIELD_TYPE:
        *(int64_t *)slot = odd_type();
        break;
    case MGX_FIELD_SHAPE:
        *(struct mgx_shape *)slot = odd_shape(odd_type());
        break;
    default: {
        const int count = (int)pick(0, 4);
        *(struct any_list *)slot = (struct any_list){odd_list(arena, f, count), count};
        break;
    }
    }
}

// --- one round ---

enum { MAX_IN = 12, LIMIT = 1 << 18 }; // bytes of a result

struct round {
    const struct mgx_op *op;
    void *attr;
    int count;
    struct mgx_tensor in[MAX_IN];
    struct mgx_shape told[MAX_IN]; // to the vague call of the shape rule
    struct mgx_arena arena;
    struct mgx_diag diag;
};

static void fill(struct mgx_tensor *t)
{
    const enum mgx_type type = t->shape.type;
    const int64_t space = mgx_shape_space(&t->shape);
    const bool wild = pick(0, 2) == 0;
    for (int64_t i = 0; i < space; i++) {
        if (type == MGX_STRING)
            ((struct mgx_string *)t->data)[i] = (struct mgx_string){"x1 y", (size_t)pick(0, 4)};
        else if (mgx_type_is_float(type))
            mgx_store_double(type, t->data, i, wild ? odd_real() : (double)pick(-2, 2));
        else if (mgx_type_is_number(type))
            mgx_store_int(type, t->data, i, wild ? odd_int() : pick(-1, 3));
        else
            memset((char *)t->data + (size_t)i * mgx_type_size(type), (int)pick(0, 255),
                   mgx_type_size(type));
    }
}

static bool make_operand(struct mgx_tensor *t, const struct mgx_tensor *like)
{
    struct mgx_shape s = odd_shape(odd_type());
    if (like && pick(0, 3)) { // mostly something that fits what came before
        s = pick(0, 1) ? like->shape : odd_shape(like->shape.type);
        s.type = pick(0, 2) ? s.type : pick(0, 1) ? MGX_INT64 : odd_type();
        if (s.type == MGX_TUPLE || s.type == MGX_SEQUENCE)
            s.type = MGX_INT32;
    }
    if (mgx_tensor_create(t, &s, NULL) != MGX_OK)
        return false;
    fill(t);
    if (pick(0, 40) == 0) { // a sequence or tuple of it
        struct mgx_tensor member = *t;
        return mgx_tensor_group(t, &member, 1, pick(0, 1), NULL) == MGX_OK;
    }
    return true;
}

static void complain(struct round *r, const char *what)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text, "%s: ", what);
    mgx_op_print(&text, r->op, r->attr);
    for (int i = 0; i < r->count; i++) {
        mgx_str_put(&text, i ? "; " : " (");
        mgx_shape_print(&text, &r->in[i].shape);
        mgx_str_put(&text, " told as ");
        mgx_shape_print(&text, &r->told[i]);
    }
    printf("%s): %s\n", mgx_str_text(&text), r->diag.text);
    mgx_str_fini(&text);
    check_failures++;
}

static enum mgx_status infer(struct round *r, bool vague, struct mgx_shape *out)
{
    struct mgx_shape shapes[MAX_IN];
    const struct mgx_shape *list[MAX_IN];
    const struct mgx_tensor *values[MAX_IN];
    for (int i = 0; i < r->count; i++) {
        const struct mgx_shape *s = &r->in[i].shape;
        shapes[i] = *s;
        values[i] = !vague || pick(0, 1) ? &r->in[i] : NULL;
        const bool absent = s->rank == 1 && s->lens[0] == 0; // is known to be
        if (vague && !values[i] && !absent && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE) {
            struct mgx_dim *dims = MGX_NEW_ARRAY(&r->arena, struct mgx_dim, s->rank);
            for (int k = 0; k < s->rank; k++)
                dims[k] = (struct mgx_dim){.min = s->lens[k] - (s->lens[k] > 0 && pick(0, 1)),
                                           .max = s->lens[k] + pick(0, 2)};
            shapes[i] = pick(0, 4) ? mgx_shape_dynamic(s->type, s->rank, dims)
                                   : mgx_shape_unranked(s->type);
        }
        list[i] = &shapes[i];
        if (vague)
            r->told[i] = shapes[i];
    }
    struct mgx_shape_call call = {.op = r->op,
                                  .attr = r->attr,
                                  .in = list,
                                  .in_count = r->count,
                                  .values = values,
                                  .arena = &r->arena,
                                  .diag = &r->diag};
    mgx_diag_clear(&r->diag);
    const enum mgx_status status = mgx_op_shape(&call, out);
    if (status == MGX_INTERNAL || (status != MGX_OK) != (r->diag.text[0] != 0))
        complain(r, "the shape rule: an internal error, or a failure without words");
    return status;
}

static bool contains(const struct mgx_shape *by, const struct mgx_shape *s)
{
    if (by->type != s->type)
        return false;
    if (by->unranked || by->type == MGX_SEQUENCE)
        return true;
    if (by->type == MGX_TUPLE && s->sub_count == 0)
        return true; // an empty optional
    if (by->rank != s->rank || by->sub_count != s->sub_count)
        return false;
    for (int i = 0; i < by->sub_count; i++)
        if (!contains(&by->sub[i], &s->sub[i]))
            return false;
    for (int i = 0; i < by->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(by, i);
        if (s->lens[i] < d.min || s->lens[i] > d.max)
            return false;
    }
    return true;
}

// Every value a result claims to have can be read; NULL, or what is wrong.
static const char *unreadable(const struct mgx_tensor *t)
{
    const char *what = NULL;
    for (int i = 0; i < t->sub_count && !what; i++)
        what = unreadable(&t->sub[i]);
    if (what || t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE)
        return what;
    struct mgx_tensor copy;
    if (!mgx_shape_is_static(&t->shape) || mgx_shape_check(&t->shape, NULL) != MGX_OK)
        return "the result has no sound shape";
    if (mgx_shape_elements(&t->shape) > LIMIT)
        return NULL; // a view that repeats what it shows
    if (mgx_tensor_clone(&copy, t, NULL) != MGX_OK)
        return "the result cannot be copied";
    mgx_tensor_release(&copy);
    return NULL;
}

static void judge(struct round *r, enum mgx_status status, const struct mgx_tensor *out,
                  const struct mgx_shape *exact, const struct mgx_shape *vague)
{
    if (status == MGX_INTERNAL || (status != MGX_OK) != (r->diag.text[0] != 0))
        complain(r, "an internal error, or a failure without words");
    if (status != MGX_OK)
        return;
    accepted++;
    const char *what = unreadable(out);
    if (what)
        complain(r, what);
    // fixed_pad grows to what it is declared as, here the larger guess
    if (r->op != &mgx_op_fixed_pad && !contains(exact, &out->shape))
        complain(r, "the result is not what the shape rule said");
    if (vague && !contains(vague, &out->shape)) {
        struct mgx_str text = {0};
        mgx_str_put(&text, "the result is not within what could be said before: ");
        mgx_shape_print(&text, &out->shape);
        mgx_str_put(&text, " in ");
        mgx_shape_print(&text, vague);
        complain(r, mgx_str_text(&text));
        mgx_str_fini(&text);
    }
}

static void run(struct round *r)
{
    struct mgx_shape vague, exact;
    struct mgx_tensor out = {0};
    const struct mgx_tensor *in[MAX_IN];
    struct mgx_eval e = {.strings = &r->arena, .limit_bytes = LIMIT, .seed = 1};
    const bool guessed = infer(r, true, &vague) == MGX_OK;
    if (infer(r, false, &exact) != MGX_OK || !r->op->compute)
        return;
    if (!guessed)
        complain(r, "refused where less is known, accepted where more is");
    for (int i = 0; i < r->count; i++)
        in[i] = &r->in[i];
    mgx_diag_clear(&r->diag);
    const enum mgx_status status = mgx_eval_op(&e, r->op, r->attr, in, r->count, NULL, 0,
                                               guessed ? &vague : NULL, &out, &r->diag);
    judge(r, status, &out, &exact, guessed ? &vague : NULL);
    mgx_tensor_release(&out);
}

static void try_op(const struct mgx_op *op)
{
    struct round r = {.op = op};
    mgx_arena_init(&r.arena);
    const int most = op->in_max < 0 ? op->in_min + 3 : op->in_max;
    r.count = (int)pick(op->in_min, most < MAX_IN ? most : MAX_IN);
    bool ready = r.count <= MAX_IN && mgx_attr_make(op, NULL, &r.arena, &r.attr, &r.diag) == MGX_OK;
    const int64_t share = pick(0, 2); // of the attributes that are odd: none, half, two thirds
    for (const struct mgx_field *f = op->fields; ready && f && f->kind != MGX_FIELD_END; f++)
        if (pick(0, share))
            odd_field(&r.arena, f, (char *)r.attr + f->offset);
    for (int i = 0; ready && i < r.count; i++)
        ready = make_operand(&r.in[i], i ? &r.in[pick(0, i - 1)] : NULL);
    if (ready)
        run(&r);
    for (int i = 0; i < r.count; i++)
        mgx_tensor_release(&r.in[i]);
    mgx_arena_fini(&r.arena);
}

// --- cases made wrong ---

static void spoil_operand(struct round *r)
{
    if (!r->count)
        return;
    struct mgx_tensor *t = &r->in[pick(0, r->count - 1)];
    if (t->sub || t->shape.type == MGX_SEQUENCE || t->shape.type == MGX_TUPLE)
        return;
    struct mgx_shape s = t->shape;
    const int64_t what = pick(0, 3);
    if (what == 1 && s.rank)
        s.lens[pick(0, s.rank - 1)] += pick(0, 3) ? 1 : -1;
    if (what == 2)
        s.type = (enum mgx_type)pick(0, MGX_TYPE_COUNT - 1);
    if (what == 3 && s.rank)
        s.rank--;
    if (s.type == MGX_TUPLE || s.type == MGX_SEQUENCE || mgx_shape_check(&s, NULL) != MGX_OK)
        return;
    struct mgx_tensor spoilt;
    if (mgx_tensor_create(&spoilt, &s, NULL) != MGX_OK)
        return;
    fill(&spoilt);
    mgx_tensor_release(t);
    *t = spoilt;
}

static void spoil_attribute(struct round *r)
{
    int count = 0;
    for (const struct mgx_field *f = r->op->fields; f && f->kind != MGX_FIELD_END; f++)
        count++;
    if (!count)
        return;
    const struct mgx_field *f = &r->op->fields[pick(0, count - 1)];
    odd_field(&r->arena, f, (char *)r->attr + f->offset);
}

static void try_case(const struct op_case *c)
{
    char name[64];
    const size_t n = strcspn(c->op, "[ \n"), size = strlen(c->op);
    snprintf(name, sizeof name, "%.*s", (int)n, c->op);
    struct round r = {.op = mgx_op_find(name), .count = c->in_count};
    mgx_arena_init(&r.arena);
    if (r.op && r.count <= MAX_IN &&
        mgx_attr_parse(r.op, c->op[n] == '[' ? c->op + n + 1 : "", size > n ? size - n - 2 : 0,
                       &r.arena, &r.attr, &r.diag) == MGX_OK) {
        bool ready = true;
        for (int i = 0; i < r.count; i++) {
            r.in[i] = mgx_tensor_share(&c->in[i].tensor);
            ready &= c->in[i].has_values;
        }
        for (int64_t k = pick(1, 2); k > 0; k--)
            pick(0, 1) ? spoil_operand(&r) : spoil_attribute(&r);
        if (ready)
            run(&r);
    }
    for (int i = 0; i < r.count && i < MAX_IN; i++)
        mgx_tensor_release(&r.in[i]);
    mgx_arena_fini(&r.arena);
}

static void try_file(const char *path, int rounds, uint64_t seed, const char *only)
{
    static char text[1 << 22];
    FILE *f = fopen(path, "rb");
    const size_t size = f ? fread(text, 1, sizeof text - 1, f) : 0;
    struct mgx_arena arena;
    struct case_reader r = {.file = path, .at = text, .arena = &arena};
    struct op_case c;
    text[size] = 0;
    if (f)
        fclose(f);
    mgx_arena_init(&arena);
    while (case_next(&r, &c)) {
        for (int k = 0; c.op && k < rounds; k++) {
            if (only && strncmp(c.op, only, strlen(only)) != 0)
                continue;
            state =
                (seed * 1000003 + (uint64_t)c.line * 7919 + (uint64_t)k) * 0x9E3779B97F4A7C15u | 1;
            pick(0, 1);
            if (only)
                printf("%s:%d %d\n", path, c.line, k);
            try_case(&c);
        }
        case_free(&c);
    }
    mgx_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 400;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int count;
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++) {
        if (argc > 3 && strcmp(argv[3], ops[i]->name) != 0)
            continue;
        for (int k = 0; k < rounds; k++) {
            state = (seed * 1000003 + (uint64_t)i * 7919 + (uint64_t)k) * 0x9E3779B97F4A7C15u | 1;
            pick(0, 1);
            if (argc > 3) {
                printf("%s %d\n", ops[i]->name, k);
                fflush(stdout);
            }
            try_op(ops[i]);
        }
    }
    glob_t files;
    if (glob("test/op/cases/*.txt", 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            try_file(files.gl_pathv[i], (rounds + 19) / 20, seed, argc > 3 ? argv[3] : NULL);
    globfree(&files);
    printf("%d operators, %d calls succeeded, %d failures\n", count, accepted, check_failures);
    return check_failures != 0 || (argc <= 3 && accepted == 0);
}
