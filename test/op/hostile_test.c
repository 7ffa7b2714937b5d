// SPDX-License-Identifier: MIT
// Every operator on inputs and attributes that nobody would choose: lengths of 0, wrong ranks and
// types, NaN and 2^63 wherever a number goes, attribute lists too short and too long. An operator
// may refuse with a message; it may not crash, hang, or give a result other than its shape rule
// said. Half of the rounds start from nothing, half spoil one of the good cases of cases/*.txt, so
// that they reach the computes. Meant above all for builds with sanitizers.
// Arguments: a number of rounds, the name of an operator.
#include <glob.h>
#include <math.h>

#include "base/map.h"
#include "base/size.h"
#include "case_format.h"
#include "op/core/rule.h"

enum { MAX_INPUTS = 9, MAX_RANK = 5, LIMIT_BYTES = 1 << 20, ROUNDS = 150, SPOILS = 4 };

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int pick(int n)
{
    return (int)(next() % (uint64_t)n);
}

static bool chance(int percent)
{
    return pick(100) < percent;
}

// --- numbers ---

static int64_t nasty_int(void)
{
    static const int64_t v[] = {0,  1,  2,  3,         -1,         -2,        1,
                                2,  4,  7,  INT32_MAX, INT64_MAX,  INT64_MIN, (int64_t)1 << 31,
                                31, 64, -3, 1000000,   -INT32_MAX, 5,         (int64_t)1 << 40};
    return v[pick(chance(60) ? 4 : MGX_COUNT(v))];
}

static double nasty_real(void)
{
    const double v[] = {0,     1,    -1,   0.5,  2,      3,     -0.0, NAN, INFINITY, -INFINITY,
                        1e300, 1e30, 1e-9, -1e9, 0x1p63, 255.5, 1e18, 4,   -7.25,    0.1};
    return v[pick(chance(60) ? 6 : MGX_COUNT(v))];
}

// --- attributes ---

static struct mgx_ints nasty_ints(struct mgx_arena *arena)
{
    const int count = pick(7);
    int64_t *v = MGX_NEW_ARRAY(arena, int64_t, count);
    for (int i = 0; i < count; i++)
        v[i] = nasty_int();
    return (struct mgx_ints){v, count};
}

static struct mgx_doubles nasty_reals(struct mgx_arena *arena)
{
    const int count = pick(7);
    double *v = MGX_NEW_ARRAY(arena, double, count);
    for (int i = 0; i < count; i++)
        v[i] = nasty_real();
    return (struct mgx_doubles){v, count};
}

static const char *nasty_text(void)
{
    static const char *const v[] = {"",     "x",     "linear", "cubic", "nearest",    "tanh",
                                    "half", "float", "[a-z",   "(((((", "half_pixel", "asymmetric"};
    return v[pick(MGX_COUNT(v))];
}

static struct mgx_strings nasty_texts(struct mgx_arena *arena)
{
    const int count = pick(5);
    const char **v = MGX_NEW_ARRAY(arena, const char *, count);
    for (int i = 0; i < count; i++)
        v[i] = nasty_text();
    return (struct mgx_strings){v, count};
}

static int enum_count(const struct mgx_field *f)
{
    int n = 0;
    while (f->names[n])
        n++;
    return n;
}

static void spoil(const struct mgx_field *f, void *attr, struct mgx_arena *arena)
{
    void *at = (char *)attr + f->offset;
    switch (f->kind) {
    case MGX_FIELD_INT:
        *(int64_t *)at = nasty_int();
        break;
    case MGX_FIELD_BOOL:
        *(bool *)at = chance(50);
        break;
    case MGX_FIELD_FLOAT:
        *(double *)at = nasty_real();
        break;
    case MGX_FIELD_STRING:
        *(const char **)at = nasty_text();
        break;
    case MGX_FIELD_INTS:
        *(struct mgx_ints *)at = nasty_ints(arena);
        break;
    case MGX_FIELD_FLOATS:
        *(struct mgx_doubles *)at = nasty_reals(arena);
        break;
    case MGX_FIELD_STRINGS:
        *(struct mgx_strings *)at = nasty_texts(arena);
        break;
    case MGX_FIELD_ENUM:
        *(int64_t *)at = pick(enum_count(f));
        break;
    case MGX_FIELD_TYPE:
        *(int64_t *)at = pick(MGX_TYPE_COUNT);
        break;
    default: // shapes and dimensions are checked by whoever reads them in
        break;
    }
}

