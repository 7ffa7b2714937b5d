// SPDX-License-Identifier: MIT
// --completion: what a shell offers after migraphx-driver, from the tables of verbs and flags.
#include "verbs.h"

// Calls `each` for every flag of the verb, headings left out.
static void for_flags(const struct verb *verb,
                      void (*each)(const struct verb *, const struct flag *))
{
    for (const struct flag *const *table = verb->flags; *table; table++)
        for (const struct flag *f = *table; f->kind != FLAG_END; f++)
            if (f->kind != FLAG_HEADING)
                each(verb, f);
}

static bool takes_file(const struct flag *f)
{
    return f->argument && strstr(f->argument, "<file>");
}

// --- bash ---

static void bash_flag(const struct verb *verb, const struct flag *f)
{
    (void)verb;
    printf(" %s", f->name);
    if (f->other)
        printf(" %s", f->other);
}

static void print_bash(void)
{
    printf("_migraphx_driver() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    case $COMP_CWORD:${COMP_WORDS[1]} in\n"
           "    1:*) words=\"");
    for (const struct verb *const *v = driver_verbs; *v; v++)
        printf("%s ", (*v)->name);
    printf("--help --version\" ;;\n");
    for (const struct verb *const *v = driver_verbs; *v; v++) {
        printf("    *:%s) words=\"", (*v)->name);
        for_flags(*v, bash_flag);
        printf("\" ;;\n");
    }
    printf("    esac\n"
           "    COMPREPLY=()\n"
           "    if [[ $COMP_CWORD = 1 || $current = -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "    else\n"
           "        compopt -o filenames 2> /dev/null\n"
           "        local IFS=$'\\n'\n"
           "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -F _migraphx_driver migraphx-driver\n");
}

// --- zsh ---

// Text inside [] inside '': what ends either is left out.
static void put_zsh(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c == '[' || *c == ']')
            printf("\\%c", *c);
        else if (*c == '\'')
            printf("'\\''");
        else
            putchar(*c);
}

static void zsh_name(const struct flag *f, const char *name)
{
    const bool repeats = f->kind == FLAG_WORDS;
    printf(" \\\n            '%s%s[", repeats ? "*" : "", name);
    put_zsh(f->help);
    printf("]%s'", takes_file(f) ? ":file:_files" : f->argument ? ":value: " : "");
}

static void zsh_flag(const struct verb *verb, const struct flag *f)
{
    (void)verb;
    zsh_name(f, f->name);
    if (f->other)
        zsh_name(f, f->other);
}

static void print_zsh(void)
{
    printf("#compdef migraphx-driver\n\n"
           "_migraphx_driver() {\n"
           "    local -a verbs=(\n");
    for (const struct verb *const *v = driver_verbs; *v; v++) {
        printf("        '%s:", (*v)->name);
        put_zsh((*v)->summary);
        printf("'\n");
    }
    printf("        '--help:Prints the verbs.'\n"
           "        '--version:Prints the version.'\n"
           "    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    local verb=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $verb in\n");
    for (const struct verb *const *v = driver_verbs; *v; v++) {
        printf("    %s)\n        _arguments", (*v)->name);
        for_flags(*v, zsh_flag);
        printf(" \\\n            '*:file:_files' ;;\n");
    }
    printf("    esac\n"
           "}\n\n"
           "_migraphx_driver \"$@\"\n");
}

// --- fish ---

static void put_fish(const char *text)
{
    putchar('\'');
    for (const char *c = text; *c; c++)
        printf(*c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
    putchar('\'');
}

static void fish_name(const struct flag *f, const char *name)
{
    if (strncmp(name, "--", 2) == 0)
        printf(" -l %s", name + 2);
    else
        printf(" -%c %s", name[2] ? 'o' : 's', name + 1);
    (void)f;
}

static void fish_flag(const struct verb *verb, const struct flag *f)
{
    printf("complete -c migraphx-driver -n '__fish_seen_subcommand_from %s'", verb->name);
    fish_name(f, f->name);
    if (f->other)
        fish_name(f, f->other);
    printf(takes_file(f) ? " -r -F" : f->argument ? " -x" : "");
    printf(" -d ");
    put_fish(f->help);
    printf("\n");
}

static void print_fish(void)
{
    for (const struct verb *const *v = driver_verbs; *v; v++) {
        printf("complete -c migraphx-driver -n __fish_use_subcommand -f -a %s -d ", (*v)->name);
        put_fish((*v)->summary);
        printf("\n");
        for_flags(*v, fish_flag);
    }
}

bool print_completion(const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print();
            return true;
        }
    return false;
}
