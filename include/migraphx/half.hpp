// SPDX-License-Identifier: MIT
// A header of MIGraphX's; see native/narrow_float.hpp.
#include <migraphx/native/narrow_float.hpp>
