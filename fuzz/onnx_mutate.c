// SPDX-License-Identifier: MIT
// Small valid ONNX models, mutated as messages: a change keeps the nesting and all lengths right,
// so that it reaches the operators instead of the wire reader. What imports also runs, on zeros and
// small numbers, must verify and simplify, and runs compiled for the CPU.
#include <stdlib.h>
#include <string.h>

#include "import/wire.h"
#include "onnx/onnx.h"
#include "op/eval/eval.h"
#include "pass/pass.h"
#include "targets/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void require(bool condition)
{
    if (!condition)
        abort();
}

// --- running ---

enum { MOST = 16, BYTES = 1 << 20 };

static enum mgx_status fill(struct mgx_tensor *t, const struct mgx_shape *shape, uint8_t value)
{
    struct mgx_shape s = *shape;
    if (s.unranked)
        s = mgx_shape_vector(s.type, 3);
    if (s.type == MGX_TUPLE || s.type == MGX_SEQUENCE || s.type == MGX_STRING)
        return MGX_UNSUPPORTED;
    if (s.dims) { // any size within the range will do
        int64_t lens[MGX_MAX_RANK];
        for (int i = 0; i < s.rank; i++)
            lens[i] = s.dims[i].min > 2 ? s.dims[i].min : s.dims[i].max < 2 ? s.dims[i].max : 2;
        s = mgx_shape_make(s.type, s.rank, lens);
    }
    if (mgx_shape_check(&s, NULL) != MGX_OK || mgx_shape_bytes(&s) > BYTES)
        return MGX_LIMIT;
    TRY(mgx_tensor_create(t, &s, NULL));
    if (mgx_type_is_number(s.type))
        for (int64_t i = 0; i < mgx_shape_elements(&s); i++)
            mgx_store_double(s.type, t->data, i, value);
    else
        memset(t->data, 0, mgx_shape_bytes(&s));
    return MGX_OK;
}

// On the arguments of a run that went well, and so within the limits; what it gives is not
// compared.
static void run_compiled(struct mgx_program *p, const struct mgx_tensor *args, int count)
{
    const struct mgx_compile_options options = {.offload_copy = true, .threads = 1};
    struct mgx_named_tensor named[MOST];
    struct mgx_tensor results[MOST] = {0};
    struct mgx_ins *params[MOST];
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    enum mgx_status status = mgx_program_compile(p, mgx_target_find("cpu"), &options, &diag);
    mgx_module_parameters(mgx_program_main(p), params, count);
    for (int i = 0; i < count; i++)
        named[i] = (struct mgx_named_tensor){mgx_parameter_name(params[i]), args[i]};
    struct mgx_run call = {.params = named,
                           .param_count = count,
                           .results = results,
                           .result_count = mgx_module_result_count(mgx_program_main(p))};
    if (status == MGX_OK)
        status = mgx_program_run(p, &call, &diag);
    require(status == MGX_OK || diag.text[0]);
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&results[i]);
}

// As it is and, when that goes well and `compile` is set, compiled.
static void run(struct mgx_program *p, uint8_t value, bool compile)
{
    struct mgx_ins *params[MOST];
    struct mgx_tensor args[MOST] = {0}, results[MOST] = {0};
    const struct mgx_module *m = mgx_program_main(p);
    const int count = mgx_module_parameters(m, params, MOST);
    struct mgx_diag diag;
    struct mgx_arena strings;
    mgx_diag_clear(&diag);
    mgx_arena_init(&strings);
    bool ok = count <= MOST && mgx_module_result_count(m) <= MOST;
    for (int i = 0; ok && i < count; i++)
        ok = fill(&args[i], &params[i]->shape, value) == MGX_OK;
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    struct mgx_eval e = {.strings = &strings, .limit_bytes = BYTES};
    if (ok) {
        ok = mgx_eval_module(&e, m, args, count, results, &diag) == MGX_OK;
        require(ok || diag.text[0]);
    }
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&results[i]);
    if (ok && compile)
        run_compiled(p, args, count);
    for (int i = 0; i < MOST; i++)
        mgx_tensor_release(&args[i]);
    mgx_arena_fini(&strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mgx_onnx_options options = {
        .limit_bytes = BYTES,
        .limit_nodes = 500,
        .limit_seconds = 5,
        .limit_loop_iterations = 20,
        .external_data_path = "/nonexistent",
        .dynamic_dims = size & 1,
    };
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const enum mgx_status status = mgx_onnx_import_buffer(&p, data, size, false, &options, &diag);
    require((status == MGX_OK) == (p != NULL) && (p || diag.text[0]));
    if (!p)
        return 0;
    require(mgx_program_verify(p, NULL) == MGX_OK);
    run(p, size % 3, false);
    const struct mgx_pass_options passes = {.fold_limit_bytes = BYTES, .fold_total_bytes = BYTES};
    if (mgx_run_passes(p, mgx_pipeline_simplify, &passes, &diag) == MGX_OK) {
        require(mgx_program_verify(p, NULL) == MGX_OK);
        run(p, size % 5, true);
    }
    mgx_program_destroy(p);
    return 0;
}

