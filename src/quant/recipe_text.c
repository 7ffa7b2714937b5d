// SPDX-License-Identifier: MIT
// Recipes as text: written, read, and as a table for people; see recipe.h and docs/precision.md.
//
// A file comes from people and disks: every word is checked, numbers must be finite, lists are as
// long as the bytes that hold them. A file that was cut off has no `end`, one that was damaged
// another checksum.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "ir/scan.h"
#include "ir/text.h"
#include "quant/recipe.h"

static const char head[] = "migraphx quantization 1";

// --- writing ---

static void put_list(struct mgx_str *out, const char *key, struct mgx_doubles d)
{
    for (int i = 0; i < d.count; i++) {
        mgx_str_put(out, i ? ", " : "    ");
        if (!i)
            mgx_str_printf(out, "%s {", key);
        mgx_text_print_exact(out, d.v[i]);
    }
    if (d.count)
        mgx_str_put(out, "}\n");
}

static void put_text(struct mgx_str *out, const char *key, const char *text)
{
    if (!text)
        return;
    mgx_str_printf(out, "    %s ", key);
    mgx_text_quote(out, text, strlen(text));
    mgx_str_putc(out, '\n');
}

// An error that is not known is a "-".
static void put_cost(struct mgx_str *out, const struct mgx_recipe_entry *e)
{
    if (!e->weighed)
        return;
    mgx_str_put(out, "    cost ");
    if (e->measured)
        mgx_text_print_exact(out, e->error);
    else
        mgx_str_putc(out, '-');
    mgx_str_putc(out, ' ');
    mgx_text_print_exact(out, e->gain);
    mgx_str_putc(out, '\n');
}

static void put_numbers(struct mgx_str *out, double a, double b)
{
    mgx_str_putc(out, ' ');
    mgx_text_print_exact(out, a);
    mgx_str_putc(out, ' ');
    mgx_text_print_exact(out, b);
    mgx_str_putc(out, '\n');
}

static void put_entry(struct mgx_str *out, const struct mgx_recipe_entry *e)
{
    mgx_str_put(out, "instruction ");
    mgx_text_quote(out, e->name, strlen(e->name));
    mgx_str_printf(out, " %s\n", mgx_type_name(e->type));
    put_text(out, "origin", e->origin);
    put_text(out, "why", e->why);
    for (int i = 0; i < 2; i++)
        if (e->in[i].known) {
            mgx_str_printf(out, "    input %d", i);
            put_numbers(out, e->in[i].low, e->in[i].high);
        }
    put_list(out, "smooth", e->smooth);
    put_list(out, "means", e->means);
    put_cost(out, e);
}

void mgx_recipe_print(struct mgx_str *out, const struct mgx_recipe *r)
{
    struct mgx_str text = {0};
    mgx_str_printf(&text, "%s\ntype %s\nmethod %s\nactivations %s\nweights %s\n", head,
                   mgx_type_name(r->type), mgx_quant_method_names[r->method],
                   r->asymmetric ? "asymmetric" : "symmetric",
                   r->per_tensor ? "whole" : "channels");
    if (r->has_budget) {
        mgx_str_printf(&text, "budget %s", mgx_quant_metric_names[r->metric]);
        put_numbers(&text, r->budget, r->error);
    }
    for (int64_t i = 0; i < r->count; i++)
        put_entry(&text, &r->v[i]);
    mgx_str_printf(&text, "end %016" PRIx64 "\n",
                   mgx_hash_bytes(mgx_str_text(&text), text.size, 0));
    out->failed |= text.failed;
    mgx_str_putn(out, mgx_str_text(&text), text.size);
    mgx_str_fini(&text);
}

// --- reading ---

static enum mgx_status finite_number(struct mgx_scan *s, double *out)
{
    TRY(mgx_scan_double(s, out));
    return isfinite(*out) ? MGX_OK : mgx_scan_fail(s, s->at, MGX_INVALID, "a number is not finite");
}

static enum mgx_status one_of(struct mgx_scan *s, const char *const *names, const char *what,
                              int *out)
{
    for (int i = 0; names[i]; i++)
        if (mgx_scan_accept_word(s, names[i])) {
            *out = i;
            return MGX_OK;
        }
    return mgx_scan_expected(s, what);
}

// `wide`: or the types of products that are left out.
static enum mgx_status scan_type(struct mgx_scan *s, bool wide, enum mgx_type *out)
{
    int64_t type;
    const char *at = s->at;
    TRY(mgx_scan_type(s, &type));
    *out = (enum mgx_type)type;
    const bool left = *out == MGX_FLOAT || (wide && *out == MGX_HALF);
    if (*out != MGX_INT8 && !left && !mgx_type_is_fp8(*out))
        return mgx_scan_fail(s, at, MGX_UNSUPPORTED, "products are not quantized to %s",
                             mgx_type_name(*out));
    return MGX_OK;
}

