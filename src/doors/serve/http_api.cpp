#include "headrace/http_api.h"

#include "doors/serve/http/target.h"
#include "doors/serve/options/options.h"
#include "doors/serve/server.h"

namespace headrace {
namespace {

serve::ServeOptions options_of(const std::vector<std::string>& arguments, const Parameters& parameters) {
    Result<serve::ServeOptions> read = serve::serve_options(arguments, {});
    if (!read.ok()) throw Exception(read.error().code, read.error().message);
    serve::ServeOptions options = std::move(read).value();
    if (options.only_shows())
        throw Exception(Code::invalid_argument, "--help, --version and the like are the program's");
    serve::add_parameters(options, parameters);
    if (options.allowed_hosts.empty()) options.allowed_hosts = "*";  // who listens knows what it is called
    return options;
}

class AnswerSink : public serve::HttpSink {
public:
    explicit AnswerSink(const HttpApi::Answer& answer) : answer_(answer) {}
    bool write(std::string_view bytes) override { return answer_.write(bytes); }

private:
    const HttpApi::Answer& answer_;
};

}  // namespace

struct HttpApi::Impl {
    explicit Impl(serve::ServeOptions options) : server(std::move(options)) {}

    serve::Server server;
};

HttpApi::HttpApi(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpApi HttpApi::load(const std::vector<std::string>& arguments, const Parameters& parameters) {
    auto impl = std::make_shared<Impl>(options_of(arguments, parameters));
    const Status loaded = impl->server.load();
    if (!loaded.ok()) throw Exception(loaded.error().code, loaded.error().message);
    return HttpApi(std::move(impl));
}

void HttpApi::handle(Request request, const Answer& answer) const {
    serve::HttpRequest http = serve::request_to(request.method, request.target);
    http.body = std::move(request.body);
    for (auto& [name, value] : request.headers) http.add_header(std::move(name), std::move(value));
    http.is_gone = answer.is_gone;
    const serve::HttpResponse made = impl_->server.handle(std::move(http));
    Head head{.status = made.status, .headers = made.headers, .is_stream = static_cast<bool>(made.stream)};
    head.headers.emplace_back("Content-Type", made.type);
    answer.begin(head);
    if (made.stream) {
        AnswerSink sink(answer);
        made.stream(sink);
    } else if (!made.body.empty()) {
        answer.write(made.body);
    }
}

void HttpApi::stop() const { impl_->server.stop(); }

}  // namespace headrace
