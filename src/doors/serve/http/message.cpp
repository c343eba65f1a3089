#include "doors/serve/http/message.h"

#include <fmt/format.h>

#include <random>

#include "base/small_letters.h"

namespace headrace::serve {

std::string_view HttpRequest::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

void HttpRequest::add_header(std::string name, std::string value) {
    headers.emplace(in_small_letters(name), std::move(value));
}

std::string new_request_id() {
    static thread_local std::mt19937_64 random{std::random_device{}()};
    return fmt::format("{:016x}", random());
}

}  // namespace headrace::serve