static enum mgx_status scan_input(struct mgx_scan *s, struct mgx_recipe_entry *e)
{
    int64_t i;
    double low, high;
    const char *at = s->at;
    TRY(mgx_scan_int(s, &i));
    TRY(finite_number(s, &low));
    TRY(finite_number(s, &high));
    if (i != 0 && i != 1)
        return mgx_scan_fail(s, at, MGX_INVALID, "a product has inputs 0 and 1, not %" PRId64, i);
    if (low > 0 || high < 0)
        return mgx_scan_fail(s, at, MGX_INVALID, "a range from %g to %g does not hold 0", low,
                             high);
    e->in[i] = (struct mgx_recipe_input){true, low, high};
    return MGX_OK;
}

static enum mgx_status scan_list(struct mgx_scan *s, bool positive, struct mgx_doubles *out)
{
    const char *at = s->at;
    TRY(mgx_scan_doubles(s, out));
    for (int i = 0; i < out->count; i++)
        if (!isfinite(out->v[i]) || (positive && out->v[i] <= 0))
            return mgx_scan_fail(s, at, MGX_INVALID, "number %d of the list is %g", i, out->v[i]);
    return MGX_OK;
}

static enum mgx_status scan_cost(struct mgx_scan *s, struct mgx_recipe_entry *e)
{
    e->weighed = true;
    e->measured = !mgx_scan_accept_word(s, "-");
    if (e->measured)
        TRY(finite_number(s, &e->error));
    return finite_number(s, &e->gain);
}

static enum mgx_status scan_entry(struct mgx_scan *s, struct mgx_recipe *r)
{
    struct mgx_recipe_entry e = {0};
    const char *at = s->at;
    TRY(mgx_scan_string(s, " \t\r\n", &e.name));
    TRY(scan_type(s, true, &e.type));
    if (mgx_recipe_find(r, e.name))
        return mgx_scan_fail(s, at, MGX_INVALID, "%s comes twice", e.name);
    for (enum mgx_status status = MGX_OK; status == MGX_OK;) {
        if (mgx_scan_accept_word(s, "origin"))
            status = mgx_scan_string(s, " \t\r\n", &e.origin);
        else if (mgx_scan_accept_word(s, "why"))
            status = mgx_scan_string(s, " \t\r\n", &e.why);
        else if (mgx_scan_accept_word(s, "input"))
            status = scan_input(s, &e);
        else if (mgx_scan_accept_word(s, "smooth"))
            status = scan_list(s, true, &e.smooth);
        else if (mgx_scan_accept_word(s, "means"))
            status = scan_list(s, false, &e.means);
        else if (mgx_scan_accept_word(s, "cost"))
            status = scan_cost(s, &e);
        else
            break;
        TRY(status);
    }
    return MGX_PUSH(r, &r->arena, e) ? MGX_OK : mgx_fail_memory(s->diag);
}

static enum mgx_status scan_budget(struct mgx_scan *s, struct mgx_recipe *r)
{
    int metric;
    TRY(one_of(s, mgx_quant_metric_names, "relative or top", &metric));
    TRY(finite_number(s, &r->budget));
    r->metric = (enum mgx_quant_metric)metric;
    r->has_budget = true;
    return finite_number(s, &r->error);
}

static enum mgx_status scan_setting(struct mgx_scan *s, struct mgx_recipe *r)
{
    static const char *const activations[] = {"symmetric", "asymmetric", NULL};
    static const char *const weights[] = {"channels", "whole", NULL};
    int i = 0;
    if (mgx_scan_accept_word(s, "type"))
        return scan_type(s, false, &r->type);
    if (mgx_scan_accept_word(s, "method")) {
        TRY(one_of(s, mgx_quant_method_names, "a method", &i));
        r->method = (enum mgx_quant_method)i;
    } else if (mgx_scan_accept_word(s, "activations")) {
        TRY(one_of(s, activations, "symmetric or asymmetric", &i));
        r->asymmetric = i;
    } else if (mgx_scan_accept_word(s, "weights")) {
        TRY(one_of(s, weights, "channels or whole", &i));
        r->per_tensor = i;
    } else if (mgx_scan_accept_word(s, "budget"))
        return scan_budget(s, r);
    else
        return mgx_scan_expected(s, "'instruction' or 'end'");
    return MGX_OK;
}