static void *nasty_attr(const struct mgx_op *op, struct mgx_arena *arena)
{
    void *attr = NULL;
    struct mgx_diag diag = {0};
    if (mgx_attr_make(op, NULL, arena, &attr, &diag) != MGX_OK || !op->fields)
        return attr;
    const int percent = pick(3) * 30;
    for (const struct mgx_field *f = op->fields; f->name; f++)
        if (chance(percent))
            spoil(f, attr, arena);
    return attr;
}

// --- inputs ---

struct inputs {
    struct mgx_tensor tensor[MAX_INPUTS];
    const struct mgx_tensor *in[MAX_INPUTS];
    const struct mgx_shape *shape[MAX_INPUTS];
    int count;
};

static struct mgx_shape random_shape(enum mgx_type type)
{
    int64_t lens[MAX_RANK];
    const int rank = pick(MAX_RANK + 1);
    for (int i = 0; i < rank; i++)
        lens[i] = chance(8) ? 0 : 1 + pick(4);
    return mgx_shape_make(type, rank, lens);
}

static enum mgx_type random_type(int input)
{
    if (chance(10))
        return (enum mgx_type)pick(MGX_COMPLEX128 + 1) == MGX_TUPLE ? MGX_BOOL : MGX_STRING;
    if (input > 0 && chance(40))
        return chance(50) ? MGX_INT64 : MGX_INT32;
    static const enum mgx_type v[] = {MGX_FLOAT, MGX_FLOAT, MGX_FLOAT,  MGX_DOUBLE, MGX_HALF,
                                      MGX_INT8,  MGX_UINT8, MGX_UINT64, MGX_INT64,  MGX_BOOL};
    return v[pick(MGX_COUNT(v))];
}

static void fill(struct mgx_tensor *t)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    static const char text[] = "a,b 12";
    if (t->shape.type != MGX_STRING && !mgx_type_is_number(t->shape.type)) {
        for (size_t i = 0; i < mgx_shape_bytes(&t->shape); i++)
            ((unsigned char *)t->data)[i] = (unsigned char)next();
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (t->shape.type == MGX_STRING)
            ((struct mgx_string *)t->data)[i] = (struct mgx_string){text, (size_t)pick(7)};
        else if (mgx_computes_as_int(t->shape.type))
            mgx_store_int(t->shape.type, t->data, i, nasty_int());
        else
            mgx_store_double(t->shape.type, t->data, i, nasty_real());
    }
}

// Shapes that go together often enough for the computes to be reached.
static void make_inputs(const struct mgx_op *op, struct inputs *x)
{
    const int most = op->in_max < 0 || op->in_max > MAX_INPUTS ? MAX_INPUTS : op->in_max;
    const struct mgx_shape first = random_shape(random_type(0));
    const bool alike = chance(50), same_type = chance(70);
    x->count = op->in_min >= most ? most : op->in_min + pick(most - op->in_min + 1);
    for (int i = 0; i < x->count; i++) {
        struct mgx_shape s = first;
        if (i > 0 && (!alike || chance(15)))
            s = random_shape(first.type);
        if (i > 0 && !same_type)
            s.type = random_type(i);
        s = mgx_shape_make(s.type, s.rank, s.lens);
        if (i > 0 && chance(5))
            s = mgx_shape_vector(MGX_FLOAT, 0); // absent
        struct mgx_diag diag = {0};
        if (mgx_tensor_create(&x->tensor[i], &s, &diag) != MGX_OK)
            abort();
        fill(&x->tensor[i]);
        x->in[i] = &x->tensor[i];
        x->shape[i] = &x->tensor[i].shape;
    }
}

// --- one call ---

static bool shape_alone(const struct mgx_op *op, const void *attr, const struct inputs *x,
                        bool ranges, struct mgx_arena *arena)
{
    struct mgx_shape loose[MAX_INPUTS];
    const struct mgx_shape *shapes[MAX_INPUTS];
    for (int i = 0; i < x->count; i++) {
        const struct mgx_shape *s = x->shape[i];
        struct mgx_dim *dims = MGX_NEW_ARRAY(arena, struct mgx_dim, s->rank);
        for (int k = 0; k < s->rank; k++)
            dims[k] = (struct mgx_dim){.min = chance(50) ? 0 : s->lens[k],
                                       .max = chance(20) ? MGX_DIM_ANY : s->lens[k] + pick(3)};
        loose[i] = mgx_shape_dynamic(s->type, s->rank, dims);
        shapes[i] = ranges ? &loose[i] : s;
    }
    struct mgx_diag diag = {0};
    struct mgx_shape_call c = {
        .op = op, .attr = attr, .in = shapes, .in_count = x->count, .arena = arena, .diag = &diag};
    struct mgx_shape out;
    const enum mgx_status status = mgx_op_shape(&c, &out);
    return (status == MGX_OK) == (diag.text[0] == '\0');
}

