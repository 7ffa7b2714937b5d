// SPDX-License-Identifier: MIT
// Running block programs; see block.h. Operand pointers are set up once per block, then the lines
// run in order.
#include "targets/cpu/kernel/rows/block.h"

#include <assert.h>

void mgx_block_run(const struct mgx_block *b, const struct mgx_block_operand *in, float *const *out,
                   int n, float *scratch)
{
    assert(n <= MGX_BLOCK && b->in_count + b->constant_count + b->temporary_count + b->out_count <=
                                 MGX_BLOCK_OPERANDS);
    const mgx_block_fn *table = b->kernel->table;
    struct mgx_block_operand operand[MGX_BLOCK_OPERANDS];
    int at = 0;
    for (int i = 0; i < b->in_count; i++)
        operand[at++] = in[i];
    for (int i = 0; i < b->constant_count; i++)
        operand[at++] = (struct mgx_block_operand){(float *)&b->constants[i], true};
    for (int i = 0; i < b->temporary_count; i++)
        operand[at++] = (struct mgx_block_operand){scratch + i * MGX_BLOCK, false};
    for (int i = 0; i < b->out_count; i++)
        operand[at++] = (struct mgx_block_operand){out[i], false};
    for (int i = 0; i < b->line_count; i++) {
        const struct mgx_block_line *line = &b->lines[i];
        const struct mgx_block_operand x[3] = {operand[line->in[0]], operand[line->in[1]],
                                               operand[line->in[2]]};
        table[line->code](operand[line->out].data, x, line->a, line->b, n);
    }
}
