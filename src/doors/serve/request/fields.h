#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doors/serve/request/errors.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {

/// A request's body. Throws ApiError: no JSON, with the place; no object; nested too deeply.
Json parse_body(std::string_view body);
/// The same of one that may be any value.
Json parse_any_body(std::string_view body);

/// "a text", "an object" ... as in "is a number; it must be a text".
std::string_view kind_of(const Json& value);

/// The fields of an object, read with their kinds. null counts as absent. Throws ApiError with the field's
/// name.
class Fields {
public:
    /// object must outlive this. place: what leads to it, as "messages[2]"; empty for the body itself.
    explicit Fields(const Json& object, std::string place = {});

    std::string name(std::string_view key) const;
    const Json* any(std::string_view key) const;
    const Json& required(std::string_view key) const;
    std::optional<std::string> text(std::string_view key) const;
    std::string required_text(std::string_view key) const;
    std::optional<bool> flag(std::string_view key) const;
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most) const;
    std::optional<double> number(std::string_view key, double least, double most) const;
    const Json* list(std::string_view key) const;
    const Json* object(std::string_view key) const;
    [[noreturn]] void wrong(std::string_view key, std::string_view must_be) const;

private:
    const Json& object_;
    std::string place_;
};

}  // namespace headrace::serve