static bool read_all(const struct mgx_tensor *t)
{
    for (int i = 0; i < t->sub_count; i++)
        if (!read_all(&t->sub[i]))
            return false;
    if (t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE)
        return true;
    struct mgx_diag diag = {0};
    struct mgx_tensor copy;
    if (!mgx_shape_is_static(&t->shape) || mgx_shape_check(&t->shape, &diag) != MGX_OK)
        return false;
    if (mgx_shape_elements(&t->shape) > LIMIT_BYTES)
        return true; // a view that repeats what it shows
    if (mgx_tensor_clone(&copy, t, &diag) != MGX_OK)
        return false;
    mgx_tensor_release(&copy);
    return true;
}

static int computed; // calls that gave a value: how deep this reaches

// Shape rule and compute of one call; the inputs are consumed.
static bool survives(const struct mgx_op *op, const void *attr, struct inputs *x,
                     struct mgx_arena *arena)
{
    bool good = shape_alone(op, attr, x, false, arena) && shape_alone(op, attr, x, true, arena);
    struct mgx_arena strings;
    mgx_arena_init(&strings);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = LIMIT_BYTES};
    struct mgx_diag diag = {0};
    struct mgx_tensor y = {0};
    if (op->compute &&
        mgx_eval_op(&e, op, attr, x->in, x->count, NULL, 0, NULL, &y, &diag) == MGX_OK) {
        good = good && !diag.text[0] && read_all(&y);
        computed++;
    } else {
        good = good && (diag.text[0] || !op->compute);
    }
    mgx_tensor_release(&y);
    for (int i = 0; i < x->count; i++)
        mgx_tensor_release(&x->tensor[i]);
    mgx_arena_fini(&strings);
    return good;
}

static bool from_nothing(const struct mgx_op *op)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct inputs x = {0};
    const void *attr = nasty_attr(op, &arena);
    make_inputs(op, &x);
    const bool good = survives(op, attr, &x, &arena);
    mgx_arena_fini(&arena);
    return good;
}

// --- spoiling good cases ---

// One entry of a list, the list copied.
static void spoil_entry(const struct mgx_field *f, void *attr, struct mgx_arena *arena)
{
    void *at = (char *)attr + f->offset;
    if (f->kind == MGX_FIELD_INTS && ((struct mgx_ints *)at)->count > 0) {
        struct mgx_ints *list = at;
        int64_t *v = mgx_arena_memdup(arena, list->v, (size_t)list->count * sizeof *v);
        v[pick(list->count)] = nasty_int();
        list->v = v;
    } else if (f->kind == MGX_FIELD_FLOATS && ((struct mgx_doubles *)at)->count > 0) {
        struct mgx_doubles *list = at;
        double *v = mgx_arena_memdup(arena, list->v, (size_t)list->count * sizeof *v);
        v[pick(list->count)] = nasty_real();
        list->v = v;
    } else {
        spoil(f, attr, arena);
    }
}

static void spoil_attr(const struct mgx_op *op, void *attr, struct mgx_arena *arena)
{
    int count = 0;
    while (op->fields && op->fields[count].name)
        count++;
    if (count == 0 || chance(50))
        return;
    const struct mgx_field *f = &op->fields[pick(count)];
    if (chance(70))
        spoil_entry(f, attr, arena);
    else
        spoil(f, attr, arena);
}

// Some values of a packed tensor of its own.
static void spoil_values(struct mgx_tensor *t)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int k = 1 + pick(3); k > 0 && count > 0 && mgx_type_is_number(t->shape.type); k--) {
        const int64_t at = (int64_t)(next() % (uint64_t)count);
        if (mgx_computes_as_int(t->shape.type))
            mgx_store_int(t->shape.type, t->data, at, nasty_int());
        else
            mgx_store_double(t->shape.type, t->data, at, nasty_real());
    }
}

// A tensor like `from` with one length or the type changed, of nasty values.
static void remake(const struct mgx_tensor *from, struct mgx_tensor *to)
{
    struct mgx_shape s = mgx_shape_make(from->shape.type, from->shape.rank, from->shape.lens);
    if (s.rank > 0 && chance(70)) {
        int64_t *len = &s.lens[pick(s.rank)];
        *len = chance(30) ? 0 : mgx_max_i64(*len - 1 + 2 * pick(2), 0);
    } else if (chance(50)) {
        s.rank = pick(mgx_min_i64(s.rank + 2, MAX_RANK) > 0 ? s.rank + 2 : 1);
        for (int i = from->shape.rank; i < s.rank; i++)
            s.lens[i] = 1;
    } else {
        s.type = random_type(1);
    }
    s = mgx_shape_make(s.type, s.rank, s.lens);
    struct mgx_diag diag = {0};
    if (mgx_tensor_create(to, &s, &diag) != MGX_OK)
        abort();
    fill(to);
}

