// SPDX-License-Identifier: MIT
// Instructions by what they depend on, the small program, and what it said of lengths so far.
#include "generate/lengths.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "generate/beforehand.h"
#include "generate/bundle.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"
#include "pass/pass.h"
#include "targets/specialise.h"
#include "targets/target.h"

enum { TOKEN_AXIS = 2 };              // of a cache {texts, heads, tokens, size}
enum { FEW = 5 };                     // rows by which lengths are found out
#define MOST_BYTES ((size_t)64 << 20) // of what was said

struct mgx_lengths {
    struct mgx_program *program; // of one input, a cache
    struct mgx_carried past;
    int count;
    struct mgx_arena arena;
    struct mgx_shape few[MGX_LENGTHS_MOST]; // of FEW rows
    int axis[MGX_LENGTHS_MOST];             // that is longer where there are more; -1: none
    pthread_mutex_t lock;                   // of everything below
    struct mgx_tensor **by_length;          // NULL: nothing was said of that
    int64_t known;
    size_t bytes;
};

// --- one text, one token ---

enum mgx_status mgx_narrow_to_one(struct mgx_program *decoder, const char *tokens,
                                  struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(decoder);
    struct mgx_arena *arena = &decoder->arena;
    const int count = mgx_module_parameters(m, NULL, 0);
    struct mgx_ins **params = MGX_NEW_ARRAY(arena, struct mgx_ins *, count + 1);
    int axes;
    struct mgx_free_axis *axis = mgx_free_axes(decoder, arena, &axes);
    int64_t *lens = MGX_NEW_ARRAY(arena, int64_t, axes + 1);
    if (!params || !axis || !lens)
        return mgx_fail_memory(diag);
    mgx_module_parameters(m, params, count);
    for (int i = 0; i < axes; i++) {
        const char *name = mgx_parameter_name(params[axis[i].param]);
        lens[i] = axis[i].axis == 0 || strcmp(name, tokens) == 0 ? 1 : MGX_LENGTH_OPEN;
    }
    return mgx_narrow(decoder, lens, diag);
}

// --- what depends on lengths alone ---

enum depends { CONSTANT, LENGTHS, MORE };

static const struct mgx_carried *past_called(const struct mgx_roles *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < r->carried_count && ins->op == &mgx_op_param; i++)
        if (r->carried[i].kind == MGX_CARRIED_GROWING &&
            strcmp(r->carried[i].past, mgx_parameter_name(ins)) == 0)
            return &r->carried[i];
    return NULL;
}

static struct mgx_ins *strip(struct mgx_ins *ins)
{
    while (mgx_is(ins, &mgx_op_identity))
        ins = ins->in[0];
    return ins;
}

// The new rows of a cache that a concat makes longer; NULL: it is none.
static struct mgx_ins *new_rows(const struct mgx_roles *r, struct mgx_ins *ins)
{
    const bool longer = mgx_is(ins, &mgx_op_concat) && ins->in_count == 2 &&
                        past_called(r, strip(ins->in[0])) && ins->shape.rank == TOKEN_AXIS + 2 &&
                        (mgx_ins_int(ins, "axis") + 4) % 4 == TOKEN_AXIS;
    return longer && mgx_shape_is_static(&ins->in[1]->shape) ? ins->in[1] : NULL;
}

// Lengths of any cache, or of one with its new rows, are asked of the first one: they are the same.
// New rows are computed, their number is not.
static enum mgx_status ask_one(struct mgx_program *p, const struct mgx_roles *r,
                               struct mgx_ins *first, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    MGX_EACH (ins, m) {
        struct mgx_ins *of = mgx_is(ins, &mgx_op_dimensions_of) ? strip(ins->in[0]) : NULL;
        struct mgx_ins *fresh = of ? new_rows(r, of) : NULL, *past = fresh ? strip(of->in[0]) : of;
        if (!past || !past_called(r, past) || !mgx_shape_equal(&past->shape, &first->shape))
            continue;
        struct mgx_ins *zeros = fresh ? mgx_emit_splat(ins, &fresh->shape, 0) : NULL;
        struct mgx_ins *instead =
            !fresh  ? first
            : zeros ? mgx_emit_before(ins, &mgx_op_concat, MGX_ATTRS(mgx_int("axis", TOKEN_AXIS)),
                                      MGX_IN(first, zeros))
                    : NULL;
        if (instead)
            mgx_set_input(ins, 0, instead);
    }
    static const struct mgx_pass *const passes[] = {&mgx_pass_eliminate_common_subexpression,
                                                    &mgx_pass_propagate_constant,
                                                    &mgx_pass_dead_code_elimination, NULL};
    TRY(mgx_program_status(p, diag));
    return mgx_run_passes(p, passes, NULL, diag);
}

