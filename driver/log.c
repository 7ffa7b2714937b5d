// SPDX-License-Identifier: MIT
// Log lines on stderr, and on files that the user names.
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { MAX_FILES = 8 };

static struct {
    enum log_level level;
    FILE *files[MAX_FILES];
    int file_count;
} state = {.level = LOG_INFO};

static const char *const names[] = {"none", "error", "warn", "info", "debug", "trace"};

bool log_set_level(const char *name)
{
    for (int i = 0; i <= LOG_TRACE; i++)
        if (strcmp(name, names[i]) == 0 || (name[0] == '0' + i && !name[1])) {
            state.level = (enum log_level)i;
            return true;
        }
    return false;
}

bool log_add_file(const char *path)
{
    FILE *file = state.file_count < MAX_FILES ? fopen(path, "a") : NULL;
    if (file)
        state.files[state.file_count++] = file;
    return file != NULL;
}

void log_end(void)
{
    for (int i = 0; i < state.file_count; i++)
        fclose(state.files[i]);
    state.file_count = 0;
}

static void put_head(FILE *file, enum log_level level, const char *source, int line,
                     const struct timespec *now)
{
    static const char *const labels[] = {"", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
    static const char *const colours[] = {"", "\033[31m", "\033[33m", "\033[32m", "", ""};
    struct tm parts;
    char date[32];
    localtime_r(&now->tv_sec, &parts);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    const bool coloured = colours[level][0] && isatty(fileno(file));
    const char *slash = strrchr(source, '/');
    fprintf(file, "%s.%06ld [%s%s%s] [%s:%d] ", date, now->tv_nsec / 1000,
            coloured ? colours[level] : "", labels[level], coloured ? "\033[0m" : "",
            slash ? slash + 1 : source, line);
}

void log_line(enum log_level level, const char *file, int line, const char *format, ...)
{
    if (level > state.level)
        return;
    work_wipe();
    struct timespec now; // the same in every file
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = -1; i < state.file_count; i++) {
        FILE *to = i < 0 ? stderr : state.files[i];
        va_list args;
        va_start(args, format);
        put_head(to, level, file, line, &now);
        vfprintf(to, format, args);
        fputc('\n', to);
        fflush(to);
        va_end(args);
    }
}

void log_last_error(const char *file, int line)
{
    const char *text = "";
    migraphx_get_last_error(&text);
    log_line(LOG_ERROR, file, line, "%s", text);
}

double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
