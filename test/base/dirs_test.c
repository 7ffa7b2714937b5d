// SPDX-License-Identifier: MIT
// Names that come out of a model: which of them are refused by their spelling, where links may
// lead, and that nobody who exchanges links meanwhile gets another file read.
#include "base/dirs.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char root[] = "/tmp/mgx_dirs_XXXXXX";

static const char *in_root(const char *name)
{
    static _Thread_local char path[8][256];
    static _Thread_local int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_root(name), "w");
    fputs(text, f);
    fclose(f);
}

// How opening `name` ends, with the diagnosis; *first is the file's first byte.
static enum mgx_status try_open(struct mgx_dirs *dirs, const char *name, size_t size, char *first,
                                struct mgx_diag *diag)
{
    struct mgx_file *file = NULL;
    mgx_diag_clear(diag);
    const enum mgx_status status = mgx_dirs_open(dirs, name, size, &file, diag);
    *first = file && file->size ? (char)file->data[0] : '\0';
    mgx_file_release(file);
    return status;
}

// In the directory "model" of the root.
static bool ends(const char *name, size_t size, enum mgx_status status, const char *text)
{
    struct mgx_dirs dirs = {0};
    struct mgx_diag diag;
    char first;
    mgx_diag_clear(&diag);
    bool ok = mgx_dirs_add(&dirs, in_root("model"), true, &diag) == MGX_OK;
    ok = ok && try_open(&dirs, name, size, &first, &diag) == status &&
         (status == MGX_OK ? first == 'd' : strstr(diag.text, text) != NULL);
    if (!ok)
        printf("\"%s\": %s\n", name, diag.text);
    mgx_dirs_close(&dirs);
    return ok;
}

static bool inside(const char *name)
{
    return ends(name, strlen(name), MGX_OK, "");
}

static bool misspelt(const char *name)
{
    return ends(name, strlen(name), MGX_INVALID, "file name");
}

static bool refused(const char *name, const char *text)
{
    return ends(name, strlen(name), MGX_IO, text);
}

CASE(names_stay_beneath)
{
    mkdir(in_root("model"), 0700);
    mkdir(in_root("model/sub"), 0700);
    put("secret", "secret");
    put("model/data", "data");
    put("model/sub/data", "data");
    put("model/..data", "data");
    CHECK(inside("data") && inside("sub/data") && inside("./data") && inside("..data"));
    CHECK(misspelt("../secret") && misspelt("sub/../../secret") && misspelt("sub/../data"));
    CHECK(misspelt("..") && misspelt("sub/..") && misspelt(in_root("secret")));
    CHECK(misspelt("/etc/passwd") && misspelt("..\\secret") && misspelt("C:data"));
    CHECK(misspelt("") && misspelt("sub//data") && misspelt("data ") && misspelt("data.") &&
          misspelt("sub/") && misspelt("sub./data"));
    CHECK(ends("data\0x", 6, MGX_INVALID, "contains a NUL"));
    CHECK(ends("absent", 6, MGX_NOT_FOUND, "absent: No such file"));
    CHECK(refused("sub", "is a directory") && refused("data/x", "Not a directory"));
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    CHECK(ends(longest, sizeof longest, MGX_INVALID, "is too long"));
}

CASE(links_within_the_directory_are_followed)
{
    CHECK(symlink("data", in_root("model/inner")) == 0);
    CHECK(symlink("sub", in_root("model/sub_link")) == 0);
    CHECK(symlink("../inner", in_root("model/sub/chain")) == 0);
    CHECK(symlink(in_root("model/sub/data"), in_root("model/absolute")) == 0);
    CHECK(symlink("../model/./sub//data", in_root("model/round")) == 0);
    CHECK(link(in_root("model/data"), in_root("model/hard")) == 0);
    CHECK(inside("inner") && inside("sub_link/data") && inside("sub_link/chain"));
    CHECK(inside("absolute") && inside("round") && inside("hard"));
}

CASE(links_that_leave_are_refused)
{
    static const char outside[] = "outside the directories that the model may read";
    CHECK(symlink("../secret", in_root("model/link")) == 0);
    CHECK(symlink("..", in_root("model/up")) == 0);
    CHECK(symlink("/etc/passwd", in_root("model/system")) == 0);
    CHECK(symlink("/dev/zero", in_root("model/device")) == 0);
    CHECK(symlink("/proc/self/exe", in_root("model/magic")) == 0);
    CHECK(symlink("nothing", in_root("model/dangling")) == 0);
    CHECK(symlink("again", in_root("model/again")) == 0);
    CHECK(mkfifo(in_root("model/pipe"), 0600) == 0);
    CHECK(symlink("pipe", in_root("model/to_pipe")) == 0);
    CHECK(refused("link", "leads by a link to \"../secret\""));
    CHECK(refused("link", outside) && refused("up/secret", outside));
    CHECK(refused("system", outside) && refused("device", outside));
    CHECK(refused("up", "is a directory"));
    CHECK(refused("magic", outside));
    CHECK(ends("dangling", 8, MGX_NOT_FOUND, "a link to \"nothing\""));
    CHECK(refused("again", "more than 40 links"));
    CHECK(refused("pipe", "is a pipe") && refused("to_pipe", "is a pipe"));
}

