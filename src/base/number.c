// SPDX-License-Identifier: MIT
// Numbers as text; see number.h. The locale is the thread's for the call: what another thread
// prints meanwhile keeps its own.
#include "base/number.h"

#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_point(void)
{
    return strcmp(nl_langinfo(RADIXCHAR), ".") == 0;
}

// The "C" locale for this thread from now on, and what was there before; both 0 where there is
// nothing to do, or no memory to do it with.
struct switched {
    locale_t plain, before;
};

static struct switched enter_plain(void)
{
    struct switched s = {(locale_t)0, (locale_t)0};
    if (!has_point() && (s.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
        s.before = uselocale(s.plain);
    return s;
}

static void leave_plain(struct switched s)
{
    if (!s.plain)
        return;
    uselocale(s.before);
    freelocale(s.plain);
}

double mgx_number_read(const char *text, char **end)
{
    const struct switched s = enter_plain();
    const double value = strtod(text, end);
    leave_plain(s);
    return value;
}

int mgx_number_vformat(char *to, size_t size, const char *fmt, va_list args)
{
    const struct switched s = enter_plain();
    const int length = vsnprintf(to, size, fmt, args);
    leave_plain(s);
    return length;
}

int mgx_number_format(char *to, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int length = mgx_number_vformat(to, size, fmt, args);
    va_end(args);
    return length;
}
