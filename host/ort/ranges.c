// SPDX-License-Identifier: MIT
// Calibration tables: how large the values of a model become, by name.
//
//     calibration.flatbuffers   as ONNX Runtime writes it: {dict: [{key, value}]}, all texts
//     calibration.json          {name: {"lowest": {"data": [-1.5]}, "highest": {"data": [2.0]}}}
//     calibration.cache         a line "name 2.0" for each
//     TensorRT's own            a line "name: 3c810204" for each, the bits of a 127th of it
//
// Holds: the file is anybody's; every offset is checked, and a table that cannot be read is an
// error. A range is symmetric, but where the table has its lower end too. Cost: a walk over it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "ranges.h"

enum { MOST_BYTES = 1 << 28 };

struct range {
    double low, high;
};

struct ranges {
    struct names at; // the number of a range
    char **keys;
    struct range *list;
    size_t count, room;
};

void ranges_destroy(struct ranges *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++)
        free(r->keys[i]);
    free(r->keys);
    free(r->list);
    names_fini(&r->at);
    free(r);
}

bool ranges_find(const struct ranges *r, const char *name, double *low, double *high)
{
    size_t i;
    if (!names_find(&r->at, name, &i))
        return false;
    *low = r->list[i].low;
    *high = r->list[i].high;
    return true;
}

static bool grow(struct ranges *r)
{
    const size_t room = r->room ? 2 * r->room : 64;
    char **keys = realloc(r->keys, room * sizeof *keys);
    r->keys = keys ? keys : r->keys;
    struct range *list = realloc(r->list, room * sizeof *list);
    r->list = list ? list : r->list;
    r->room = keys && list ? room : r->room;
    return keys && list;
}

// False where it is no range, or without memory.
static bool add(struct ranges *r, const char *name, size_t size, double low, double high)
{
    if (!isfinite(low) || !isfinite(high) || low > 0 || high < 0)
        return false;
    if (r->count == r->room && !grow(r))
        return false;
    char *key = strndup(name, size);
    if (!key || !names_put(&r->at, key, r->count)) {
        free(key);
        return false;
    }
    r->keys[r->count] = key;
    r->list[r->count++] = (struct range){low, high};
    return true;
}

static bool add_magnitude(struct ranges *r, const char *name, size_t size, double value)
{
    return add(r, name, size, -fabs(value), fabs(value));
}

// --- flatbuffers ---

struct bytes {
    const unsigned char *at;
    size_t size;
};

static bool read_number(const struct bytes *b, size_t at, size_t width, size_t *out)
{
    *out = 0;
    if (at > b->size || b->size - at < width)
        return false;
    for (size_t i = width; i > 0; i--)
        *out = *out << 8 | b->at[at + i - 1];
    return true;
}

// What the offset at `at` leads to.
static bool follow(const struct bytes *b, size_t at, size_t *out)
{
    size_t by;
    if (!read_number(b, at, 4, &by) || by > b->size - at)
        return false;
    *out = at + by;
    return true;
}

// What field number `field` of the table at `table` leads to: a table says how far before or behind
// it there are the places of its fields.
static bool field_of(const struct bytes *b, size_t table, size_t field, size_t *out)
{
    size_t back, size, place;
    if (!read_number(b, table, 4, &back))
        return false;
    const int64_t places = (int64_t)table - (int32_t)(uint32_t)back;
    if (places < 0 || !read_number(b, (size_t)places, 2, &size) || size < 4 + 2 * (field + 1) ||
        !read_number(b, (size_t)places + 4 + 2 * field, 2, &place) || !place)
        return false;
    return follow(b, table + place, out);
}

static bool text_of(const struct bytes *b, size_t table, size_t field, const char **text,
                    size_t *size)
{
    size_t at;
    if (!field_of(b, table, field, &at) || !read_number(b, at, 4, size) || b->size - at - 4 < *size)
        return false;
    *text = (const char *)b->at + at + 4;
    return true;
}

static bool number_of(const char *text, size_t size, double *out)
{
    char digits[64] = "", *end;
    if (!size || size >= sizeof digits)
        return false;
    memcpy(digits, text, size);
    *out = strtod(digits, &end);
    return !*end;
}

