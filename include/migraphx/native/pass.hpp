// SPDX-License-Identifier: MIT
// Running passes by hand: run_passes(p, {simplify_algebra{}, dead_code_elimination{}}). Dead code
// goes after each of them anyway. See native.hpp.
#ifndef MIGRAPHX_GUARD_NATIVE_PASS_HPP
#define MIGRAPHX_GUARD_NATIVE_PASS_HPP

#include <migraphx/native/program.hpp>

namespace migraphx
{
inline namespace version_1
{

// A pass of the engine, by its name or by what has a name().
struct pass {
    explicit pass(std::string name) : m_name(std::move(name))
    {
    }
    template <class T, class = decltype(std::string(std::declval<const T &>().name()))>
    pass(const T &named) : m_name(named.name())
    {
    }
    const std::string &name() const
    {
        return m_name;
    }

  private:
    std::string m_name;
};

// Passes without settings, of MIGraphX's names.
#define MIGRAPHX_NATIVE_PASS(pass_name)                                                            \
    struct pass_name {                                                                             \
        std::string name() const                                                                   \
        {                                                                                          \
            return #pass_name;                                                                     \
        }                                                                                          \
    };
MIGRAPHX_NATIVE_PASS(auto_contiguous)
MIGRAPHX_NATIVE_PASS(dead_code_elimination)
MIGRAPHX_NATIVE_PASS(eliminate_common_subexpression)
MIGRAPHX_NATIVE_PASS(eliminate_contiguous)
MIGRAPHX_NATIVE_PASS(eliminate_convert)
MIGRAPHX_NATIVE_PASS(eliminate_identity)
MIGRAPHX_NATIVE_PASS(eliminate_pad)
MIGRAPHX_NATIVE_PASS(fp8_ocp_to_fnuz)
MIGRAPHX_NATIVE_PASS(fuse_pointwise)
MIGRAPHX_NATIVE_PASS(inline_module)
MIGRAPHX_NATIVE_PASS(normalize_ops)
MIGRAPHX_NATIVE_PASS(optimize_module)
MIGRAPHX_NATIVE_PASS(promote_literals)
MIGRAPHX_NATIVE_PASS(propagate_constant)
MIGRAPHX_NATIVE_PASS(rewrite_gelu)
MIGRAPHX_NATIVE_PASS(rewrite_pooling)
MIGRAPHX_NATIVE_PASS(rewrite_quantization)
MIGRAPHX_NATIVE_PASS(rewrite_rnn)
MIGRAPHX_NATIVE_PASS(simplify_algebra)
MIGRAPHX_NATIVE_PASS(simplify_dyn_ops)
MIGRAPHX_NATIVE_PASS(simplify_qdq)
MIGRAPHX_NATIVE_PASS(simplify_reshapes)
MIGRAPHX_NATIVE_PASS(split_single_dyn_dim)
#undef MIGRAPHX_NATIVE_PASS

inline void run_passes(program &p, const std::vector<pass> &passes)
{
    std::vector<const char *> names;
    for (const auto &x : passes)
        names.push_back(x.name().c_str());
    detail::call(migraphx_program_run_passes(p.handle(), names.data(), names.size()));
    p.forget_source();
}

} // namespace version_1
} // namespace migraphx

#endif
