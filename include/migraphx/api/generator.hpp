// SPDX-License-Identifier: MIT
// Generating text: a model and the texts that it continues. Part of migraphx.hpp; docs/generation.md.
//
//     migraphx::generator g("folder");
//     migraphx::generator::text text = g.add({1, 2, 3});
//     while (!g.is_end(token = text.next()))
//         ...
#ifndef MIGRAPHX_GUARD_API_GENERATOR_HPP
#define MIGRAPHX_GUARD_API_GENERATOR_HPP

#include <migraphx/migraphx.hpp>

#include <cstdint>

namespace migraphx
{
inline namespace api
{

struct generator_options : MIGRAPHX_HANDLE_BASE(generator_options) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(generator_options)

    generator_options()
    {
        make_handle(&migraphx_generator_options_create);
    }
    void set_target(const std::string &name)
    {
        call(&migraphx_generator_options_set_target, get_handle_ptr(), name.c_str());
    }
    void set_compile_options(const compile_options &options)
    {
        call(&migraphx_generator_options_set_compile_options, get_handle_ptr(),
             options.get_handle_ptr());
    }
    void set_context(std::size_t tokens)
    {
        call(&migraphx_generator_options_set_context, get_handle_ptr(), tokens);
    }
    void set_piece(std::size_t tokens)
    {
        call(&migraphx_generator_options_set_piece, get_handle_ptr(), tokens);
    }
    void set_cards(const std::vector<std::size_t> &cards)
    {
        call(&migraphx_generator_options_set_cards, get_handle_ptr(), cards.data(), cards.size());
    }
    void set_name(const std::string &role, const std::string &name)
    {
        call(&migraphx_generator_options_set_name, get_handle_ptr(), role.c_str(), name.c_str());
    }
    void add_state(const std::string &past, const std::string &present)
    {
        call(&migraphx_generator_options_add_state, get_handle_ptr(), past.c_str(),
             present.c_str());
    }
    void add_end(std::int64_t token)
    {
        call(&migraphx_generator_options_add_end, get_handle_ptr(), token);
    }
};

struct sampling : MIGRAPHX_HANDLE_BASE(sampling) {
    MIGRAPHX_HANDLE_CONSTRUCTOR(sampling)

    sampling()
    {
        make_handle(&migraphx_sampling_create);
    }
    void set_temperature(double value)
    {
        call(&migraphx_sampling_set_temperature, get_handle_ptr(), value);
    }
    void set_top_k(std::size_t value)
    {
        call(&migraphx_sampling_set_top_k, get_handle_ptr(), value);
    }
    void set_top_p(double value)
    {
        call(&migraphx_sampling_set_top_p, get_handle_ptr(), value);
    }
    void set_min_p(double value)
    {
        call(&migraphx_sampling_set_min_p, get_handle_ptr(), value);
    }
    void set_repetition_penalty(double value)
    {
        call(&migraphx_sampling_set_repetition_penalty, get_handle_ptr(), value);
    }
    void set_seed(std::uint64_t value)
    {
        call(&migraphx_sampling_set_seed, get_handle_ptr(), value);
    }
};

// Copies share the generator and its texts; share() makes one with texts of its own.
struct generator {
    // A text ends with the last copy of what add gave; it keeps its generator alive.
    struct text {
        std::size_t number() const
        {
            return *m_number;
        }
        std::size_t size() const
        {
            std::size_t result = 0;
            call(&migraphx_generator_size, &result, m_generator.get(), number());
            return result;
        }
        std::vector<std::int64_t> tokens() const
        {
            std::vector<std::int64_t> result(size());
            if (!result.empty())
                call(&migraphx_generator_tokens, result.data(), m_generator.get(), number(),
                     result.size());
            return result;
        }
        void append(const std::vector<std::int64_t> &tokens)
        {
            call(&migraphx_generator_append, m_generator.get(), number(), tokens.data(),
                 tokens.size());
        }
        // What the text is about, for a model with an encoder: inputs of that.
        void set_source(const program_parameters &inputs)
        {
            call(&migraphx_generator_set_source, m_generator.get(), number(),
                 inputs.get_handle_ptr());
        }
        void rewind(std::size_t size)
        {
            call(&migraphx_generator_rewind, m_generator.get(), number(), size);
        }
        text fork(std::size_t size) const
        {
            std::size_t result = 0;
            call(&migraphx_generator_fork, &result, m_generator.get(), number(), size);
            return {m_generator, result};
        }
        void set_sampling(const sampling &settings)
        {
            call(&migraphx_generator_set_sampling, m_generator.get(), number(),
                 settings.get_handle_ptr());
        }
        // Empty: nothing is added to the scores.
        void set_bias(const std::vector<float> &values)
        {
            call(&migraphx_generator_set_bias, m_generator.get(), number(),
                 values.empty() ? nullptr : values.data(), values.size());
        }
        void set_guesses(std::size_t most)
        {
            call(&migraphx_generator_set_guesses, m_generator.get(), number(), most);
        }
        std::int64_t next()
        {
            std::int64_t result = 0;
            call(&migraphx_generator_next, &result, m_generator.get(), m_number.get(),
                 std::size_t{1});
            return result;
        }
        std::vector<float> logits() const
        {
            std::size_t words = 0;
            call(&migraphx_generator_vocabulary, &words, m_generator.get());
            std::vector<float> result(words);
            call(&migraphx_generator_logits, result.data(), m_generator.get(), number(),
                 result.size());
            return result;
        }

