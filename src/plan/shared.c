// SPDX-License-Identifier: MIT
// See shared.h. Two tables of chains: names that were given to sources, and packed constants.
#include "plan/shared.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/str.h"
#include "op/op.h"

enum { BUCKETS = 256 };

// A storage, or the text of what weights are joined from. Its id is never given again.
struct source {
    struct source *next;
    struct mgx_storage *storage; // kept, so that no other one comes to lie at its address
    char *text;
    uint64_t hash;
    int64_t id, users;
};

struct constant {
    struct constant *next;
    uint64_t hash;
    int64_t users;
    void *data;
    size_t bytes;
    struct mgx_storage *chunk;
    size_t key_size;
    char key[];
};

struct mgx_plan_shared {
    pthread_mutex_t lock; // of everything below
    int64_t users, last_id;
    struct source *sources[BUCKETS];
    struct constant *constants[BUCKETS];
    size_t bytes;
    int64_t count;
    struct mgx_plan_scratch scratch; // has a lock of its own,
    struct mgx_plan_blocks *blocks;  // and so have these
};

struct pending {
    struct mgx_plan_key key; // sources as addresses, the description in the store's arena
    void *data;
    size_t bytes;
    struct mgx_storage *chunk;
};

// What one store has to do with it; in its arena.
struct mgx_plan_sharing {
    struct mgx_plan_shared *with;
    struct mgx_map ids; // number -> struct source, of a plan's store
    struct {
        MGX_ARRAY(struct constant *);
    } held;
    struct {
        MGX_ARRAY(struct pending);
    } pending;
};

// --- life ---

static void drop_source(struct mgx_plan_shared *s, struct source *x)
{
    struct source **at = &s->sources[x->hash % BUCKETS];
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
}

static void destroy_source(struct source *x)
{
    mgx_storage_release(x->storage);
    free(x->text);
    free(x);
}

