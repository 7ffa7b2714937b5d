// SPDX-License-Identifier: MIT
// The worklist that applies rules; see rewrite.h.
#include "pass/engine/rewrite.h"

#include <assert.h>
#include <string.h>

#include "pass/engine/history.h"
#include "pass/engine/walk.h"

struct compiled_rule {
    const struct mgx_rule *rule;
    const struct mgx_pattern *left, *right; // right is NULL when a function does it
};

// The rules of a table whose left side may begin with an operator. Most operators have few of a
// table's dozens, and every instruction is looked at by every pass.
struct candidates {
    const struct mgx_op *op;
    struct candidates *next; // of the same bucket
    int count;
    const struct compiled_rule *v[];
};

enum { BUCKETS = 64 };

struct mgx_compiled_table {
    struct mgx_arena *arena; // its own: the cache's, or the pass's
    const struct compiled_rule *rules;
    int count;
    struct candidates *by_op[BUCKETS]; // filled as operators are met
};

enum { IDLE = 0, QUEUED = 1 }; // ins->index, besides MGX_REMOVED

// --- compiling ---

static const struct mgx_pattern *read_side(struct mgx_arena *arena, const char **text)
{
    struct mgx_pattern p;
    return mgx_pattern_parse(&p, text) ? mgx_pattern_keep(arena, &p) : NULL;
}

static bool compile(struct mgx_arena *arena, const struct mgx_rule *rule, struct compiled_rule *out)
{
    assert(rule->equation);
    const char *text = rule->equation;
    *out = (struct compiled_rule){.rule = rule, .left = read_side(arena, &text)};
    if (!out->left || out->left->node[0].kind < MGX_MATCH_OP)
        return false;
    text += strspn(text, " ");
    if (strncmp(text, rule->rewrite ? "~> " : "=> ", 3) != 0)
        return false;
    text += 3;
    return rule->rewrite || ((out->right = read_side(arena, &text)) && !*text);
}

void mgx_rule_cache_init(struct mgx_rule_cache *cache)
{
    *cache = (struct mgx_rule_cache){0};
    mgx_arena_init(&cache->arena);
}

void mgx_rule_cache_fini(struct mgx_rule_cache *cache)
{
    mgx_map_fini(&cache->tables);
    mgx_arena_fini(&cache->arena);
}

// Those rules of a table that the pass at work tries.
static enum mgx_status read_table(struct mgx_pass_call *c, struct mgx_arena *arena,
                                  const struct mgx_rules *table, struct mgx_compiled_table **out)
{
    const struct mgx_pass_trail *trail = c->options->trail;
    int count = 0;
    for (int i = 0; i < table->count; i++)
        count += mgx_trail_tries(trail, &table->v[i]);
    struct mgx_compiled_table *t = MGX_NEW(arena, struct mgx_compiled_table);
    struct compiled_rule *rules = MGX_NEW_ARRAY(arena, struct compiled_rule, count);
    if (!t || !rules)
        return mgx_fail_memory(c->diag);
    *t = (struct mgx_compiled_table){.arena = arena, .rules = rules};
    for (int i = 0; i < table->count; i++)
        if (mgx_trail_tries(trail, &table->v[i]) &&
            !compile(arena, &table->v[i], &rules[t->count++]))
            return arena->failed ? mgx_fail_memory(c->diag)
                                 : mgx_fail(c->diag, MGX_INTERNAL, "the rule \"%s\" does not read",
                                            table->v[i].equation);
    *out = t;
    return MGX_OK;
}

static enum mgx_status compile_table(struct mgx_pass_call *c, const struct mgx_rules *table,
                                     struct mgx_compiled_table **out)
{
    struct mgx_rule_cache *cache = mgx_trail_tries_all(c->options->trail) ? c->rules : NULL;
    if (!cache)
        return read_table(c, c->scratch, table, out);
    *out = mgx_map_find_pointer(&cache->tables, table->v);
    if (*out)
        return MGX_OK;
    TRY(read_table(c, &cache->arena, table, out));
    return mgx_map_put_pointer(&cache->tables, table->v, *out) ? MGX_OK : mgx_fail_memory(c->diag);
}

static enum mgx_status compile_tables(struct mgx_rewriter *r, const struct mgx_rules *const *tables,
                                      int count)
{
    r->tables = MGX_NEW_ARRAY(r->call->scratch, struct mgx_compiled_table *, count);
    if (!r->tables)
        return mgx_fail_memory(r->call->diag);
    r->table_count = count;
    for (int i = 0; i < count; i++)
        TRY(compile_table(r->call, tables[i], &r->tables[i]));
    return MGX_OK;
}

static struct candidates **bucket_of(struct mgx_compiled_table *t, const struct mgx_op *op)
{
    assert(op);
    return &t->by_op[((uintptr_t)op / sizeof *op) % BUCKETS];
}

