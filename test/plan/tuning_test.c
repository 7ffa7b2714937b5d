// SPDX-License-Identifier: MIT
// The tuning cache: what is put comes back from the file; what is damaged is not believed.
#include "plan/tuning.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char HEAD[] = "migraphx-tuning 1\n";

static uint32_t entries_of(const char *text, size_t size)
{
    struct mgx_tuning t;
    mgx_tuning_init(&t);
    const uint32_t count = mgx_tuning_read(&t, text, size, NULL) == MGX_OK ? t.map.count : 99999;
    mgx_tuning_fini(&t);
    return count;
}

static uint32_t lines(const char *rest)
{
    char text[8192];
    snprintf(text, sizeof text, "%s%s", HEAD, rest);
    return entries_of(text, strlen(text));
}

static void temporary(char path[64])
{
    strcpy(path, "/tmp/mgx_tuning_XXXXXX");
    const int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    unlink(path);
}

CASE(round_trip)
{
    struct mgx_diag diag = {0};
    struct mgx_tuning t, u;
    char path[64];
    temporary(path);
    mgx_tuning_init(&t);
    mgx_tuning_init(&u);
    CHECK_OK(mgx_tuning_load(&t, path, &diag), diag); // not there: empty
    for (int i = 0; i < 500; i++) {
        char problem[64], choice[16];
        snprintf(problem, sizeof problem, "cpu conv avx2 1 0.0.0 n%d", i % 400);
        snprintf(choice, sizeof choice, "way%d", i);
        CHECK_OK(mgx_tuning_put(&t, problem, choice, i * 0.5, &diag), diag);
    }
    CHECK_OK(mgx_tuning_save(&t, path, &diag), diag);
    CHECK(!t.changed);
    CHECK_OK(mgx_tuning_load(&u, path, &diag), diag);
    CHECK_INT(u.map.count, 400);
    CHECK_TEXT(mgx_tuning_find(&u, "cpu conv avx2 1 0.0.0 n399"), "way399");
    CHECK_TEXT(mgx_tuning_find(&u, "cpu conv avx2 1 0.0.0 n7"), "way407"); // the last word
    CHECK(!mgx_tuning_find(&u, "cpu conv avx2 1 0.0.0 n400"));
    mgx_tuning_fini(&t);
    mgx_tuning_fini(&u);
    unlink(path);
}

// What is read last is right: a file that is loaded after what a program brought along.
CASE(what_is_read_later_replaces)
{
    struct mgx_diag diag = {0};
    struct mgx_tuning t;
    mgx_tuning_init(&t);
    for (int i = 0; i < 2; i++) {
        char text[128];
        const int size = snprintf(text, sizeof text, "%scpu dot n1\tway%d\t1.5\n", HEAD, i);
        CHECK_OK(mgx_tuning_read(&t, text, (size_t)size, &diag), diag);
    }
    CHECK_TEXT(mgx_tuning_find(&t, "cpu dot n1"), "way1");
    mgx_tuning_fini(&t);
}

CASE(entries_of_two_writers_stay)
{
    struct mgx_diag diag = {0};
    struct mgx_tuning a, b, both;
    char path[64];
    temporary(path);
    mgx_tuning_init(&a);
    mgx_tuning_init(&b);
    mgx_tuning_init(&both);
    CHECK_OK(mgx_tuning_put(&a, "one", "x", 1, &diag), diag);
    CHECK_OK(mgx_tuning_put(&b, "two", "y", 2, &diag), diag);
    CHECK_OK(mgx_tuning_save(&a, path, &diag), diag);
    CHECK_OK(mgx_tuning_save(&b, path, &diag), diag);
    CHECK_OK(mgx_tuning_load(&both, path, &diag), diag);
    CHECK_TEXT(mgx_tuning_find(&both, "one"), "x");
    CHECK_TEXT(mgx_tuning_find(&both, "two"), "y");
    mgx_tuning_fini(&a);
    mgx_tuning_fini(&b);
    mgx_tuning_fini(&both);
    unlink(path);
}

// As many processes as write at once, none loses what another wrote.
CASE(writers_at_the_same_time_lose_nothing)
{
    enum { WRITERS = 8, ENTRIES = 20 };
    char path[] = "/tmp/mgx_tuning_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    unlink(path);
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            int lost = 0;
            for (int i = 0; i < ENTRIES; i++) {
                struct mgx_tuning t;
                char problem[32];
                mgx_tuning_init(&t);
                snprintf(problem, sizeof problem, "writer %d entry %d", w, i);
                lost += mgx_tuning_put(&t, problem, "a", 1, NULL) != MGX_OK ||
                        mgx_tuning_save(&t, path, NULL) != MGX_OK;
                mgx_tuning_fini(&t);
            }
            _exit(lost != 0);
        }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    CHECK_INT(failed, 0);
    struct mgx_tuning all;
    struct mgx_diag diag = {0};
    mgx_tuning_init(&all);
    CHECK_OK(mgx_tuning_load(&all, path, &diag), diag);
    CHECK_INT(all.map.count, WRITERS * ENTRIES);
    mgx_tuning_fini(&all);
    unlink(path);
}

