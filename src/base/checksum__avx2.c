// SPDX-License-Identifier: MIT
// The checksum with AVX2: the only function of this object, and only called where the machine has
// it.
#include "base/checksum_body.h"

#if defined __x86_64__
__attribute__((target("avx2"))) uint64_t mgx_checksum_avx2(const void *data, size_t size)
{
    return sum_of(data, size);
}
#endif
