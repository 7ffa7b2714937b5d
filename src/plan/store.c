// SPDX-License-Identifier: MIT
// See store.h.
//
// The unused end of a chunk is never written, so the system puts no memory behind it.
#include "plan/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/size.h"
#include "plan/join.h"
#include "plan/shared.h"

void mgx_plan_store_init(struct mgx_plan_store *store, const struct mgx_plan_machine *machine,
                         struct mgx_plan_store *parent)
{
    assert(machine->target && machine->threads >= 1);
    assert(!parent || (!parent->parent && parent->machine == machine));
    *store = (struct mgx_plan_store){.machine = machine, .parent = parent};
    mgx_arena_init(&store->arena);
}

void mgx_plan_store_fini(struct mgx_plan_store *store)
{
    for (struct mgx_plan_end *end = store->ends; end; end = end->next)
        end->fn(end->user);
    mgx_plan_shared_leave(store);
    for (int64_t i = 0; i < store->packed.count; i++)
        mgx_storage_release(store->packed.v[i]);
    mgx_map_fini(&store->packs);
    mgx_arena_fini(&store->arena);
}

// --- room ---

static bool add_chunk(struct mgx_plan_store *store, size_t bytes, struct mgx_diag *diag)
{
    enum { LEAST = 256 << 10, MOST = 32 << 20 };
    size_t size = store->packed_bytes < LEAST ? LEAST : store->packed_bytes;
    size = size > MOST ? MOST : size;
    size = mgx_memory_rounded(size < bytes ? bytes : size);
    const struct mgx_shape shape = mgx_shape_vector(MGX_UINT8, (int64_t)size);
    struct mgx_tensor t;
    if (mgx_tensor_create(&t, &shape, diag) != MGX_OK)
        return false;
    if (!MGX_PUSH(&store->packed, &store->arena, t.storage)) {
        mgx_tensor_release(&t);
        mgx_fail_memory(diag);
        return false;
    }
    store->chunk = t.data;
    store->chunk_left = size;
    return true;
}

void *mgx_plan_take(struct mgx_plan_store *store, size_t bytes, struct mgx_diag *diag)
{
    if ((!store->chunk || bytes > store->chunk_left) && !add_chunk(store, bytes, diag))
        return NULL;
    unsigned char *data = store->chunk;
    const size_t step = mgx_align64(bytes);
    store->chunk_left -= step < store->chunk_left ? step : store->chunk_left;
    store->chunk += step;
    store->packed_bytes += bytes;
    assert((uintptr_t)data % 64 == 0);
    return data;
}

// --- filling ---

struct wave {
    const struct mgx_plan_fill *fill;
    int first, parts;
};

static void fill_part(void *user, int task, int thread)
{
    (void)thread;
    const struct wave *w = user;
    const struct mgx_plan_fill *f = w->fill;
    const int part = w->first + task;
    const size_t begin = mgx_part_begin((int64_t)f->packed_bytes, part, w->parts),
                 end = mgx_part_begin((int64_t)f->packed_bytes, part + 1, w->parts);
    mgx_memory_begin((char *)f->packed + begin, end - begin);
    f->fill(f, part, w->parts);
}

// In waves of a few MiB. Packing reads its source from front to back, so behind each wave the pages
// of a mapped model may leave memory again, and a model takes hardly more than its packed form.
static void fill_now(struct mgx_plan_store *store, const struct mgx_plan_fill *f)
{
    enum { PART = 2 << 20, SMALL = 64 << 10, LAG = 16 << 20 };
    for (int i = 0; i < MGX_COUNT(f->source); i++)
        mgx_plan_join_fill(store, f->source[i], false);
    const int threads = f->source_bytes < SMALL ? 1 : store->machine->threads;
    const size_t pieces = f->source_bytes / PART / (size_t)threads + 1;
    const int parts = (int)pieces * threads;
    for (int first = 0; first < parts && !mgx_cancelled(); first += threads) {
        struct wave w = {f, first, parts};
        mgx_plan_spread(store->machine, threads, fill_part, &w);
        if (first + threads >= parts)
            break; // behind the last one all of it
        // What a part reads may begin some way before its share of the bytes.
        const size_t end = f->source_bytes / (size_t)parts * (size_t)(first + threads);
        const size_t begin = end > LAG ? end - LAG : 0;
        mgx_file_forget_at((const char *)f->source[0] + begin, end - begin);
    }
    mgx_file_forget_at(f->source[0], f->source_bytes);
    for (int i = 0; i < MGX_COUNT(f->source); i++)
        mgx_plan_join_drop(store, f->source[i]);
}

