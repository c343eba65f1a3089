#include "doors/serve/http/target.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>

namespace headrace::serve {

std::string_view origin_form(std::string_view target) {
    constexpr std::string_view kScheme = "http://";
    if (!target.starts_with(kScheme)) return target;
    const auto slash = target.find('/', kScheme.size());
    return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
}

HttpRequest request_to(std::string_view method, std::string_view target) {
    target = origin_form(target);
    const std::size_t mark = std::min(target.find('?'), target.size());
    HttpRequest request{.method = std::string(method),
                        .path = httplib::decode_path_component(std::string(target.substr(0, mark)))};
    httplib::Params query;
    httplib::detail::parse_query_text(std::string(target.substr(std::min(mark + 1, target.size()))), query);
    for (const auto& [name, value] : query) request.query.emplace(name, value);
    request.id = new_request_id();
    return request;
}

}  // namespace headrace::serve