// Its lengths follow from the first cache's.
static bool is_measured(const struct mgx_ins *of, const struct mgx_ins *first)
{
    return of == first || of->mark != MORE ||
           (mgx_is(of, &mgx_op_concat) && of->in[0] == first && of->in[1]->mark == CONSTANT);
}

static enum depends depends_of(const struct mgx_ins *ins, const struct mgx_ins *first)
{
    int64_t most = CONSTANT;
    if (ins->literal)
        return CONSTANT;
    if (mgx_is(ins, &mgx_op_dimensions_of))
        return is_measured(ins->in[0], first) ? LENGTHS : MORE;
    for (int i = 0; i < ins->in_count; i++)
        most = mgx_max_i64(most, ins->in[i]->mark);
    if (ins->op == &mgx_op_param || ins->mod_count || ins->shape.unranked || !mgx_is_pure(ins) ||
        !mgx_type_is_number(ins->shape.type))
        return MORE;
    return (enum depends)most;
}

// Does somebody read it who depends on more, and not for its length alone?
static bool is_said(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use && ins->mark == LENGTHS; use = use->next) {
        const struct mgx_ins *user = use->user;
        const uint32_t sizes = user->op->sized_by ? user->op->sized_by(user) : 0;
        if (user->mark == MORE && !mgx_is(user, &mgx_op_dimensions_of) && !(sizes >> use->slot & 1))
            return true;
    }
    return false;
}

// -1: more than may be.
static int find_said(struct mgx_module *m, const struct mgx_ins *first,
                     struct mgx_ins *said[MGX_LENGTHS_MOST])
{
    int count = 0;
    MGX_EACH (ins, m)
        ins->mark = (int64_t)depends_of(ins, first);
    if (mgx_module_return(m))
        mgx_module_return(m)->mark = MORE;
    MGX_EACH (ins, m) {
        if (!is_said(ins))
            continue;
        if (count == MGX_LENGTHS_MOST)
            return -1;
        said[count++] = ins;
    }
    return count;
}

// --- the small program ---

static enum mgx_status compile(struct mgx_lengths *l, struct mgx_diag *diag)
{
    const struct mgx_compile_options options = {
        .offload_copy = true, .threads = 1, .specialise = MGX_SPECIALISE_NEVER};
    TRY(mgx_tidy(l->program, diag));
    return mgx_program_compile(l->program, mgx_target_find("cpu"), &options, diag);
}

// What is said of caches of `rows` rows, anew.
static enum mgx_status say(const struct mgx_lengths *l, int64_t rows, struct mgx_tensor *out,
                           struct mgx_diag *diag)
{
    const struct mgx_shape shape = mgx_bundle_shape(&l->past, 1, rows);
    struct mgx_named_tensor past = {.name = l->past.past};
    TRY(mgx_tensor_create(&past.tensor, &shape, diag)); // nobody reads what is in it
    struct mgx_run run = {
        .params = &past, .param_count = 1, .results = out, .result_count = l->count};
    const enum mgx_status status = mgx_program_run(l->program, &run, diag);
    mgx_tensor_release(&past.tensor);
    return status;
}

static void forget(struct mgx_lengths *l)
{
    for (int64_t i = 0; i < l->known; i++) {
        for (int k = 0; l->by_length[i] && k < l->count; k++)
            mgx_tensor_release(&l->by_length[i][k]);
        free(l->by_length[i]);
        l->by_length[i] = NULL;
    }
    l->bytes = 0;
}

