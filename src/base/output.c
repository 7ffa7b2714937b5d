// SPDX-License-Identifier: MIT
// Files that are replaced in one step; see output.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // O_TMPFILE
#endif
#include "base/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

enum { HUGE_PAGE = 2 << 20 };

static char *copy_of(struct mgx_str *take)
{
    char *text = take->failed ? NULL : strdup(mgx_str_text(take));
    mgx_str_fini(take);
    return text;
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct mgx_str out = {0};
    if (!slash)
        mgx_str_put(&out, ".");
    else
        mgx_str_putn(&out, path, slash == path ? 1 : (size_t)(slash - path));
    return copy_of(&out);
}

// A name next to the path that is free, as a file or, with `from`, as the name of a nameless one.
static int name_beside(struct mgx_output *o, const char *from)
{
    enum { TRIES = 64 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned seed = (unsigned)now.tv_nsec ^ (unsigned)getpid() << 10;
    for (int i = 0; i < TRIES; i++) {
        struct mgx_str name = {0};
        seed = seed * 1664525u + 1013904223u;
        mgx_str_printf(&name, "%s.%06x", o->path, seed >> 8);
        free(o->beside);
        o->beside = copy_of(&name);
        if (!o->beside) {
            errno = ENOMEM;
            return -1;
        }
        const int got =
            from ? linkat(AT_FDCWD, from, AT_FDCWD, o->beside, AT_SYMLINK_FOLLOW)
                 : open(o->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (got >= 0 || errno != EEXIST)
            return got;
    }
    return -1;
}

static int open_nameless(const char *path)
{
    char *directory = directory_of(path);
    if (!directory) {
        errno = ENOMEM;
        return -1;
    }
    const int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(directory);
    return fd;
}

// The nameless file gets its name through its entry here.
static void entry_of(int fd, char out[64])
{
    snprintf(out, 64, "/proc/self/fd/%d", fd);
}

static int open_new(struct mgx_output *o)
{
    char entry[64];
    int fd = open_nameless(o->path);
    if (fd >= 0) {
        entry_of(fd, entry);
        if (access(entry, F_OK) == 0)
            return fd;
        close(fd);
    }
    fd = name_beside(o, NULL);
    if (fd < 0) { // nothing of that name is ours
        free(o->beside);
        o->beside = NULL;
    }
    return fd;
}

// As the file was that it replaces; what another one may not be given stays the writer's.
static void keep_permissions(int fd, const struct stat *old)
{
    if (fchown(fd, old->st_uid, old->st_gid) != 0)
        errno = 0;
    if (fchmod(fd, old->st_mode & 0777) != 0)
        errno = 0;
}

// The stream goes before its buffer.
static bool close_file(struct mgx_output *o)
{
    const bool closed = !o->file || fclose(o->file) == 0;
    free(o->buffer);
    o->file = NULL;
    o->buffer = NULL;
    return closed;
}

static enum mgx_status fail(struct mgx_output *o, const char *what, int error,
                            struct mgx_diag *diag)
{
    (void)close_file(o);
    if (o->beside)
        unlink(o->beside);
    free(o->beside);
    free(o->path);
    *o = (struct mgx_output){.file = NULL};
    return error == ENOMEM ? mgx_fail_memory(diag)
                           : mgx_fail(diag, MGX_IO, "cannot %s: %s", what, strerror(error));
}

enum mgx_status mgx_output_open(struct mgx_output *o, const char *path, struct mgx_diag *diag)
{
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    *o = (struct mgx_output){.path = exists ? realpath(path, NULL) : strdup(path)};
    if (!o->path)
        return fail(o, "open", errno, diag);
    struct stat link;
    const bool dangling = !exists && lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    o->direct = dangling || (exists && !S_ISREG(old.st_mode));
    const int fd =
        o->direct ? open(o->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : open_new(o);
    if (fd < 0)
        return fail(o, "open", errno, diag);
    if (!o->direct && exists)
        keep_permissions(fd, &old);
    o->file = fdopen(fd, "wb");
    if (o->file)
        return MGX_OK;
    const int error = errno;
    close(fd);
    return fail(o, "open", error, diag);
}

// The bytes reach the disk before the name does: after a crash the name would show an empty file.
static bool flush(struct mgx_output *o)
{
    if (fflush(o->file) != 0)
        return false;
    return o->direct || fsync(fileno(o->file)) == 0 || errno == EINVAL || errno == ENOTSUP;
}

static bool take_place(struct mgx_output *o)
{
    if (o->direct)
        return true;
    if (!o->beside) {
        char entry[64];
        entry_of(fileno(o->file), entry);
        if (name_beside(o, entry) < 0) {
            free(o->beside);
            o->beside = NULL;
            return false;
        }
    }
    if (rename(o->beside, o->path) != 0)
        return false;
    free(o->beside);
    o->beside = NULL;
    return true;
}

void mgx_output_enlarge(struct mgx_output *o)
{
    assert(o->file && !o->buffer);
    o->buffer = malloc(HUGE_PAGE);
    if (o->buffer && setvbuf(o->file, o->buffer, _IOFBF, HUGE_PAGE) != 0) {
        free(o->buffer);
        o->buffer = NULL;
    }
}

enum mgx_status mgx_output_close(struct mgx_output *o, enum mgx_status status,
                                 struct mgx_diag *diag)
{
    if (status != MGX_OK) {
        (void)fail(o, "write", EIO, NULL);
        return status;
    }
    errno = 0;
    if (!flush(o) || ferror(o->file))
        return fail(o, "write", errno ? errno : EIO, diag);
    if (!take_place(o))
        return fail(o, "rename", errno, diag);
    if (!close_file(o))
        return fail(o, "write", errno, diag);
    free(o->path);
    o->path = NULL;
    return MGX_OK;
}
