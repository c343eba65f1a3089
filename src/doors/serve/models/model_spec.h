#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/options/options.h"

namespace headrace::serve {

/// What a model does for requests.
enum class Role { text, vectors, scores };
Role role_of(ModelKind kind);
/// "answers texts" ...
std::string_view work_of(Role role);

/// A model that a server may have in memory.
class ModelSpec {
public:
    struct Given {
        std::string key = {};
        std::vector<std::string> names = {};  ///< the first is its id
        std::vector<std::string> tags = {};
        std::string path = {};
        bool is_graph = false, ranks = false;  ///< ranks: it is the model of --rank
        bool is_listed = false;  ///< by a folder or a file, and not named by the program's arguments
        std::optional<Role> required = {};
        ServeOptions options = {};
        Parameters parameters = {};
        TextEncoderOptions encoder = {};
    };
    explicit ModelSpec(Given given) : given_(std::move(given)) {}

    const std::string& id() const { return given_.names.front(); }
    /// Its name in the pool, which is no other's: two models that the program names may have the same id.
    const std::string& key() const { return given_.key; }
    const std::vector<std::string>& names() const { return given_.names; }
    const std::vector<std::string>& tags() const { return given_.tags; }
    const std::string& path() const { return given_.path; }
    bool is_graph() const { return given_.is_graph; }
    /// What it must do, as --embed and --rank say.
    std::optional<Role> required_role() const { return given_.required; }
    bool is_listed() const { return given_.is_listed; }
    const ServeOptions& options() const { return given_.options; }
    const Parameters& parameters() const { return given_.parameters; }
    const TextEncoderOptions& encoder() const { return given_.encoder; }
    bool answers_to(std::string_view name) const;
    /// No other model takes its place in memory.
    bool is_pinned() const;
    bool loads_at_start() const { return !is_listed() || options().loads_at_start; }
    /// As its parameters and its file's header say; a file that cannot be read answers texts, until its load
    /// says what is wrong.
    Role role() const;
    /// Other options make another text.
    std::string options_text() const;
    /// Models with the same one have the same weights, or the same engine with its context, in memory once.
    std::string weights_name() const;
    std::string engine_name() const;
    /// The version of its files as they are now. A file that is being written is still what it was before:
    /// this says so for two seconds after the last change.
    std::string file_version() const;

private:
    /// A name of the file and the parameters of that scope or a wider one.
    std::string memory_name(ParameterScope least) const;

    const Given given_;
    mutable std::mutex mutex_;
    mutable std::optional<Role> role_;
    mutable std::string file_version_;
};

using ModelSpecs = std::vector<std::shared_ptr<const ModelSpec>>;

/// The models that the program's arguments name, and those that its folder and file list, as they are now.
/// Errors: two have the same name, and those of listed_models. notes: what has no effect.
Result<ModelSpecs> model_specs(const ServeOptions& options, std::vector<std::string>& notes);

}  // namespace headrace::serve
