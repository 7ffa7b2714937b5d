// SPDX-License-Identifier: MIT
// Files of ranges: whatever is read prints, reads back as the same, and prints as a table.
#include <stdlib.h>
#include <string.h>

#include "quant/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mgx_recipe r, again;
    struct mgx_str text = {0}, second = {0}, table = {0};
    struct mgx_diag diag = {0};
    if (mgx_recipe_parse(&r, (const char *)data, size, &diag) != MGX_OK) {
        require(diag.status != MGX_OK && diag.text[0]);
        return 0;
    }
    mgx_recipe_print(&text, &r);
    mgx_recipe_print_table(&table, &r);
    require(mgx_recipe_parse(&again, mgx_str_text(&text), text.size, &diag) == MGX_OK);
    mgx_recipe_print(&second, &again);
    require(strcmp(mgx_str_text(&text), mgx_str_text(&second)) == 0);
    mgx_recipe_fini(&r);
    mgx_recipe_fini(&again);
    mgx_str_fini(&text);
    mgx_str_fini(&second);
    mgx_str_fini(&table);
    return 0;
}