static void spoil_input(const struct mgx_tensor *from, struct mgx_tensor *to)
{
    const bool whole = from->shape.type == MGX_TUPLE || from->shape.type == MGX_SEQUENCE;
    struct mgx_diag diag = {0};
    if (!whole && chance(15)) {
        remake(from, to);
    } else if (!whole && chance(30)) {
        if (mgx_tensor_clone(to, from, &diag) != MGX_OK)
            abort();
        spoil_values(to);
    } else {
        *to = mgx_tensor_share(from);
    }
}

static bool spoil_case(const struct op_case *c, const struct mgx_op *op, const char *text)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_diag diag = {0};
    void *attr = NULL;
    struct inputs x = {0};
    const size_t size = strlen(text);
    bool good = mgx_attr_parse(op, text, size ? size - 1 : 0, &arena, &attr, &diag) == MGX_OK;
    x.count = c->in_count - (c->in_count > op->in_min && chance(5));
    for (int i = 0; i < x.count; i++) {
        spoil_input(&c->in[i].tensor, &x.tensor[i]);
        x.in[i] = &x.tensor[i];
        x.shape[i] = &x.tensor[i].shape;
    }
    if (attr)
        spoil_attr(op, attr, &arena);
    good = survives(op, attr, &x, &arena) && good;
    mgx_arena_fini(&arena);
    return good;
}

static bool is_good_case(const struct op_case *c)
{
    bool good = c->op && !c->fails && c->out_count > 0 && c->in_count <= MAX_INPUTS;
    for (int i = 0; good && i < c->in_count; i++)
        good = c->in[i].has_values && mgx_shape_elements(&c->in[i].shape) <= 1000;
    return good;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 22);
    if (!f || !text || fread(text, 1, (1 << 22) - 1, f) == 0)
        abort();
    fclose(f);
    return text;
}

static int spoil_file(const char *path, int rounds, const char *only)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    char *text = read_file(path);
    struct case_reader r = {.file = path, .at = text, .arena = &arena};
    struct op_case c;
    int failed = 0;
    while (case_next(&r, &c)) {
        const size_t n = c.op ? strcspn(c.op, "[ \n") : 0;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, c.op ? c.op : "");
        const struct mgx_op *op = mgx_op_find(name);
        const bool use = op && is_good_case(&c) && (!only || strcmp(only, name) == 0);
        for (int k = 0; k < rounds && use; k++) {
            state = mgx_hash_bytes(path, strlen(path), (uint64_t)(c.line * 1000 + k));
            if (spoil_case(&c, op, c.op[n] == '[' ? c.op + n + 1 : ""))
                continue;
            printf("%s:%d, round %d: failed without a message, or an unreadable result\n", path,
                   c.line, k);
            failed++;
            break;
        }
        case_free(&c);
    }
    free(text);
    mgx_arena_fini(&arena);
    return failed;
}

static int start_from_nothing(int rounds, const char *only)
{
    int count, failed = 0;
    const struct mgx_op *const *ops = mgx_op_all(&count);
    for (int i = 0; i < count; i++) {
        if ((ops[i]->flags & MGX_OP_BUILTIN) || (only && strcmp(only, ops[i]->name) != 0))
            continue;
        for (int k = 0; k < rounds; k++) {
            state = mgx_hash_bytes(ops[i]->name, strlen(ops[i]->name), (uint64_t)k);
            if (from_nothing(ops[i]))
                continue;
            printf("%s, round %d: failed without a message, or an unreadable result\n",
                   ops[i]->name, k);
            failed++;
            break;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    const char *only = argc > 2 ? argv[2] : NULL;
    int failed = start_from_nothing(rounds, only);
    printf("from nothing: %d computed, %d failed\n", computed, failed);
    computed = 0;
    glob_t files = {0};
    if (glob("test/op/cases/*.txt", 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            failed += spoil_file(files.gl_pathv[i], argc > 1 ? rounds : SPOILS, only);
    globfree(&files);
    printf("from good cases: %d computed, %d failed in all\n", computed, failed);
    return failed != 0 || (!only && computed == 0);
}
