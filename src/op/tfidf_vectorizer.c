// SPDX-License-Identifier: MIT
// tfidf_vectorizer: counts n-grams of a pool in every row (ONNX TfIdfVectorizer).
//
//     x {c} or {n, c} of integers or strings  ->  y {k} or {n, k} of float, k = largest index + 1
//
// An n-gram is n items at equal distances, of 1 up to max_skip_count + 1; single items count once.
// The pool lists all 1-grams, then all 2-grams, ...; ngram_counts says where each length begins.
// ngram_indexes gives every n-gram its place in y. TF counts, IDF writes the weight of what occurs,
// TFIDF counts times weights (1 without weights). Cost: one look-up in a hash table per n-gram of
// the row.
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/size.h"
#include "op/reference/gemm.h"

enum mode { TF, IDF, TFIDF };

struct tfidf_vectorizer {
    int64_t mode, min_gram_length, max_gram_length, max_skip_count;
    struct mgx_ints ngram_counts, ngram_indexes, pool_int64s;
    struct mgx_strings pool_strings;
    struct mgx_doubles weights;
};

static const char *const modes[] = {"TF", "IDF", "TFIDF", NULL};
static const struct mgx_field fields[] = {MGX_ENUM(struct tfidf_vectorizer, mode, modes),
                                          MGX_INT(struct tfidf_vectorizer, min_gram_length),
                                          MGX_INT(struct tfidf_vectorizer, max_gram_length),
                                          MGX_INT(struct tfidf_vectorizer, max_skip_count),
                                          MGX_INTS(struct tfidf_vectorizer, ngram_counts),
                                          MGX_INTS(struct tfidf_vectorizer, ngram_indexes),
                                          MGX_INTS(struct tfidf_vectorizer, pool_int64s),
                                          MGX_TEXTS(struct tfidf_vectorizer, pool_strings),
                                          MGX_REALS(struct tfidf_vectorizer, weights),
                                          {0}};
static const struct tfidf_vectorizer defaults = {.min_gram_length = 1, .max_gram_length = 1};

// --- shape ---

static int pool_size(const struct tfidf_vectorizer *a)
{
    return a->pool_strings.count ? a->pool_strings.count : a->pool_int64s.count;
}

// Where n-grams of length n begin and end in the pool.
static int64_t pool_begin(const struct tfidf_vectorizer *a, int64_t n)
{
    return n - 1 < a->ngram_counts.count ? a->ngram_counts.v[n - 1] : pool_size(a);
}

static enum mgx_status check_pool(struct mgx_shape_call *c, int64_t *grams)
{
    const struct tfidf_vectorizer *a = c->attr;
    *grams = 0;
    if (a->ngram_counts.count == 0 || a->ngram_counts.v[0] != 0)
        return mgx_fail(c->diag, MGX_INVALID, "%s: ngram_counts must begin with 0", c->op->name);
    for (int n = 1; n <= a->ngram_counts.count; n++) {
        const int64_t begin = pool_begin(a, n), end = pool_begin(a, n + 1);
        if (begin > end || end > pool_size(a) || (end - begin) % n != 0)
            return mgx_fail(c->diag, MGX_INVALID,
                            "%s: %d-grams from %" PRId64 " to %" PRId64 " in a pool of %d",
                            c->op->name, n, begin, end, pool_size(a));
        *grams += (end - begin) / n;
    }
    return MGX_OK;
}

static enum mgx_status check_attr(struct mgx_shape_call *c, int64_t *width)
{
    const struct tfidf_vectorizer *a = c->attr;
    int64_t grams;
    if (a->mode < TF || a->mode > TFIDF)
        return mgx_fail(c->diag, MGX_INVALID, "%s: mode %" PRId64 " is unknown", c->op->name,
                        a->mode);
    if (a->min_gram_length < 1 || a->max_gram_length < a->min_gram_length ||
        a->max_gram_length > a->ngram_counts.count || a->max_skip_count < 0 ||
        a->max_skip_count > INT32_MAX)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: n-grams of length %" PRId64 " to %" PRId64 ", skipping up to %" PRId64
                        ", with %d lengths in the pool",
                        c->op->name, a->min_gram_length, a->max_gram_length, a->max_skip_count,
                        a->ngram_counts.count);
    TRY(check_pool(c, &grams));
    if (a->ngram_indexes.count != grams ||
        (a->weights.count != 0 && a->weights.count != a->ngram_indexes.count))
        return mgx_fail(c->diag, MGX_INVALID, "%s: %" PRId64 " n-grams, %d indexes, %d weights",
                        c->op->name, grams, a->ngram_indexes.count, a->weights.count);
    *width = 0;
    for (int i = 0; i < a->ngram_indexes.count; i++) {
        if (a->ngram_indexes.v[i] < 0 || a->ngram_indexes.v[i] >= INT32_MAX)
            return mgx_fail(c->diag, MGX_INVALID, "%s: index %" PRId64 " is out of range",
                            c->op->name, a->ngram_indexes.v[i]);
        *width = mgx_max_i64(*width, a->ngram_indexes.v[i] + 1);
    }
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct tfidf_vectorizer *a = c->attr;
    const struct mgx_shape *x = c->in[0];
    int64_t width;
    TRY(check_attr(c, &width));
    TRY(mgx_require_rank(c, 0, 1, 2));
    if (a->pool_strings.count ? x->type != MGX_STRING : !mgx_type_is_integral(x->type))
        return mgx_fail(c->diag, MGX_INVALID, "%s: the pool does not go with an input of %s",
                        c->op->name, mgx_type_name(x->type));
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[x->rank - 1] = (struct mgx_dim){.min = width, .max = width};
    *out = mgx_shape_from_dims(MGX_FLOAT, x->rank, dims);
    return MGX_OK;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_FLOAT;
}

