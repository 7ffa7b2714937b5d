// SPDX-License-Identifier: MIT
// Editing against a shadow: random edits are done to a module and to a plain array of nodes, and
// after each the two must say the same and the module must verify.
#include "ir/module.h"

#include "check.h"
#include "ir_ops.h"

static struct mgx_diag diag;
static uint64_t state = 88172645463325252u;

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

// --- the shadow: nodes in order, inputs as numbers of nodes ---

enum { MAX_NODES = 64, MAX_IN = 3 };

struct node {
    struct mgx_ins *ins;
    int id, in[MAX_IN], in_count;
    bool is_join;
};

struct shadow {
    struct node v[MAX_NODES];
    int count, next_id;
};

static int place(const struct shadow *s, int id)
{
    for (int i = 0; i < s->count; i++)
        if (s->v[i].id == id)
            return i;
    return -1;
}

static int users(const struct shadow *s, int id)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->v[i].in_count; k++)
            count += s->v[i].in[k] == id;
    return count;
}

static void put(struct shadow *s, int at, struct node n)
{
    memmove(&s->v[at + 1], &s->v[at], (size_t)(s->count - at) * sizeof n);
    s->v[at] = n;
    s->count++;
}

static struct node take(struct shadow *s, int at)
{
    const struct node n = s->v[at];
    memmove(&s->v[at], &s->v[at + 1], (size_t)(s->count - at - 1) * sizeof n);
    s->count--;
    return n;
}

static bool same(const struct shadow *s, const struct mgx_module *m)
{
    const struct mgx_ins *ins = m->first;
    for (int i = 0; i < s->count; i++, ins = ins->next) {
        const struct node *n = &s->v[i];
        if (!ins || ins != n->ins || ins->in_count != n->in_count ||
            mgx_use_count(ins) != users(s, n->id) || mgx_used_once(ins) != (users(s, n->id) == 1))
            return false;
        for (int k = 0; k < n->in_count; k++)
            if (ins->in[k] != s->v[place(s, n->in[k])].ins)
                return false;
    }
    return !ins && m->count == s->count;
}

// --- the edits ---

// Inputs for a node at `at`: anything before it.
static void choose_inputs(const struct shadow *s, int at, struct node *n, struct mgx_ins **in)
{
    n->is_join = below(2);
    n->in_count = n->is_join ? 1 + below(MAX_IN) : 2;
    for (int k = 0; k < n->in_count; k++) {
        const struct node *from = &s->v[below(at)];
        n->in[k] = from->id;
        in[k] = from->ins;
    }
}

static const struct mgx_op *op_of(const struct node *n)
{
    return n->is_join ? &op_join : &op_sum;
}

static void *attr_of(struct mgx_module *m, const struct node *n)
{
    void *attr = NULL;
    if (mgx_attr_make(op_of(n), NULL, &m->program->arena, &attr, &diag) != MGX_OK)
        return NULL;
    return attr;
}

static void insert(struct shadow *s, struct mgx_module *m)
{
    const int at = 1 + below(s->count);
    struct mgx_ins *in[MAX_IN];
    struct node n = {.id = s->next_id++};
    choose_inputs(s, at, &n, in);
    n.ins = mgx_insert(m, at < s->count ? s->v[at].ins : NULL, op_of(&n), attr_of(m, &n), in,
                       n.in_count, NULL, 0);
    put(s, at, n);
}

static void rewrite(struct shadow *s, struct mgx_module *m)
{
    const int at = 1 + below(s->count - 1);
    struct mgx_ins *in[MAX_IN];
    struct node *n = &s->v[at];
    choose_inputs(s, at, n, in);
    if (mgx_rewrite(n->ins, op_of(n), attr_of(m, n), in, n->in_count, &diag) != MGX_OK)
        printf("%s\n", diag.text);
}

static void set_input(struct shadow *s)
{
    const int at = 1 + below(s->count - 1);
    struct node *n = &s->v[at];
    const int slot = below(n->in_count);
    const struct node *by = &s->v[below(at)];
    n->in[slot] = by->id;
    mgx_set_input(n->ins, slot, by->ins);
}

