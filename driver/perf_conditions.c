// SPDX-License-Identifier: MIT
// Under which conditions perf measured: what somebody else needs to see whether he can expect the
// same. All of it is asked for when the report is written.
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "profile.h"

enum { ROOM = 256 };

const char *report_model(const struct report *r)
{
    return r->o->file ? r->o->file : r->o->model ? r->o->model : "gemm";
}

// Linux names the processor there where the processor names itself; else its kind has to do.
static void find_processor(char *out)
{
    struct utsname system;
    char line[ROOM];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, ROOM, "%s", uname(&system) == 0 ? system.machine : "");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            const char *name = strchr(line, ':') + 1;
            name += strspn(name, " \t");
            snprintf(out, ROOM, "%.*s", (int)strcspn(name, "\n"), name);
            break;
        }
    if (f)
        fclose(f);
}

// From the plan's summary, "steps: 61, threads: 2, isa: avx2": what stands behind a name; else "".
static void find_said(const char *summary, const char *name, const char *end, char *out)
{
    const char *at = summary ? strstr(summary, name) : NULL;
    *out = '\0';
    if (at) {
        at += strlen(name);
        snprintf(out, ROOM, "%.*s", (int)strcspn(at, end), at);
    }
}

static void find_device(const char *summary, char *out)
{
    find_said(summary, ", device: ", "\n", out);
    char *counts = strstr(out, ", kernels: ");
    if (counts)
        *counts = '\0';
}

static void find_date(char *out)
{
    const time_t now = time(NULL);
    struct tm parts;
    if (!localtime_r(&now, &parts) || !strftime(out, ROOM, "%Y-%m-%d %H:%M:%S %z", &parts))
        *out = '\0';
}

// The flags that change it; "" leaves the model as it is.
static void find_precision(const struct options *o, char *out)
{
    const struct {
        bool set;
        const char *flag;
    } flags[] = {{o->fp16, "--fp16"}, {o->bf16, "--bf16"},         {o->int8, "--int8"},
                 {o->fp8, "--fp8"},   {o->int4, "--int4-weights"}, {o->tf32, "--tf32"}};
    *out = '\0';
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].set) {
            const size_t length = strlen(out);
            snprintf(out + length, ROOM - length, "%s%s", length ? " " : "", flags[i].flag);
        }
}

void put_conditions(FILE *f, const struct report *r)
{
    const char *version = "";
    char text[ROOM], threads[ROOM];
    migraphx_get_version(&version);
    find_processor(text);
    fprintf(f, "\"run\": {");
    put_member(f, "machine", text);
    fprintf(f, ", \"cores\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
    find_device(r->plan.summary, text);
    put_member(f, "device", text);
    fprintf(f, ", ");
    put_member(f, "target", target_name(r->o));
    fprintf(f, ", ");
    put_member(f, "version", version);
    fprintf(f, ",\n  ");
    put_member(f, "command", r->o->command);
    fprintf(f, ",\n  ");
    find_date(text);
    put_member(f, "date", text);
    fprintf(f, ", ");
    find_precision(r->o, text);
    put_member(f, "precision", text);
    find_said(r->plan.summary, "threads: ", ",\n", threads);
    fprintf(f, ", \"threads\": %d, ", atoi(threads));
    find_said(r->plan.summary, "isa: ", ",\n", text);
    put_member(f, "isa", text);
    fprintf(f, "}");
}