// A directory is listed by what it is, not by its name: neighbours that begin alike are others.
CASE(neighbours_are_outside)
{
    mkdir(in_root("model2"), 0700);
    put("model2/data", "data");
    CHECK(symlink("../model2/data", in_root("model/neighbour")) == 0);
    CHECK(refused("neighbour", "outside the directories"));
}

// snapshots/<rev>/model -> ../../blobs/<hash>, as package caches have it.
CASE(caches_of_links_load)
{
    struct mgx_dirs dirs = {0};
    struct mgx_diag diag;
    char first;
    mgx_diag_clear(&diag);
    mkdir(in_root("cache"), 0700);
    mkdir(in_root("cache/blobs"), 0700);
    mkdir(in_root("cache/snapshots"), 0700);
    mkdir(in_root("cache/snapshots/rev"), 0700);
    put("cache/blobs/1", "model");
    put("cache/blobs/2", "data");
    put("cache/secret", "secret");
    CHECK(symlink("../../blobs/1", in_root("cache/snapshots/rev/model")) == 0);
    CHECK(symlink("../../blobs/2", in_root("cache/snapshots/rev/data")) == 0);
    CHECK(symlink("../../secret", in_root("cache/snapshots/rev/bad")) == 0);
    CHECK_OK(mgx_dirs_add_file(&dirs, in_root("cache/snapshots/rev/model"), true, &diag), diag);
    CHECK_INT(try_open(&dirs, "data", 4, &first, &diag), MGX_OK);
    CHECK(first == 'd');
    CHECK_INT(try_open(&dirs, "2", 1, &first, &diag), MGX_OK); // beside the real file
    CHECK_INT(try_open(&dirs, "bad", 3, &first, &diag), MGX_IO);
    CHECK_INT(try_open(&dirs, "absent", 6, &first, &diag), MGX_NOT_FOUND);
    mgx_dirs_close(&dirs);
    // Without the model's real file nothing vouches for the blobs.
    CHECK_OK(mgx_dirs_add(&dirs, in_root("cache/snapshots/rev"), true, &diag), diag);
    CHECK_INT(try_open(&dirs, "data", 4, &first, &diag), MGX_IO);
    mgx_dirs_close(&dirs);
}

// --- races ---

static atomic_bool stop;

// "turns" is in quick succession a file, a link inside, a link outside; "way" a directory or a
// link.
static void *exchange(void *unused)
{
    for (int i = 0; !atomic_load(&stop); i++) {
        static const char *const targets[] = {"data", "../secret", "/etc/passwd"};
        (void)!symlink(targets[i % 3], in_root("model/next"));
        rename(in_root("model/next"), in_root("model/turns"));
        (void)!symlink(i % 2 ? "sub" : "..", in_root("model/next"));
        rename(in_root("model/next"), in_root("model/way"));
    }
    return unused;
}

CASE(exchanged_links_never_lead_outside)
{
    struct mgx_dirs dirs = {0};
    struct mgx_diag diag;
    pthread_t thread;
    int opened = 0, wrong = 0;
    mgx_diag_clear(&diag);
    put("data", "stranger");
    CHECK_OK(mgx_dirs_add(&dirs, in_root("model"), true, &diag), diag);
    pthread_create(&thread, NULL, exchange, NULL);
    for (int i = 0; i < 20000; i++) {
        char first = '\0';
        const bool ok = i % 2 ? try_open(&dirs, "turns", 5, &first, &diag) == MGX_OK
                              : try_open(&dirs, "way/data", 8, &first, &diag) == MGX_OK;
        opened += ok;
        wrong += ok && first != 'd';
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    mgx_dirs_close(&dirs);
    CHECK_INT(wrong, 0);
    CHECK(opened > 0);
}

static const struct check_case cases[] = {
    ROW(names_stay_beneath) ROW(links_within_the_directory_are_followed)
        ROW(links_that_leave_are_refused) ROW(neighbours_are_outside) ROW(caches_of_links_load)
            ROW(exchanged_links_never_lead_outside){NULL, NULL}};

int main(int argc, char **argv)
{
    if (!mkdtemp(root))
        return 1;
    const int status = check_run(cases, argc, argv);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) != 0 || status;
}
