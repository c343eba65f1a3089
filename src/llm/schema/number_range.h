#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::llm {

/// A number in decimal digits.
struct Decimal {
    bool is_negative = false;
    std::int64_t whole = 0;
    std::string fraction;  ///< does not end in 0

    bool is_zero() const { return whole == 0 && fraction.empty(); }
};

/// The value of a JSON number; none where it has more digits than are compared.
std::optional<Decimal> decimal_of(std::string_view text);

/// Below, equal, above.
int compare(const Decimal& a, const Decimal& b);

struct NumberRange {
    struct End {
        Decimal value;
        bool is_inside = true;
    };
    std::optional<End> least, most;
    int places = 16;  ///< behind the point, at most
};

/// What GBNF writes for a number of the range, in brackets and without an exponent. None: no number fits.
std::optional<std::string> number_rule(const NumberRange& range);

}  // namespace headrace::llm
