#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "doors/serve/log/server_log.h"
#include "doors/serve/models/encoder_model.h"
#include "doors/serve/models/metrics.h"
#include "doors/serve/models/served_model.h"
#include "doors/serve/options/options.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// The models of a server and what it was started with: what handlers see of it. Thread-safe after `load`;
/// the functions of handlers throw ApiError.
class Service {
public:
    explicit Service(ServeOptions options)
        : options_(std::move(options)), log_(options_.logs_json, options_.is_quiet, log_file(options_)) {}

    /// Once. Errors: of the load.
    Status load();

    const ServeOptions& options() const { return options_; }
    const std::vector<std::shared_ptr<ServedModel>>& models() const { return models_; }
    const std::vector<std::shared_ptr<EncoderModel>>& encoders() const { return encoders_; }
    /// The language model that was named first.
    std::shared_ptr<ServedModel> first_model() const;
    /// The graph that a body names; where no model of the kind has that name, the first such graph, unless a
    /// language model does the same. Null: a language model answers.
    std::shared_ptr<EncoderModel> encoder_for(const Json& body, bool ranks) const;
    /// That something ranks.
    void check_ranks(const Json& body) const;
    /// The model that a body names, or the first of that kind.
    std::shared_ptr<ServedModel> model_for(const Json& body, ModelKind kind) const;
    /// The same of one that gives a vector of a text, or, where there is none such, of each token.
    std::shared_ptr<ServedModel> embedding_model(const Json& body) const;
    /// A template of the request's own, where that is not allowed.
    void check_request(const Json& body) const;
    /// A chat in OpenAI's shape, checked likewise.
    ChatBody read_chat(const Json& body, const ServedModel& model) const;
    /// OpenAI's and Anthropic's own defaults, where neither the request nor a flag sets the parameter.
    void add_api_defaults(Parameters& parameters) const;

    RequestCounts& counts() { return counts_; }
    const ServerLog& log() const { return log_; }
    /// In Prometheus' text format.
    std::string metrics() const;

private:
    void add(const std::string& path, const Parameters& parameters, ServedModel::Names names);
    /// A GGUF file, or a graph.
    void add_beside(const std::string& path, const Parameters& parameters, bool ranks);

    const ServeOptions options_;
    const ServerLog log_;
    std::vector<std::shared_ptr<ServedModel>> models_;
    std::vector<std::shared_ptr<EncoderModel>> encoders_;
    RequestCounts counts_;
};

}  // namespace headrace::serve