// What stands behind `end`, if anything does, is the checksum of what stands before it.
static enum mgx_status scan_end(struct mgx_scan *s, const char *end)
{
    const char *sum;
    if (!mgx_scan_peek(s))
        return MGX_OK;
    TRY(mgx_scan_string(s, " \t\r\n", &sum));
    char own[17];
    snprintf(own, sizeof own, "%016" PRIx64, mgx_hash_bytes(s->text, (size_t)(end - s->text), 0));
    if (strcmp(own, sum) != 0)
        return mgx_fail(s->diag, MGX_INVALID,
                        "the file is not what was written: its checksum is %s, not %s; if it was "
                        "edited, leave nothing behind its last word, end",
                        own, sum);
    return mgx_scan_peek(s) ? mgx_scan_expected(s, "nothing more") : MGX_OK;
}

static enum mgx_status scan_recipe(struct mgx_scan *s, struct mgx_recipe *r)
{
    if ((size_t)(s->end - s->at) < sizeof head || memcmp(s->at, head, sizeof head - 1) != 0)
        return mgx_fail(s->diag, MGX_INVALID, "it does not start with '%s'", head);
    s->at += sizeof head - 1;
    for (;;) {
        mgx_scan_space(s);
        const char *at = s->at;
        if (mgx_scan_accept_word(s, "end"))
            return scan_end(s, at);
        if (mgx_scan_accept_word(s, "instruction"))
            TRY(scan_entry(s, r));
        else
            TRY(scan_setting(s, r));
    }
}

enum mgx_status mgx_recipe_parse(struct mgx_recipe *out, const char *text, size_t size,
                                 struct mgx_diag *diag)
{
    mgx_recipe_init(out);
    struct mgx_scan s = {.text = text,
                         .at = text,
                         .end = text + size,
                         .comments = true,
                         .arena = &out->arena,
                         .diag = diag};
    const enum mgx_status status = scan_recipe(&s, out);
    if (status != MGX_OK) {
        mgx_where(diag, "ranges of a quantization");
        mgx_recipe_fini(out);
    }
    return status;
}

// --- the table ---

static int width_of(const struct mgx_recipe *r)
{
    size_t width = 11;
    for (int64_t i = 0; i < r->count; i++)
        width = strlen(r->v[i].name) > width ? strlen(r->v[i].name) : width;
    return (int)(width < 60 ? width : 60);
}

static void put_row(struct mgx_str *out, const struct mgx_recipe_entry *e, int width)
{
    mgx_str_printf(out, "%-*s  %-10s", width, e->name, mgx_type_name(e->type));
    if (e->measured)
        mgx_str_printf(out, "  %9.2e", e->error);
    else
        mgx_str_printf(out, "  %9s", "-");
    if (e->weighed)
        mgx_str_printf(out, "  %9.1f", e->gain);
    else
        mgx_str_printf(out, "  %9s", "-");
    mgx_str_printf(out, "  %s%s%s\n", e->why ? e->why : "", e->why && e->origin ? "; " : "",
                   e->origin ? e->origin : "");
}

void mgx_recipe_print_table(struct mgx_str *out, const struct mgx_recipe *r)
{
    const int width = width_of(r);
    int64_t narrow = 0;
    double gain = 0;
    mgx_str_printf(out, "%-*s  %-10s  %9s  %9s\n", width, "instruction", "type", "error",
                   "gain (us)");
    for (int64_t i = 0; i < r->count; i++) {
        put_row(out, &r->v[i], width);
        const bool is_narrow = mgx_recipe_is_narrow(&r->v[i]);
        narrow += is_narrow;
        gain += is_narrow && r->v[i].weighed ? r->v[i].gain : 0;
    }
    mgx_str_printf(out, "%" PRId64 " of %" PRId64 " products in %s", narrow, r->count,
                   mgx_type_name(r->type));
    if (r->has_budget)
        mgx_str_printf(out, ", %s error %.3g of %.3g allowed, %.1f us saved",
                       mgx_quant_metric_names[r->metric], r->error, r->budget, gain);
    mgx_str_putc(out, '\n');
}

void mgx_recipe_explain(struct mgx_str *out, const struct mgx_recipe *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        const struct mgx_recipe_entry *e = &r->v[i];
        if (mgx_recipe_is_narrow(e) || !e->weighed)
            continue;
        mgx_str_printf(out, "%s%s%s%s: not in %s, %s", e->name, e->origin ? " (" : "",
                       e->origin ? e->origin : "", e->origin ? ")" : "", mgx_type_name(r->type),
                       e->why ? e->why : "");
        if (e->gain <= 0)
            mgx_str_printf(out, ": %.1f us slower", -e->gain);
        mgx_str_putc(out, '\n');
    }
}
