#include "doors/serve/http/message.h"

namespace headrace::serve {

std::string_view HttpRequest::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace headrace::serve
