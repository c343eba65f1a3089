#include "doors/serve/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "doors/serve/request/errors.h"

namespace headrace::serve {
namespace {

/// Looks at all of `given`, whatever it finds.
bool equals_in_constant_time(std::string_view known, std::string_view given) {
    unsigned difference = known.size() == given.size() ? 0u : 1u;
    for (std::size_t i = 0; i < given.size(); ++i)
        difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i])) ^
                      static_cast<unsigned char>(known.empty() ? 0 : known[i % known.size()]);
    return difference == 0;
}

std::string_view given_key(const HttpRequest& http) {
    constexpr std::string_view kBearer = "bearer ";  // the scheme's case does not matter (RFC 9110, 11.1)
    const std::string_view authorization = http.header("authorization");
    const auto is_same = [](char given, char due) {
        return (given >= 'A' && given <= 'Z' ? given + 32 : given) == due;
    };
    if (std::ranges::equal(authorization.substr(0, kBearer.size()), kBearer, is_same))
        return authorization.substr(kBearer.size());
    // A key alone is one, as for llama-server; with a space it is another scheme's.
    if (!authorization.empty() && authorization.find(' ') == std::string_view::npos) return authorization;
    return http.header("x-api-key");
}

}  // namespace

Access::Access(const std::vector<std::string>& keys, const Access* before)
    : next_number_(before ? before->next_number_ : 0) {
    const std::vector<Key> none;
    const std::vector<Key>& earlier = before ? before->keys_ : none;
    for (const std::string& key : keys) {
        const auto known = std::ranges::find(earlier, key, &Key::text);
        keys_.push_back({key, known != earlier.end() ? known->number : next_number_++});
    }
}

std::string Access::client_of(const HttpRequest& http) const {
    if (keys_.empty()) return {};
    const std::string_view given = given_key(http);
    const Key* found = nullptr;
    for (const Key& key : keys_)
        if (equals_in_constant_time(key.text, given)) found = &key;
    if (!found || given.empty())
        throw ApiError(401, "authentication_error",
                       given.empty() ? "this server asks for a key: send 'Authorization: Bearer KEY'"
                                     : "Invalid API Key");
    return fmt::format("{}", found->number);
}

}  // namespace headrace::serve
