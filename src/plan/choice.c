// SPDX-License-Identifier: MIT
// See choice.h. A table of rows (rows.h) under the lock of mgx_plan_late; what a row stands for is
// immutable once listed.
#include "plan/choice.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/size.h"
#include "op/op.h"
#include "pass/pass.h"
#include "plan/join.h"
#include "plan/layout.h"

enum {
    SMALL_ELEMENTS = 16,
    WORDS = 2 + 2 * MGX_MAX_RANK + SMALL_ELEMENTS, // of an input's key, at most
};
static const unsigned ALL = ~0u; // inputs, of an operator that expands

// --- the key ---

// What two calls of one instruction must have in common, as words: for every input its type,
// lengths and strides, which literal it is, and where that counts its value.
struct key {
    uint64_t hash, *word;
    int count;
    unsigned valued;
    uint64_t few[(MGX_PLAN_CHOICE_INPUTS + 1) * WORDS]; // words of so many inputs, and a result
};

// A literal never changes and lives as long as the plan, so its address stands for its value.
static const void *constant_of(const struct mgx_plan_late *late, const struct mgx_tensor *t)
{
    return mgx_map_find_pointer(&late->literals, t->data);
}

// Sizes, axes and the like: what an expansion may depend on.
static bool is_small(const struct mgx_tensor *t)
{
    const struct mgx_shape *s = &t->shape;
    return (s->type == MGX_INT64 || s->type == MGX_INT32 || s->type == MGX_BOOL) && s->rank <= 1 &&
           mgx_shape_elements(s) <= SMALL_ELEMENTS && mgx_shape_is_standard(s);
}

uint64_t mgx_plan_choice_site(const struct mgx_op *op, const void *attr,
                              struct mgx_module *const *mod, int mod_count)
{
    const void *head[] = {op, mod_count ? mod[0] : NULL};
    return mgx_attr_hash(op, attr, mgx_hash_bytes(head, sizeof head, 0));
}

static uint64_t *add_shape(uint64_t *w, const struct mgx_shape *s)
{
    *w++ = (uint64_t)s->type << 32 | (unsigned)s->rank;
    for (int i = 0; i < s->rank; i++) {
        *w++ = (uint64_t)s->lens[i];
        *w++ = (uint64_t)s->strides[i];
    }
    return w;
}

// Behind w, at most WORDS; where they end.
static uint64_t *add_input(uint64_t *w, const struct mgx_tensor *t, const void *constant,
                           bool by_value)
{
    const struct mgx_shape *s = &t->shape;
    w = add_shape(w, s);
    *w++ = (uintptr_t)constant;
    if (!by_value || !is_small(t))
        return w;
    const size_t bytes = mgx_shape_bytes(s), words = (bytes + sizeof *w - 1) / sizeof *w;
    memset(w, 0, words * sizeof *w);
    if (bytes)
        memcpy(w, t->data, bytes);
    return w + words;
}

// Inputs are looked for among the literals where their bits are set. `out`: of a result whose
// lengths follow from values that are not in the key, or NULL. False when out of memory.
static bool find_key(const struct mgx_plan_late *late, uint64_t site,
                     const struct mgx_compute_call *c, unsigned valued, unsigned literals,
                     const struct mgx_shape *out, struct key *key)
{
    key->valued = valued;
    key->word =
        c->in_count <= MGX_PLAN_CHOICE_INPUTS
            ? key->few
            : mgx_arena_array(c->scratch, (size_t)(c->in_count + 1) * WORDS, sizeof *key->word);
    if (!key->word)
        return false;
    uint64_t *w = key->word;
    for (int i = 0; i < c->in_count; i++) {
        const bool may_be = i >= 32 || literals >> i & 1; // operators that expand have any number
        const bool by_value = i >= 32 ? valued == ALL : valued >> i & 1;
        w = add_input(w, c->in[i], may_be ? constant_of(late, c->in[i]) : NULL, by_value);
    }
    if (out)
        w = add_shape(w, out);
    key->count = (int)(w - key->word);
    key->hash = mgx_hash_bytes(key->word, (size_t)key->count * sizeof *w, site + valued);
    return true;
}

static bool is_key(const struct mgx_plan_choice *k, const struct mgx_compute_call *c,
                   const struct key *key)
{
    return k->row.hash == key->hash && k->word_count == key->count && k->valued == key->valued &&
           memcmp(k->word, key->word, (size_t)key->count * sizeof *key->word) == 0 &&
           k->ins.op == c->op &&
           (k->ins.mod_count ? k->ins.mod[0] : NULL) == (c->mod_count ? c->mod[0] : NULL) &&
           mgx_attr_equal(c->op, k->ins.attr, c->attr);
}

