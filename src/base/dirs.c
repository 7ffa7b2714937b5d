// SPDX-License-Identifier: MIT
// Directories that files named by a model must lie in; see dirs.h.
//
//     walk: at/rest -> at/part without following -> a directory: at = it
//                                                -> a link: rest = its text + rest
//                                                -> the last one: left to the caller
#include "base/dirs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

enum {
    LONGEST_NAME = 4095,
    REST = 3 * 4096, // what is left to walk: a name and the texts of links
    MOST_LINKS = 40, // as the system's own limit
    MOST_ABOVE = 512,
    DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

struct walk {
    int at; // the directory reached, owned
    int links;
    char rest[REST];
    char link[256]; // the text of the last link that was followed, for messages
};

// --- the walk ---

static void enter(struct walk *w, int dir)
{
    close(w->at);
    w->at = dir;
}

// The text of the link `fd` goes before the rest, which is `after`. 0 or an errno.
static int follow(struct walk *w, int fd, const char *after)
{
    char text[LONGEST_NAME + 1];
    const ssize_t size = readlinkat(fd, "", text, sizeof text);
    if (size < 0)
        return errno;
    const size_t left = strlen(after);
    if (++w->links > MOST_LINKS)
        return ELOOP;
    if ((size_t)size == sizeof text || (size_t)size + left + 2 > REST)
        return ENAMETOOLONG;
    memmove(w->rest + size + 1, after, left + 1);
    memcpy(w->rest, text, (size_t)size);
    w->rest[size] = '/';
    if (!left)
        w->rest[size] = '\0';
    const size_t shown = (size_t)mgx_min_i64(size, sizeof w->link - 1);
    memcpy(w->link, text, shown);
    w->link[shown] = '\0';
    if (text[0] != '/')
        return 0;
    const int top = open("/", DIR_FLAGS);
    if (top < 0)
        return errno;
    enter(w, top);
    return 0;
}

// Takes one component off the rest. 0 or an errno; *done when it is the last one and no link: it
// is then all that rest holds.
static int step(struct walk *w, bool *done)
{
    char *part = w->rest + strspn(w->rest, "/");
    const size_t length = strcspn(part, "/");
    char *after = part + length + strspn(part + length, "/");
    struct stat st;
    part[length] = '\0';
    const int next = openat(w->at, length ? part : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return errno;
    int error = fstat(next, &st) == 0 ? 0 : errno;
    if (error == 0 && S_ISLNK(st.st_mode)) {
        error = follow(w, next, after);
    } else if (error == 0 && !*after) {
        memmove(w->rest, length ? part : ".", (length ? length : 1) + 1);
        *done = true;
    } else if (error == 0 && S_ISDIR(st.st_mode)) {
        memmove(w->rest, after, strlen(after) + 1);
        enter(w, next);
        return 0;
    } else if (error == 0) {
        error = ENOTDIR;
    }
    close(next);
    return error;
}

// Walks `name` from the directory `from`; w->at is then the directory of the real file and w->rest
// its name there. 0 or an errno; w->at is the caller's to close in either case, -1 if there is
// none.
static int walk(struct walk *w, int from, const char *name, size_t size)
{
    assert(size < REST);
    bool done = false;
    w->links = 0;
    w->link[0] = '\0';
    memcpy(w->rest, name, size);
    w->rest[size] = '\0';
    w->at = fcntl(from, F_DUPFD_CLOEXEC, 0);
    int error = w->at < 0 ? errno : 0;
    while (error == 0 && !done)
        error = step(w, &done);
    return error;
}

static void end_walk(struct walk *w)
{
    if (w->at >= 0)
        close(w->at);
}

// --- the directories ---

static bool same_dir(int a, const struct stat *b)
{
    struct stat st;
    return fstat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

static bool is_listed(const struct mgx_dirs *dirs, const struct stat *st)
{
    for (int i = 0; i < dirs->count; i++)
        if (same_dir(dirs->fd[i], st))
            return true;
    return false;
}

// Is the directory one of those listed, or below one?
static bool is_inside(const struct mgx_dirs *dirs, int dir)
{
    bool inside = false, top = false;
    int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; at >= 0 && i < MOST_ABOVE && !inside && !top; i++) {
        struct stat st;
        const int above = openat(at, "..", DIR_FLAGS);
        top = above < 0 || fstat(at, &st) != 0 || same_dir(above, &st);
        inside = fstat(at, &st) == 0 && is_listed(dirs, &st);
        close(at);
        at = above;
    }
    if (at >= 0)
        close(at);
    return inside;
}

static void add(struct mgx_dirs *dirs, int fd, bool search)
{
    struct stat st;
    assert(dirs->count < MGX_COUNT(dirs->fd));
    assert(!search || dirs->searched == dirs->count);
    if (fstat(fd, &st) == 0 && is_listed(dirs, &st)) {
        close(fd);
        return;
    }
    dirs->fd[dirs->count++] = fd;
    dirs->searched += search;
}

enum mgx_status mgx_dirs_add(struct mgx_dirs *dirs, const char *path, bool search,
                             struct mgx_diag *diag)
{
    const int fd = open(*path ? path : ".", DIR_FLAGS);
    if (fd < 0)
        return mgx_fail_os(diag, errno, path);
    add(dirs, fd, search);
    return MGX_OK;
}

// The directory of the real file behind the last component, which may be a chain of links.
static void add_real(struct mgx_dirs *dirs, int given, const char *name, bool search)
{
    struct walk w;
    const size_t size = strlen(name);
    if (size > LONGEST_NAME)
        return; // nor can it have been opened
    if (walk(&w, given, name, size) == 0 && w.links) {
        add(dirs, w.at, search);
        w.at = -1;
    }
    end_walk(&w);
}

enum mgx_status mgx_dirs_add_file(struct mgx_dirs *dirs, const char *file_path, bool search,
                                  struct mgx_diag *diag)
{
    const char *slash = strrchr(file_path, '/');
    const char *name = slash ? slash + 1 : file_path;
    char *dir = strndup(file_path, (size_t)(name - file_path));
    if (!dir)
        return mgx_fail_memory(diag);
    const int given = open(*dir ? dir : ".", DIR_FLAGS), error = errno;
    free(dir);
    if (given < 0)
        return mgx_fail_os(diag, error, file_path);
    const int own = fcntl(given, F_DUPFD_CLOEXEC, 0);
    add(dirs, given, search);
    if (own < 0)
        return mgx_fail_os(diag, errno, file_path);
    add_real(dirs, own, name, search);
    close(own);
    return MGX_OK;
}

void mgx_dirs_close(struct mgx_dirs *dirs)
{
    for (int i = 0; i < dirs->count; i++)
        close(dirs->fd[i]);
    *dirs = (struct mgx_dirs){0};
}

// --- a file ---

// Refuses what no honest model says. The system enforces the same through the descriptor; this is
// for the message, and for spellings that mean something elsewhere ("C:", "a\b", "name ").
static const char *objection(const char *name, size_t size)
{
    if (!size)
        return "is empty";
    if (memchr(name, '\0', size))
        return "contains a NUL";
    if (name[0] == '/' || memchr(name, '\\', size) || memchr(name, ':', size))
        return "is not a relative path with forward slashes";
    for (size_t i = 0; i < size;) {
        const char *slash = memchr(name + i, '/', size - i);
        const size_t end = slash ? (size_t)(slash - name) : size;
        const size_t length = end - i;
        if (!length)
            return "has an empty component";
        if (length == 2 && name[i] == '.' && name[i + 1] == '.')
            return "leaves its directory by \"..\"";
        if (length > 1 && (name[end - 1] == '.' || name[end - 1] == ' '))
            return "has a component that ends in a dot or a space";
        i = end + 1;
        if (slash && i == size)
            return "ends in a slash";
    }
    return NULL;
}

// Why the walk did not end in a directory of ours.
static enum mgx_status fail_walk(const struct walk *w, int error, const char *name,
                                 struct mgx_diag *diag)
{
    if (error == ELOOP)
        return mgx_fail(diag, MGX_IO, "%s: leads through more than %d links", name, MOST_LINKS);
    const enum mgx_status status = mgx_fail_os(diag, error, name);
    if (w->links)
        mgx_where(diag, "a link to \"%s\"", w->link);
    return status;
}

// The real file, by a descriptor in which no link is left to be followed.
static enum mgx_status open_real(const struct mgx_dirs *dirs, const struct walk *w,
                                 const char *name, struct mgx_file **out, struct mgx_diag *diag)
{
    struct stat st;
    if (!is_inside(dirs, w->at))
        return mgx_fail(diag, MGX_IO,
                        "%s: leads by a link to \"%s\", outside the directories that the model may "
                        "read",
                        name, w->link);
    // Devices are not even opened.
    if (fstatat(w->at, w->rest, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode) &&
        !S_ISDIR(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISLNK(st.st_mode))
        return mgx_fail(diag, MGX_IO, "%s: is a device or socket, not a regular file", name);
    const int fd = openat(w->at, w->rest, MGX_FILE_FLAGS | O_NOFOLLOW);
    if (fd < 0)
        return fail_walk(w, errno, name, diag);
    return mgx_file_adopt(out, fd, name, diag);
}

enum mgx_status mgx_dirs_open(const struct mgx_dirs *dirs, const char *name, size_t name_size,
                              struct mgx_file **out, struct mgx_diag *diag)
{
    *out = NULL;
    const int shown = name_size < 200 ? (int)name_size : 200;
    const char *why = name_size > LONGEST_NAME ? "is too long" : objection(name, name_size);
    if (why)
        return mgx_fail(diag, MGX_INVALID, "file name \"%.*s\" %s", shown, name, why);
    char path[LONGEST_NAME + 1];
    memcpy(path, name, name_size);
    path[name_size] = '\0';
    enum mgx_status status = MGX_NOT_FOUND;
    for (int i = 0; i < dirs->searched && status == MGX_NOT_FOUND; i++) {
        struct mgx_diag here = {.status = MGX_OK};
        struct walk w;
        const int error = walk(&w, dirs->fd[i], path, name_size);
        status = error ? fail_walk(&w, error, path, &here) : open_real(dirs, &w, path, out, &here);
        end_walk(&w);
        const bool final = status != MGX_NOT_FOUND || i + 1 == dirs->searched;
        if (final && diag && diag->status == MGX_OK)
            *diag = here;
    }
    return status;
}