CASE(damage_ends_the_reading)
{
    CHECK_INT(entries_of("", 0), 0);
    CHECK_INT(entries_of("migraphx-tuning 2\na\tb\t1\n", 24), 0);
    CHECK_INT(lines("a\tb\t1\n# note\n\nc\td\t2\n"), 2);
    CHECK_INT(lines("a\tb\t1\nc\td\t2"), 1);          // cut off
    CHECK_INT(lines("a\tb\t1\nc d 2\ne\tf\t3\n"), 1); // no tabs
    CHECK_INT(lines("a\tb\tsoon\n"), 0);
    CHECK_INT(lines("a\tb\t1 \n"), 0);
    CHECK_INT(lines("a\t\t1\n"), 0);
    CHECK_INT(lines("\tb\t1\n"), 0);
    CHECK_INT(lines("a\tb\tnan\n"), 0);
    CHECK_INT(lines("a\tb\t-1\n"), 0);
    CHECK_INT(lines("a\x01\tb\t1\n"), 0);
    char line[2 * MGX_TUNING_LINE];
    memset(line, 'x', sizeof line);
    memcpy(line, HEAD, sizeof HEAD - 1);
    memcpy(line + sizeof line - 6, "\tb\t1\n", 5);
    CHECK_INT(entries_of(line, sizeof line), 0);
}

// Any change of any byte leaves a cache that can be asked.
CASE(random_damage_is_survived)
{
    static const char good[] = "migraphx-tuning 1\ncpu conv avx512 2\twinograd4\t81.250\n"
                               "cpu gemm avx512 2\trows\t1.5\n";
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (int k = 0; k <= i % 3; k++) {
            seed = seed * 1664525 + 1013904223;
            text[seed % (sizeof good - 1)] = (char)(seed >> 17);
        }
        CHECK(entries_of(text, (seed >> 8) % sizeof good) <= 4);
    }
}

static bool put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

// A path that names something else, by mistake, keeps what it names.
CASE(other_files_are_left_alone)
{
    static const struct {
        const char *text;
        enum mgx_status loads;
    } rows[] = {{"a model of many bytes", MGX_INVALID},
                {"migraphx-other 1\n", MGX_INVALID},
                {"", MGX_OK},
                {"migraphx-tun", MGX_OK}, // cut off
                {"migraphx-tuning 2\nof another version", MGX_OK}};
    char path[64];
    temporary(path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mgx_diag diag = {0};
        struct mgx_tuning t;
        mgx_tuning_init(&t);
        CHECK(put_text(path, rows[i].text));
        CHECK_INT(mgx_tuning_load(&t, path, &diag), rows[i].loads);
        CHECK(rows[i].loads == MGX_OK || strstr(diag.text, path));
        CHECK_OK(mgx_tuning_put(&t, "a", "b", 1, NULL), diag);
        CHECK_INT(mgx_tuning_save(&t, path, NULL), rows[i].loads);
        char got[64] = "";
        FILE *f = fopen(path, "r");
        CHECK(f && fread(got, 1, sizeof got - 1, f) > 0 && fclose(f) == 0);
        CHECK_TEXT(got,
                   rows[i].loads == MGX_OK ? "migraphx-tuning 1\na\tb\t1.000\n" : rows[i].text);
        mgx_tuning_fini(&t);
    }
    unlink(path);
}

CASE(a_device_is_no_cache_and_stays_one)
{
    struct mgx_diag diag = {0};
    struct mgx_tuning t;
    struct stat s;
    char path[64];
    temporary(path);
    CHECK_INT(symlink("/dev/null", path), 0); // so that a mistake here replaces a link
    mgx_tuning_init(&t);
    CHECK_OK(mgx_tuning_load(&t, path, &diag), diag);
    CHECK_OK(mgx_tuning_put(&t, "a", "b", 1, &diag), diag);
    CHECK_OK(mgx_tuning_save(&t, path, &diag), diag);
    CHECK(lstat(path, &s) == 0 && S_ISLNK(s.st_mode));
    CHECK(stat("/dev/null", &s) == 0 && S_ISCHR(s.st_mode));
    CHECK_INT(mgx_tuning_load(&t, "/tmp", &diag), MGX_IO); // a folder
    mgx_tuning_fini(&t);
    unlink(path);
}

CASE(a_file_that_cannot_be_written_is_said)
{
    struct mgx_diag diag = {0};
    struct mgx_tuning t;
    mgx_tuning_init(&t);
    CHECK_OK(mgx_tuning_put(&t, "a", "b", 1, &diag), diag);
    CHECK_INT(mgx_tuning_save(&t, "/nowhere/at/all", &diag), MGX_IO);
    CHECK(strstr(diag.text, "/nowhere/at/all"));
    mgx_tuning_fini(&t);
}

TEST_MAIN(ROW(round_trip) ROW(what_is_read_later_replaces) ROW(entries_of_two_writers_stay)
              ROW(writers_at_the_same_time_lose_nothing) ROW(damage_ends_the_reading)
                  ROW(random_damage_is_survived) ROW(other_files_are_left_alone)
                      ROW(a_device_is_no_cache_and_stays_one)
                          ROW(a_file_that_cannot_be_written_is_said))
