// SPDX-License-Identifier: MIT
// The half of both_test.cpp that is written with the guides' headers.
#include <migraphx/load_save.hpp>
#include <migraphx/make_op.hpp>

#include <sstream>

void save_adder(const char *path, float value);
std::string text_of(const char *path);

void save_adder(const char *path, float value)
{
    migraphx::program p;
    migraphx::module *m = p.get_main_module();
    const migraphx::shape s{migraphx::shape::float_type, {2}};
    const auto x = m->add_parameter("x", s);
    const auto more = m->add_literal(migraphx::literal{s, {value, value}});
    m->add_return({m->add_instruction(migraphx::make_op("add"), x, more)});
    migraphx::save(p, path);
}

std::string text_of(const char *path)
{
    std::ostringstream os;
    os << migraphx::load(path);
    return os.str();
}
