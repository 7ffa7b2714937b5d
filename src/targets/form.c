// SPDX-License-Identifier: MIT
// See form.h.
#include "targets/form.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "plan/kernel_set.h"

// --- one form ---

// The target's own settings: what the file keeps of them, and what is given for the rest.
static bool put_settings(const struct mgx_carry *c, const struct mgx_target *target,
                         const struct mgx_form_wish *wish, struct mgx_arena *arena,
                         struct mgx_settings *out)
{
    bool good = true;
    *out = (struct mgx_settings){0};
    for (int i = 0; wish->given && i < wish->given->count; i++)
        good = good &&
               mgx_settings_put(out, arena, wish->given->list[i].name, wish->given->list[i].value);
    for (const char *const *name = target->keeps; name && *name && good; name++)
        if (mgx_setting(&c->options.own, *name))
            good = mgx_settings_put(out, arena, *name, mgx_setting(&c->options.own, *name));
    return good;
}

static bool is_usable(const struct mgx_target *target, const struct mgx_form_wish *wish)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    const char *device = wish->given ? mgx_setting(wish->given, "device") : NULL;
    return target && (!target->usable || target->usable(device, &quiet) == MGX_OK);
}

// The kind of this machine; an empty text where the target has none, or the settings ask for more
// than the machine is.
static const char *kind_of(const struct mgx_target *target, const struct mgx_settings *own,
                           struct mgx_arena *arena)
{
    const struct mgx_compile_options options = {.own = *own};
    struct mgx_diag quiet = {.status = MGX_OK};
    struct mgx_str text = {0};
    const bool good = target->kind && target->kind(&options, &text, &quiet) == MGX_OK;
    const char *kind = mgx_arena_strdup(arena, good ? mgx_str_text(&text) : "");
    mgx_str_fini(&text);
    return kind ? kind : "";
}

// A form for another machine: what it was asked to be compiled for does not count here.
static void say_other(struct mgx_carry *c, const struct mgx_target *target,
                      const struct mgx_form_wish *wish)
{
    const struct mgx_settings none = {0};
    const char *here = kind_of(target, wish->given ? wish->given : &none, &c->arena);
    c->options.own = none;
    c->why = mgx_arena_printf(
        &c->arena, "the file was compiled for %s, this is %s: it is compiled anew", c->kind, here);
}

static enum mgx_status judge(struct mgx_carry *c, const struct mgx_target *target,
                             const struct mgx_form_wish *wish, struct mgx_diag *diag)
{
    struct mgx_settings own;
    c->judged = true;
    if (!c->file || !c->kind || !c->kernels || !target->kind)
        return MGX_OK;
    if (!put_settings(c, target, wish, &c->arena, &own))
        return mgx_fail_memory(diag);
    if (strcmp(c->kind, kind_of(target, &own, &c->arena)) != 0)
        say_other(c, target, wish);
    else if (strcmp(c->kernels, mgx_kernel_set()) != 0)
        c->why = "the file was compiled for kernels of another version: it is compiled anew";
    c->fits = !c->why;
    return c->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}

// --- several ---

// Targets in order of preference, the best first.
static const char *const order[] = {"gpu", "cpu", "ref"};

static int rank_of(const char *target)
{
    int rank = 0;
    while (rank < MGX_COUNT(order) && strcmp(order[rank], target) != 0)
        rank++;
    return rank;
}

// Is form a better here than b?
static bool is_better(const struct mgx_carry *a, const struct mgx_carry *b,
                      const struct mgx_form_wish *wish)
{
    const struct mgx_target *target = mgx_target_find(a->target);
    const int rank = rank_of(a->target) - rank_of(b->target);
    if (rank || !target->worth)
        return rank < 0;
    const char *given = wish->given ? mgx_setting(wish->given, "isa") : NULL;
    const char *x = mgx_setting(&a->options.own, "isa"), *y = mgx_setting(&b->options.own, "isa");
    const bool x_given = given && x && strcmp(x, given) == 0;
    const bool y_given = given && y && strcmp(y, given) == 0;
    if (x_given != y_given)
        return x_given;
    return target->worth(&(struct mgx_compile_options){.own = a->options.own}) >
           target->worth(&(struct mgx_compile_options){.own = b->options.own});
}

