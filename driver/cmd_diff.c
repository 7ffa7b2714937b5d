// SPDX-License-Identifier: MIT
// diff: what two programs do not have in common.
//
// Instructions are compared by what they compute, not by their numbers, which all change when one
// is put in: operator, attributes and shape, with the names of operands taken out. The longest
// common list of them stays, the rest is printed, as diff(1) does. Exit code 0: nothing differs.
//
// Cost: lines of the one times lines of the other, of what is between a common begin and end.
#include "verbs.h"

struct side {
    char *text;
    char **lines, **keys; // as printed; what is compared
    int count;
};

// "main:@12" and parameter numbers of bodies become "@".
static char *key_of(const char *line)
{
    const char *call = strstr(line, " = ");
    const char *from = call ? call + 3 : line;
    char *key = malloc(strlen(from) + 1);
    size_t n = 0;
    const char *end = strstr(from, " # "); // the nodes it came from
    while (key && *from && from != end) {
        if (*from == ':' && from[1] == '@') {
            while (n && (key[n - 1] == '_' || key[n - 1] == ':' || key[n - 1] == '.' ||
                         (key[n - 1] >= '0' && key[n - 1] <= '9') ||
                         ((key[n - 1] | 32) >= 'a' && (key[n - 1] | 32) <= 'z')))
                n--;
            key[n++] = '@';
            from += 2 + strspn(from + 2, "0123456789");
        } else
            key[n++] = *from++;
    }
    if (key)
        key[n] = '\0';
    return key;
}

static bool split(struct side *s)
{
    int lines = 0;
    for (const char *c = s->text; *c; c++)
        lines += *c == '\n';
    s->lines = calloc((size_t)lines + 1, sizeof *s->lines);
    s->keys = calloc((size_t)lines + 1, sizeof *s->keys);
    for (char *line = strtok(s->text, "\n"); line && s->lines && s->keys;
         line = strtok(NULL, "\n")) {
        s->lines[s->count] = line;
        if (!(s->keys[s->count++] = key_of(line)))
            return false;
    }
    return s->lines && s->keys;
}

static bool load_side(const struct options *o, const char *file, struct side *out)
{
    struct options one = *o;
    migraphx_program_t program;
    one.file = file;
    if (!load_model(&one, &program))
        return false;
    const bool good = OK(migraphx_program_to_string(&out->text, program)) && split(out);
    migraphx_program_destroy(program);
    return good;
}

static void free_side(struct side *s)
{
    for (int i = 0; s->keys && i < s->count; i++)
        free(s->keys[i]);
    free(s->keys);
    free(s->lines);
    migraphx_string_destroy(s->text);
}

// --- comparing ---

static bool same(const struct side *a, int i, const struct side *b, int k)
{
    return strcmp(a->keys[i], b->keys[k]) == 0;
}

static void put(const struct options *o, char sign, const char *line, int *count)
{
    if (!o->format)
        printf("%c %s\n", sign, line);
    else {
        printf("%s\n  {\"%s\": ", *count ? "," : "", sign == '-' ? "removed" : "added");
        put_json_text(stdout, line);
        printf("}");
    }
    (*count)++;
}

// length[i * (m + 1) + k]: of the longest common list of a's lines from i and b's from k.
static int *common_lengths(const struct side *a, const struct side *b, int first, int n, int m)
{
    int *length = calloc((size_t)(n + 1) * (size_t)(m + 1), sizeof *length);
    for (int i = n - 1; length && i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            const int down = length[(i + 1) * (m + 1) + k], right = length[i * (m + 1) + k + 1];
            length[i * (m + 1) + k] = same(a, first + i, b, first + k)
                                          ? length[(i + 1) * (m + 1) + k + 1] + 1
                                          : (down > right ? down : right);
        }
    return length;
}

static int print_difference(const struct options *o, const struct side *a, const struct side *b)
{
    enum { MOST = 20000 };
    int first = 0, n = a->count, m = b->count, count = 0;
    while (first < n && first < m && same(a, first, b, first))
        first++;
    while (n > first && m > first && same(a, n - 1, b, m - 1))
        n--, m--;
    n -= first;
    m -= first;
    int *length = n < MOST && m < MOST ? common_lengths(a, b, first, n, m) : NULL;
    for (int i = 0, k = 0; i < n || k < m;) {
        if (length && i < n && k < m && same(a, first + i, b, first + k)) {
            i++, k++;
        } else if (i < n && (k == m || !length ||
                             length[(i + 1) * (m + 1) + k] >= length[i * (m + 1) + k + 1]))
            put(o, '-', a->lines[first + i++], &count);
        else
            put(o, '+', b->lines[first + k++], &count);
    }
    free(length);
    return count;
}

static int run(struct options *o)
{
    struct side a = {0}, b = {0};
    if (!o->file || !o->second) {
        log_error("diff needs two files");
        return EXIT_USAGE;
    }
    const bool good = load_side(o, o->file, &a) && load_side(o, o->second, &b);
    int count = 0;
    if (good) {
        printf("%s", o->format ? "{\"differences\": [" : "");
        count = print_difference(o, &a, &b);
        printf(o->format ? "]}\n" : count ? "" : "the programs are the same\n");
    }
    free_side(&a);
    free_side(&b);
    return good && !count ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, json_flags, common_flags, NULL};
const struct verb verb_diff = {"diff",
                               "Prints what two programs do not have in common.",
                               "[flags] <file> <file>",
                               flags,
                               run,
                               true,
                               true};
