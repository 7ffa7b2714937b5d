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

static void remove_all(void)
{
    static const char *const names[] = {"a", "link", "dangling", "later"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_root(names[i]));
    rmdir(root);
}

static const struct check_case cases[] = {
    ROW(a_file_is_made_and_replaced) ROW(a_failure_leaves_the_old_one) ROW(links_stay_links)
        ROW(devices_stay_devices) ROW(a_killed_writer_leaves_nothing){NULL, NULL}};

int main(int argc, char **argv)
{
    if (!mkdtemp(root))
        return 1;
    const int failed = check_run(cases, argc, argv);
    remove_all();
    return failed;
}
