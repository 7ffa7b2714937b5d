// SPDX-License-Identifier: MIT
// Pages of memory; see page.h.
#include "base/page.h"

#include <stdint.h>
#include <sys/mman.h>

void mgx_page_large(void *data, size_t size)
{
    const uintptr_t large = (uintptr_t)2 << 20;
    const uintptr_t begin = ((uintptr_t)data + large - 1) & ~(large - 1);
    const uintptr_t end = ((uintptr_t)data + size) & ~(large - 1);
#ifdef MADV_HUGEPAGE
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)begin, (void)end;
#endif
}