enum mgx_status mgx_plan_fill_all(struct mgx_plan_store *store, struct mgx_diag *diag)
{
    for (const struct mgx_plan_fill *f = store->first_fill; f && !mgx_cancelled(); f = f->next)
        fill_now(store, f);
    store->first_fill = store->last_fill = NULL;
    TRY(mgx_cancel_check(diag));
    mgx_plan_shared_publish(store);
    return MGX_OK;
}

// --- packing ---

enum { LATE_BYTES = 512 << 20 };

// What a kernel chosen at run time packs stays with the plan, so that other sizes find it, while
// there is room; else it goes with the choice.
static struct mgx_plan_store *owner_of(struct mgx_plan_store *store, const void *key,
                                       size_t key_size, size_t bytes)
{
    struct mgx_plan_store *parent = store->parent;
    if (!parent)
        return store;
    if (mgx_map_findn(&parent->packs, key, key_size))
        return parent;
    if (bytes > LATE_BYTES || parent->late_bytes > LATE_BYTES - bytes)
        return store;
    parent->late_bytes += bytes;
    return parent;
}

// The bytes of a key, in the arena: the kernel's name, the sources, the description.
static void *spell(struct mgx_plan_store *store, const struct mgx_plan_key *key, size_t *size)
{
    const size_t name = strlen(key->kernel) + 1;
    struct mgx_carry_source source[MGX_COUNT(key->source)] = {{0}};
    for (int i = 0; i < MGX_COUNT(key->source); i++)
        if (key->source[i])
            source[i] = mgx_plan_source_of(store, key->source[i]);
    *size = name + sizeof source + key->desc_bytes;
    char *text = mgx_arena_alloc(&store->arena, *size);
    if (!text)
        return NULL;
    memcpy(text, key->kernel, name);
    memcpy(text + name, source, sizeof source);
    if (key->desc_bytes)
        memcpy(text + name + sizeof source, key->desc, key->desc_bytes);
    return text;
}

static void put_off(struct mgx_plan_store *store, struct mgx_plan_fill *fill)
{
    *(store->last_fill ? &store->last_fill->next : &store->first_fill) = fill;
    store->last_fill = fill;
}

// Of what is still to be packed: was the name given to the same bytes of a model before? Equal keys
// pack to equal bytes, so equal sources must have made them.
__attribute__((unused)) static bool is_same(const struct mgx_plan_store *store, const void *packed,
                                            const struct mgx_plan_fill *how)
{
    const struct mgx_plan_fill *f = store->first_fill;
    while (f && f->packed != packed)
        f = f->next;
    return !f || f->source[0] == how->source[0] || mgx_plan_join_of(store, f->source[0]) ||
           mgx_plan_join_of(store, how->source[0]) ||
           (f->source_bytes == how->source_bytes &&
            memcmp(f->source[0], how->source[0], how->source_bytes) == 0);
}

// The storage that packed bytes lie in: mostly the last one, unless the machine's own memory was
// asked for meanwhile.
static struct mgx_storage *chunk_of(const struct mgx_plan_store *store, const void *data)
{
    int64_t i = store->packed.count - 1;
    while (i > 0 &&
           (store->packed.v[i]->memory || (uintptr_t)data < (uintptr_t)store->packed.v[i]->data ||
            (uintptr_t)data >= (uintptr_t)store->packed.v[i]->data + store->packed.v[i]->bytes))
        i--;
    return store->packed.v[i];
}

static void *note_pack(struct mgx_plan_store *store, const void *key, size_t size, void *data,
                       size_t bytes, struct mgx_diag *diag)
{
    const void *kept_key = mgx_arena_memdup(&store->arena, key, size);
    struct mgx_plan_packed *pack = MGX_NEW(&store->arena, struct mgx_plan_packed);
    if (!data || !kept_key || !pack || !mgx_map_putn(&store->packs, kept_key, size, pack)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    *pack = (struct mgx_plan_packed){data, bytes};
    return data;
}

// As the file has it: read-only, and there as long as the program is.
static void *find_carried(struct mgx_plan_store *store, const void *key, size_t size, size_t bytes)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    void *data = store->carry ? (void *)mgx_carry_find(store->carry, key, size, bytes) : NULL;
    if (data && !store->fill_later && // at run time: a damaged one is packed anew
        mgx_carry_check_now(store->carry, data, bytes, &quiet) != MGX_OK)
        return NULL;
    store->carried_count += data != NULL;
    store->carried_bytes += data ? bytes : 0;
    return data;
}

