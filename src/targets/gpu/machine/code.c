// SPDX-License-Identifier: MIT
// Units: shared by text within the process, made by several threads, kept on disk (store.h).
#include "targets/gpu/machine/code.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/thread.h"
#include "targets/gpu/machine/store.h"

enum { UNIT_BUCKETS = 256, UNIT_MAX_THREADS = 16 };

struct gpu_unit {
    struct gpu_unit *next; // in its bucket
    uint64_t hash;
    int users; // under the lock of the table
    struct gpu_device *device;
    char *name, *text;
    pthread_mutex_t making; // one thread makes it, others wait
    void *module;           // NULL: not made yet
    struct mgx_str binary;  // kept for who saves a program
};

// Units of all programs by their text. A mutable global for the reason that devices are: code lies
// on the card once for the process.
static struct {
    pthread_mutex_t lock;
    struct gpu_unit *buckets[UNIT_BUCKETS];
    struct gpu_code_counts counts;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct gpu_code_counts gpu_code_counts(void)
{
    pthread_mutex_lock(&table.lock);
    const struct gpu_code_counts counts = table.counts;
    pthread_mutex_unlock(&table.lock);
    return counts;
}

static void count(int *what)
{
    pthread_mutex_lock(&table.lock);
    ++*what;
    pthread_mutex_unlock(&table.lock);
}

static struct gpu_unit *create(struct gpu_device *device, const char *name, const char *text,
                               uint64_t hash)
{
    struct gpu_unit *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    *u = (struct gpu_unit){
        .hash = hash, .users = 1, .device = device, .name = strdup(name), .text = strdup(text)};
    if (!u->name || !u->text) {
        free(u->name);
        free(u->text);
        free(u);
        return NULL;
    }
    pthread_mutex_init(&u->making, NULL);
    return u;
}

struct gpu_unit *gpu_unit_share(struct gpu_device *device, const char *name, const char *text)
{
    const uint64_t hash = mgx_hash_bytes(text, strlen(text), 0);
    pthread_mutex_lock(&table.lock);
    struct gpu_unit **bucket = &table.buckets[hash % UNIT_BUCKETS], *u = *bucket;
    while (u && (u->hash != hash || u->device != device || strcmp(u->text, text) != 0))
        u = u->next;
    if (u) {
        u->users++;
        table.counts.shared++;
    } else if ((u = create(device, name, text, hash))) {
        u->next = *bucket;
        *bucket = u;
    }
    pthread_mutex_unlock(&table.lock);
    return u;
}

void gpu_unit_drop(struct gpu_unit *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&table.lock);
    const bool last = --u->users == 0;
    if (last) {
        struct gpu_unit **at = &table.buckets[u->hash % UNIT_BUCKETS];
        while (*at != u)
            at = &(*at)->next;
        *at = u->next;
    }
    pthread_mutex_unlock(&table.lock);
    if (!last)
        return;
    u->device->api->module_unload(u->device, u->module);
    pthread_mutex_destroy(&u->making);
    mgx_str_fini(&u->binary);
    free(u->name);
    free(u->text);
    free(u);
}

// --- making ---

size_t gpu_unit_bytes(const struct gpu_unit *unit)
{
    return unit->binary.size;
}

// Takes the binary over if the driver does.
static enum mgx_status load(struct gpu_unit *u, struct mgx_str *binary, struct mgx_diag *diag)
{
    TRY(u->device->api->module_load(u->device, binary->text, binary->size, &u->module, diag));
    u->binary = *binary;
    *binary = (struct mgx_str){0};
    return MGX_OK;
}

static enum mgx_status compile(const struct gpu_code *code, struct gpu_unit *u,
                               const struct gpu_store_key *key, struct mgx_diag *diag)
{
    static const char *const exact[] = {NULL}, *const narrow[] = {"--prec-div=false",
                                                                  "--prec-sqrt=false", NULL};
    const bool loose =
        code->device->properties.version && strstr(u->text, GPU_NARROW_RESULTS) != NULL;
    const struct gpu_source source = {
        .name = u->name, .text = u->text, .options = loose ? narrow : exact};
    struct mgx_str binary = {0};
    if (code->trace)
        code->trace(code->trace_user, u->text);
    enum mgx_status status = u->device->api->compile(u->device, &source, &binary, NULL, diag);
    if (status == MGX_OK)
        status = load(u, &binary, diag);
    if (status == MGX_OK && code->folder)
        gpu_store_write(code->folder, key, u->binary.text, u->binary.size, GPU_CODE_FOLDER_BYTES);
    mgx_str_fini(&binary);
    count(&table.counts.compiled);
    return status;
}