      private:
        friend struct generator;
        text(std::shared_ptr<migraphx_generator> g, std::size_t number)
            : m_generator(g), m_number(new std::size_t{number}, [g](std::size_t *n) {
                  migraphx_generator_remove(g.get(), *n);
                  delete n;
              })
        {
        }
        std::shared_ptr<migraphx_generator> m_generator;
        std::shared_ptr<std::size_t> m_number;
    };

    explicit generator(const std::string &folder,
                       const generator_options &options = generator_options{})
        : generator(make<migraphx_generator>(&migraphx_generator_load, folder.c_str(),
                                             options.get_handle_ptr()))
    {
    }
    explicit generator(const program &p, const generator_options &options = generator_options{})
        : generator(make<migraphx_generator>(&migraphx_generator_create, p.get_handle_ptr(),
                                             options.get_handle_ptr()))
    {
    }
    generator share() const
    {
        return generator(make<migraphx_generator>(&migraphx_generator_share, m_handle.get()));
    }
    std::size_t vocabulary() const
    {
        std::size_t result = 0;
        call(&migraphx_generator_vocabulary, &result, m_handle.get());
        return result;
    }
    std::size_t context() const
    {
        std::size_t result = 0;
        call(&migraphx_generator_context, &result, m_handle.get());
        return result;
    }
    bool is_end(std::int64_t token) const
    {
        bool result = false;
        call(&migraphx_generator_is_end, &result, m_handle.get(), token);
        return result;
    }
    // What a text of a model with an encoder begins with; -1: nobody says.
    std::int64_t start() const
    {
        std::int64_t result = -1;
        call(&migraphx_generator_start, &result, m_handle.get());
        return result;
    }
    program_parameter_shapes source_shapes() const
    {
        return {make<migraphx_program_parameter_shapes>(&migraphx_generator_source_shapes,
                                                        m_handle.get()),
                own{}};
    }
    sampling default_sampling() const
    {
        return {make<migraphx_sampling>(&migraphx_generator_sampling, m_handle.get()), own{}};
    }
    text add(const std::vector<std::int64_t> &tokens = {})
    {
        std::size_t number = 0;
        call(&migraphx_generator_add, &number, m_handle.get());
        text result{m_handle, number};
        result.append(tokens);
        return result;
    }
    // The next token of each, in one run where the model can.
    std::vector<std::int64_t> next(const std::vector<text> &texts)
    {
        std::vector<std::int64_t> result(texts.size());
        std::vector<std::size_t> numbers;
        for (const auto &t : texts)
            numbers.push_back(t.number());
        if (!texts.empty())
            call(&migraphx_generator_next, result.data(), m_handle.get(), numbers.data(),
                 numbers.size());
        return result;
    }
    void set_draft(const generator &draft)
    {
        call(&migraphx_generator_set_draft, m_handle.get(), draft.m_handle.get());
    }
    double statistic(const std::string &name) const
    {
        double result = 0;
        call(&migraphx_generator_statistic, &result, m_handle.get(), name.c_str());
        return result;
    }

  private:
    explicit generator(migraphx_generator *take)
        : m_handle(take, [](migraphx_generator *g) { migraphx_generator_destroy(g); })
    {
    }
    std::shared_ptr<migraphx_generator> m_handle;
};

} // namespace api
} // namespace migraphx

#endif
