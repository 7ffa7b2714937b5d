// SPDX-License-Identifier: MIT
// A fuzzer without its engine: runs every file of the folders (or every file) it is given once.
// Fails if there is nothing to run, so that a lost corpus is seen.
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A block of exactly the file's size, so that a read past its end is seen by a sanitizer.
static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    uint8_t *data = size < 0 ? NULL : malloc((size_t)size + (size == 0));
    const bool good = data && fread(data, 1, (size_t)size, file) == (size_t)size;
    if (good)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    fclose(file);
    return good;
}

static int run(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return run_file(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count += run_file(name);
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += run(argv[i]);
    printf("%d inputs\n", count);
    return count == 0;
}
