// SPDX-License-Identifier: MIT
// TensorProto in all its encodings: every type raw and typed, and every way to lie about size.
#include "import.h"
#include "tiny.h"

enum {
    FLOAT = 1,
    UINT8,
    INT8,
    UINT16,
    INT16,
    INT32,
    INT64,
    STRING,
    BOOL,
    HALF,
    DOUBLE,
    UINT32,
    UINT64,
    COMPLEX64,
    COMPLEX128,
    BF16,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    UINT4,
    INT4,
    FP4,
    F8E8M0,
    UINT2,
    INT2
};

enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};

// A model whose only content is this initialiser, and its literal.
static struct pb model_of(struct pb *take_tensor)
{
    struct pb g = {0};
    pb_initializer(&g, take_tensor);
    pb_output(&g, "w");
    return pb_model(&g, 21);
}

static const struct mgx_tensor *literal_of(const struct mgx_program *p)
{
    return mgx_module_result(mgx_program_main(p), 0)->literal;
}

// Imports the tensor and compares all its values with these.
static bool holds(struct pb *take_tensor, enum mgx_type type, const double *values, int count)
{
    struct pb m = model_of(take_tensor);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    bool ok = p && literal_of(p)->shape.type == type &&
              mgx_shape_elements(&literal_of(p)->shape) == count;
    for (int i = 0; ok && i < count; i++) {
        const double got = mgx_load_double(type, literal_of(p)->data, i);
        ok = got == values[i] || (isnan(got) && isnan(values[i]));
        if (!ok)
            printf("%s element %d is %g, expected %g\n", mgx_type_name(type), i, got, values[i]);
    }
    if (!p)
        printf("%s: %s\n", mgx_type_name(type), diag.text);
    mgx_program_destroy(p);
    return ok;
}

struct sample {
    int number;
    enum mgx_type type;
    int field;
    const char *raw; // three elements
    size_t raw_size;
    double values[3];
};

// Bit patterns by hand from the formats' definitions: one, minus two and a special value.
static const struct sample samples[] = {
    {FLOAT, MGX_FLOAT, FLOAT_DATA, "\0\0\x80\x3F\0\0\0\xC0\1\0\0\0", 12, {1, -2, 0x1p-149}},
    {DOUBLE,
     MGX_DOUBLE,
     DOUBLE_DATA,
     "\0\0\0\0\0\0\xF0\x3F\0\0\0\0\0\0\0\xC0\1\0\0\0\0\0\0\0",
     24,
     {1, -2, 0x1p-1074}},
    {INT8, MGX_INT8, INT32_DATA, "\1\xFE\x80", 3, {1, -2, -128}},
    {UINT8, MGX_UINT8, INT32_DATA, "\1\xFE\x80", 3, {1, 254, 128}},
    {INT16, MGX_INT16, INT32_DATA, "\1\0\xFE\xFF\0\x80", 6, {1, -2, -32768}},
    {UINT16, MGX_UINT16, INT32_DATA, "\1\0\xFE\xFF\0\x80", 6, {1, 65534, 32768}},
    {INT32, MGX_INT32, INT32_DATA, "\1\0\0\0\xFE\xFF\xFF\xFF\0\0\0\x80", 12, {1, -2, -0x1p31}},
    {UINT32,
     MGX_UINT32,
     UINT64_DATA,
     "\1\0\0\0\xFE\xFF\xFF\xFF\0\0\0\x80",
     12,
     {1, 4294967294.0, 0x1p31}},
    {INT64,
     MGX_INT64,
     INT64_DATA,
     "\1\0\0\0\0\0\0\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\x80",
     24,
     {1, -2, -0x1p63}},
    {UINT64,
     MGX_UINT64,
     UINT64_DATA,
     "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80",
     24,
     {1, 2, 0x1p63}},
    {BOOL, MGX_BOOL, INT32_DATA, "\0\1\7", 3, {0, 1, 1}},
    {HALF, MGX_HALF, INT32_DATA, "\0\x3C\0\xC0\1\0", 6, {1, -2, 0x1p-24}},
    {BF16, MGX_BF16, INT32_DATA, "\x80\x3F\0\xC0\x80\x7F", 6, {1, -2, INFINITY}},
    {F8E4M3FN, MGX_FP8E4M3FN, INT32_DATA, "\x38\xC0\x7F", 3, {1, -2, NAN}},
    {F8E4M3FNUZ, MGX_FP8E4M3FNUZ, INT32_DATA, "\x40\xC8\x80", 3, {1, -2, NAN}},
    {F8E5M2, MGX_FP8E5M2, INT32_DATA, "\x3C\xC0\x7C", 3, {1, -2, INFINITY}},
    {F8E5M2FNUZ, MGX_FP8E5M2FNUZ, INT32_DATA, "\x40\xC4\x80", 3, {1, -2, NAN}},
    {F8E8M0, MGX_FP8E8M0, INT32_DATA, "\x7F\x80\xFF", 3, {1, 2, NAN}},
};

