// SPDX-License-Identifier: MIT
// What printers of source code share: names that compilers take, texts in quotes, lists of lengths;
// see format.h.
//
// Names of a model are data: an input may be called anything, two may differ in one dot alone, and
// a module's may be a keyword with the letter in front. So every instruction and module has one
// variable, and no two have the same.
#include <ctype.h>
#include <string.h>

#include "base/size.h"
#include "base/utf8.h"
#include "format/format.h"

// --- variables ---

bool mgx_format_names_init(struct mgx_format_names *names)
{
    static const char *const reserved[] = {"p", "migraphx", "mutable", "main"};
    bool good = true;
    *names = (struct mgx_format_names){0};
    mgx_arena_init(&names->arena);
    for (int i = 0; i < MGX_COUNT(reserved); i++)
        good &= mgx_map_put(&names->taken, reserved[i], names);
    names->failed = !good;
    return good;
}

void mgx_format_names_fini(struct mgx_format_names *names)
{
    mgx_map_fini(&names->taken);
    mgx_map_fini(&names->of);
    mgx_arena_fini(&names->arena);
}

static void put_identifier(struct mgx_str *out, const char *name)
{
    for (const char *c = name; *c; c++)
        mgx_str_putc(out, isalnum((unsigned char)*c) && !(*c & 0x80) ? *c : '_');
}

// `wanted`, or with a number behind it where others want the same. The number to go on with is kept
// with the name, so that a thousand of one kind are no thousand times a thousand look-ups.
static const char *choose(struct mgx_format_names *names, const char *wanted)
{
    const struct mgx_map_entry *entry = mgx_map_find_entry(&names->taken, wanted, strlen(wanted));
    const char *first = entry ? entry->key : NULL; // the entry itself moves when the map grows
    intptr_t number = entry ? (intptr_t)entry->value : 0;
    const char *name = mgx_arena_strdup(&names->arena, wanted);
    if (first && (number < 2 || number > INT32_MAX))
        number = 2;
    for (bool free = !first; name && !free; number++) {
        name = mgx_arena_printf(&names->arena, "%s_%d", wanted, (int)number);
        free = name && !mgx_map_find_entry(&names->taken, name, strlen(name));
    }
    if (!name || !mgx_map_put(&names->taken, name, NULL) ||
        (first && !mgx_map_put(&names->taken, first, (void *)number)))
        return NULL;
    return name;
}

// The variable of an instruction or a module; the first call decides.
static void put(struct mgx_str *out, struct mgx_format_names *names, const void *what,
                const char *wanted)
{
    const char *name = mgx_map_find_pointer(&names->of, what);
    if (!name) {
        name = choose(names, wanted);
        names->failed |= !name || !mgx_map_put_pointer(&names->of, what, (void *)(uintptr_t)name);
    }
    mgx_str_put(out, name ? name : "");
}

void mgx_format_put_module_name(struct mgx_str *out, struct mgx_format_names *names,
                                const struct mgx_module *m, const char *of_main)
{
    struct mgx_str wanted = {0};
    mgx_str_putc(&wanted, 'm');
    put_identifier(&wanted, m == mgx_program_main(m->program) ? of_main : m->name);
    put(out, names, m, mgx_str_text(&wanted));
    names->failed |= wanted.failed;
    mgx_str_fini(&wanted);
}

void mgx_format_put_name(struct mgx_str *out, struct mgx_format_names *names,
                         const struct mgx_ins *ins)
{
    struct mgx_str wanted = {0};
    mgx_str_put(&wanted, ins->op == &mgx_op_param ? "p_" : "x_");
    if (ins->owner != mgx_program_main(ins->owner->program)) {
        put_identifier(&wanted, ins->owner->name);
        mgx_str_putc(&wanted, '_');
    }
    if (ins->op == &mgx_op_param)
        put_identifier(&wanted, mgx_parameter_name(ins));
    else
        mgx_str_printf(&wanted, "%d", ins->index);
    put(out, names, ins, mgx_str_text(&wanted));
    names->failed |= wanted.failed;
    mgx_str_fini(&wanted);
}

// --- texts ---

// Of so many bytes, and neither longer than need be nor half of a pair.
static bool is_character(uint32_t code, size_t size)
{
    return size == 1   ? code < 0x80
           : size == 2 ? code >= 0x80
           : size == 3 ? code >= 0x800 && (code < 0xD800 || code > 0xDFFF)
                       : code >= 0x10000 && code <= 0x10FFFF;
}

// A malformed byte stays what it is in C++; in Python it becomes what os.fsdecode makes of it.
static void put_code(struct mgx_str *out, const char *text, size_t size, uint32_t code, bool python)
{
    const bool malformed = !is_character(code, size);
    if (malformed && python)
        mgx_str_printf(out, "\\udc%02x", (unsigned char)*text);
    else if (malformed || code < 0x20 || code == 0x7F || (code == '?' && !python)) // a trigraph's
        mgx_str_printf(out, "\\%03o", (unsigned char)*text);
    else {
        if (code == '"' || code == '\\')
            mgx_str_putc(out, '\\');
        mgx_str_putn(out, text, size);
    }
}

void mgx_format_put_quoted(struct mgx_str *out, const char *text, bool python)
{
    const size_t size = strlen(text);
    mgx_str_putc(out, '"');
    for (size_t at = 0, next = 0; at < size; at = next) {
        const uint32_t code = mgx_utf8_next(text, size, &next);
        if (!is_character(code, next - at))
            next = at + 1;
        put_code(out, text + at, next - at, code, python);
    }
    mgx_str_putc(out, '"');
}

// --- lengths ---

void mgx_format_put_lens(struct mgx_str *out, const struct mgx_shape *s, bool strides,
                         const char *open, const char *close)
{
    const int64_t *values = strides ? s->strides : s->lens;
    mgx_str_put(out, open);
    if (s->rank == 0)
        mgx_str_putc(out, strides ? '0' : '1');
    for (int i = 0; i < s->rank; i++)
        mgx_str_printf(out, "%s%lld", i ? ", " : "", (long long)values[i]);
    mgx_str_put(out, close);
}