static void replace(struct shadow *s)
{
    const int at = 1 + below(s->count - 1), by = below(at);
    const int old_id = s->v[at].id, by_id = s->v[by].id;
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->v[i].in_count; k++)
            if (s->v[i].in[k] == old_id)
                s->v[i].in[k] = by_id;
    mgx_replace_uses(s->v[at].ins, s->v[by].ins);
}

static void remove_one(struct shadow *s)
{
    const int at = 1 + below(s->count - 1);
    if (users(s, s->v[at].id) == 0)
        mgx_remove(take(s, at).ins);
}

// To anywhere between its inputs and its users.
static void move(struct shadow *s)
{
    const int at = 1 + below(s->count - 1);
    int low = 1, high = s->count;
    for (int k = 0; k < s->v[at].in_count; k++) {
        const int in = place(s, s->v[at].in[k]);
        low = in + 1 > low ? in + 1 : low;
    }
    for (int i = s->count - 1; i > at; i--)
        for (int k = 0; k < s->v[i].in_count; k++)
            if (s->v[i].in[k] == s->v[at].id)
                high = i;
    const int to = low + below(high - low + 1);
    if (to == s->count || to == at)
        return;
    mgx_move_before(s->v[at].ins, s->v[to].ins);
    const struct node n = take(s, at);
    put(s, to > at ? to - 1 : to, n);
}

CASE(random_edits_keep_lists_and_uses_right)
{
    for (int round = 0; round < 100; round++) {
        struct mgx_program *p;
        CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
        struct mgx_module *m = mgx_program_main(p);
        struct shadow s = {.next_id = 1};
        const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 3);
        put(&s, 0, (struct node){.ins = mgx_add_parameter(m, "x", &shape)});
        for (int step = 0; step < 150; step++) {
            const int edit = s.count < 3 ? 0 : below(7);
            if (edit <= 1 && s.count < MAX_NODES - 1)
                insert(&s, m);
            else if (edit == 2)
                rewrite(&s, m);
            else if (edit == 3)
                set_input(&s);
            else if (edit == 4)
                replace(&s);
            else if (edit == 5)
                remove_one(&s);
            else if (edit == 6)
                move(&s);
            CHECK(same(&s, m));
        }
        CHECK_OK(mgx_program_verify(p, &diag), diag);
        mgx_program_destroy(p);
    }
}

CASE(compacting_keeps_the_text_and_frees_what_is_dead)
{
    struct mgx_program *p;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 3);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &shape);
    for (int i = 0; i < 5000; i++)
        mgx_remove(mgx_emit(m, &op_sum, NULL, MGX_IN(x, x)));
    struct mgx_ins *kept = mgx_emit(m, &op_sum, NULL, MGX_IN(x, x));
    mgx_add_origin(kept, "first (Add)");
    mgx_add_return(m, &kept, 1);
    p->print_origins = true;
    const size_t before = p->arena.bytes;
    struct mgx_str a = {0}, b = {0};
    mgx_program_print(&a, p);
    CHECK_OK(mgx_program_compact(p, &diag), diag);
    mgx_program_print(&b, p);
    CHECK_TEXT(b.text, a.text);
    CHECK(p->arena.bytes * 100 < before);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_str_fini(&a);
    mgx_str_fini(&b);
    mgx_program_destroy(p);
}

CASE(modules_are_named_apart_and_removed)
{
    struct mgx_program *p;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    struct mgx_module *list[10];
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 3);
    struct mgx_ins *x = mgx_add_parameter(mgx_program_main(p), "x", &shape);
    for (int i = 0; i < 10; i++) {
        list[i] = mgx_program_add_module(p, "body");
        CHECK(list[i] && mgx_program_find_module(p, list[i]->name) == list[i]);
        mgx_emit(list[i], &op_sum, NULL, MGX_IN(x, x));
    }
    CHECK_INT(mgx_use_count(x), 20);
    for (int i = 0; i < 10; i += 2)
        mgx_program_remove_module(p, list[i]);
    CHECK_INT(p->module_count, 6);
    CHECK_INT(mgx_use_count(x), 10);
    CHECK(!mgx_program_find_module(p, "body") && p->modules[1] == list[1]);
    CHECK_OK(mgx_program_verify(p, &diag), diag);
    mgx_program_destroy(p);
}

