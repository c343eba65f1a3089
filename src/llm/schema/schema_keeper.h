#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "llm/schema/kept_schema.h"
#include "llm/schema/number_range.h"
#include "llm/schema/schema_pattern.h"

namespace headrace::llm {

/// Writes a schema anew, from the outside to the inside.
class SchemaKeeper {
public:
    SchemaKeeper(const Json& root, std::size_t first_number) : root_(root), first_number_(first_number) {}

    Result<KeptSchema> run();

private:
    using Place = const std::string&;  // a JSON pointer

    Json kept(const Json& schema, Place at);
    Json kept_of_type(const Json& schema, const std::string& type, Place at);
    Json kept_union(const Json& schema, std::string_view keyword, Place at);
    Json kept_types(const Json& schema, Place at);
    Json kept_values(const Json& schema, Place at);
    std::optional<Json> without_all_of(const Json& schema, Place at);

    Json kept_reference(const Json& schema, Place at);
    const Json* target_of(const std::string& reference) const;

    Json kept_object(const Json& schema, Place at);
    void keep_required(const Json& schema, bool is_open, Json& object, Place at);
    void keep_counts(const Json& schema, bool is_open, const Json& object, Place at);

    Json kept_array(const Json& schema, Place at);
    Json kept_tuple(const Json& schema, const Json& items, const Json& rest, Place at);

    Json kept_string(const Json& schema, Place at);
    Json kept_number(const Json& schema, const std::string& type, Place at);
    std::optional<NumberRange> range_of(const Json& schema, Place at);
    std::optional<Json> multiples(const Json& schema, NumberRange& range, const std::string& type, Place at);

    void lose(Place at, std::string_view keyword, std::string_view reason);
    /// Those that the schema has, which no grammar can say.
    void lose_each(const Json& schema, std::initializer_list<std::string_view> keywords, Place at);

    const Json& root_;
    const std::size_t first_number_;
    KeptSchema result_;
    std::map<std::string, std::string> names_;  ///< of references
    Json definitions_ = Json::object();
    std::set<std::string> opened_;  ///< references that are being written in their place
    std::size_t written_ = 0;       ///< schemas, at most kMostSchemas
    int depth_ = 0;
};

inline constexpr std::string_view kNoGrammar = "a grammar cannot say that";

/// The member, where it is there.
const Json* keyword_of(const Json& schema, std::string_view name);

/// A whole number of at least 0, where it is one.
std::optional<std::uint32_t> count_of(const Json& schema, std::string_view name);

std::string place_within(const std::string& at, std::string_view name);

}  // namespace headrace::llm
