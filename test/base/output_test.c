// SPDX-License-Identifier: MIT
// Writing files: what is replaced, what stays when it fails, and what a killed writer leaves.
#include "base/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char root[] = "/tmp/mgx_output_XXXXXX";

static const char *in_root(const char *name)
{
    static char path[8][256];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static bool holds(const char *path, const char *text)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const size_t size = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    return size == strlen(text) && strcmp(got, text) == 0;
}

static int entries(void)
{
    int count = 0;
    DIR *d = opendir(root);
    while (readdir(d))
        count++;
    closedir(d);
    return count - 2;
}

static enum mgx_status put(const char *path, const char *text, enum mgx_status status)
{
    struct mgx_output out;
    struct mgx_diag diag = {.status = MGX_OK};
    const enum mgx_status opened = mgx_output_open(&out, path, &diag);
    if (opened != MGX_OK)
        return opened;
    fputs(text, out.file);
    return mgx_output_close(&out, status, &diag);
}

static int mode_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (int)(s.st_mode & 0777) : -1;
}

CASE(a_file_is_made_and_replaced)
{
    const mode_t mask = umask(027);
    CHECK_INT(put(in_root("a"), "one", MGX_OK), MGX_OK);
    CHECK(holds(in_root("a"), "one"));
    CHECK_INT(mode_of(in_root("a")), 0640); // as fopen makes it
    chmod(in_root("a"), 0604);
    CHECK_INT(put(in_root("a"), "two", MGX_OK), MGX_OK);
    CHECK(holds(in_root("a"), "two"));
    CHECK_INT(mode_of(in_root("a")), 0604);
    umask(mask);
    CHECK_INT(entries(), 1);
}

CASE(a_failure_leaves_the_old_one)
{
    CHECK_INT(put(in_root("a"), "three", MGX_INVALID), MGX_INVALID);
    CHECK(holds(in_root("a"), "two"));
    CHECK_INT(put(in_root("new"), "three", MGX_INVALID), MGX_INVALID);
    CHECK_INT(entries(), 1);
    CHECK_INT(put(in_root("no/such"), "x", MGX_OK), MGX_IO);
    CHECK_INT(put(root, "x", MGX_OK), MGX_IO); // a directory
    CHECK_INT(put("/dev/full", "x", MGX_OK), MGX_IO);
    CHECK_INT(entries(), 1);
}

CASE(links_stay_links)
{
    CHECK_INT(symlink("a", in_root("link")), 0);
    CHECK_INT(symlink("later", in_root("dangling")), 0);
    CHECK_INT(put(in_root("link"), "four", MGX_OK), MGX_OK);
    CHECK_INT(put(in_root("dangling"), "five", MGX_OK), MGX_OK);
    struct stat s;
    CHECK(lstat(in_root("link"), &s) == 0 && S_ISLNK(s.st_mode));
    CHECK(lstat(in_root("dangling"), &s) == 0 && S_ISLNK(s.st_mode));
    CHECK(holds(in_root("a"), "four"));
    CHECK(holds(in_root("later"), "five"));
    CHECK_INT(entries(), 4);
}

CASE(devices_stay_devices)
{
    struct stat s;
    CHECK_INT(put("/dev/null", "x", MGX_OK), MGX_OK);
    CHECK(stat("/dev/null", &s) == 0 && S_ISCHR(s.st_mode));
}

static bool has_nameless_files(void)
{
    const int fd = open(root, O_TMPFILE | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

CASE(a_killed_writer_leaves_nothing)
{
    int ready[2];
    char byte;
    CHECK_INT(pipe(ready), 0);
    const int before = entries();
    const pid_t child = fork();
    if (child == 0) {
        struct mgx_output out;
        if (mgx_output_open(&out, in_root("a"), NULL) == MGX_OK && fputs("half", out.file) >= 0)
            fflush(out.file);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    CHECK(holds(in_root("a"), "four"));
    CHECK(entries() == before || !has_nameless_files());
}

// Pieces smaller and larger than its buffer, in order; and one that is given up.
CASE(a_file_for_mapping_is_whole)
{
    enum { PIECES = 70, LEAST = 61, BYTES = 3 << 20 };
    static unsigned char bytes[BYTES], got[BYTES];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    struct mgx_output out;
    CHECK_INT(mgx_output_open(&out, in_root("a"), NULL), MGX_OK);
    mgx_output_enlarge(&out);
    size_t at = 0;
    for (int i = 0; i < PIECES; i++)
        at +=
            fwrite(bytes + at, 1,
                   at + LEAST * at / 100 + 1 < BYTES ? LEAST * at / 100 + 1 : BYTES - at, out.file);
    CHECK_INT(mgx_output_close(&out, MGX_OK, NULL), MGX_OK);
    CHECK_INT(at, BYTES);
    CHECK_INT(mgx_output_open(&out, in_root("a"), NULL), MGX_OK);
    mgx_output_enlarge(&out);
    CHECK(fputs("half", out.file) >= 0);
    CHECK_INT(mgx_output_close(&out, MGX_INVALID, NULL), MGX_INVALID);
    FILE *file = fopen(in_root("a"), "rb");
    CHECK(file && fread(got, 1, BYTES, file) == BYTES && fgetc(file) == EOF);
    CHECK(memcmp(got, bytes, BYTES) == 0);
    if (file)
        fclose(file);
}

static void remove_all(void)
{
    static const char *const names[] = {"a", "link", "dangling", "later"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_root(names[i]));
    rmdir(root);
}

static const struct check_case cases[] = {
    ROW(a_file_is_made_and_replaced) ROW(a_failure_leaves_the_old_one) ROW(links_stay_links)
        ROW(devices_stay_devices) ROW(a_killed_writer_leaves_nothing)
            ROW(a_file_for_mapping_is_whole){NULL, NULL}};

int main(int argc, char **argv)
{
    if (!mkdtemp(root))
        return 1;
    const int failed = check_run(cases, argc, argv);
    remove_all();
    return failed;
}