struct mgx_plan_shared *mgx_plan_shared_create(void)
{
    struct mgx_plan_shared *s = calloc(1, sizeof *s);
    if (!s || !(s->blocks = mgx_plan_blocks_create())) {
        free(s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    mgx_plan_scratch_init(&s->scratch);
    s->users = 1;
    return s;
}

struct mgx_plan_shared *mgx_plan_shared_retain(struct mgx_plan_shared *s)
{
    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    s->users++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void mgx_plan_shared_release(struct mgx_plan_shared *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    assert(s->users > 0);
    const bool last = --s->users == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    assert(!s->count); // whoever holds a constant holds this
    for (int i = 0; i < BUCKETS; i++)
        while (s->sources[i]) { // nobody could note their names
            struct source *x = s->sources[i];
            drop_source(s, x);
            destroy_source(x);
        }
    mgx_plan_scratch_fini(&s->scratch);
    mgx_plan_blocks_close(s->blocks);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct mgx_plan_sharing *add_sharing(struct mgx_plan_store *store,
                                            struct mgx_plan_shared *with)
{
    store->sharing = MGX_NEW(&store->arena, struct mgx_plan_sharing);
    if (store->sharing)
        store->sharing->with = mgx_plan_shared_retain(with);
    return store->sharing;
}

void mgx_plan_shared_join(struct mgx_plan_store *store, struct mgx_plan_shared *s)
{
    assert(!store->parent && !store->sharing);
    if (s)
        add_sharing(store, s);
}

// A store of a kernel chosen at run time takes part as its plan does.
static struct mgx_plan_sharing *sharing_of(struct mgx_plan_store *store)
{
    if (!store->sharing && store->parent && store->parent->sharing)
        add_sharing(store, store->parent->sharing->with);
    return store->sharing;
}

static void drop_constant(struct mgx_plan_shared *s, struct constant *c)
{
    struct constant **at = &s->constants[c->hash % BUCKETS];
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    assert(s->count > 0 && s->bytes >= c->bytes);
    s->bytes -= c->bytes;
    s->count--;
}

static void leave_constants(struct mgx_plan_sharing *mine)
{
    struct mgx_plan_shared *s = mine->with;
    for (int64_t i = 0; i < mine->held.count; i++) {
        struct constant *c = mine->held.v[i];
        pthread_mutex_lock(&s->lock);
        assert(c->users > 0);
        const bool last = --c->users == 0;
        if (last)
            drop_constant(s, c);
        pthread_mutex_unlock(&s->lock);
        if (last) {
            mgx_storage_release(c->chunk);
            free(c);
        }
    }
}

static void leave_sources(struct mgx_plan_sharing *mine)
{
    struct mgx_plan_shared *s = mine->with;
    for (uint32_t i = 0; i < mine->ids.count; i++) {
        struct source *x = mine->ids.entries[i].value;
        pthread_mutex_lock(&s->lock);
        assert(x->users > 0);
        const bool last = --x->users == 0;
        if (last)
            drop_source(s, x);
        pthread_mutex_unlock(&s->lock);
        if (last)
            destroy_source(x);
    }
    mgx_map_fini(&mine->ids);
}

void mgx_plan_shared_leave(struct mgx_plan_store *store)
{
    struct mgx_plan_sharing *mine = store->sharing;
    if (!mine)
        return;
    leave_constants(mine);
    leave_sources(mine);
    mgx_plan_shared_release(mine->with);
    store->sharing = NULL;
}

// --- names of sources ---

static const void *as_pointer(int64_t number) // a key of a map of pointers
{
    return (const void *)(uintptr_t)((uint64_t)number + ((uint64_t)1 << 40));
}

static struct source *find_source(struct mgx_plan_shared *s, const struct source *like)
{
    struct source *x = s->sources[like->hash % BUCKETS];
    while (x && !(x->hash == like->hash && x->storage == like->storage &&
                  (x->text ? like->text && strcmp(x->text, like->text) == 0 : !like->text)))
        x = x->next;
    return x;
}

static struct source *add_source(struct mgx_plan_shared *s, const struct source *like)
{
    struct source *x = malloc(sizeof *x);
    if (!x)
        return NULL;
    *x = *like;
    x->text = like->text ? strdup(like->text) : NULL;
    if (like->text && !x->text) {
        free(x);
        return NULL;
    }
    mgx_storage_retain(x->storage);
    x->id = ++s->last_id;
    x->next = s->sources[x->hash % BUCKETS];
    s->sources[x->hash % BUCKETS] = x;
    return x;
}

static bool name_source(struct mgx_plan_sharing *mine, int64_t number, const struct source *like)
{
    struct mgx_plan_shared *s = mine->with;
    pthread_mutex_lock(&s->lock);
    struct source *x = find_source(s, like);
    if (!x)
        x = add_source(s, like);
    if (x && mgx_map_put_pointer(&mine->ids, as_pointer(number), x))
        x->users++;
    else
        x = NULL; // one that was made stays listed: it may be asked for again
    pthread_mutex_unlock(&s->lock);
    return x != NULL;
}

bool mgx_plan_shared_name_storage(struct mgx_plan_store *store, int64_t number,
                                  struct mgx_storage *storage)
{
    if (!store->sharing)
        return true;
    const uint64_t hash = mgx_hash_bytes(&storage, sizeof storage, 0);
    return name_source(store->sharing, number, &(struct source){.storage = storage, .hash = hash});
}

static bool spell_source(const struct mgx_plan_store *store, const void *data, int64_t *id,
                         int64_t *offset)
{
    const struct mgx_plan_store *plan = store->parent ? store->parent : store;
    const struct mgx_carry_source source = mgx_plan_source_of(store, data);
    const struct source *x = mgx_map_find_pointer(&plan->sharing->ids, as_pointer(source.number));
    *id = x ? x->id : 0;
    *offset = source.offset;
    return x != NULL;
}

// "concat[axis=1](@3+64 float_type, {8, 8}, {8, 1}, ...)".
static bool spell_pieces(struct mgx_plan_store *store, const struct mgx_ins *ins, int depth,
                         struct mgx_str *out)
{
    int64_t id, offset;
    if (ins->literal) {
        if (!spell_source(store, ins->literal->data, &id, &offset))
            return false;
        mgx_str_printf(out, "@%lld+%lld ", (long long)id, (long long)offset);
        mgx_shape_print(out, &ins->literal->shape);
        return true;
    }
    mgx_op_print(out, ins->op, ins->attr);
    mgx_str_putc(out, '(');
    for (int i = 0; i < ins->in_count; i++) {
        if (!depth || !spell_pieces(store, ins->in[i], depth - 1, out))
            return false;
        mgx_str_put(out, "; ");
    }
    mgx_str_putc(out, ')');
    return true;
}

bool mgx_plan_shared_name_join(struct mgx_plan_store *store, int64_t number,
                               const struct mgx_ins *ins, const struct mgx_shape *shape)
{
    enum { DEPTH = 4 };
    struct mgx_str text = {0};
    if (!store->sharing)
        return true;
    bool good = spell_pieces(store, ins, DEPTH, &text);
    mgx_shape_print(&text, shape);
    if (good && !text.failed) {
        const struct source like = {.text = text.text,
                                    .hash = mgx_hash_bytes(text.text, text.size, 1)};
        good = name_source(store->sharing, number, &like);
    }
    mgx_str_fini(&text);
    return true; // without a name it is not shared
}

// --- constants ---

// The key as all plans say it; false if one of its sources has no name.
static bool spell(struct mgx_plan_store *store, const struct mgx_plan_key *key, struct mgx_str *out)
{
    mgx_str_put(out, key->kernel);
    mgx_str_putc(out, 0);
    for (int i = 0; i < MGX_COUNT(key->source); i++) {
        int64_t name[2] = {0};
        if (key->source[i] && !spell_source(store, key->source[i], &name[0], &name[1]))
            return false;
        mgx_str_putn(out, (const char *)name, sizeof name);
    }
    mgx_str_putn(out, key->desc, key->desc_bytes);
    return !out->failed;
}

static struct constant *find_constant(struct mgx_plan_shared *s, const struct mgx_str *key,
                                      uint64_t hash)
{
    struct constant *c = s->constants[hash % BUCKETS];
    while (c && !(c->hash == hash && c->key_size == key->size &&
                  memcmp(c->key, key->text, key->size) == 0))
        c = c->next;
    return c;
}

void *mgx_plan_shared_find(struct mgx_plan_store *store, const struct mgx_plan_key *key,
                           size_t bytes)
{
    struct mgx_plan_sharing *mine = sharing_of(store);
    struct mgx_str text = {0};
    struct constant *c = NULL;
    if (!mine)
        return NULL;
    if (spell(store, key, &text) &&
        mgx_array_reserve(&mine->held.array, 1, sizeof *mine->held.v, &store->arena)) {
        pthread_mutex_lock(&mine->with->lock);
        c = find_constant(mine->with, &text, mgx_hash_bytes(text.text, text.size, 0));
        if (c)
            c->users++;
        pthread_mutex_unlock(&mine->with->lock);
    }
    mgx_str_fini(&text);
    if (!c)
        return NULL;
    assert(c->bytes == bytes);
    (void)bytes;
    mine->held.v[mine->held.count++] = c;
    return c->data;
}

bool mgx_plan_shared_has(struct mgx_plan_store *store, const struct mgx_plan_key *key)
{
    struct mgx_plan_sharing *mine = sharing_of(store);
    struct mgx_str text = {0};
    const struct constant *c = NULL;
    if (mine && spell(store, key, &text)) {
        pthread_mutex_lock(&mine->with->lock);
        c = find_constant(mine->with, &text, mgx_hash_bytes(text.text, text.size, 0));
        pthread_mutex_unlock(&mine->with->lock);
    }
    mgx_str_fini(&text);
    return c != NULL;
}

void mgx_plan_shared_add(struct mgx_plan_store *store, const struct mgx_plan_key *key, void *data,
                         size_t bytes, struct mgx_storage *chunk)
{
    struct mgx_plan_sharing *mine = sharing_of(store);
    assert((uintptr_t)data - (uintptr_t)chunk->data <= chunk->bytes - bytes);
    if (!mine)
        return;
    struct pending p = {*key, data, bytes, chunk};
    p.key.desc = mgx_arena_memdup(&store->arena, key->desc, key->desc_bytes);
    if (p.key.desc || !key->desc_bytes)
        (void)!MGX_PUSH(&mine->pending, &store->arena, p);
}

static struct constant *new_constant(const struct pending *p, const struct mgx_str *key)
{
    struct constant *c = malloc(sizeof *c + key->size);
    if (!c)
        return NULL;
    *c = (struct constant){.hash = mgx_hash_bytes(key->text, key->size, 0),
                           .users = 1,
                           .data = p->data,
                           .bytes = p->bytes,
                           .chunk = mgx_storage_retain(p->chunk),
                           .key_size = key->size};
    memcpy(c->key, key->text, key->size);
    return c;
}

static void publish(struct mgx_plan_store *store, const struct pending *p)
{
    struct mgx_plan_sharing *mine = store->sharing;
    struct mgx_plan_shared *s = mine->with;
    struct mgx_str key = {0};
    struct constant *c = NULL;
    if (spell(store, &p->key, &key) &&
        mgx_array_reserve(&mine->held.array, 1, sizeof *mine->held.v, &store->arena))
        c = new_constant(p, &key);
    if (c) {
        pthread_mutex_lock(&s->lock);
        const bool fresh = !find_constant(s, &key, c->hash);
        if (fresh) {
            c->next = s->constants[c->hash % BUCKETS];
            s->constants[c->hash % BUCKETS] = c;
            s->bytes += c->bytes;
            s->count++;
            mine->held.v[mine->held.count++] = c;
        }
        pthread_mutex_unlock(&s->lock);
        if (!fresh) { // another plan was faster
            mgx_storage_release(c->chunk);
            free(c);
        }
    }
    mgx_str_fini(&key);
}

void mgx_plan_shared_publish(struct mgx_plan_store *store)
{
    struct mgx_plan_sharing *mine = store->sharing;
    for (int64_t i = 0; mine && i < mine->pending.count; i++)
        publish(store, &mine->pending.v[i]);
    if (mine)
        mine->pending.count = 0;
}

struct mgx_plan_scratch *mgx_plan_shared_scratch(const struct mgx_plan_store *store)
{
    return store->sharing ? &store->sharing->with->scratch : NULL;
}

struct mgx_plan_blocks *mgx_plan_shared_blocks(const struct mgx_plan_store *store)
{
    return store->sharing ? mgx_plan_blocks_join(store->sharing->with->blocks)
                          : mgx_plan_blocks_create();
}

size_t mgx_plan_shared_total(const struct mgx_plan_store *store, int64_t *count)
{
    struct mgx_plan_shared *s = store->sharing ? store->sharing->with : NULL;
    *count = 0;
    if (!s)
        return 0;
    pthread_mutex_lock(&s->lock);
    const size_t bytes = s->bytes;
    *count = s->count;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}
