// SPDX-License-Identifier: MIT
// Log lines on stderr, and on files that the user names.
//
// Who asks for a level gets MIGraphX's lines, with date, level and place. Who does not sees errors,
// warnings and what the work came to, without these: the rest is about the driver. Files get every
// line from info on in either case.
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { MAX_FILES = 8 };

static struct {
    enum log_level level;
    bool asked;
    FILE *files[MAX_FILES];
    int file_count;
} state = {.level = LOG_INFO};

static const char *const names[] = {"none", "error", "warn", "info", "debug", "trace"};

bool log_set_level(const char *name)
{
    for (int i = 0; i <= LOG_TRACE; i++)
        if (strcmp(name, names[i]) == 0 || (name[0] == '0' + i && !name[1])) {
            state.level = (enum log_level)i;
            state.asked = true;
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
    static const char *const labels[] = {"", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "INFO"};
    static const char *const colours[] = {"", "\033[31m", "\033[33m", "\033[32m",
                                          "", "",         "\033[32m"};
    struct tm parts;
    char date[32];
    const bool brief = file == stderr && !state.asked;
    const bool coloured = colours[level][0] && isatty(fileno(file));
    if (brief && level == LOG_RESULT)
        return;
    localtime_r(&now->tv_sec, &parts);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    if (!brief)
        fprintf(file, "%s.%06ld ", date, now->tv_nsec / 1000);
    fprintf(file, "[%s%s%s] ", coloured ? colours[level] : "", labels[level],
            coloured ? "\033[0m" : "");
    const char *slash = strrchr(source, '/');
    if (!brief)
        fprintf(file, "[%s:%d] ", slash ? slash + 1 : source, line);
}

static bool is_wanted(FILE *file, enum log_level level)
{
    if (state.asked)
        return (level == LOG_RESULT ? LOG_INFO : level) <= state.level;
    return level == LOG_RESULT || level <= (file == stderr ? LOG_WARN : LOG_INFO);
}

// What a line says may hold names of files, which may hold anything: one message is one line, and
// those that continue it begin with a space.
static void clean(char *text)
{
    for (char *c = text; *c; c++) {
        const bool goes_on = *c == '\n' && c[1] == ' ';
        const bool upper =
            (unsigned char)*c == 0xC2 && ((unsigned char)c[1] & 0xE0) == 0x80; // U+0080..
        if (((unsigned char)*c < 0x20 && *c != '\t' && !goes_on) || *c == 0x7F || upper)
            *c = '?';
        if (upper)
            c[1] = '?';
    }
}

void log_line(enum log_level level, const char *file, int line, const char *format, ...)
{
    if (is_wanted(stderr, level))
        work_wipe();
    struct timespec now; // the same in every file
    clock_gettime(CLOCK_REALTIME, &now);
    va_list args;
    va_start(args, format);
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        clean(text);
    for (int i = -1; i < state.file_count; i++) {
        FILE *to = i < 0 ? stderr : state.files[i];
        if (!is_wanted(to, level))
            continue;
        put_head(to, level, file, line, &now);
        fputs(text ? text : format, to);
        fputc('\n', to);
        fflush(to);
    }
    free(text);
}

void log_last_error(const char *file, int line)
{
    const char *text = "";
    migraphx_get_last_error(&text);
    log_line(LOG_ERROR, file, line, "%s", text);
}