CASE(every_type_raw_and_typed)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        struct pb t = pb_tensor_raw("w", s->number, 1, (int64_t[]){3}, s->raw, s->raw_size);
        CHECK(holds(&t, s->type, s->values, 3));
        t = pb_tensor("w", s->number, 1, (int64_t[]){3});
        const size_t size = s->raw_size / 3;
        const bool is_signed = s->number == INT8 || s->number == INT16 || s->number == INT32;
        for (int k = 0; k < 3; k++) { // unpacked: one field per number
            uint64_t bits = 0;
            memcpy(&bits, s->raw + (size_t)k * size, size);
            if (is_signed && bits >> (8 * size - 1))
                bits |= ~(uint64_t)0 << (8 * size); // as protobuf writes negative numbers
            if (s->field == FLOAT_DATA || s->field == DOUBLE_DATA) {
                pb_varint(&t, (uint64_t)s->field << 3 | (size == 4 ? 5 : 1));
                pb_raw(&t, &bits, size);
            } else {
                pb_int(&t, s->field, (int64_t)bits);
            }
        }
        CHECK(holds(&t, s->type, s->values, 3));
    }
}

CASE(packed_lists_in_pieces)
{
    struct pb t = pb_tensor("w", FLOAT, 1, (int64_t[]){3});
    pb_bytes(&t, FLOAT_DATA, samples[0].raw, 8); // two in one piece
    pb_bytes(&t, FLOAT_DATA, samples[0].raw + 8, 4);
    CHECK(holds(&t, MGX_FLOAT, samples[0].values, 3));
    struct pb list = {0};
    t = pb_tensor("w", INT64, 1, (int64_t[]){3});
    pb_int(&t, INT64_DATA, 1);
    pb_varint(&list, (uint64_t)-2);
    pb_varint(&list, (uint64_t)1 << 40);
    pb_message(&t, INT64_DATA, &list);
    CHECK(holds(&t, MGX_INT64, (double[]){1, -2, 0x1p40}, 3));
}

// Elements narrower than a byte, low bits first, also where the last byte is not full.
CASE(narrow_types_take_a_byte_each)
{
    static const struct {
        int number;
        enum mgx_type type;
        double values[5];
    } narrow[] = {{UINT4, MGX_UINT4, {1, 2, 15, 8, 7}},
                  {INT4, MGX_INT4, {1, 2, -1, -8, 7}},
                  {FP4, MGX_FP4, {0.5, 1, -6, -0.0, 6}}};
    for (int i = 0; i < 3; i++) {
        static const uint8_t raw[] = {0x21, 0x8F, 0x07};
        struct pb t = pb_tensor_raw("w", narrow[i].number, 1, (int64_t[]){5}, raw, 3);
        CHECK(holds(&t, narrow[i].type, narrow[i].values, 5));
        t = pb_tensor("w", narrow[i].number, 1, (int64_t[]){5});
        for (int k = 0; k < 3; k++)
            pb_int(&t, INT32_DATA, raw[k]);
        CHECK(holds(&t, narrow[i].type, narrow[i].values, 5));
    }
    static const uint8_t twos[] = {0xE4, 0x02}; // 0 1 2 3 | 2
    struct pb t = pb_tensor_raw("w", UINT2, 1, (int64_t[]){5}, twos, 2);
    CHECK(holds(&t, MGX_UINT2, (double[]){0, 1, 2, 3, 2}, 5));
    t = pb_tensor_raw("w", INT2, 1, (int64_t[]){5}, twos, 2);
    CHECK(holds(&t, MGX_INT2, (double[]){0, 1, -2, -1, -2}, 5));
    t = pb_tensor("w", INT2, 1, (int64_t[]){5});
    pb_int(&t, INT32_DATA, 0xE4);
    pb_int(&t, INT32_DATA, 0x02);
    CHECK(holds(&t, MGX_INT2, (double[]){0, 1, -2, -1, -2}, 5));
}