// --- making one ---

static void destroy(struct mgx_plan_choice *k)
{
    for (int i = 0; k->in && i < k->ins.in_count; i++)
        if (k->in[i].value)
            mgx_tensor_release(k->in[i].value);
    mgx_program_destroy(k->program);
    mgx_plan_store_fini(&k->own);
    free(k);
}

// An instruction as kernels want to see it. Its inputs have no producer. What its shapes point to
// is the choice's own, which outlives the call. False when out of memory.
static bool make_ins(struct mgx_plan_choice *k, const struct mgx_compute_call *c,
                     struct mgx_diag *diag)
{
    struct mgx_arena *arena = &k->own.arena;
    struct mgx_ins *in = MGX_NEW_ARRAY(arena, struct mgx_ins, c->in_count);
    struct mgx_ins **list = MGX_NEW_ARRAY(arena, struct mgx_ins *, c->in_count);
    k->ins = (struct mgx_ins){.op = c->op,
                              .in = list,
                              .in_count = c->in_count,
                              .mod = (struct mgx_module **)c->mod,
                              .mod_count = c->mod_count};
    if (!in || !list || !mgx_shape_copy(arena, c->out_shape, &k->ins.shape) ||
        mgx_attr_copy(c->op, c->attr, arena, &k->ins.attr, diag) != MGX_OK)
        return false;
    if (c->mod_count &&
        !(k->ins.mod = mgx_arena_memdup(arena, c->mod, (size_t)c->mod_count * sizeof *c->mod)))
        return false;
    for (int i = 0; i < c->in_count; i++) {
        if (!mgx_shape_copy(arena, &c->in[i]->shape, &in[i].shape))
            return false;
        in[i].op = mgx_shape_elements(&c->in[i]->shape) ? &mgx_op_param : &mgx_op_undefined;
        list[i] = &in[i];
    }
    return true;
}

static struct mgx_plan_offer offer_of(struct mgx_plan_choice *k, struct mgx_diag *diag)
{
    return (struct mgx_plan_offer){.ins = &k->ins,
                                   .arena = &k->own.arena,
                                   .store = &k->own,
                                   .machine = k->own.machine,
                                   .late = true,
                                   .diag = diag};
}

// Inputs that the kernel wants in another order of memory get a copy in front. True if any does
// now.
static bool pack_inputs(struct mgx_plan_choice *k, const struct mgx_plan_offer *c,
                        struct mgx_shape *in)
{
    bool changed = false;
    struct mgx_shape shape;
    for (int i = 0; i < c->in_count; i++) {
        if (k->in[i].pack || !mgx_plan_wanted(c, i, &shape))
            continue;
        struct mgx_plan_offer copy = offer_of(k, c->diag);
        copy.in = &in[i];
        copy.in_count = 1;
        copy.out = &shape;
        copy.copy_only = true;
        if (k->own.machine->target->copy->prepare(&copy) != MGX_PLAN_TAKEN)
            return false;
        k->in[i].packed = mgx_arena_memdup(&k->own.arena, &shape, sizeof shape);
        if (!k->in[i].packed)
            return false; // the arena knows
        k->in[i].pack = copy.state;
        in[i] = shape;
        const struct mgx_tensor **constant = (const struct mgx_tensor **)&c->constant[i];
        if (*constant && !mgx_plan_repack_constant(&k->own, &shape, constant, c->diag))
            return false;
        changed = true;
    }
    return changed;
}

static void unpack_inputs(struct mgx_plan_choice *k, struct mgx_shape *in)
{
    for (int i = 0; i < k->ins.in_count; i++) {
        k->in[i].pack = NULL;
        in[i] = k->ins.in[i]->shape;
    }
}

static void take_offer(struct mgx_plan_choice *k, const struct mgx_plan_offer *c,
                       const struct mgx_plan_kernel *kernel)
{
    k->kernel = kernel;
    k->state = c->state;
    k->workspace = c->workspace;
    k->in_place = c->in_place >= 0 && k->in[c->in_place].pack ? -1 : c->in_place;
    k->room = mgx_align64(c->workspace);
    for (int i = 0; i < k->ins.in_count; i++)
        if (k->in[i].pack) {
            k->room += mgx_align64(mgx_shape_bytes(k->in[i].packed) + MGX_PLAN_CHOICE_BEHIND);
            k->prepares = true;
        }
    assert(k->in_place < 0 ||
           mgx_shape_bytes(&k->ins.in[k->in_place]->shape) >= mgx_shape_bytes(&k->out));
}