// A file that is whole and yet refused by the driver counts as absent.
static bool load_kept(const struct gpu_code *code, struct gpu_unit *u,
                      const struct gpu_store_key *key)
{
    struct mgx_str binary = {0};
    struct mgx_diag quiet = {.status = MGX_OK};
    const bool loaded = code->folder && gpu_store_read(code->folder, key, &binary) &&
                        load(u, &binary, &quiet) == MGX_OK;
    mgx_str_fini(&binary);
    if (loaded)
        count(&table.counts.loaded);
    return loaded;
}

static bool load_carried(const struct gpu_code *code, struct gpu_unit *u,
                         const struct gpu_store_key *key)
{
    struct mgx_str binary = {0};
    struct mgx_diag quiet = {.status = MGX_OK};
    uint64_t hash[2];
    size_t size = 0;
    gpu_store_hash(key, hash);
    const void *found = gpu_carried_find(code->carried, code->carried_size, hash, &size);
    if (found)
        mgx_str_putn(&binary, found, size);
    const bool loaded = found && !binary.failed && load(u, &binary, &quiet) == MGX_OK;
    mgx_str_fini(&binary);
    if (loaded)
        count(&table.counts.carried);
    return loaded;
}

static enum mgx_status make(const struct gpu_code *code, struct gpu_unit *u, struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    const struct gpu_store_key key = {.card = u->device->properties.arch, .text = u->text};
    pthread_mutex_lock(&u->making);
    if (!u->module && !load_carried(code, u, &key) && !load_kept(code, u, &key))
        status = compile(code, u, &key, diag);
    pthread_mutex_unlock(&u->making);
    if (status != MGX_OK)
        mgx_where(diag, "compiling kernel %s", u->name);
    return status;
}

struct crew {
    const struct gpu_code *code;
    struct gpu_unit *const *units;
    int count;
    atomic_int next;
    pthread_mutex_t lock; // of the first failure
    struct mgx_diag first;
};

static void *work(void *user)
{
    struct crew *c = user;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->count;) {
        struct mgx_diag diag = {.status = MGX_OK};
        if (make(c->code, c->units[i], &diag) == MGX_OK)
            continue;
        pthread_mutex_lock(&c->lock);
        if (c->first.status == MGX_OK)
            c->first = diag;
        pthread_mutex_unlock(&c->lock);
        atomic_store(&c->next, c->count);
    }
    return NULL;
}

enum mgx_status gpu_units_make(const struct gpu_code *code, struct gpu_unit *const *units,
                               int count, struct mgx_diag *diag)
{
    struct crew c = {.code = code, .units = units, .count = count};
    pthread_t thread[UNIT_MAX_THREADS];
    int threads = 0;
    pthread_mutex_init(&c.lock, NULL);
    while (threads < code->threads - 1 && threads < count - 1 && threads < UNIT_MAX_THREADS &&
           mgx_thread_start(&thread[threads], work, &c))
        threads++;
    work(&c);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&c.lock);
    return c.first.status == MGX_OK ? MGX_OK : mgx_fail(diag, c.first.status, "%s", c.first.text);
}

// --- in saved programs ---

struct carried {
    uint64_t hash[2], size;
};

void gpu_units_carry(struct gpu_unit *const *units, int count, struct mgx_str *out)
{
    static const char zeros[8];
    for (int i = 0; i < count; i++) {
        const struct gpu_unit *u = units[i];
        struct carried head = {.size = u->binary.size};
        gpu_store_hash(&(struct gpu_store_key){u->device->properties.arch, u->text}, head.hash);
        mgx_str_putn(out, (const char *)&head, sizeof head);
        mgx_str_putn(out, mgx_str_text(&u->binary), u->binary.size);
        mgx_str_putn(out, zeros, -u->binary.size & 7);
    }
}

const void *gpu_carried_find(const void *carried, size_t carried_size, const uint64_t hash[2],
                             size_t *size)
{
    struct carried head;
    for (size_t at = 0; carried_size - at >= sizeof head;) {
        memcpy(&head, (const char *)carried + at, sizeof head);
        at += sizeof head;
        if (head.size > carried_size - at)
            return NULL;
        *size = (size_t)head.size;
        if (head.hash[0] == hash[0] && head.hash[1] == hash[1])
            return (const char *)carried + at;
        const size_t padded = (*size + 7) & ~(size_t)7;
        at += padded < carried_size - at ? padded : carried_size - at;
    }
    return NULL;
}

enum mgx_status gpu_unit_kernel(struct gpu_unit *unit, const char *name, size_t shared, void **out,
                                struct mgx_diag *diag)
{
    assert(unit->module);
    return unit->device->api->kernel_find(unit->device, unit->module, name, shared, out, diag);
}

enum mgx_status gpu_unit_stream_kernel(struct gpu_unit *unit, const char *name, size_t shared,
                                       void **out, struct mgx_diag *diag)
{
    const struct gpu_api *api = unit->device->api;
    TRY(gpu_unit_kernel(unit, name, shared, out, diag));
    return api->kernel_streams ? api->kernel_streams(unit->device, *out, diag) : MGX_OK;
}
