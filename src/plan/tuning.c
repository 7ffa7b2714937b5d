// SPDX-License-Identifier: MIT
// The tuning cache; see tuning.h.
#include "plan/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/output.h"
#include "base/str.h"

static const char HEADER[] = "migraphx-tuning 1";

enum { MOST_BYTES = 64 << 20 };

struct entry {
    const char *problem, *choice;
    double microseconds;
};

void mgx_tuning_init(struct mgx_tuning *t)
{
    *t = (struct mgx_tuning){.changed = false};
    mgx_arena_init(&t->arena);
}

void mgx_tuning_fini(struct mgx_tuning *t)
{
    mgx_map_fini(&t->map);
    mgx_arena_fini(&t->arena);
}

const char *mgx_tuning_find(const struct mgx_tuning *t, const char *problem)
{
    const struct entry *e = mgx_map_find(&t->map, problem);
    return e ? e->choice : NULL;
}

// --- entries ---

// Printable, not empty, and no tab.
static bool is_field(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            return false;
    return size > 0 && size < MGX_TUNING_LINE / 2;
}

static enum mgx_status put(struct mgx_tuning *t, const char *problem, size_t problem_size,
                           const char *choice, size_t choice_size, double microseconds,
                           struct mgx_diag *diag)
{
    const struct mgx_map_entry *old = mgx_map_find_entry(&t->map, problem, problem_size);
    if (!is_field(problem, problem_size) || !is_field(choice, choice_size) ||
        !(microseconds >= 0 && microseconds < 1e12) || (!old && t->map.count >= MGX_TUNING_ENTRIES))
        return MGX_OK;
    struct entry *e = old ? old->value : MGX_NEW(&t->arena, struct entry);
    const char *kept = mgx_arena_strndup(&t->arena, choice, choice_size);
    if (e && !old)
        e->problem = mgx_arena_strndup(&t->arena, problem, problem_size);
    if (!e || !kept || !e->problem || (!old && !mgx_map_putn(&t->map, e->problem, problem_size, e)))
        return mgx_fail_memory(diag);
    e->choice = kept;
    e->microseconds = microseconds;
    return MGX_OK;
}

enum mgx_status mgx_tuning_put(struct mgx_tuning *t, const char *problem, const char *choice,
                               double microseconds, struct mgx_diag *diag)
{
    t->changed = true;
    return put(t, problem, strlen(problem), choice, strlen(choice), microseconds, diag);
}

// --- reading ---

// "problem<TAB>choice<TAB>number"; false ends the reading.
static bool read_line(struct mgx_tuning *t, const char *line, size_t size, bool replace,
                      enum mgx_status *status, struct mgx_diag *diag)
{
    char text[MGX_TUNING_LINE];
    if (size >= sizeof text)
        return false;
    memcpy(text, line, size);
    text[size] = '\0';
    if (size == 0 || text[0] == '#')
        return true;
    char *choice = memchr(text, '\t', size);
    char *number = choice ? memchr(choice + 1, '\t', size - (size_t)(choice + 1 - text)) : NULL;
    if (!number)
        return false;
    char *end;
    const double microseconds = mgx_number_read(number + 1, &end);
    const size_t problem_size = (size_t)(choice - text);
    if (end == number + 1 || end != text + size || !is_field(text, problem_size) ||
        !is_field(choice + 1, (size_t)(number - choice - 1)))
        return false;
    if (replace || !mgx_map_find_entry(&t->map, text, problem_size))
        *status = put(t, text, problem_size, choice + 1, (size_t)(number - choice - 1),
                      microseconds, diag);
    return *status == MGX_OK;
}

static enum mgx_status read_text(struct mgx_tuning *t, const char *text, size_t size, bool replace,
                                 struct mgx_diag *diag)
{
    const size_t header = sizeof HEADER - 1;
    enum mgx_status status = MGX_OK;
    if (size > MOST_BYTES || size <= header || memcmp(text, HEADER, header) != 0 ||
        text[header] != '\n')
        return MGX_OK;
    for (size_t at = header + 1; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        if (!end) // cut off: half a line is no line
            break;
        const size_t length = (size_t)(end - text) - at;
        if (!read_line(t, text + at, length, replace, &status, diag))
            break;
        at += length + 1;
    }
    return status;
}

