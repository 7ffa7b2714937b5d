// SPDX-License-Identifier: MIT
// Enters a locale whose decimal point is a comma: an installed one, or German, made by localedef in
// a folder of its own.
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool test_locale_has_comma(const char *name)
{
    if (setlocale(LC_ALL, name) && strcmp(localeconv()->decimal_point, ",") == 0)
        return true;
    setlocale(LC_ALL, "C");
    return false;
}

// false where there is none and none can be made.
static bool test_locale_enter_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "ru_RU.UTF-8"};
    char folder[] = "/tmp/mgx_locale_XXXXXX", command[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (test_locale_has_comma(names[i]))
            return true;
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 > /dev/null 2>&1",
             folder);
    setenv("LOCPATH", folder, 1);
    const bool made = system(command) != -1 && test_locale_has_comma("de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != -1 && made;
}