static void copy_part(const struct mgx_plan_fill *f, int part, int parts)
{
    const size_t begin = (size_t)mgx_part_begin((int64_t)f->packed_bytes, part, parts),
                 end = (size_t)mgx_part_begin((int64_t)f->packed_bytes, part + 1, parts);
    memcpy((char *)f->packed + begin, (const char *)f->source[0] + begin, end - begin);
}

// A constant at an address that suits its type, once for all choices of the plan.
static const void *align_constant(struct mgx_plan_store *store, const struct mgx_tensor *t,
                                  struct mgx_diag *diag)
{
    const size_t bytes = (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type);
    const int64_t desc = (int64_t)bytes;
    const struct mgx_plan_key key = {
        .kernel = "aligned", .source = {t->data}, .desc = &desc, .desc_bytes = sizeof desc};
    const struct mgx_plan_fill fill = {
        .fill = copy_part, .source = {t->data}, .source_bytes = bytes};
    return mgx_plan_pack(store, &key, bytes, &fill, diag);
}

// Weights as they lie in a file, which the kernel did not pack.
static void align_inputs(struct mgx_plan_choice *k, const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (c->constant[i] && !c->skip_in[i] && !(k->kernel->any_address >> i & 1) &&
            !mgx_tensor_is_aligned(c->constant[i]) &&
            !(k->prepares =
                  (k->in[i].aligned = align_constant(&k->own, c->constant[i], c->diag)) != NULL))
            return;
}

// Joined weights that the kernel reads as they are.
static void fill_inputs(struct mgx_plan_choice *k, const struct mgx_plan_offer *c,
                        const struct mgx_compute_call *call)
{
    for (int i = 0; i < c->in_count; i++)
        if (!c->skip_in[i])
            mgx_plan_join_fill(&k->own, call->in[i]->data, true);
}

// One kernel, and again with inputs as it wants them.
static enum mgx_plan_answer ask_one(struct mgx_plan_choice *k, struct mgx_plan_offer *c,
                                    const struct mgx_plan_kernel *kernel, struct mgx_shape *in)
{
    unpack_inputs(k, in);
    enum mgx_plan_answer answer = mgx_plan_ask(kernel, c);
    for (int n = 0; n < c->in_count && answer == MGX_PLAN_DECLINED; n++) {
        if (!pack_inputs(k, c, in))
            return mgx_plan_refuse(c);
        answer = mgx_plan_ask(kernel, c);
    }
    return answer;
}

// The first kernel that takes the call; none leaves the reference. A failure stays in diag.
static void ask(struct mgx_plan_choice *k, const struct mgx_compute_call *call,
                struct mgx_diag *diag)
{
    const struct mgx_plan_kernel *const *kernels = k->own.machine->target->late_kernels;
    struct mgx_shape *in = MGX_NEW_ARRAY(&k->own.arena, struct mgx_shape, call->in_count);
    const struct mgx_tensor *constant[MGX_PLAN_CHOICE_INPUTS] = {NULL};
    bool skip[MGX_PLAN_CHOICE_INPUTS];
    unsigned char want[MGX_PLAN_CHOICE_INPUTS];
    assert(call->in_count <= MGX_PLAN_CHOICE_INPUTS);
    struct mgx_plan_offer c = offer_of(k, diag);
    c.in = in;
    c.in_count = call->in_count;
    c.constant = constant;
    c.out = &k->out;
    c.skip_in = skip;
    c.want_in = want;
    for (int i = 0; in && kernels[i]; i++) {
        assert(kernels[i]->host || !k->own.machine->memory);
        for (int n = 0; n < call->in_count; n++)
            constant[n] = k->in[n].constant ? call->in[n] : NULL;
        const enum mgx_plan_answer answer = ask_one(k, &c, kernels[i], in);
        if (answer == MGX_PLAN_TAKEN) {
            take_offer(k, &c, kernels[i]);
            align_inputs(k, &c);
            fill_inputs(k, &c, call);
        }
        if (answer != MGX_PLAN_DECLINED)
            return;
    }
    if (in)
        unpack_inputs(k, in);
}