// Kernels leave room behind what they pack for reads beyond its end. It goes into saved files,
// which shall not hold what the memory held before.
static void clear_end(void *data, size_t bytes)
{
    enum { END = 4096 };
    const size_t clear = bytes < END ? bytes : END;
    memset((char *)data + (bytes - clear), 0, clear);
}

// Room for what is not packed anywhere yet, and how it is to be filled; NULL when out of memory.
static struct mgx_plan_fill *new_pack(struct mgx_plan_store *store, const void *text, size_t size,
                                      size_t bytes, const struct mgx_plan_fill *how,
                                      struct mgx_diag *diag)
{
    struct mgx_plan_fill *fill = mgx_arena_memdup(&store->arena, how, sizeof *how);
    void *data = fill ? mgx_plan_take(store, bytes, diag) : NULL;
    if (!data || !note_pack(store, text, size, data, bytes, diag)) {
        mgx_fail_memory(diag);
        return NULL;
    }
    clear_end(data, bytes);
    fill->packed = data;
    fill->packed_bytes = bytes;
    return fill;
}

static void fill_pack(struct mgx_plan_store *store, struct mgx_plan_fill *fill)
{
    if (store->fill_later) {
        put_off(store, fill);
        return;
    }
    fill_now(store, fill);
    mgx_plan_shared_publish(store);
}

bool mgx_plan_is_packed(struct mgx_plan_store *store, const struct mgx_plan_key *key, size_t bytes)
{
    size_t size;
    const void *text = spell(store, key, &size);
    if (!text)
        return false;
    struct mgx_plan_store *owner = owner_of(store, text, size, bytes);
    return mgx_map_findn(&owner->packs, text, size) ||
           (owner->carry && mgx_carry_find(owner->carry, text, size, bytes)) ||
           mgx_plan_shared_has(owner, key);
}

void *mgx_plan_pack(struct mgx_plan_store *store, const struct mgx_plan_key *key, size_t bytes,
                    const struct mgx_plan_fill *how, struct mgx_diag *diag)
{
    assert(key->kernel && key->source[0] && how->fill && how->source[0]);
    size_t size;
    const void *text = spell(store, key, &size);
    if (!text) {
        mgx_fail_memory(diag);
        return NULL;
    }
    store = owner_of(store, text, size, bytes);
    const struct mgx_plan_packed *known = mgx_map_findn(&store->packs, text, size);
    if (known) {
        assert(known->bytes == bytes && is_same(store, known->data, how));
        return known->data;
    }
    void *data = find_carried(store, text, size, bytes);
    data = data ? data : mgx_plan_shared_find(store, key, bytes);
    if (data)
        return note_pack(store, text, size, data, bytes, diag);
    struct mgx_plan_fill *fill = new_pack(store, text, size, bytes, how, diag);
    if (!fill)
        return NULL;
    mgx_plan_shared_add(store, key, fill->packed, bytes, chunk_of(store, fill->packed));
    data = fill->packed;
    fill_pack(store, fill);
    return data;
}

void *mgx_plan_device_take(struct mgx_plan_store *store, size_t bytes, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = store->machine->memory;
    struct mgx_storage *storage = mgx_storage_create(memory, bytes);
    if (!storage) {
        mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a constant of %zu bytes on %s", bytes,
                 memory->name);
        return NULL;
    }
    if (MGX_PUSH(&store->packed, &store->arena, storage)) {
        store->device_bytes += bytes;
        return storage->data;
    }
    mgx_storage_release(storage);
    mgx_fail_memory(diag);
    return NULL;
}

void *mgx_plan_device_share(struct mgx_plan_store *store, const struct mgx_plan_key *key,
                            size_t bytes, bool *fresh, struct mgx_diag *diag)
{
    void *data = mgx_plan_shared_find(store, key, bytes);
    *fresh = data == NULL;
    if (data || !(data = mgx_plan_device_take(store, bytes, diag)))
        return data;
    if (store->sharing) {
        mgx_plan_shared_add(store, key, data, bytes, store->packed.v[store->packed.count - 1]);
        store->device_bytes -= bytes;
    }
    return data;
}

bool mgx_plan_at_end(struct mgx_plan_store *store, void (*fn)(void *user), void *user,
                     struct mgx_diag *diag)
{
    struct mgx_plan_end *end = MGX_NEW(&store->arena, struct mgx_plan_end);
    if (!end) {
        fn(user);
        mgx_fail_memory(diag);
        return false;
    }
    *end = (struct mgx_plan_end){store->ends, fn, user};
    store->ends = end;
    return true;
}
