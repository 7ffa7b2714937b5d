// SPDX-License-Identifier: MIT
// Names of groups; see name.h.
#include "pass/engine/name.h"

#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/view.h"

static void append(char *out, const char *name)
{
    const size_t used = strlen(out), size = strcspn(name, ":"); // "epilogue:3" is a copy
    if (used + size + 2 > MGX_GROUP_NAME)
        return;
    snprintf(out + used, MGX_GROUP_NAME - used, "%s%.*s", used ? "_" : "", (int)size, name);
}

// The operators that compute, those of a fused body in its place.
static void append_parts(char *out, const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_pointwise && ins->mod_count == 1) {
        for (const struct mgx_ins *b = ins->mod[0]->first; b; b = b->next)
            append_parts(out, b);
        return;
    }
    if (ins->op->name[0] == '@' || mgx_is_reshaper(ins))
        return;
    append(out, ins->op == &mgx_op_group && ins->mod_count ? ins->mod[0]->name : ins->op->name);
}

void mgx_name_group(struct mgx_ins *const *ins, int count, const char *tag,
                    char out[MGX_GROUP_NAME])
{
    out[0] = '\0';
    const bool by_parts = strcmp(tag, "epilogue") == 0 || strcmp(tag, "expand") == 0;
    if (!by_parts)
        append(out, tag);
    for (int i = 0; by_parts && i < count; i++)
        append_parts(out, ins[i]);
}