static const char *list(struct mgx_arena *arena, struct mgx_carry *const *forms, int count)
{
    struct mgx_str text = {0};
    for (int i = 0; i < count; i++)
        mgx_str_printf(&text, "%s%s", i ? ", " : "",
                       forms[i]->kind ? forms[i]->kind : forms[i]->target);
    const char *copy = mgx_arena_strdup(arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return copy ? copy : "";
}

// The best of those that can be used as they are, or, with `anew`, when they are compiled again.
static enum mgx_status find_best(struct mgx_carry *const *forms, int count,
                                 const struct mgx_form_wish *wish, bool anew, int *out,
                                 struct mgx_diag *diag)
{
    *out = -1;
    for (int i = 0; i < count; i++) {
        const struct mgx_target *target = mgx_target_find(forms[i]->target);
        if (!is_usable(target, wish) || (wish->target && strcmp(wish->target, target->name) != 0))
            continue;
        if (!forms[i]->judged)
            TRY(judge(forms[i], target, wish, diag));
        if ((anew || forms[i]->fits || !target->kind) &&
            (*out < 0 || is_better(forms[i], forms[*out], wish)))
            *out = i;
    }
    return MGX_OK;
}

// What compiling the portable program takes: the options of a form for the same target.
static enum mgx_status set_portable(struct mgx_carry *const *forms, int count,
                                    const struct mgx_form_wish *wish, struct mgx_diag *diag)
{
    struct mgx_carry *c = forms[0];
    const char *all = list(&c->arena, forms, count);
    int like;
    TRY(find_best(forms, count, wish, true, &like, diag));
    const char *name = like >= 0 ? forms[like]->target : wish->target;
    for (int i = 0; !name && i < MGX_COUNT(order); i++)
        name = is_usable(mgx_target_find(order[i]), wish) ? order[i] : NULL;
    if (!name || strlen(name) >= sizeof c->target)
        return mgx_fail(diag, MGX_NOT_FOUND, "no target can be used here: the file has %s", all);
    const struct mgx_carry_options *options = &forms[like < 0 ? 0 : like]->options;
    c->options = (struct mgx_carry_options){.offload_copy = options->offload_copy,
                                            .fast_math = options->fast_math,
                                            .threads = options->threads};
    memmove(c->target, name, strlen(name) + 1);
    c->why = mgx_arena_printf(&c->arena,
                              "the file has %s, none of them is for this machine: its "
                              "portable program is compiled for %s",
                              all, name);
    c->judged = true;
    c->fits = false;
    return c->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
}

// Of the only form there is: if it is for no target here, compiling tells.
static enum mgx_status judge_only(struct mgx_carry *c, const struct mgx_form_wish *wish,
                                  struct mgx_diag *diag)
{
    const struct mgx_target *target = mgx_target_find(c->target);
    return target ? judge(c, target, wish, diag) : MGX_OK;
}

static enum mgx_status choose(void *user, struct mgx_carry *const *forms, int count, bool portable,
                              int *out, struct mgx_diag *diag)
{
    const struct mgx_form_wish *wish = user;
    *out = 0;
    for (int i = 0; i < count; i++)
        forms[i]->trusted = wish->trusted;
    if (wish->portable && portable) {
        *out = -1;
        forms[0]->target[0] = '\0';
        return MGX_OK;
    }
    if (count == 1 && !portable && !wish->target)
        return judge_only(forms[0], wish, diag);
    TRY(find_best(forms, count, wish, false, out, diag));
    if (*out < 0 && portable)
        return set_portable(forms, count, wish, diag);
    if (*out < 0)
        TRY(find_best(forms, count, wish, true, out, diag));
    if (*out < 0)
        return mgx_fail(diag, MGX_NOT_FOUND,
                        "of the forms in the file none is for %s, and it has no portable program: "
                        "%s",
                        wish->target ? wish->target : "this machine",
                        list(&forms[0]->arena, forms, count));
    struct mgx_carry *c = forms[*out];
    c->form = mgx_arena_printf(&c->arena, "%s, of %s", c->kind ? c->kind : c->target,
                               list(&c->arena, forms, count));
    return c->form ? MGX_OK : mgx_fail_memory(diag);
}

struct mgx_carry_chooser mgx_form_chooser(const struct mgx_form_wish *wish)
{
    return (struct mgx_carry_chooser){choose, (void *)wish};
}

enum mgx_status mgx_form_options(struct mgx_carry *c, const struct mgx_form_wish *wish,
                                 const struct mgx_target **target, struct mgx_compile_options *out,
                                 struct mgx_diag *diag)
{
    *target = mgx_target_find(c->target);
    if (!*target)
        return mgx_fail(diag, MGX_NOT_FOUND,
                        "the program is compiled for target '%s', which is not built in",
                        c->target);
    if (!c->judged)
        TRY(judge(c, *target, wish, diag));
    *out = (struct mgx_compile_options){.offload_copy = c->options.offload_copy,
                                        .fast_math = c->options.fast_math,
                                        .threads = c->options.threads};
    if (!put_settings(c, *target, wish, &c->arena, &out->own))
        return mgx_fail_memory(diag);
    if (c->fits)
        return MGX_OK;
    mgx_carry_mark_literals(c); // passes read them
    return mgx_carry_check(c, diag);
}