CASE(origins_are_sorted_and_not_repeated)
{
    struct mgx_program *p;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    const struct mgx_shape shape = mgx_shape_vector(MGX_FLOAT, 3);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &shape);
    struct mgx_ins *a = mgx_emit(m, &op_sum, NULL, MGX_IN(x, x));
    struct mgx_ins *b = mgx_emit(m, &op_sum, NULL, MGX_IN(x, x));
    mgx_add_origin(a, "m");
    mgx_add_origin(a, "a");
    mgx_add_origin(a, "m");
    mgx_add_origin(b, "z");
    mgx_add_origin(b, "a");
    mgx_replace_uses(a, b); // b takes over the origin of a
    CHECK_INT(b->origin.count, 3);
    CHECK_TEXT(b->origin.v[0], "a");
    CHECK_TEXT(b->origin.v[1], "m");
    CHECK_TEXT(b->origin.v[2], "z");
    mgx_program_destroy(p);
}

// The first failure of a builder stays; everything after it is NULL and harmless.
CASE(builders_are_sticky)
{
    struct mgx_program *p;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    const struct mgx_shape three = mgx_shape_vector(MGX_FLOAT, 3),
                           four = mgx_shape_vector(MGX_FLOAT, 4);
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &three), *y = mgx_add_parameter(m, "y", &four);
    struct mgx_ins *bad = mgx_emit(m, &op_sum, NULL, MGX_IN(x, y));
    CHECK(!bad && !mgx_emit(m, &op_sum, NULL, MGX_IN(bad, x)) && !mgx_add_return(m, &bad, 1));
    CHECK_INT(mgx_program_status(p, &diag), MGX_INVALID);
    CHECK_TEXT(diag.text, "sum: Dimensions do not match");
    mgx_diag_clear(&diag);
    mgx_program_destroy(p);
}

CASE(small_literals_and_parameters_stand_at_the_front)
{
    struct mgx_program *p;
    CHECK_OK(mgx_program_create(&p, &test_ops, &diag), diag);
    struct mgx_module *m = mgx_program_main(p);
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, 3);
    struct mgx_ins *x = mgx_add_parameter(m, "x", &shape);
    mgx_emit(m, &op_sum, NULL, MGX_IN(x, mgx_literal_ints(m, (const int64_t[]){1, -2, 3}, 3)));
    mgx_literal_double(m, MGX_HALF, 0.5);
    mgx_add_parameter(m, "y", &shape);
    struct mgx_str out = {0};
    mgx_module_print(&out, m);
    CHECK_TEXT(out.text, "y = @param:y -> int64_type, {3}, {1}\n"
                         "main:@1 = @literal{0.5} -> half_type, {1}, {0}\n"
                         "main:@2 = @literal{1, -2, 3} -> int64_type, {3}, {1}\n"
                         "x = @param:x -> int64_type, {3}, {1}\n"
                         "main:@4 = sum(x,main:@2) -> int64_type, {3}, {1}\n");
    mgx_str_fini(&out);
    struct mgx_ins *parameters[1];
    CHECK_INT(mgx_module_parameters(m, parameters, 1), 2);
    CHECK(parameters[0] == x && mgx_find_parameter(m, "y") && !mgx_find_parameter(m, "z"));
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(random_edits_keep_lists_and_uses_right)
              ROW(compacting_keeps_the_text_and_frees_what_is_dead)
                  ROW(modules_are_named_apart_and_removed) ROW(origins_are_sorted_and_not_repeated)
                      ROW(builders_are_sticky)
                          ROW(small_literals_and_parameters_stand_at_the_front))