CASE(complex_and_strings)
{
    static const float raw[] = {1, 2, 3, 4};
    struct pb t = pb_tensor_raw("w", COMPLEX64, 1, (int64_t[]){2}, raw, sizeof raw);
    struct pb m = model_of(&t);
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK(literal_of(p)->shape.type == MGX_COMPLEX64);
    CHECK(memcmp(literal_of(p)->data, raw, sizeof raw) == 0);
    mgx_program_destroy(p);

    t = pb_tensor("w", COMPLEX128, 1, (int64_t[]){1});
    const double pair[] = {5, -6};
    pb_bytes(&t, DOUBLE_DATA, pair, sizeof pair);
    m = model_of(&t);
    p = import_model(&m, NULL, &diag);
    CHECK(p);
    CHECK(memcmp(literal_of(p)->data, pair, sizeof pair) == 0);
    mgx_program_destroy(p);

    t = pb_tensor("w", STRING, 1, (int64_t[]){3});
    pb_text(&t, STRING_DATA, "one");
    pb_text(&t, STRING_DATA, "");
    pb_bytes(&t, STRING_DATA, "a\0\xFF", 3); // any bytes
    m = model_of(&t);
    p = import_model(&m, NULL, &diag);
    CHECK(p);
    struct mgx_tensor share = mgx_tensor_share(literal_of(p)); // outlives the program
    mgx_program_destroy(p);
    const struct mgx_string *s = share.data;
    CHECK(s[0].size == 3 && memcmp(s[0].text, "one", 3) == 0);
    CHECK(s[1].size == 0);
    CHECK(s[2].size == 3 && memcmp(s[2].text, "a\0\xFF", 3) == 0);
    mgx_tensor_release(&share);
}

CASE(scalars_and_empty_tensors)
{
    const float one = 1;
    struct pb t = pb_tensor_raw("w", FLOAT, 0, NULL, &one, 4);
    CHECK(holds(&t, MGX_FLOAT, (double[]){1}, 1));
    t = pb_tensor("w", FLOAT, 2, (int64_t[]){3, 0});
    CHECK(holds(&t, MGX_FLOAT, NULL, 0));
    t = pb_tensor_raw("w", INT4, 1, (int64_t[]){0}, "", 0);
    CHECK(holds(&t, MGX_INT4, NULL, 0));
}

// Literals are views where alignment allows it and copies where it does not; both are right.
CASE(any_alignment_in_the_file)
{
    for (int pad = 0; pad < 8; pad++) {
        struct pb g = {0};
        char name[16] = "";
        memset(name, 'p', (size_t)pad);
        static const double values[] = {1.5, -2.5, 1e300};
        struct pb t = pb_tensor("w", DOUBLE, 1, (int64_t[]){3});
        pb_text(&t, 12, name); // doc_string: moves what follows
        pb_bytes(&t, 9, values, sizeof values);
        CHECK(holds(&t, MGX_DOUBLE, values, 3));
        pb_free(&g);
    }
}

// --- lies ---

static bool lies(struct pb *take_tensor, enum mgx_status status, const char *text)
{
    struct pb m = model_of(take_tensor);
    return refused(&m, status, text);
}

