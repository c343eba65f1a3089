#include "doors/serve/http/target.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>

namespace headrace::serve {

HttpRequest request_to(std::string_view method, std::string_view target) {
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
