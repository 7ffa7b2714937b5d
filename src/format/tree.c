// SPDX-License-Identifier: MIT
// Making and asking trees of values; see tree.h.
#include "format/tree.h"

#include <assert.h>
#include <string.h>

struct mgx_value *mgx_value_new(struct mgx_arena *arena, enum mgx_value_kind kind)
{
    struct mgx_value *v = MGX_NEW(arena, struct mgx_value);
    if (v)
        v->kind = kind;
    return v;
}

struct mgx_value *mgx_value_int(struct mgx_arena *arena, int64_t i)
{
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_INT);
    if (v)
        v->i = i;
    return v;
}

struct mgx_value *mgx_value_real(struct mgx_arena *arena, double f)
{
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_REAL);
    if (v)
        v->f = f;
    return v;
}

struct mgx_value *mgx_value_text(struct mgx_arena *arena, const char *text)
{
    struct mgx_value *v = text ? mgx_value_new(arena, MGX_VALUE_TEXT) : NULL;
    if (v) {
        v->data = text;
        v->size = strlen(text);
    }
    return v;
}

struct mgx_value *mgx_value_bytes(struct mgx_arena *arena, const void *data, size_t size)
{
    assert(data || !size);
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_BYTES);
    if (v) {
        v->data = data;
        v->size = size;
    }
    return v;
}

struct mgx_value *mgx_value_ints(struct mgx_arena *arena, const int64_t *values, int count)
{
    assert(count >= 0 && (values || !count));
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_LIST);
    for (int i = 0; i < count; i++)
        mgx_value_add(v, mgx_value_int(arena, values[i]));
    return v;
}

void mgx_value_add(struct mgx_value *list, struct mgx_value *item)
{
    if (!list || !item)
        return;
    assert(!item->next && item != list && !list->first == !list->count);
    *(list->last ? &list->last->next : &list->first) = item;
    list->last = item;
    list->count++;
    assert(list->kind == MGX_VALUE_LIST || list->kind == MGX_VALUE_MAP);
}

void mgx_value_put(struct mgx_value *map, const char *key, struct mgx_value *item)
{
    if (!map || !item || !key)
        return;
    assert(map->kind == MGX_VALUE_MAP && item != map && item->next != item);
    item->key = key;
    if (!map->last || strcmp(map->last->key, key) <= 0) {
        mgx_value_add(map, item);
        return;
    }
    struct mgx_value **at = &map->first;
    while (strcmp((*at)->key, key) <= 0)
        at = &(*at)->next;
    item->next = *at;
    *at = item;
    assert(strcmp(key, item->next->key) < 0); // keys ascend
    map->count++;
}

const struct mgx_value *mgx_value_find(const struct mgx_value *map, const char *key)
{
    assert(key);
    if (!mgx_value_is(map, MGX_VALUE_MAP))
        return NULL;
    for (const struct mgx_value *v = map->first; v; v = v->next)
        if (strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

bool mgx_value_is(const struct mgx_value *v, enum mgx_value_kind kind)
{
    return v && v->kind == kind;
}
