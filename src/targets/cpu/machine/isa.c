// SPDX-License-Identifier: MIT
// Names of sets of features, and reading them; see isa.h.
#include "targets/cpu/machine/isa.h"

#include <stdio.h>
#include <string.h>

#include "targets/cpu/machine/cpuid.h"

struct named {
    const char *name;
    mgx_isa set;
};

static const struct named sets[] = {
#define X(name, text) {text, MGX_ISA_##name},
    MGX_ISA_LIST(X)
#undef X
};

static const struct named features[] = {
#define X(name, text, ...) {text, MGX_HAS(name)},
    MGX_X86_FEATURES(X) MGX_ARM_FEATURES(X)
#undef X
};

enum { SETS = sizeof sets / sizeof *sets, FEATURES = sizeof features / sizeof *features };

_Static_assert(MGX_FEATURE_COUNT <= 64, "a feature is a bit");

struct mgx_isa_text mgx_isa_text(mgx_isa isa)
{
    const struct named *most = &sets[0];
    for (int i = 0; i < SETS; i++)
        if (mgx_isa_holds(isa, sets[i].set) && sets[i].set > most->set)
            most = &sets[i];
    struct mgx_isa_text out;
    size_t at = (size_t)snprintf(out.text, sizeof out.text, "%s", most->name);
    for (int i = 0; i < FEATURES && at < sizeof out.text; i++)
        if (isa & ~most->set & features[i].set)
            at += (size_t)snprintf(out.text + at, sizeof out.text - at, "+%s", features[i].name);
    return out;
}

static const struct named *find_named(const struct named *list, int count, const char *name,
                                      size_t size)
{
    for (int i = 0; i < count; i++)
        if (strlen(list[i].name) == size && memcmp(list[i].name, name, size) == 0)
            return &list[i];
    return NULL;
}

static enum mgx_status fail_unknown(const char *word, size_t size, char sign, struct mgx_diag *diag)
{
    const struct named *list = sign ? features : sets;
    const int count = sign ? FEATURES : SETS;
    char known[512];
    size_t at = 0;
    for (int i = 0; i < count && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, " %s", list[i].name);
    return mgx_fail(diag, MGX_INVALID, "unknown instruction set \"%.*s\"; there are%s%s", (int)size,
                    word, known, sign ? "" : " native, and features after + and -");
}

// Reads one word up to the next sign. The first is a set, or "native"; others are features.
static enum mgx_status add_word(const char *word, size_t size, char sign, mgx_isa native,
                                mgx_isa *isa, struct mgx_diag *diag)
{
    static const char all[] = "native";
    const struct named *found =
        sign ? find_named(features, FEATURES, word, size) : find_named(sets, SETS, word, size);
    if (!sign && size == sizeof all - 1 && memcmp(word, all, size) == 0)
        *isa = native;
    else if (!found)
        return fail_unknown(word, size, sign, diag);
    else
        *isa = sign == '-' ? *isa & ~found->set : *isa | found->set;
    return MGX_OK;
}

enum mgx_status mgx_isa_require(const char *name, mgx_isa *out, struct mgx_diag *diag)
{
    const mgx_isa machine = mgx_cpu()->isa;
    mgx_isa isa = name ? 0 : machine;
    *out = machine & mgx_isa_needed();
    char sign = 0;
    for (const char *at = name; at;) {
        const size_t size = strcspn(at, "+-");
        TRY(add_word(at, size, sign, machine, &isa, diag));
        sign = at[size];
        at = sign ? at + size + 1 : NULL;
        if (sign == 0 && !mgx_isa_holds(machine, isa))
            return mgx_fail(diag, MGX_UNSUPPORTED, "instruction set %s is beyond this machine's %s",
                            name, mgx_isa_name(*out));
    }
    *out = isa & mgx_isa_needed();
    return MGX_OK;
}
