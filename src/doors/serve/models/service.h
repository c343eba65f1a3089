#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "doors/serve/http/message.h"
#include "doors/serve/log/server_log.h"
#include "doors/serve/models/encoder_model.h"
#include "doors/serve/models/metrics.h"
#include "doors/serve/models/model_spec.h"
#include "doors/serve/models/served_model.h"
#include "doors/serve/options/options.h"
#include "doors/serve/pool/model_pool.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// A model in memory, of either lane; it stays there as long as this is held.
struct AnyModel {
    std::shared_ptr<ServedModel> language;
    std::shared_ptr<EncoderModel> graph;
};

/// What a list of models says of one.
struct ListedModel {
    std::shared_ptr<const ModelSpec> spec;
    ModelPool::State state = ModelPool::State::unloaded;
    std::string failure;  ///< of its last load; empty after one that did not fail
    AnyModel model;       ///< null where it is not in memory
};

/// The models of a server and what it was started with: what handlers see of it. Thread-safe after `load`;
/// the functions of handlers throw ApiError.
class Service {
public:
    explicit Service(ServeOptions options);

    /// Once. Errors: of the models that are loaded at the start.
    Status load();
    /// The options as arguments and files are now. Models that changed are loaded anew by their next request.
    /// Errors change nothing.
    Result<ServeOptions> reload();
    /// Ends what models compute; who waits for one is refused.
    void stop();

    const ServeOptions& options() const { return options_; }
    /// Those in memory.
    std::vector<std::shared_ptr<ServedModel>> models() const;
    std::vector<ListedModel> listed() const;
    /// Null where no model has that name.
    std::shared_ptr<const ModelSpec> spec_of(std::string_view name) const;

    // Each loads the model where it is not in memory, and waits for that.

    /// The language model of that kind that a body names, or the first.
    std::shared_ptr<ServedModel> model_for(const HttpRequest& http, const Json& body, Role role = Role::text);
    /// What gives vectors, or ranks, for a body.
    AnyModel any_model_for(const HttpRequest& http, const Json& body, Role role);
    /// The language model that a body names, whatever it is for, or the first.
    std::shared_ptr<ServedModel> language_model(const HttpRequest& http, const Json& body);
    AnyModel acquire(const HttpRequest& http, const Json& body, const ModelSpec& spec);

    /// That something does such work, and which. Nothing is loaded.
    std::shared_ptr<const ModelSpec> spec_for(const Json& body, Role role) const;
    /// The model that the query names, or the first language model. Nothing is loaded.
    std::shared_ptr<const ModelSpec> queried_spec(const HttpRequest& http) const;
    /// Null where it is not in memory, unless the query asks for it to be loaded.
    std::shared_ptr<ServedModel> loaded_model(const ModelSpec& spec, const HttpRequest& http);
    /// The model that the query names where it is in memory. loads: where it is not, too.
    std::shared_ptr<ServedModel> queried_model(const HttpRequest& http, bool loads);
    /// Gives it back once its requests have ended; false where it is not in memory.
    bool unload(const ModelSpec& spec) { return pool_.unload(spec.key()); }
    bool is_loading() const { return pool_.is_loading(); }

    /// A template of the request's own, where that is not allowed.
    void check_request(const Json& body) const;
    /// A chat in OpenAI's shape, checked likewise.
    ChatBody read_chat(const Json& body, const ServedModel& model, ChatRules rules = ChatRules::openai) const;

    RequestCounts& counts() { return counts_; }
    const ServerLog& log() const { return log_; }
    /// In Prometheus' text format.
    std::string metrics() const;

private:
    void tell(ModelPool::Event event, const std::string& id, const std::string& text) const;
    template <class Work>
    std::invoke_result_t<Work> tried(const ModelSpec& spec, const Work& work);
    std::shared_ptr<Resident> open(const ModelSpec& spec);
    ModelSchedule::Size measure(const ModelSpec& spec);
    void configure(ModelSpecs specs, const ServeOptions& options);
    ModelSpecs specs() const;
    bool has_listed() const;
    AnyModel in_memory(const ModelSpec& spec) const;

    const ServeOptions options_;
    const ServerLog log_;
    mutable std::mutex mutex_;
    ModelSpecs specs_;
    std::map<std::string, Exception> failures_;  ///< of loads, with paths: for the operator
    RequestCounts counts_;
    ModelRecords<LanguageRecord> records_;
    ModelRecords<EncoderRecord> encoder_records_;
    ModelPool pool_;  // its thread uses the others
};

/// OpenAI's and Anthropic's own defaults, where neither the request nor a flag sets the parameter.
void add_api_defaults(const ServedModel& model, Parameters& parameters);

}  // namespace headrace::serve
