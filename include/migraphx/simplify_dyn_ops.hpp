// SPDX-License-Identifier: MIT
// A header of MIGraphX's guides; see native.hpp.
#include <migraphx/native.hpp>
