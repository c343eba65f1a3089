#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"
#include "headrace/language_model.h"

/// Language models of a program that runs programs of others, its guests: these name models and give
/// parameters, and get what the host's own parameters allow. Both WASI-NN libraries stand on it.
///
/// With the parameter `model_root` a guest's files are inside that folder or aliases, its templates are not
/// run unless `guest_templates` says so, and its devices are the host's. Errors name files as the guest does.
/// Everything may be called from any thread at the same time. Every function throws headrace::Exception.
namespace headrace {

/// Parameters of somebody whose text may be wrong.
struct GivenParameters {
    Parameters values;
    std::vector<Warning> warnings;  ///< of whoever read them, for the replies
    /// Why a text has none. Read leniently that is a warning, unless `strict` is set; else it is thrown.
    std::optional<Exception> mistake;

    /// Reads a JSON object; blank text has no parameters. It does not throw.
    HEADRACE_API static GivenParameters from_json(std::string_view text);
};

struct HostOptions {
    Parameters defaults;                   ///< below all others
    std::optional<GivenParameters> own;    ///< the host's
    std::optional<GivenParameters> above;  ///< over those, of whoever starts the host
    /// `above` and what guests give is read as hosts of other backends write it: a number outside its range
    /// is moved to the range's end, what cannot be taken is left out, and each is a warning. What confines
    /// guests is never read so. Not so read, a temperature above 2 is an error.
    bool lenient = false;
};

/// What the host's parameters allow guests; 0 stands for any number.
struct GuestLimits {
    int graphs = 0, contexts = 0;          ///< at once
    bool bytes = true;                     ///< whether they bring models along, as bytes
    std::int64_t model_bytes = 0;          ///< of one model
    std::int64_t graph_bytes = 0;          ///< of the inputs, outputs and activations of a graph's contexts
    std::chrono::milliseconds compute{0};  ///< of a run of a graph, and of a request to a language model
    int threads = 0;
};

/// Statistics of a model, and whether it gives vectors in place of texts.
struct HostedModelStatistics {
    LanguageModelStatistics numbers;
    bool gives_vectors = false;
};

struct HostedStatistics {
    std::map<std::uint32_t, HostedModelStatistics> models;
    LanguageModelStatistics process;  ///< of it only what is of sessions and of the process
};

/// A guest's place in a session, for requests to one model: whatever that is by the time of a request.
/// Copies are the same place.
class HEADRACE_API HostedConversation {
public:
    struct Impl;
    explicit HostedConversation(std::shared_ptr<Impl> impl);

    /// Whether the model writes texts, or gives vectors. Code::not_found where it was unloaded, as of
    /// requests.
    bool gives_vectors() const;
    bool has_model() const;

    /// defaults: of this request, below its own parameters. is_read_by_pieces: others of the session are told
    /// that it is busy, and do not wait.
    Generation start(std::string_view prompt, const GivenParameters& defaults,
                     const GivenParameters& parameters, bool is_read_by_pieces);
    /// A vector of the text, or one of each token where they are not pooled.
    Embeddings embed(std::string_view text, const GivenParameters& defaults,
                     const GivenParameters& parameters);

    /// Ends the requests that were begun here, those that wait for their session, too.
    void cancel();
    bool has_requests() const;
    /// Bytes of texts that the caller keeps for the guest here, in the place of those before: they count in
    /// the host's max_memory_bytes until the place is gone. what: what they are kept for, for the error,
    /// Code::out_of_memory; nothing changes then. Not from two threads at once.
    void hold(std::size_t bytes, std::string_view what);
    /// The same of texts that are there already: beyond the limit later requests fail.
    void note_held(std::size_t bytes);
    /// For a log: the session's name, or a number where it has none, and the number of the latest request; 0
    /// before it.
    const std::string& label() const;
    std::uint64_t latest_request() const;
    /// The place is free for another; the last copy's end does that, too.
    void close();

private:
    std::shared_ptr<Impl> impl_;
};

/// The models that guests have loaded, and the sessions that all of them share. Copies are the same host.
class HEADRACE_API HostedModels {
public:
    struct Impl;
    using Id = std::uint32_t;

    explicit HostedModels(const HostOptions& options);

    /// replaces: the model takes the place of the first one, when parameters say nothing else; a load that
    /// fails changes nothing. Errors: LanguageModel::load's; Code::denied for what a guest may not have.
    Id load(std::string_view name, const GivenParameters& parameters, bool replaces = false);
    /// The bytes of a GGUF file. They are copied.
    Id load_bytes(std::string_view bytes, const GivenParameters& parameters, bool replaces = false);
    void unload(Id model);
    /// Code::not_found where none is loaded.
    Id first() const;

    // For what else than language models a host lets guests load.
    const GuestLimits& limits() const;
    /// Calls `read` with the path that a guest's name stands for; what that throws names files as the guest
    /// does. Errors: Code::denied for a name outside the model root; those of `read`.
    void read_file(std::string_view name, const std::function<void(const std::string& path)>& read) const;
    /// A number that no model gets.
    Id reserve();

    /// Errors: LanguageModel::conversation's; Code::not_found.
    HostedConversation open(Id model, std::optional<std::string_view> session = std::nullopt);
    HostedStatistics statistics();
    /// Cancels all requests that run, and those that begin later.
    void close();

    /// Lines in the log that the parameters of logging are for. session, request: what one belongs to, or
    /// empty and 0.
    static void log_error(std::string_view message, std::string_view session = {}, std::uint64_t request = 0);
    static void log_warning(std::string_view message);

private:
    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
