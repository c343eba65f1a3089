#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/export.h"
#include "headrace/language_model.h"

namespace headrace {

/// The HTTP APIs of `headrace serve` (OpenAI's, Anthropic's, Ollama's, llama-server's: docs/serving.md) for
/// programs that bring their own HTTP: it takes requests as they came and gives answers as they go out.
/// Thread-safe; each call uses its caller's thread until the answer has ended.
class HEADRACE_API HttpApi {
public:
    struct Request {
        std::string method, target;  ///< "POST", "/v1/chat/completions?a=b"
        std::vector<std::pair<std::string, std::string>> headers;
        std::string body;
    };
    /// What an answer begins with.
    struct Head {
        int status = 200;
        std::vector<std::pair<std::string, std::string>> headers;  ///< with Content-Type
        bool is_stream = false;  ///< the body is written in pieces as they are made, or else as one
    };
    struct Answer {
        std::function<void(const Head&)> begin;       ///< once
        std::function<bool(std::string_view)> write;  ///< then any number of times; false: nobody reads
        std::function<bool()> is_gone = [] { return false; };  ///< asked now and then: nobody waits any more
    };

    /// arguments: of `headrace serve`, such as {"-m", "model.gguf", "--parallel", "8"}; what they say of
    /// addresses changes nothing, and the environment is not read. parameters: of the model, above those of
    /// the arguments. Engines are shared: a model that LanguageModel has loaded with the same parameters is
    /// not loaded again. Errors: those of the program, and of LanguageModel::load.
    static HttpApi load(const std::vector<std::string>& arguments, const Parameters& parameters = {});

    /// Answers one request. Failures are answers, too; what `begin` and `write` throw ends the request.
    void handle(Request request, const Answer& answer) const;
    /// Requests that run end with an error, later ones are refused.
    void stop() const;

private:
    struct Impl;
    explicit HttpApi(std::shared_ptr<Impl> impl);

    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