// --- expanding one ---

// The operator alone in a program: parameters for its inputs, literals where values are the key.
static struct mgx_ins *make_program(const struct mgx_program *of, struct mgx_plan_choice *k,
                                    const struct mgx_compute_call *c, struct mgx_diag *diag)
{
    if (mgx_program_create(&k->program, of->ops, diag) != MGX_OK)
        return NULL;
    struct mgx_program *p = k->program;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins **in = MGX_NEW_ARRAY(&p->arena, struct mgx_ins *, c->in_count);
    void *attr = NULL;
    if (!in || mgx_attr_copy(c->op, c->attr, &p->arena, &attr, diag) != MGX_OK) {
        mgx_fail_memory(diag);
        return NULL;
    }
    for (int i = 0; i < c->in_count; i++)
        in[i] = k->in[i].value ? mgx_add_literal(m, k->in[i].value)
                               : mgx_add_parameter(m, mgx_arena_printf(&p->arena, "x%d", i),
                                                   &k->ins.in[i]->shape);
    return mgx_insert(m, NULL, c->op, attr, in, c->in_count, NULL, 0);
}

static bool add_results(struct mgx_ins *ins, const struct mgx_shape *out)
{
    struct mgx_module *m = ins->owner;
    if (out->type != MGX_TUPLE)
        return mgx_add_return(m, &ins, 1) != NULL;
    struct mgx_ins **list = MGX_NEW_ARRAY(&m->program->arena, struct mgx_ins *, out->sub_count + 1);
    for (int i = 0; list && i < out->sub_count; i++)
        list[i] = mgx_emit(m, &mgx_op_get_tuple_elem, MGX_ATTRS(mgx_int("index", i)), MGX_IN(ins));
    return list && mgx_add_return(m, list, out->sub_count) != NULL;
}

static bool try_expand(const struct mgx_program *of, struct mgx_plan_choice *k,
                       const struct mgx_compute_call *c, struct mgx_diag *diag)
{
    static const struct mgx_pass *const clean[] = {&mgx_pass_expand, &mgx_pass_propagate_constant,
                                                   &mgx_pass_dead_code_elimination, NULL};
    struct mgx_ins *ins = make_program(of, k, c, diag);
    if (!ins || !add_results(ins, c->out_shape) ||
        mgx_run_passes(k->program, clean, NULL, diag) != MGX_OK ||
        mgx_program_status(k->program, diag) != MGX_OK)
        return false;
    for (ins = mgx_program_main(k->program)->first; ins; ins = ins->next)
        if (ins->op == c->op) // it, or a part of it, still waits
            return false;
    for (int i = 0; i < k->program->module_count; i++)
        mgx_module_number(k->program->modules[i]);
    return true;
}

// Whatever is wrong with the inputs, the reference will say.
static void expand(const struct mgx_program *of, struct mgx_plan_choice *k,
                   const struct mgx_compute_call *c, struct mgx_diag *diag)
{
    struct mgx_diag mine = {0};
    if (try_expand(of, k, c, &mine))
        return;
    mgx_program_destroy(k->program);
    k->program = NULL;
    if (mgx_status_is_final(mine.status))
        mgx_fail(diag, mine.status, "%s", mine.text);
    for (int i = 0; i < c->in_count && !k->valued; i++)
        k->wants_value |= is_small(c->in[i]);
}

// --- both ---

// The value of a small integer input.
static bool keep_value(struct mgx_plan_choice *k, int i, const struct mgx_tensor *t,
                       struct mgx_diag *diag)
{
    struct mgx_tensor *value = MGX_NEW(&k->own.arena, struct mgx_tensor);
    if (!value) {
        mgx_fail_memory(diag);
        return false;
    }
    if (mgx_tensor_clone(value, t, diag) != MGX_OK)
        return false;
    k->in[i].value = value;
    return true;
}

static void set_key(struct mgx_plan_choice *k, const struct key *key, uint64_t *room)
{
    k->row.hash = key->hash;
    k->valued = key->valued;
    k->word_count = key->count;
    k->word = memcpy(room, key->word, (size_t)key->count * sizeof *room);
}