enum mgx_status mgx_tuning_read(struct mgx_tuning *t, const char *text, size_t size,
                                struct mgx_diag *diag)
{
    return read_text(t, text, size, true, diag);
}

// Is this a cache of some version, or the beginning of one that was cut off?
static bool is_cache(const char *text, size_t size)
{
    const size_t name = sizeof HEADER - 2; // without the version
    return memcmp(text, HEADER, size < name ? size : name) == 0;
}

// Nothing is there, or what takes everything and keeps nothing: /dev/null says "no cache".
static bool is_nothing(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? S_ISCHR(found.st_mode) : errno == ENOENT;
}

static enum mgx_status load(struct mgx_tuning *t, const char *path, bool replace,
                            struct mgx_diag *diag)
{
    struct mgx_file *file = NULL;
    if (is_nothing(path))
        return MGX_OK;
    TRY(mgx_file_open(&file, path, diag));
    const char *text = (const char *)file->data;
    enum mgx_status status = MGX_OK;
    if (file->size && !is_cache(text, file->size))
        status = mgx_fail(diag, MGX_INVALID, "%s is something else than a tuning cache", path);
    else if (file->size)
        status = read_text(t, text, file->size, replace, diag);
    mgx_file_release(file);
    return status;
}

enum mgx_status mgx_tuning_load(struct mgx_tuning *t, const char *path, struct mgx_diag *diag)
{
    return load(t, path, true, diag);
}

// --- writing ---

void mgx_tuning_print(const struct mgx_tuning *t, struct mgx_str *out)
{
    mgx_str_printf(out, "%s\n", HEADER);
    for (uint32_t i = 0; i < t->map.count; i++) {
        const struct entry *e = t->map.entries[i].value;
        mgx_str_printf(out, "%s\t%s\t%.3f\n", e->problem, e->choice, e->microseconds);
    }
}

static enum mgx_status replace_file(const char *path, const struct mgx_str *text,
                                    struct mgx_diag *diag)
{
    struct mgx_output out;
    if (text->failed)
        return mgx_fail_memory(diag);
    TRY(mgx_output_open(&out, path, diag));
    enum mgx_status status = MGX_OK;
    if (!out.direct && fwrite(text->text, 1, text->size, out.file) != text->size)
        status = mgx_fail(diag, MGX_IO, "cannot write: %s", strerror(errno));
    return mgx_output_close(&out, status, diag);
}

// Whoever holds the lock of the file that the path names now may replace it. -1: nobody waits for
// ever, and where there are no locks there is none. A file that is not there yet is made, empty.
static int lock(const char *path)
{
    enum { TRIES = 2000 }; // 20 s: a slow disk syncs few files a second, and writers queue
    struct stat named, held;
    if (stat(path, &named) == 0 && !S_ISREG(named.st_mode))
        return -1;
    for (int i = 0; i < TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        else if (fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
                 held.st_dev == named.st_dev)
            return fd; // else it was replaced while we waited
        close(fd);
    }
    return -1;
}

enum mgx_status mgx_tuning_save(struct mgx_tuning *t, const char *path, struct mgx_diag *diag)
{
    if (!t->changed)
        return MGX_OK;
    struct mgx_diag why = {.status = MGX_OK};
    const int held = lock(path);
    enum mgx_status status = load(t, path, false, &why);
    if (status == MGX_OK) {
        struct mgx_str text = {0};
        mgx_tuning_print(t, &text);
        status = replace_file(path, &text, &why);
        mgx_str_fini(&text);
    }
    if (held >= 0)
        close(held);
    t->changed &= status != MGX_OK;
    return status == MGX_OK
               ? MGX_OK
               : mgx_fail(diag, status, "the tuning cache %s is not kept: %s", path, why.text);
}
