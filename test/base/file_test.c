// SPDX-License-Identifier: MIT
// Opening files: what is refused, what stays inside a directory, and a file that shrinks in use.
#include "base/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char root[] = "/tmp/mgx_file_XXXXXX";

static const char *in_root(const char *name)
{
    static char path[8][256];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void put(const char *name, size_t size)
{
    FILE *f = fopen(in_root(name), "w");
    for (size_t i = 0; i < size; i++)
        putc('a' + (int)(i % 26), f);
    fclose(f);
}

static bool refuses(const char *path, enum mgx_status status, const char *text)
{
    struct mgx_file *file;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    const bool ok = mgx_file_open(&file, path, &diag) == status && !file && strstr(diag.text, text);
    if (!ok)
        printf("%s: %s\n", path, diag.text);
    mgx_file_release(file);
    return ok;
}

CASE(reads_ordinary_files)
{
    struct mgx_file *file;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    put("plain", 10000);
    CHECK_OK(mgx_file_open(&file, in_root("plain"), &diag), diag);
    CHECK_INT(file->size, 10000);
    CHECK(file->data[27] == 'b');
    CHECK_OK(mgx_file_check(file, &diag), diag);
    mgx_file_release(file);
    put("empty", 0);
    CHECK_OK(mgx_file_open(&file, in_root("empty"), &diag), diag);
    CHECK_INT(file->size, 0);
    mgx_file_release(file);
}

CASE(refuses_what_is_no_file)
{
    CHECK(refuses(in_root("absent"), MGX_NOT_FOUND, "No such file"));
    CHECK(refuses(root, MGX_IO, "is a directory"));
    CHECK(mkfifo(in_root("pipe"), 0600) == 0);
    CHECK(refuses(in_root("pipe"), MGX_IO, "is a pipe"));
    CHECK(refuses("/dev/zero", MGX_IO, "is a device"));
}

// --- shrinking ---

CASE(a_file_that_shrinks_is_an_error)
{
    struct mgx_file *file;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    put("shrinks", 100000);
    CHECK_OK(mgx_file_open(&file, in_root("shrinks"), &diag), diag);
    CHECK(!mgx_file_lost_at(file->data));
    CHECK(truncate(in_root("shrinks"), 5000) == 0);
    unsigned sum = 0;
    for (size_t i = 0; i < file->size; i++)
        sum += ((const volatile uint8_t *)file->data)[i];
    CHECK(sum > 0);
    CHECK_INT(mgx_file_check(file, &diag), MGX_IO);
    CHECK(strstr(diag.text, "became shorter"));
    CHECK(mgx_file_any_lost());
    CHECK(mgx_file_lost_at(file->data + 50000));
    mgx_file_release(file);
}

static void *read_over_and_over(void *user)
{
    struct mgx_file *file = user;
    size_t sum = 0;
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < file->size; i += 512)
            sum += ((const volatile uint8_t *)file->data)[i];
    return (void *)(sum + 1);
}

CASE(threads_may_meet_the_hole_together)
{
    struct mgx_file *file;
    struct mgx_diag diag;
    pthread_t threads[4];
    mgx_diag_clear(&diag);
    put("shared", 400000);
    CHECK_OK(mgx_file_open(&file, in_root("shared"), &diag), diag);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, read_over_and_over, file);
    CHECK(truncate(in_root("shared"), 0) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    (void)read_over_and_over(file);
    CHECK_INT(mgx_file_check(file, &diag), MGX_IO);
    mgx_file_release(file);
}

static void survive(int signal)
{
    (void)signal;
    _exit(42);
}

// A bus error outside our mappings is the application's, in a child because it ends there.
CASE(other_bus_errors_reach_the_previous_handler)
{
    for (int own = 0; own < 2; own++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            put("other", 8192);
            // The handler was installed by the cases before; what it chains to is the default. A
            // handler of the application's own comes first here by being installed last.
            if (own)
                signal(SIGBUS, survive);
            const int fd = open(in_root("other"), O_RDWR);
            volatile char *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
            (void)!truncate(in_root("other"), 0);
            _exit(p[4096]);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (own)
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        else
            CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0); // a sanitizer exits with 1
    }
}

CASE(more_files_than_slots_still_open)
{
    enum { MANY = 1100 };
    static struct mgx_file *files[MANY];
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    put("often", 100);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(mgx_file_open(&files[i], in_root("often"), &diag), diag);
    CHECK(files[MANY - 1]->data[1] == 'b');
    for (int i = 0; i < MANY; i++)
        mgx_file_release(files[i]);
}

static const struct check_case cases[] = {
    ROW(reads_ordinary_files) ROW(refuses_what_is_no_file) ROW(a_file_that_shrinks_is_an_error)
        ROW(threads_may_meet_the_hole_together) ROW(other_bus_errors_reach_the_previous_handler)
            ROW(more_files_than_slots_still_open){NULL, NULL}};

int main(int argc, char **argv)
{
    if (!mkdtemp(root))
        return 1;
    const int status = check_run(cases, argc, argv);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) != 0 || status;
}
