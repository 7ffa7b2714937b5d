// SPDX-License-Identifier: MIT
// The text form of programs with all real operators: whatever is read must verify, print, read
// back as the same text where it reads back, and survive sorting and cloning.
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

// Attributes print with six digits of a float, so a shape that depends on more may be refused; a
// text that is read must be a fixed point.
static void there_and_back(const struct mgx_program *p)
{
    struct mgx_str text = {0}, again = {0};
    struct mgx_program *q;
    mgx_program_print(&text, p);
    require(!text.failed);
    if (mgx_program_parse(&q, &mgx_ops, text.text, text.size, NULL) == MGX_OK) {
        mgx_program_print(&again, q);
        require(strcmp(text.text, again.text) == 0);
        mgx_program_destroy(q);
    }
    mgx_str_fini(&text);
    mgx_str_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mgx_program *p, *q;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, (const char *)data, size, &diag) != MGX_OK) {
        require(diag.status != MGX_OK && diag.text[0]);
        return 0;
    }
    require(mgx_program_verify(p, NULL) == MGX_OK);
    there_and_back(p);
    if (mgx_program_clone(&q, p, NULL) == MGX_OK) {
        require(mgx_program_equal(p, q));
        for (int i = 0; i < q->module_count; i++)
            mgx_module_sort(q->modules[i]);
        require(mgx_program_verify(q, NULL) == MGX_OK);
        mgx_program_destroy(q);
    }
    mgx_program_destroy(p);
    return 0;
}