static bool make_key(const struct mgx_plan_late *late, struct mgx_plan_choice *k,
                     const struct mgx_compute_call *c, const struct key *key, struct mgx_diag *diag)
{
    uint64_t *words = MGX_NEW_ARRAY(&k->own.arena, uint64_t, key->count);
    k->in = MGX_NEW_ARRAY(&k->own.arena, struct mgx_plan_choice_in, c->in_count);
    if (!words || !k->in || !make_ins(k, c, diag)) {
        mgx_fail_memory(diag);
        return false;
    }
    set_key(k, key, words);
    for (int i = 0; i < c->in_count; i++) {
        k->in[i].constant = constant_of(late, c->in[i]);
        if (k->valued == ALL && is_small(c->in[i]) && mgx_shape_elements(&c->in[i]->shape) &&
            !keep_value(k, i, c->in[i], diag))
            return false;
    }
    return true;
}

static void choose_layout(struct mgx_plan_choice *k, const struct mgx_compute_call *c)
{
    struct mgx_shape in[MGX_PLAN_CHOICE_INPUTS];
    assert(c->in_count <= MGX_PLAN_CHOICE_INPUTS);
    for (int i = 0; i < c->in_count; i++)
        in[i] = k->ins.in[i]->shape;
    k->out = mgx_plan_natural_layout(&k->ins, c->out_shape, in, c->in_count);
    k->out_bytes = mgx_shape_bytes(&k->out);
}

static struct mgx_plan_choice *create(struct mgx_plan_late *late, const struct mgx_compute_call *c,
                                      const struct key *key, struct mgx_diag *diag)
{
    struct mgx_plan_choice *k = calloc(1, sizeof *k);
    if (!k) {
        mgx_fail_memory(diag);
        return NULL;
    }
    mgx_plan_store_init(&k->own, late->store->machine, late->store);
    if (make_key(late, k, c, key, diag)) {
        if (c->op->expand) {
            expand(late->program, k, c, diag);
        } else {
            choose_layout(k, c);
            ask(k, c, diag);
        }
    }
    if (k->own.arena.failed)
        mgx_fail_memory(diag);
    if (diag->status == MGX_OK)
        return k;
    destroy(k);
    return NULL;
}

// --- the table ---

static struct mgx_plan_choice *of_row(struct mgx_plan_row *row)
{
    static_assert(offsetof(struct mgx_plan_choice, row) == 0, "a row is the front of a choice");
    return (struct mgx_plan_choice *)row;
}

// Of memory that is taken for it, room in its blocks included.
static size_t bytes_of(const struct mgx_plan_choice *k)
{
    return sizeof *k + (k->in ? 0 : (size_t)k->word_count * sizeof *k->word) +
           mgx_arena_room(&k->own.arena) + k->own.packed_bytes +
           (k->program ? sizeof *k->program + mgx_arena_room(&k->program->arena) : 0);
}

static void destroy_rows(struct mgx_plan_row *row)
{
    for (struct mgx_plan_row *next; row; row = next) {
        next = row->next;
        destroy(of_row(row));
    }
}

// The row that is listed under a key; NULL: none is. Under the lock.
static struct mgx_plan_choice *look_up(struct mgx_plan_late *late, const struct key *key,
                                       const struct mgx_compute_call *c)
{
    struct mgx_plan_row *row = mgx_plan_rows_first(&late->choices, key->hash);
    while (row && !is_key(of_row(row), c, key))
        row = mgx_plan_rows_next(row);
    if (row)
        mgx_plan_rows_hold(&late->choices, row);
    return row ? of_row(row) : NULL;
}

// What a row keeps is the row's own (docs/memory.md).
__attribute__((unused)) static bool owns_shapes(const struct mgx_plan_choice *k)
{
    const struct mgx_arena *own = &k->own.arena;
    bool owns = mgx_shape_lies_in(&k->ins.shape, own) && mgx_shape_lies_in(&k->out, own);
    for (int i = 0; i < k->ins.in_count; i++)
        owns &= mgx_shape_lies_in(&k->ins.in[i]->shape, own) &&
                (!k->in[i].packed || mgx_shape_lies_in(k->in[i].packed, own));
    return owns;
}

// Lists a row, or destroys it where there is too little memory to.
static struct mgx_plan_choice *list(struct mgx_plan_late *late, struct mgx_plan_choice *k,
                                    struct mgx_diag *diag)
{
    struct mgx_plan_row *gone;
    assert(owns_shapes(k));
    k->row.bytes = bytes_of(k);
    if (!mgx_plan_rows_add(&late->choices, &k->row, &gone)) {
        mgx_fail_memory(diag);
        destroy(k);
        return NULL;
    }
    destroy_rows(gone);
    return k;
}

