// SPDX-License-Identifier: MIT
// Files of compiled kernels: a head of fixed size, card, text, binary.
#include "targets/gpu/machine/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"

struct head {
    char magic[8];
    uint64_t card_size, text_size, binary_size, checksum; // of the binary
};

static const char magic[8] = "MGXKRN1";
static const char suffix[] = ".kernel";

static uint64_t hash_of(const struct gpu_store_key *key, uint64_t seed)
{
    return mgx_hash_bytes(key->text, strlen(key->text),
                          mgx_hash_bytes(key->card, strlen(key->card), seed));
}

void gpu_store_hash(const struct gpu_store_key *key, uint64_t out[2])
{
    out[0] = hash_of(key, 1);
    out[1] = hash_of(key, 2);
}

static bool path_of(const char *folder, const struct gpu_store_key *key, struct mgx_str *path)
{
    uint64_t hash[2];
    gpu_store_hash(key, hash);
    mgx_str_printf(path, "%s/%016llx%016llx%s", folder, (unsigned long long)hash[0],
                   (unsigned long long)hash[1], suffix);
    return !path->failed;
}

// The binary inside a file's bytes; NULL if they are not what the key asks for.
static const char *find_binary(const struct mgx_file *file, const struct gpu_store_key *key,
                               size_t *size)
{
    struct head h;
    const size_t card = strlen(key->card), text = strlen(key->text);
    if (file->size < sizeof h)
        return NULL;
    memcpy(&h, file->data, sizeof h);
    const char *at = (const char *)file->data + sizeof h;
    const size_t rest = file->size - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.card_size != card || h.text_size != text ||
        rest < card + text || h.binary_size != rest - card - text)
        return NULL;
    if (memcmp(at, key->card, card) != 0 || memcmp(at + card, key->text, text) != 0)
        return NULL;
    at += card + text;
    *size = (size_t)h.binary_size;
    return mgx_hash_bytes(at, *size, 3) == h.checksum ? at : NULL;
}

// A binary runs on the card whatever it is, so nobody else may put one here: the folder is the
// user's own, or root's, and neither its group nor others write to it.
static bool is_trusted(const char *folder)
{
    struct stat st;
    return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
           (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

bool gpu_store_read(const char *folder, const struct gpu_store_key *key, struct mgx_str *out)
{
    struct mgx_str path = {0};
    struct mgx_file *file = NULL;
    struct mgx_diag quiet = {.status = MGX_OK};
    bool found = false;
    if (is_trusted(folder) && path_of(folder, key, &path) &&
        mgx_file_open(&file, path.text, &quiet) == MGX_OK) {
        size_t size = 0;
        const char *binary = find_binary(file, key, &size);
        if (binary)
            mgx_str_putn(out, binary, size);
        found = binary && !out->failed && mgx_file_check(file, &quiet) == MGX_OK;
        if (found)
            utimensat(AT_FDCWD, path.text, NULL, 0); // used just now
    }
    mgx_file_release(file);
    mgx_str_fini(&path);
    return found;
}

static bool write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t wrote = write(fd, at, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool write_file(int fd, const struct gpu_store_key *key, const char *binary, size_t size)
{
    struct head h = {.card_size = strlen(key->card),
                     .text_size = strlen(key->text),
                     .binary_size = size,
                     .checksum = mgx_hash_bytes(binary, size, 3)};
    memcpy(h.magic, magic, sizeof magic);
    return write_all(fd, &h, sizeof h) && write_all(fd, key->card, (size_t)h.card_size) &&
           write_all(fd, key->text, (size_t)h.text_size) && write_all(fd, binary, size);
}

// The folder and those above it, for the user alone.
static void make_folder(const char *folder)
{
    char *path = strdup(folder);
    if (!path)
        return;
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0700);
            *at = '/';
        }
    mkdir(path, 0700);
    free(path);
}

// --- keeping below the bound ---

struct kept {
    char name[64];
    off_t size;
    struct timespec used;
};

static int older_first(const void *a, const void *b)
{
    const struct timespec x = ((const struct kept *)a)->used, y = ((const struct kept *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? -1 : 1;
    return (x.tv_nsec > y.tv_nsec) - (x.tv_nsec < y.tv_nsec);
}

static bool is_kept(const char *name)
{
    const size_t size = strlen(name), end = sizeof suffix - 1;
    return size > end && size < sizeof((struct kept *)0)->name &&
           strcmp(name + size - end, suffix) == 0;
}

static size_t list_files(DIR *dir, struct kept **out, size_t *bytes)
{
    size_t count = 0, room = 0;
    *bytes = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (!is_kept(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, 0) != 0)
            continue;
        if (count == room) {
            room = room ? 2 * room : 64;
            struct kept *grown = realloc(*out, room * sizeof *grown);
            if (!grown)
                break;
            *out = grown;
        }
        struct kept *k = &(*out)[count++];
        memcpy(k->name, entry->d_name, strlen(entry->d_name) + 1); // is_kept knows that it fits
        k->size = st.st_size;
        k->used = st.st_mtim;
        *bytes += (size_t)st.st_size;
    }
    return count;
}

// Down to three quarters of the bound, so that not every write has to look for room.
static void thin_out(const char *folder, size_t bound)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    struct kept *files = NULL;
    size_t bytes;
    const size_t count = list_files(dir, &files, &bytes);
    if (bytes > bound) {
        qsort(files, count, sizeof *files, older_first);
        for (size_t i = 0; i < count && bytes > bound / 4 * 3; i++)
            if (unlinkat(dirfd(dir), files[i].name, 0) == 0)
                bytes -= (size_t)files[i].size;
    }
    free(files);
    closedir(dir);
}

void gpu_store_write(const char *folder, const struct gpu_store_key *key, const char *binary,
                     size_t size, size_t bound)
{
    struct mgx_str path = {0}, beside = {0};
    make_folder(folder);
    if (!is_trusted(folder))
        return;
    mgx_str_printf(&beside, "%s/writing.XXXXXX", folder);
    const int fd = path_of(folder, key, &path) && !beside.failed ? mkstemp(beside.text) : -1;
    if (fd >= 0) {
        const bool good = write_file(fd, key, binary, size);
        if (close(fd) != 0 || !good || rename(beside.text, path.text) != 0)
            unlink(beside.text);
        thin_out(folder, bound);
    }
    mgx_str_fini(&path);
    mgx_str_fini(&beside);
}