// --- mutating ---

static uint64_t state;

static uint32_t next(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

struct out { // the message being written; what does not fit is dropped as a whole
    uint8_t *data;
    size_t size, room;
    bool full;
};

static void put(struct out *o, const void *data, size_t size)
{
    if (o->full || size > o->room - o->size) {
        o->full = true;
        return;
    }
    if (size)
        memcpy(o->data + o->size, data, size);
    o->size += size;
}

static void put_varint(struct out *o, uint64_t value)
{
    for (uint8_t byte; value >= 0x80; value >>= 7) {
        byte = (uint8_t)(value | 0x80);
        put(o, &byte, 1);
    }
    const uint8_t last = (uint8_t)value;
    put(o, &last, 1);
}

// Which fields of which message are messages: the schema, as far as it nests.
enum message {
    NONE,
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    FUNCTION,
    OPSET
};

static enum message child(enum message m, uint32_t field)
{
    static const struct {
        uint8_t in, field, is;
    } rows[] = {{MODEL, 7, GRAPH},      {MODEL, 8, OPSET},       {MODEL, 25, FUNCTION},
                {GRAPH, 1, NODE},       {GRAPH, 5, TENSOR},      {GRAPH, 11, VALUE},
                {GRAPH, 12, VALUE},     {GRAPH, 15, SPARSE},     {NODE, 5, ATTRIBUTE},
                {ATTRIBUTE, 5, TENSOR}, {ATTRIBUTE, 6, GRAPH},   {ATTRIBUTE, 22, SPARSE},
                {SPARSE, 1, TENSOR},    {SPARSE, 2, TENSOR},     {VALUE, 2, TYPE},
                {TYPE, 1, TENSOR_TYPE}, {TENSOR_TYPE, 2, SHAPE}, {SHAPE, 1, DIMENSION},
                {FUNCTION, 7, NODE},    {FUNCTION, 9, OPSET},    {FUNCTION, 11, ATTRIBUTE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].in == m && rows[i].field == field)
            return (enum message)rows[i].is;
    return NONE;
}

static uint64_t odd_number(uint64_t old)
{
    static const int64_t odd[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  8,
                                  13,
                                  16,
                                  17,
                                  255,
                                  -1,
                                  -2,
                                  65536,
                                  INT32_MAX,
                                  INT32_MIN,
                                  (int64_t)1 << 32,
                                  (int64_t)1 << 40,
                                  (int64_t)1 << 62,
                                  INT64_MAX,
                                  INT64_MIN};
    switch (next(4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    default:
        return (uint64_t)odd[next(sizeof odd / sizeof *odd)];
    }
}

static uint32_t odd_float(void)
{
    static const uint32_t odd[] = {0,          0x80000000, 0x3F800000, 0xBF800000,
                                   0x7F800000, 0xFF800000, 0x7FC00000, 1,
                                   0x7F7FFFFF, 0x3F000000, 0x4F000000};
    return odd[next(sizeof odd / sizeof *odd)];
}

// Another operator or a mode, where a text is one; names of values get another letter.
static void put_text(struct out *o, const uint8_t *data, size_t size)
{
    static const char *const words[] = {
        "Add",     "Reshape", "Slice",      "Gather",    "Pad",    "Concat", "Split", "Loop",
        "If",      "Cast",    "MatMul",     "Conv",      "Resize", "Expand", "Tile",  "TopK",
        "Softmax", "LSTM",    "Squeeze",    "Scan",      "x",      "y",      "",      "linear",
        "cubic",   "reflect", "SAME_UPPER", "ij,jk->ik", "...i->i"};
    uint8_t copy[256];
    if (next(2) || !size || size > sizeof copy) {
        const char *word = words[next(sizeof words / sizeof *words)];
        put_varint(o, strlen(word));
        put(o, word, strlen(word));
        return;
    }
    memcpy(copy, data, size);
    copy[next((uint32_t)size)] ^= (uint8_t)(1 << next(7));
    put_varint(o, size);
    put(o, copy, size);
}

static void put_value(struct out *o, const struct mgx_wire_field *f)
{
    const uint32_t bits = odd_float();
    const uint64_t wide = (uint64_t)bits << 32;
    if (f->type == MGX_WIRE_VARINT)
        put_varint(o, odd_number(f->value));
    else if (f->type == MGX_WIRE_32)
        put(o, &bits, 4);
    else if (f->type == MGX_WIRE_64)
        put(o, &wide, 8);
    else
        put_text(o, f->data, f->size);
}

static void put_same(struct out *o, const struct mgx_wire_field *f)
{
    if (f->type == MGX_WIRE_BYTES)
        put_varint(o, f->size);
    put(o, f->data, f->size);
}

static void put_tag(struct out *o, const struct mgx_wire_field *f)
{
    put_varint(o, (uint64_t)f->number << 3 | f->type);
}

// Copies a message; field number `*target` of the walk in all, counted at every depth, is changed.
static void rewrite(struct out *o, enum message kind, struct mgx_wire w, int *target, int depth)
{
    enum { DEEPEST = 24 };
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        const enum message inner = f.type == MGX_WIRE_BYTES ? child(kind, f.number) : NONE;
        const bool here = (*target)-- == 0;
        const uint32_t action = here ? next(inner ? 3 : 6) : 9;
        if (action == 0)
            continue; // gone
        put_tag(o, &f);
        if (action == 1) { // twice
            put_same(o, &f);
            put_tag(o, &f);
            put_same(o, &f);
        } else if (here && !inner) {
            put_value(o, &f);
        } else if (inner && depth < DEEPEST && *target >= 0) {
            uint8_t *room = malloc(o->room);
            struct out sub = {room, 0, o->room, room == NULL};
            rewrite(&sub, inner, mgx_wire_sub(&f), target, depth + 1);
            o->full |= sub.full;
            put_varint(o, sub.size);
            put(o, sub.data, sub.size);
            free(room);
        } else {
            put_same(o, &f);
        }
    }
}

static int count_fields(enum message kind, struct mgx_wire w, int depth)
{
    struct mgx_wire_field f;
    int count = 0;
    while (mgx_wire_next(&w, &f)) {
        const enum message inner = f.type == MGX_WIRE_BYTES ? child(kind, f.number) : NONE;
        count++;
        if (inner && depth < 24)
            count += count_fields(inner, mgx_wire_sub(&f), depth + 1);
    }
    return count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed * 2862933555777941757u + 3037000493u;
    uint8_t *room = malloc(max_size);
    size_t best = size;
    for (uint32_t changes = 1 + next(3); room && changes; changes--) {
        const struct mgx_wire model = mgx_wire_of(data, best);
        const int count = count_fields(MODEL, model, 0);
        int target = (int)next((uint32_t)(count ? count : 1));
        struct out o = {room, 0, max_size, false};
        rewrite(&o, MODEL, model, &target, 0);
        if (o.full || !o.size)
            break;
        memcpy(data, room, o.size);
        best = o.size;
    }
    free(room);
    return best;
}