static enum mgx_status reach(struct mgx_lengths *l, int64_t rows, struct mgx_diag *diag)
{
    if (rows < l->known)
        return MGX_OK;
    const int64_t known = 2 * rows + 16;
    struct mgx_tensor **more = realloc(l->by_length, (size_t)known * sizeof(struct mgx_tensor *));
    if (!more)
        return mgx_fail_memory(diag);
    memset(more + l->known, 0, (size_t)(known - l->known) * sizeof *more);
    l->by_length = more;
    l->known = known;
    return MGX_OK;
}

// What is said of them, kept for later; lent until the next call. The lock is held.
static enum mgx_status said_of(struct mgx_lengths *l, int64_t rows, const struct mgx_tensor **out,
                               struct mgx_diag *diag)
{
    TRY(reach(l, rows, diag));
    if (!l->by_length[rows]) {
        struct mgx_tensor *values = calloc((size_t)l->count + 1, sizeof *values);
        if (!values)
            return mgx_fail_memory(diag);
        const enum mgx_status status = say(l, rows, values, diag);
        if (status != MGX_OK) {
            free(values);
            return status;
        }
        if (l->bytes > MOST_BYTES)
            forget(l);
        for (int k = 0; k < l->count; k++)
            l->bytes += mgx_shape_bytes(&values[k].shape);
        l->by_length[rows] = values;
    }
    *out = l->by_length[rows];
    return MGX_OK;
}

// --- spreading ---

// The one axis that is longer by `more`; -1: none is, -2: they differ otherwise.
static int longer_axis(const struct mgx_shape *few, const struct mgx_shape *many, int64_t more)
{
    int axis = -1;
    if (few->rank != many->rank || few->type != many->type)
        return -2;
    for (int i = 0; i < few->rank && axis != -2; i++)
        if (few->lens[i] != many->lens[i])
            axis = axis == -1 && few->lens[i] + more == many->lens[i] ? i : -2;
    return axis;
}

static void hide(enum mgx_type type, char *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        mgx_store_double(type, to, i, -INFINITY);
}

// Columns of `rows` rows, then hidden ones, then those of the new rows.
static void spread(const struct mgx_tensor *from, int axis, int64_t rows, int64_t more, char *to)
{
    const struct mgx_shape *s = &from->shape;
    int64_t before = 1, behind = 1;
    for (int i = 0; i < s->rank; i++)
        *(i < axis ? &before : &behind) *= i == axis ? 1 : s->lens[i];
    const size_t size = mgx_type_size(s->type) * (size_t)behind;
    const char *x = from->data;
    assert(mgx_shape_is_standard(s));
    for (int64_t i = 0; i < before; i++) {
        const size_t old = (size_t)mgx_min_i64(rows, s->lens[axis]) * size,
                     fresh = (size_t)s->lens[axis] * size - old;
        memcpy(to, x, old);
        hide(s->type, to + old, more * behind);
        memcpy(to + old + (size_t)more * size, x + old, fresh);
        x += old + fresh;
        to += old + (size_t)more * size + fresh;
    }
}

// How everything grows: of one shape, or longer along one axis, where hidden columns can be told.
static enum mgx_status find_axes(struct mgx_lengths *l, bool *good, struct mgx_diag *diag)
{
    const struct mgx_tensor *said;
    TRY(said_of(l, FEW, &said, diag));
    for (int k = 0; k < l->count; k++)
        if (!mgx_shape_copy(&l->arena, &said[k].shape, &l->few[k]))
            return mgx_fail_memory(diag);
    TRY(said_of(l, FEW + 1, &said, diag));
    *good = true;
    for (int k = 0; k < l->count; k++) {
        l->axis[k] = longer_axis(&l->few[k], &said[k].shape, 1);
        *good = *good && l->axis[k] > -2 && (l->axis[k] < 0 || mgx_type_is_float(l->few[k].type));
    }
    return MGX_OK;
}