// --- compute ---

// Items and n-grams are numbered: an item by its first place in the pool (from 1, 0 for unknown),
// an n-gram by its place in ngram_indexes. Keys of n-grams are runs of item numbers.
struct run {
    struct mgx_compute_call *c;
    struct mgx_map items, grams;
    int64_t *pool;    // item numbers
    int64_t *numbers; // values of the map: numbers[i] == i
};

static const int64_t *find_item(const struct run *r, const char *key, size_t size)
{
    return mgx_map_findn(&r->items, key, size);
}

static bool number_pool(struct run *r)
{
    const struct tfidf_vectorizer *a = r->c->attr;
    for (int i = 0; i < pool_size(a); i++) {
        const char *key =
            a->pool_strings.count ? a->pool_strings.v[i] : (const char *)&a->pool_int64s.v[i];
        const size_t size = a->pool_strings.count ? strlen(key) : sizeof(int64_t);
        const int64_t *known = find_item(r, key, size);
        r->numbers[i + 1] = i + 1;
        if (!known && !mgx_map_putn(&r->items, key, size, &r->numbers[i + 1]))
            return false;
        r->pool[i] = known ? *known : i + 1;
    }
    int64_t gram = 0;
    for (int n = 1; n <= a->ngram_counts.count; n++)
        for (int64_t i = pool_begin(a, n); i < pool_begin(a, n + 1); i += n, gram++)
            if (!mgx_map_putn(&r->grams, (const char *)&r->pool[i], (size_t)n * sizeof *r->pool,
                              &r->numbers[gram]))
                return false;
    return true;
}

static void count_gram(const struct run *r, const int64_t *gram, int64_t n, double *row)
{
    const struct tfidf_vectorizer *a = r->c->attr;
    const int64_t *found = mgx_map_findn(&r->grams, (const char *)gram, (size_t)n * sizeof *gram);
    if (!found)
        return;
    const double weight = a->weights.count ? a->weights.v[*found] : 1;
    double *at = &row[a->ngram_indexes.v[*found]];
    *at = a->mode == TF ? *at + 1 : a->mode == IDF ? weight : *at + weight;
}

static void count_row(const struct run *r, const int64_t *items, int64_t length, int64_t *gram,
                      double *row)
{
    const struct tfidf_vectorizer *a = r->c->attr;
    for (int64_t n = a->min_gram_length; n <= a->max_gram_length; n++) {
        const int64_t skips = n == 1 ? 0 : mgx_min_i64(a->max_skip_count, length);
        for (int64_t step = 1; step <= skips + 1; step++)
            for (int64_t i = 0; i + (n - 1) * step < length; i++) {
                for (int64_t k = 0; k < n; k++)
                    gram[k] = items[i + k * step];
                count_gram(r, gram, n, row);
            }
    }
}

// Item numbers of all of x, row by row; NULL when out of memory.
static int64_t *number_input(struct run *r)
{
    const struct mgx_tensor *x = r->c->in[0];
    const int64_t count = mgx_shape_elements(&x->shape);
    int64_t *v = x->shape.type == MGX_STRING ? MGX_NEW_ARRAY(r->c->scratch, int64_t, count)
                                             : mgx_scratch_ints(r->c, x);
    for (int64_t i = 0; v && i < count; i++) {
        const int64_t *known;
        if (x->shape.type == MGX_STRING) {
            const struct mgx_string *s =
                (const struct mgx_string *)x->data + mgx_shape_index(&x->shape, i);
            known = find_item(r, s->size ? s->text : "", s->size);
        } else {
            known = find_item(r, (const char *)&v[i], sizeof v[i]);
        }
        v[i] = known ? *known : 0;
    }
    return v;
}

static enum mgx_status count_all(struct run *r)
{
    const struct tfidf_vectorizer *a = r->c->attr;
    const struct mgx_shape *x = &r->c->in[0]->shape, *y = &r->c->out->shape;
    const int64_t length = x->lens[x->rank - 1], width = y->lens[y->rank - 1];
    const int64_t rows = x->rank == 2 ? x->lens[0] : 1, pool = pool_size(a);
    r->pool = MGX_NEW_ARRAY(r->c->scratch, int64_t, pool);
    r->numbers = MGX_NEW_ARRAY(r->c->scratch, int64_t, pool + 1);
    int64_t *gram = MGX_NEW_ARRAY(r->c->scratch, int64_t, a->max_gram_length);
    double *out = MGX_NEW_ARRAY(r->c->scratch, double, rows *width);
    if (!r->pool || !r->numbers || !gram || !out || !number_pool(r))
        return mgx_fail_memory(r->c->diag);
    const int64_t *items = number_input(r);
    if (!items)
        return mgx_fail_memory(r->c->diag);
    for (int64_t i = 0; i < rows; i++)
        count_row(r, items + i * length, length, gram, out + i * width);
    mgx_write_doubles(r->c->out, out);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    if (mgx_shape_elements(&c->out->shape) == 0)
        return MGX_OK;
    struct run r = {.c = c};
    const enum mgx_status status = count_all(&r);
    mgx_map_fini(&r.items);
    mgx_map_fini(&r.grams);
    return status;
}

const struct mgx_op mgx_op_tfidf_vectorizer = {
    .name = "tfidf_vectorizer",
    .meaning = "y[i] = weighted count of n-gram i in x",
    .fields = fields,
    .attr_size = sizeof(struct tfidf_vectorizer),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
