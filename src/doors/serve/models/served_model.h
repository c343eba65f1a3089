#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "doors/serve/models/model_record.h"
#include "doors/serve/models/places.h"
#include "doors/serve/pool/model_pool.h"
#include "doors/serve/request/errors.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// The seed that asks for another one each time.
constexpr std::int64_t kRandomSeed = 0xFFFFFFFF;

/// A language model that the server has loaded, with what it knows beside the engine.
class ServedModel : public Resident {
public:
    struct Names {
        std::vector<std::string> aliases;  ///< the first is its id
        std::vector<std::string> tags;
    };
    struct Limits {
        std::size_t places;           ///< requests that `/slots` shows
        std::size_t most_per_client;  ///< at once; 0: no limit
        std::chrono::seconds ping_interval;
    };
    /// What its options say beside its parameters.
    struct Given {
        Parameters parameters;  ///< of the load, and defaults of requests
        bool suffix_first = false;
        bool prefills_assistant = true;
    };
    /// record: of its id; none: one of its own.
    ServedModel(LanguageModel model, Names names, const Limits& limits, Given given,
                std::shared_ptr<LanguageRecord> record = nullptr);
    ServedModel(LanguageModel model, Names names, const Limits& limits)
        : ServedModel(std::move(model), std::move(names), limits, Given()) {}
    ~ServedModel() override;

    LanguageModel& engine() { return model_; }
    const ModelInfo& info() const { return info_; }
    ModelKind kind() const { return kind_; }
    const Given& given() const { return given_; }
    std::uint64_t resident_bytes() const override {
        return static_cast<std::uint64_t>(info_.bytes + info_.context_bytes);
    }
    const std::string& id() const { return names_.aliases.front(); }
    /// A text of the file's metadata; empty where it has none of that name.
    std::string text_of_metadata(std::string_view name) const;
    const Names& names() const { return names_; }
    bool answers_to(std::string_view name) const;
    Places& places() { return places_; }
    /// Between pings of streams that have nothing to say; 0: none.
    std::chrono::seconds ping_interval() const { return ping_interval_; }
    /// What became of a request; null: it was answered. Errors of the request itself do not count.
    void count_outcome(const Exception* error);
    /// Whether one request after the other was lost by the engine's fault, and why the last one was.
    bool is_failing() const;
    std::string failure() const;
    ModelMetrics& metrics() { return record_->times; }
    const std::time_t loaded_at;
    const std::chrono::system_clock::time_point modified_at;  ///< its file

    /// Scales of the adapters, by position, for requests that say nothing.
    std::vector<float> adapter_scales() const;
    void set_adapter_scales(std::vector<float> scales);
    /// Sets them in a request that says nothing.
    void add_adapters(Parameters& parameters) const;

    /// The seed that a request would have; -1 where it is another each time.
    std::int64_t seed_of(const Parameters& parameters) const;

    /// The session that the parameters name; empty: none. Throws headrace::Exception for wrong parameters.
    std::string session_of(const Parameters& parameters) const;
    /// Sessions of one client are not another's, however the request spells the parameter. Throws
    /// headrace::Exception for parameters that are wrong.
    void keep_session_apart(Parameters& parameters, const std::string& client) const;
    /// What the model would read for a request. names: for errors.
    RenderedPrompt render(const Request& request, const FieldNames& names = {}) const;

    /// The warnings of a reply that the load has not given.
    std::vector<Warning> new_warnings(const Reply& reply) const;

    /// A failure of the engine, without paths of this machine; of a prompt that is too long, with its tokens.
    ApiError error_of(const Exception& error, const Request* request = nullptr) const;

private:
    std::int64_t count_tokens(const Request& request) const;

    LanguageModel model_;
    const ModelInfo info_;
    const ModelKind kind_;
    const std::vector<Warning> warnings_;  // of the load
    const Names names_;
    const Given given_;
    Places places_;
    const std::chrono::seconds ping_interval_;
    const std::shared_ptr<LanguageRecord> record_;
    mutable std::mutex mutex_;
    std::vector<float> adapter_scales_;
    bool has_own_scales_ = false;
    int failures_ = 0;  // since the last answer
    std::string failure_;
};

/// When a file was written; now, where there is none.
std::chrono::system_clock::time_point change_of(const std::string& path);

/// What an answer took, as Prometheus has it.
void observe(ModelMetrics& metrics, const Reply& reply);

/// The message with every path of this machine in it as the file's name alone.
std::string without_paths(std::string message, std::string_view path);
/// Likewise with the absolute paths of files that parameters name.
std::string without_paths_of(const ParameterValue& value, std::string message);

}  // namespace headrace::serve