static struct mgx_shape shape_at(const struct mgx_lengths *l, int k, int64_t rows)
{
    struct mgx_shape s = l->few[k];
    int64_t lens[MGX_MAX_RANK];
    for (int i = 0; i < s.rank; i++)
        lens[i] = s.lens[i] + (i == l->axis[k] ? rows - FEW : 0);
    return mgx_shape_make(s.type, s.rank, lens);
}

// --- making, asking ---

static enum mgx_status make(struct mgx_lengths *l, struct mgx_program *decoder,
                            struct mgx_ins *const *said, bool *good, struct mgx_diag *diag)
{
    TRY(mgx_copy_for(decoder, said, l->count, &l->program, diag));
    TRY(compile(l, diag));
    TRY(find_axes(l, good, diag));
    return *good ? mgx_make_inputs(decoder, "said", said, l->count, diag) : MGX_OK;
}

enum mgx_status mgx_lengths_take(struct mgx_lengths **out, struct mgx_program *decoder,
                                 const struct mgx_roles *roles, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(decoder);
    const struct mgx_carried *past = NULL;
    struct mgx_ins *said[MGX_LENGTHS_MOST];
    bool good = false;
    *out = NULL;
    for (int i = 0; i < roles->carried_count && !past; i++)
        past = roles->carried[i].kind == MGX_CARRIED_GROWING ? &roles->carried[i] : NULL;
    struct mgx_ins *first = past ? mgx_find_parameter(m, past->past) : NULL;
    if (!first || past->axis != TOKEN_AXIS)
        return MGX_OK;
    TRY(ask_one(decoder, roles, first, diag));
    const int count = find_said(m, first, said);
    struct mgx_lengths *l = count > 0 ? calloc(1, sizeof *l) : NULL;
    if (!l)
        return count > 0 ? mgx_fail_memory(diag) : MGX_OK;
    mgx_arena_init(&l->arena);
    pthread_mutex_init(&l->lock, NULL);
    l->count = count;
    l->past = *past;
    l->past.past = mgx_arena_strdup(&l->arena, past->past);
    enum mgx_status status = l->past.past && mgx_shape_copy(&l->arena, &past->shape, &l->past.shape)
                                 ? make(l, decoder, said, &good, diag)
                                 : mgx_fail_memory(diag);
    if (good && status == MGX_OK)
        *out = l;
    else
        mgx_lengths_destroy(l);
    return status;
}

void mgx_lengths_destroy(struct mgx_lengths *l)
{
    if (!l)
        return;
    forget(l);
    free(l->by_length);
    mgx_program_destroy(l->program);
    pthread_mutex_destroy(&l->lock);
    mgx_arena_fini(&l->arena);
    free(l);
}

int mgx_lengths_count(const struct mgx_lengths *l)
{
    return l->count;
}

void mgx_lengths_shapes(const struct mgx_lengths *l, int64_t rows, struct mgx_shape *out)
{
    for (int k = 0; k < l->count; k++)
        out[k] = shape_at(l, k, rows);
}

// The lock is held.
static enum mgx_status write(struct mgx_lengths *l, int k, int64_t rows, int64_t room, void *to,
                             struct mgx_diag *diag)
{
    const struct mgx_tensor *said;
    const struct mgx_shape want = shape_at(l, k, rows);
    TRY(said_of(l, rows, &said, diag));
    if (!mgx_shape_same_lens(&said[k].shape, &want))
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "what a cache of %lld rows says has not the lengths that it should have",
                        (long long)rows);
    if (l->axis[k] >= 0)
        spread(&said[k], l->axis[k], rows, room - rows, to);
    else
        memcpy(to, said[k].data, mgx_shape_bytes(&want));
    return MGX_OK;
}

enum mgx_status mgx_lengths_write(struct mgx_lengths *l, int k, int64_t rows, int64_t room,
                                  void *to, struct mgx_diag *diag)
{
    assert(k < l->count && rows <= room);
    pthread_mutex_lock(&l->lock);
    const enum mgx_status status = write(l, k, rows, room, to, diag);
    pthread_mutex_unlock(&l->lock);
    return status;
}