CASE(dimensions_must_make_sense)
{
    static const struct {
        int rank;
        int64_t dims[3];
        enum mgx_status status;
    } cases[] = {{1, {-1}, MGX_INVALID},
                 {1, {INT64_MIN}, MGX_INVALID},
                 {2, {(int64_t)1 << 32, (int64_t)1 << 32}, MGX_LIMIT}, // wraps to 0
                 {3, {((int64_t)1 << 32) + 1, (int64_t)1 << 31, 2}, MGX_LIMIT},
                 {1, {(int64_t)1 << 62}, MGX_LIMIT},
                 {2, {(int64_t)1 << 31, 2}, MGX_LIMIT},
                 {1, {(int64_t)1 << 40}, MGX_LIMIT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb t = pb_tensor_raw("w", FLOAT, cases[i].rank, cases[i].dims, "\0\0\0\0", 4);
        if (!lies(&t, cases[i].status, "w"))
            CHECK_FAIL("case %zu", i);
    }
    int64_t many[1000];
    for (int i = 0; i < 1000; i++)
        many[i] = 1;
    struct pb t = pb_tensor_raw("w", FLOAT, 1000, many, "\0\0\0\0", 4);
    CHECK(lies(&t, MGX_LIMIT, "rank 1000 is above 16"));
}

CASE(data_must_fit_the_dimensions)
{
    struct pb t = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){2}, "1234567", 7);
    CHECK(lies(&t, MGX_INVALID, "7 bytes where its dimensions need 8"));
    t = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){1}, "12345678", 8);
    CHECK(lies(&t, MGX_INVALID, "8 bytes where its dimensions need 4"));
    t = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){0}, "1234", 4);
    CHECK(lies(&t, MGX_INVALID, "4 bytes where its dimensions need 0"));
    t = pb_tensor("w", FLOAT, 1, (int64_t[]){2});
    CHECK(lies(&t, MGX_INVALID, "0 bytes where its dimensions need 8"));
    t = pb_tensor_raw("w", INT4, 1, (int64_t[]){3}, "1", 1);
    CHECK(lies(&t, MGX_INVALID, "1 bytes where its dimensions need 2"));
    t = pb_tensor_raw("w", UINT2, 1, (int64_t[]){3}, "12", 2);
    CHECK(lies(&t, MGX_INVALID, "2 bytes where its dimensions need 1"));
    t = pb_tensor("w", INT64, 1, (int64_t[]){2});
    pb_int(&t, INT64_DATA, 1);
    CHECK(lies(&t, MGX_INVALID, "1 numbers where its dimensions need 2"));
    t = pb_tensor("w", INT64, 1, (int64_t[]){1000000});
    pb_int(&t, INT64_DATA, 1);
    CHECK(lies(&t, MGX_INVALID, "1000000 numbers expected"));
    t = pb_tensor("w", INT64, 0, NULL);
    pb_int(&t, INT64_DATA, 1);
    pb_int(&t, INT64_DATA, 2);
    CHECK(lies(&t, MGX_INVALID, "2 numbers where its dimensions need 1"));
    t = pb_tensor("w", STRING, 1, (int64_t[]){(int64_t)1 << 27});
    CHECK(lies(&t, MGX_INVALID, "0 strings where its dimensions need 134217728"));
}

CASE(data_must_be_where_it_belongs)
{
    struct pb t = pb_tensor("w", FLOAT, 0, NULL);
    pb_int(&t, INT64_DATA, 1);
    CHECK(lies(&t, MGX_INVALID, "in field 7 where field 4 belongs"));
    t = pb_tensor("w", FLOAT, 0, NULL);
    pb_text(&t, STRING_DATA, "1.0");
    CHECK(lies(&t, MGX_INVALID, "in field 6 where field 4 belongs"));
    t = pb_tensor_raw("w", FLOAT, 0, NULL, "1234", 4);
    pb_float(&t, FLOAT_DATA, 1);
    CHECK(lies(&t, MGX_INVALID, "both present"));
    t = pb_tensor("w", INT64, 0, NULL);
    pb_int(&t, INT64_DATA, 1);
    pb_int(&t, INT32_DATA, 1);
    CHECK(lies(&t, MGX_INVALID, "both present"));
    t = pb_tensor_raw("w", STRING, 0, NULL, "text", 4);
    CHECK(lies(&t, MGX_INVALID, "strings cannot be raw_data"));
    t = pb_tensor_raw("w", FLOAT, 0, NULL, "1234", 4);
    pb_text(&t, 3, ""); // segment
    CHECK(lies(&t, MGX_UNSUPPORTED, "segments"));
    static const int unknown[] = {0, -1, 29, 1000000};
    for (int i = 0; i < 4; i++) {
        t = pb_tensor_raw("w", unknown[i], 0, NULL, "1234", 4);
        CHECK(lies(&t, MGX_INVALID, "is not known"));
    }
}

// --- sparse ---

