// SPDX-License-Identifier: MIT
// Files and their names, for all verbs.
#include <sys/stat.h>

#include "driver.h"

bool ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

bool is_folder(const char *path)
{
    struct stat found;
    return path && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0, used = 0, got = 1;
    while (file && got) {
        if (used == room) {
            char *grown = realloc(text, room = room ? 2 * room : 65536);
            if (!grown)
                break;
            text = grown;
        }
        used += got = fread(text + used, 1, room - used, file);
    }
    if (file)
        fclose(file);
    *size = used;
    return text;
}