static struct candidates *collect(struct mgx_arena *arena, struct mgx_compiled_table *t,
                                  const struct mgx_op *op)
{
    assert(t->count >= 0);
    int count = 0;
    for (int i = 0; i < t->count; i++)
        count += mgx_pattern_may_begin(t->rules[i].left, op);
    struct candidates *c = mgx_arena_alloc(arena, sizeof *c + (size_t)count * sizeof *c->v);
    if (!c)
        return NULL;
    struct candidates **bucket = bucket_of(t, op);
    *c = (struct candidates){.op = op, .next = *bucket};
    for (int i = 0; i < t->count; i++)
        if (mgx_pattern_may_begin(t->rules[i].left, op))
            c->v[c->count++] = &t->rules[i];
    *bucket = c;
    return c;
}

// In the table's order. NULL when out of memory, which is sticky in the arena.
static const struct candidates *candidates_of(struct mgx_rewriter *r, int table,
                                              const struct mgx_op *op)
{
    assert(table >= 0 && table < r->table_count);
    struct mgx_compiled_table *t = r->tables[table];
    for (const struct candidates *c = *bucket_of(t, op); c; c = c->next)
        if (c->op == op)
            return c;
    return collect(t->arena, t, op);
}

// --- the queue ---

static void push(struct mgx_rewriter *r, struct mgx_ins *ins)
{
    assert(r->queued <= r->capacity);
    if (ins->index != IDLE || ins->owner != r->module || (ins->op->flags & MGX_OP_BUILTIN))
        return;
    if (r->queued == r->capacity) { // grow: unroll the ring into an array twice as long
        struct mgx_ins **grown = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, r->capacity * 2);
        if (!grown)
            return; // sticky in the arena
        for (size_t i = 0; i < r->queued; i++)
            grown[i] = r->queue[(r->head + i) % r->capacity];
        r->queue = grown;
        r->head = 0;
        r->capacity *= 2;
    }
    r->queue[(r->head + r->queued++) % r->capacity] = ins;
    ins->index = QUEUED;
}

static struct mgx_ins *pop(struct mgx_rewriter *r)
{
    assert(r->queued > 0 && r->queue[r->head]);
    struct mgx_ins *ins = r->queue[r->head];
    r->head = (r->head + 1) % r->capacity;
    r->queued--;
    return ins;
}

// Could any rule apply to this operator?
static bool is_root(struct mgx_rewriter *r, const struct mgx_ins *ins)
{
    for (int i = 0; i < r->table_count; i++) {
        const struct candidates *c = candidates_of(r, i, ins->op);
        for (int j = 0; c && j < c->count; j++)
            if (mgx_pattern_may_match(c->v[j]->left, ins))
                return true;
    }
    return false;
}

// Nothing to do for most passes on most programs: they find out in one sweep.
static bool has_roots(struct mgx_rewriter *r)
{
    const struct mgx_op *last = NULL; // neighbours are often alike
    for (const struct mgx_ins *ins = r->module->first; ins; ins = ins->next) {
        if (ins->op != last && !(ins->op->flags & MGX_OP_BUILTIN) && is_root(r, ins))
            return true;
        last = ins->op;
    }
    return false;
}

static bool fill_queue(struct mgx_rewriter *r)
{
    assert(!r->queue);
    r->capacity = (size_t)r->module->count + 64;
    r->queue = MGX_NEW_ARRAY(r->call->scratch, struct mgx_ins *, r->capacity);
    if (!r->queue)
        return false;
    mgx_mark_constants(r->module);
    MGX_EACH (ins, r->module) {
        ins->index = IDLE;
        push(r, ins);
    }
    return true;
}

// --- applying ---

static bool holds(const struct mgx_rewriter *r, unsigned when, const struct mgx_ins *ins)
{
    if ((when & MGX_IF_FAST) && !r->call->options->fast_math)
        return false;
    if ((when & MGX_IF_FLOAT) && !mgx_type_is_float(ins->shape.type))
        return false;
    if ((when & MGX_IF_INTEGRAL) && !mgx_type_is_integral(ins->shape.type))
        return false;
    if ((when & MGX_IF_NUMBER) && ins->shape.type == MGX_BOOL)
        return false;
    return !(when & MGX_IF_STATIC) || mgx_shape_is_static(&ins->shape);
}

// Emits the right side of an equation: variables and operators without attributes.
static struct mgx_ins *emit(const struct mgx_pattern *p, int index, struct mgx_ins *before,
                            const struct mgx_match *m)
{
    const struct mgx_pattern_node *n = &p->node[index];
    if (n->kind == MGX_MATCH_ANY)
        return mgx_var(m, n->letter);
    assert(n->kind == MGX_MATCH_OP && n->op_count == 1 && n->arg_count >= 1 && n->arg_count <= 3);
    struct mgx_ins *in[3];
    int child = n->child;
    for (int i = 0; i < n->arg_count; i++, child = p->node[child].sibling)
        in[i] = emit(p, child, before, m);
    return mgx_emit_before(before, n->ops[0], NULL, (struct mgx_ins_list){in, n->arg_count});
}

