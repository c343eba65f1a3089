#include "doors/serve/api/page.h"

#include "doors/serve/api/page_text.h"
#include "doors/serve/request/errors.h"

namespace headrace::serve {

HttpResponse page(Service& service, const HttpRequest&) {
    if (!service.options().offers_page) throw not_found("the page is turned off (--no-ui)");
    return {.type = "text/html; charset=utf-8",
            .body = std::string(kPage),
            .headers = {{"Accept-Ranges", "none"},
                        {"Content-Security-Policy",
                         "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                         "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"}}};
}

}  // namespace headrace::serve