static struct mgx_plan_choice *find_choice(struct mgx_plan_late *late, const struct key *key,
                                           const struct mgx_compute_call *c, struct mgx_diag *diag)
{
    struct mgx_plan_choice *k = look_up(late, key, c);
    if (k || !(k = create(late, c, key, diag)))
        return k;
    return list(late, k, diag);
}

enum mgx_status mgx_plan_choice_require(struct mgx_plan_late *late,
                                        const struct mgx_compute_call *c, bool by_value,
                                        struct mgx_plan_choice **out, struct mgx_diag *diag)
{
    struct key key;
    const uint64_t site = mgx_plan_choice_site(c->op, c->attr, c->mod, c->mod_count);
    // A reshape to given lengths may have the operands of another one in all but these.
    const bool sized = c->op->sized_by && c->in_count > 1 && mgx_shape_is_static(c->out_shape);
    if (!find_key(late, site, c, by_value ? ALL : 0, ~0u, sized ? c->out_shape : NULL, &key))
        return mgx_fail_memory(diag);
    pthread_mutex_lock(&late->lock);
    mgx_cancel_pause(); // what is made here serves later runs too, and is made under a lock
    *out = find_choice(late, &key, c, diag);
    mgx_cancel_resume();
    pthread_mutex_unlock(&late->lock);
    return *out ? MGX_OK : diag->status;
}

// Are the values that count in the key?
static bool has_values(const struct mgx_plan_site *site, const struct mgx_compute_call *c)
{
    assert(c->in_count <= MGX_PLAN_CHOICE_INPUTS);
    for (int i = 0; i < c->in_count; i++)
        if ((site->valued >> i & 1) && !is_small(c->in[i]))
            return false;
    return true;
}

struct mgx_plan_choice *mgx_plan_choice_find(struct mgx_plan_late *late,
                                             const struct mgx_plan_site *site,
                                             const struct mgx_compute_call *c, unsigned literals)
{
    struct key key;
    if (!has_values(site, c) || !find_key(late, site->hash, c, site->valued, literals, NULL, &key))
        return NULL;
    pthread_mutex_lock(&late->lock);
    struct mgx_plan_choice *k = look_up(late, &key, c);
    pthread_mutex_unlock(&late->lock);
    return k;
}

// Of a step of a plan: its attributes live as long as the plan does.
static struct mgx_plan_choice *create_note(struct mgx_plan_late *late, const struct key *key,
                                           const struct mgx_compute_call *c, bool is_view)
{
    const size_t words = (size_t)key->count * sizeof *key->word;
    struct mgx_plan_choice *k = calloc(1, sizeof *k + words);
    if (!k)
        return NULL;
    mgx_plan_store_init(&k->own, late->store->machine, late->store);
    set_key(k, key, (uint64_t *)(k + 1));
    k->ins = (struct mgx_ins){.op = c->op, .attr = (void *)(uintptr_t)c->attr};
    if (!mgx_shape_copy(&k->own.arena, c->out_shape, &k->ins.shape) ||
        !mgx_shape_copy(&k->own.arena, &c->out->shape, &k->out)) {
        destroy(k);
        return NULL;
    }
    k->way = is_view ? MGX_PLAN_VIEW : MGX_PLAN_TARGETS;
    k->offset = is_view ? (char *)c->out->data - (char *)c->in[0]->data : 0;
    return k;
}

void mgx_plan_choice_note(struct mgx_plan_late *late, const struct mgx_plan_site *site,
                          const struct mgx_compute_call *c, bool is_view)
{
    struct key key;
    if (!has_values(site, c) || !find_key(late, site->hash, c, site->valued, ~0u, NULL, &key))
        return;
    pthread_mutex_lock(&late->lock);
    struct mgx_diag quiet = {.status = MGX_OK};
    struct mgx_plan_choice *k = look_up(late, &key, c);
    if (!k && (k = create_note(late, &key, c, is_view)))
        k = list(late, k, &quiet);
    if (k)
        k->row.users--;
    pthread_mutex_unlock(&late->lock);
}

void mgx_plan_choice_release(struct mgx_plan_late *late, struct mgx_plan_choice *choice)
{
    pthread_mutex_lock(&late->lock);
    assert(choice->row.users > 0);
    choice->row.users--;
    pthread_mutex_unlock(&late->lock);
}

void mgx_plan_choices_destroy(struct mgx_plan_late *late)
{
    destroy_rows(mgx_plan_rows_fini(&late->choices));
}