static bool read_flatbuffers(struct ranges *r, const struct bytes *b)
{
    size_t root, list, count, entry, key_size, value_size;
    const char *key, *value;
    double number;
    if (!follow(b, 0, &root) || !field_of(b, root, 0, &list) || !read_number(b, list, 4, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!follow(b, list + 4 + 4 * i, &entry) || !text_of(b, entry, 0, &key, &key_size) ||
            !text_of(b, entry, 1, &value, &value_size) || !number_of(value, value_size, &number) ||
            !add_magnitude(r, key, key_size, number))
            return false;
    return true;
}

// --- JSON ---

// The number of {"data": [1.5]}, or of {"data": 1.5}.
static bool read_end(const struct json_list *l, const struct json *of, const char *name,
                     double *out)
{
    const struct json *data = json_find(l, of, name);
    if (data && data->kind == JSON_OBJECT)
        data = json_find(l, data, "data");
    if (data && data->kind == JSON_LIST)
        data = json_step(l, data, NULL);
    return json_number(data, out);
}

static bool read_member(struct ranges *r, const struct json_list *l, const struct json *member)
{
    double low, high;
    char *key = json_copy_key(member);
    const bool good = key && read_end(l, member, "lowest", &low) &&
                      read_end(l, member, "highest", &high) &&
                      add(r, key, strlen(key), fmin(low, 0), fmax(high, 0));
    free(key);
    return good;
}

static bool read_json(struct ranges *r, const struct bytes *b)
{
    struct json_list l = {0};
    bool good = json_read(&l, (const char *)b->at, b->size) && l.values->kind == JSON_OBJECT;
    const struct json *member = NULL;
    while (good && (member = json_step(&l, l.values, member)) != NULL)
        good = read_member(r, &l, member);
    json_fini(&l);
    return good;
}

// --- lines ---

static double bits_of(const char *text, char **end)
{
    const uint32_t bits = (uint32_t)strtoul(text, end, 16);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return 127 * (double)scale;
}

// Behind the last colon bits, else behind the last space a number. A first line without either is
// TensorRT's name for the table.
static bool read_line(struct ranges *r, const char *line, size_t size, bool first)
{
    char text[1024] = "", *end = text;
    if (size >= sizeof text)
        return false;
    memcpy(text, line, size);
    char *colon = strrchr(text, ':'), *space = strrchr(text, ' ');
    const bool bits = colon && space == colon + 1;
    if (!space || space == text)
        return first;
    const double value = bits ? bits_of(space + 1, &end) : strtod(space + 1, &end);
    return end > space + 1 && !*end &&
           add_magnitude(r, text, (size_t)((bits ? colon : space) - text), value);
}

static bool read_lines(struct ranges *r, const struct bytes *b)
{
    const char *at = (const char *)b->at, *end = at + b->size;
    for (bool first = true; at < end; first = false) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t size = (size_t)((stop ? stop : end) - at);
        if (size && !read_line(r, at, size, first))
            return false;
        at += size + 1;
    }
    return true;
}

// --- the file ---

static bool read_table(struct ranges *r, const struct bytes *b)
{
    if (b->at[0] == '{')
        return read_json(r, b);
    return memchr(b->at, 0, b->size) ? read_flatbuffers(r, b) : read_lines(r, b);
}

static bool read_file(const char *path, struct bytes *out)
{
    FILE *file = fopen(path, "rb");
    unsigned char *all = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size > 0 && size <= MOST_BYTES && fseek(file, 0, SEEK_SET) == 0)
        all = malloc((size_t)size + 1);
    const bool good = all && fread(all, 1, (size_t)size, file) == (size_t)size;
    if (file)
        fclose(file);
    if (good)
        *out = (struct bytes){all, (size_t)size};
    else
        free(all);
    return good;
}

OrtStatus *ranges_read(const struct host *h, const char *path, struct ranges **out)
{
    struct bytes b;
    *out = NULL;
    if (!read_file(path, &b))
        return host_fail(h, ORT_INVALID_ARGUMENT,
                         "MIGraphX: the calibration table %s cannot be read", path);
    struct ranges *r = NEWLY(struct ranges);
    const bool good = r && read_table(r, &b) && r->count;
    free((void *)b.at);
    if (good) {
        *out = r;
        return NULL;
    }
    ranges_destroy(r);
    return host_fail(h, ORT_INVALID_ARGUMENT,
                     "MIGraphX: %s is no calibration table: neither ONNX Runtime's (flatbuffers, "
                     "JSON, lines) nor TensorRT's",
                     path);
}