// The right side may be a bare variable of other lengths (a broadcast that the left side implied):
// such a match is left alone.
static bool replacement_fits(const struct mgx_ins *ins, const struct mgx_ins *by)
{
    assert(ins->owner == by->owner || by->owner->program == ins->owner->program);
    return by->shape.type == ins->shape.type && mgx_shape_same_lens(&by->shape, &ins->shape) &&
           by->shape.rank == ins->shape.rank;
}

static struct mgx_ins *try_rule(struct mgx_rewriter *r, const struct compiled_rule *compiled,
                                struct mgx_ins *ins)
{
    assert(compiled->rule && ins->owner == r->module);
    const struct mgx_rule *rule = compiled->rule;
    struct mgx_match m;
    if (!mgx_pattern_match(compiled->left, ins, &m) || !holds(r, rule->when, ins) ||
        (rule->guard && !rule->guard(r, ins, &m)))
        return NULL;
    if (rule->rewrite)
        return rule->rewrite(r, ins, &m);
    struct mgx_ins *by = emit(compiled->right, 0, ins, &m);
    return by && replacement_fits(ins, by) ? by : NULL;
}

static void push_users(struct mgx_rewriter *r, const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        push(r, use->user);
}

// New instructions stand between what preceded `ins` and `ins` itself; look at them, at the readers
// of `ins` (not all of those `by` had before: they may be many and saw no change), and at who is
// now the only reader of an input.
static void adopt(struct mgx_rewriter *r, struct mgx_ins *before, struct mgx_ins *ins,
                  struct mgx_ins *by)
{
    struct mgx_ins *const *in = ins->in;
    const int in_count = ins->in_count;
    for (struct mgx_ins *at = before ? before->next : r->module->first; at != ins; at = at->next) {
        mgx_is_constant(r->module, at); // marks it
        push(r, at);
    }
    push_users(r, ins);
    push(r, by);
    if (by != ins) {
        assert(replacement_fits(ins, by) || !mgx_shape_is_static(&ins->shape));
        mgx_replace(ins, by);
    }
    for (int i = 0; i < in_count; i++)
        if (in[i]->index != MGX_REMOVED && mgx_used_once(in[i]))
            push(r, in[i]->uses->user);
}

// Nothing is gained where nothing is computed, and a reshape cannot say a length of 0.
static bool is_empty(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_TUPLE &&
           ins->shape.type != MGX_SEQUENCE && mgx_shape_elements(&ins->shape) == 0;
}

static bool apply_first(struct mgx_rewriter *r, const struct candidates *c, struct mgx_ins *ins)
{
    for (int i = 0; i < c->count; i++) {
        struct mgx_ins *before = ins->prev;
        struct mgx_ins *by = try_rule(r, c->v[i], ins);
        if (!by)
            continue;
        adopt(r, before, ins, by);
        r->call->changed = true;
        mgx_trail_note(r->call->options->trail, c->v[i]->rule);
        return true;
    }
    return false;
}

static bool visit(struct mgx_rewriter *r, struct mgx_ins *ins)
{
    bool looked = false;
    for (int i = 0; i < r->table_count; i++) {
        const struct candidates *c = candidates_of(r, i, ins->op);
        if (!c || !c->count)
            continue;
        if (!looked && is_empty(ins))
            return false;
        looked = true;
        if (apply_first(r, c, ins))
            return true;
    }
    return false;
}

enum { REWRITES_PER_INSTRUCTION = 16 }; // on average; ends what two rules might do to each other

enum mgx_status mgx_apply_tables(struct mgx_pass_call *c, struct mgx_module *m,
                                 const struct mgx_rules *const *tables, int count)
{
    struct mgx_rewriter r = {.call = c, .module = m};
    TRY(compile_tables(&r, tables, count));
    if (!has_roots(&r))
        return MGX_OK;
    if (!fill_queue(&r))
        return mgx_fail_memory(c->diag);
    int64_t fuel = 1024 + (int64_t)m->count * REWRITES_PER_INSTRUCTION;
    while (r.queued && fuel > 0 && c->program->diag.status == MGX_OK) {
        struct mgx_ins *ins = pop(&r);
        if (ins->index == MGX_REMOVED)
            continue;
        ins->index = IDLE;
        fuel -= visit(&r, ins);
    }
    return mgx_program_status(c->program, c->diag);
}

enum mgx_status mgx_apply_rules(struct mgx_pass_call *c, struct mgx_module *m,
                                const struct mgx_rule *rules, int count)
{
    const struct mgx_rules table = {rules, count};
    return mgx_apply_tables(c, m, (const struct mgx_rules *const[]){&table}, 1);
}