static struct pb sparse(const int64_t *indices, int count, const int64_t *dims, int rank,
                        bool linear)
{
    static const float values[] = {1, 2, 3, 4};
    struct pb s = {0};
    struct pb v = pb_tensor_raw("w", FLOAT, 1, (int64_t[]){count}, values, (size_t)count * 4);
    struct pb i = pb_tensor_raw("", INT64, linear ? 1 : 2, (int64_t[]){count, rank}, indices,
                                (size_t)count * (linear ? 1 : (size_t)rank) * 8);
    pb_message(&s, 1, &v);
    pb_message(&s, 2, &i);
    for (int k = 0; k < rank; k++)
        pb_int(&s, 3, dims[k]);
    struct pb g = {0};
    pb_message(&g, 15, &s);
    pb_output(&g, "w");
    return pb_model(&g, 17);
}

CASE(sparse_tensors_become_dense)
{
    static const int64_t pairs[] = {0, 1, 1, 0, 1, 2}, linear[] = {1, 3, 5}, dims[] = {2, 3};
    static const double expected[] = {0, 1, 0, 2, 0, 3};
    for (int as_pairs = 0; as_pairs < 2; as_pairs++) {
        struct pb m = sparse(as_pairs ? pairs : linear, 3, dims, 2, !as_pairs);
        struct mgx_diag diag;
        struct mgx_program *p = import_model(&m, NULL, &diag);
        CHECK(p);
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(((float *)literal_of(p)->data)[i], expected[i], 0);
        mgx_program_destroy(p);
    }
}

CASE(sparse_indices_are_checked)
{
    static const int64_t dims[] = {2, 3};
    struct pb m = sparse((int64_t[]){1, 6}, 2, dims, 2, true);
    CHECK(refused(&m, MGX_INVALID, "entry 1 of a sparse tensor is at 6, outside"));
    m = sparse((int64_t[]){-1, 2}, 2, dims, 2, true);
    CHECK(refused(&m, MGX_INVALID, "entry 0 of a sparse tensor is at -1, outside"));
    m = sparse((int64_t[]){3, 1}, 2, dims, 2, true);
    CHECK(refused(&m, MGX_INVALID,
                  "entry 1 of a sparse tensor is at 1, not behind the one before at 3"));
    m = sparse((int64_t[]){3, 3}, 2, dims, 2, true);
    CHECK(refused(&m, MGX_INVALID,
                  "entry 1 of a sparse tensor is at 3, not behind the one before at 3"));
    m = sparse((int64_t[]){0, 3}, 1, dims, 2, false);
    CHECK(refused(&m, MGX_INVALID,
                  "entry 0 of a sparse tensor is at 3 of axis 1, which has length 3"));
    m = sparse((int64_t[]){0}, 1, (int64_t[]){(int64_t)1 << 31, 2}, 2, true);
    CHECK(refused(&m, MGX_LIMIT, "a sparse tensor of"));
    m = sparse((int64_t[]){0}, 1, (int64_t[]){(int64_t)1 << 32, (int64_t)1 << 32}, 2, true);
    CHECK(refused(&m, MGX_LIMIT, "w"));
}

// They lie in the literal's own block: the program's arena goes when instructions move.
CASE(texts_of_a_constant_go_with_it)
{
    struct pb m = tiny_model("Constant() value_string='kept'");
    struct mgx_diag diag;
    struct mgx_program *p = import_model(&m, NULL, &diag), *copy = NULL;
    CHECK(p);
    CHECK_OK(mgx_program_clone(&copy, p, &diag), diag);
    mgx_program_destroy(p);
    const struct mgx_tensor *t = mgx_module_result(mgx_program_main(copy), 0)->literal;
    CHECK(t && t->storage);
    const struct mgx_string *s = t->data;
    const char *start = t->storage->data;
    CHECK(s->size == 4 && s->text >= start && s->text + s->size <= start + t->storage->bytes);
    CHECK(memcmp(s->text, "kept", 4) == 0);
    mgx_program_destroy(copy);
}

TEST_MAIN(ROW(every_type_raw_and_typed) ROW(packed_lists_in_pieces)
              ROW(narrow_types_take_a_byte_each) ROW(complex_and_strings)
                  ROW(scalars_and_empty_tensors) ROW(any_alignment_in_the_file)
                      ROW(dimensions_must_make_sense) ROW(data_must_fit_the_dimensions)
                          ROW(data_must_be_where_it_belongs) ROW(sparse_tensors_become_dense)
                              ROW(sparse_indices_are_checked) ROW(texts_of_a_constant_go_with_it))
