// SPDX-License-Identifier: MIT
// Source text to a binary, by NVRTC or hiprtc. Any number of threads compile side by side; only the
// opening of the library is under a lock.
#include "targets/gpu/device/rtc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RTC_MAX_OPTIONS = 32, RTC_QUOTED_LOG = 1200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static enum mgx_status require_library(const struct rtc *rtc, struct mgx_diag *diag)
{
    pthread_mutex_lock(&lock);
    const enum mgx_status status = gpu_library_open(rtc->what, rtc->libraries, rtc->symbols,
                                                    rtc->symbol_count, rtc->calls, diag);
    pthread_mutex_unlock(&lock);
    return status;
}

static enum mgx_status fail(const struct rtc *rtc, const char *name, int status,
                            struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_DEVICE, "%s: %s: %s", rtc->what, name,
                    rtc->calls->error_text(status));
}

static void read_log(const struct rtc *rtc, void *program, struct mgx_str *log)
{
    size_t size = 0;
    if (rtc->calls->log_size(program, &size) != 0 || size <= 1)
        return;
    char *text = malloc(size);
    if (text && rtc->calls->log(program, text) == 0)
        mgx_str_putn(log, text, strnlen(text, size));
    free(text);
}

static enum mgx_status read_code(const struct rtc *rtc, const char *name, void *program,
                                 struct mgx_str *out, struct mgx_diag *diag)
{
    size_t size = 0;
    int status = rtc->calls->code_size(program, &size);
    char *code = status == 0 ? malloc(size) : NULL;
    if (status == 0 && !code)
        return mgx_fail_memory(diag);
    if (status == 0)
        status = rtc->calls->code(program, code);
    if (status == 0)
        mgx_str_putn(out, code, size);
    free(code);
    if (out->failed)
        return mgx_fail_memory(diag);
    return status == 0 ? MGX_OK : fail(rtc, name, status, diag);
}

static enum mgx_status compile(const struct rtc *rtc, void *program, const char *arch_option,
                               const struct gpu_source *source, struct mgx_str *log,
                               struct mgx_diag *diag)
{
    const char *options[RTC_MAX_OPTIONS] = {arch_option};
    int count = 1;
    for (int i = 0; source->options && source->options[i] && count < RTC_MAX_OPTIONS; i++)
        options[count++] = source->options[i];
    const int status = rtc->calls->compile(program, count, options);
    struct mgx_str own = {0};
    struct mgx_str *to = log ? log : &own;
    const size_t from = to->size;
    read_log(rtc, program, to);
    if (status != 0)
        mgx_fail(diag, MGX_DEVICE, "%s: %s: %s: %.*s", rtc->what, source->name,
                 rtc->calls->error_text(status), RTC_QUOTED_LOG, mgx_str_text(to) + from);
    mgx_str_fini(&own);
    return status == 0 ? MGX_OK : MGX_DEVICE;
}

enum mgx_status rtc_compile(const struct rtc *rtc, const char *arch_option,
                            const struct gpu_source *source, struct mgx_str *out,
                            struct mgx_str *log, struct mgx_diag *diag)
{
    TRY(require_library(rtc, diag));
    void *program = NULL;
    const int made = rtc->calls->create(&program, source->text, source->name, 0, NULL, NULL);
    if (made != 0)
        return fail(rtc, source->name, made, diag);
    enum mgx_status status = compile(rtc, program, arch_option, source, log, diag);
    if (status == MGX_OK)
        status = read_code(rtc, source->name, program, out, diag);
    rtc->calls->destroy(&program);
    return status;
}
