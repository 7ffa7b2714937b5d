// SPDX-License-Identifier: MIT
// Floats narrower than float as C++ types: half, bf16 and the fp8 kinds.
//
// A value is its bits. It becomes a float by itself and is made of any number, rounded to nearest,
// ties to even, as the engine's own conversion does; so arithmetic is float's. Needs nothing else
// of the engine: usable beside migraphx.hpp and the headers of the guides alike.
#ifndef MIGRAPHX_GUARD_NATIVE_NARROW_FLOAT_HPP
#define MIGRAPHX_GUARD_NATIVE_NARROW_FLOAT_HPP

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace migraphx
{
inline namespace version_1
{

// A format: bits of exponent and mantissa, the exponent's bias, the codes of the largest finite
// value, of what lies beyond it and of NaN. In "fnuz" formats the code of -0 is the only NaN.
template <class Bits, int Mantissa, int Bias, Bits Max, Bits Beyond, Bits Nan, bool Fnuz>
struct narrow_float {
    using bits_type = Bits;
    static constexpr Bits sign_bit = static_cast<Bits>(Bits(1) << (sizeof(Bits) * 8 - 1));
    static constexpr bool has_infinity = Beyond != Nan && Beyond > Max;

    Bits data = 0;

    narrow_float() = default;
    template <class T, class = typename std::enable_if<std::is_arithmetic<T>{}>::type>
    narrow_float(T value) : data(encode(static_cast<double>(value)))
    {
    }
    // From a narrow float of another kind, rounded: elements of any type fill a vector of one.
    template <class T,
              class = typename std::enable_if<!std::is_arithmetic<T>{} &&
                                              !std::is_same<T, narrow_float>{} &&
                                              std::is_convertible<const T &, float>{}>::type,
              class = void>
    narrow_float(const T &value) : narrow_float(static_cast<float>(value))
    {
    }
    static narrow_float from_bits(Bits bits)
    {
        narrow_float result;
        result.data = bits;
        return result;
    }

    operator float() const
    {
        const Bits code = static_cast<Bits>(data & ~sign_bit);
        if (Fnuz ? data == sign_bit : code > Max)
            return has_infinity && code == Beyond ? with_sign(infinite())
                                                  : std::numeric_limits<float>::quiet_NaN();
        const int exponent = code >> Mantissa;
        const int fraction = code & ((1 << Mantissa) - 1);
        if (exponent == 0)
            return with_sign(std::ldexp(static_cast<float>(fraction), 1 - Bias - Mantissa));
        return with_sign(
            std::ldexp(static_cast<float>(fraction + (1 << Mantissa)), exponent - Bias - Mantissa));
    }

    narrow_float operator-() const
    {
        return -static_cast<float>(*this);
    }
    narrow_float &operator+=(float x)
    {
        return *this = static_cast<float>(*this) + x;
    }
    narrow_float &operator-=(float x)
    {
        return *this = static_cast<float>(*this) - x;
    }
    narrow_float &operator*=(float x)
    {
        return *this = static_cast<float>(*this) * x;
    }
    narrow_float &operator/=(float x)
    {
        return *this = static_cast<float>(*this) / x;
    }

  private:
    static float infinite()
    {
        return std::numeric_limits<float>::infinity();
    }
    float with_sign(float magnitude) const
    {
        return data & sign_bit ? -magnitude : magnitude;
    }
    // Codes ascend with their values, so "too large" is one comparison; a carry out of the mantissa
    // lands in the exponent where it belongs.
    static Bits encode(double value)
    {
        const Bits sign = std::signbit(value) ? sign_bit : Bits(0);
        if (std::isnan(value))
            return static_cast<Bits>(Nan | sign);
        const double magnitude = std::fabs(value);
        if (std::isinf(magnitude))
            return static_cast<Bits>(Beyond | sign);
        int exponent = 0;
        std::frexp(magnitude, &exponent);
        exponent = exponent - 1 < 1 - Bias || magnitude == 0 ? 1 - Bias : exponent - 1;
        const double places = std::nearbyint(std::ldexp(magnitude, Mantissa - exponent));
        const double code = std::ldexp(exponent + Bias - 1, Mantissa) + places;
        if (code > Max)
            return static_cast<Bits>(Beyond | sign);
        return Fnuz && code == 0 ? Bits(0) : static_cast<Bits>(static_cast<Bits>(code) | sign);
    }
};

using half = narrow_float<std::uint16_t, 10, 15, 0x7bff, 0x7c00, 0x7e00, false>;
using bf16 = narrow_float<std::uint16_t, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false>;

namespace fp8
{
using fp8e4m3fn = narrow_float<std::uint8_t, 3, 7, 0x7e, 0x7f, 0x7f, false>;
using fp8e4m3fnuz = narrow_float<std::uint8_t, 3, 8, 0x7f, 0x80, 0x80, true>;
using fp8e5m2 = narrow_float<std::uint8_t, 2, 15, 0x7b, 0x7c, 0x7f, false>;
using fp8e5m2fnuz = narrow_float<std::uint8_t, 2, 16, 0x7f, 0x80, 0x80, true>;
} // namespace fp8

} // namespace version_1
} // namespace migraphx

namespace std
{

template <class Bits, int Mantissa, int Bias, Bits Max, Bits Beyond, Bits Nan, bool Fnuz>
class numeric_limits<migraphx::narrow_float<Bits, Mantissa, Bias, Max, Beyond, Nan, Fnuz>>
{
    using type = migraphx::narrow_float<Bits, Mantissa, Bias, Max, Beyond, Nan, Fnuz>;

  public:
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = true;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr bool has_infinity = type::has_infinity;
    static constexpr bool has_quiet_NaN = true;
    static constexpr int radix = 2;
    static constexpr int digits = Mantissa + 1;

    static type max()
    {
        return type::from_bits(Max);
    }
    static type lowest()
    {
        return type::from_bits(static_cast<Bits>(Max | type::sign_bit));
    }
    static type min() // the smallest normal one
    {
        return type::from_bits(static_cast<Bits>(1 << Mantissa));
    }
    static type denorm_min()
    {
        return type::from_bits(1);
    }
    static type epsilon()
    {
        return std::ldexp(1.0, -Mantissa);
    }
    static type infinity()
    {
        return has_infinity ? type::from_bits(Beyond) : type();
    }
    static type quiet_NaN()
    {
        return type::from_bits(Nan);
    }
};

} // namespace std

#endif
