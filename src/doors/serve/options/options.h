#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doors/serve/http/listener.h"
#include "headrace/language_model.h"
#include "headrace/text_encoder.h"

namespace headrace::serve {

/// What options were read from.
struct OptionSources {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment;
    Parameters parameters;  ///< a caller's own, which come before all others
};

/// What a server is started with.
struct ServeOptions {
    std::shared_ptr<const OptionSources> sources;  ///< to read them again
    ListenerOptions listener;
    std::string model;                 ///< GGUF file; may be empty beside one of the others
    std::vector<std::string> aliases;  ///< names that requests may give it; empty: the file's
    std::vector<std::string> tags;
    Parameters parameters;                  ///< of the model, and defaults of its requests
    std::string embedding_model;            ///< GGUF file or graph that turns texts into vectors beside it
    std::string ranking_model;              ///< one that ranks documents beside it
    TextEncoderOptions encoder;             ///< of those two, where they are graphs
    std::string models_dir, models_preset;  ///< a folder, and a file, that list models to be loaded when
                                            ///< somebody asks for them
    std::size_t models_max = 4;             ///< of those at once; 0: no limit
    std::size_t models_memory_mib = 0;      ///< of all models; 0: what the machine has
    bool loads_models = true;               ///< when somebody asks for one
    bool finds_projectors = true;           ///< that lie beside a listed model
    std::chrono::seconds idle_limit{0};     ///< after which a model is given back; 0: it stays
    bool is_pinned = false;                 ///< a listed model that is given back for no other
    bool loads_at_start = false;            ///< a listed model
    bool has_program_defaults = false;      ///< add_program_defaults
    std::size_t parallel = 4;               ///< requests that run at once
    bool divides = false;                   ///< each has its part of the context, as --parallel says
    std::optional<bool> unified;            ///< what --kv-unified says of that
    std::int64_t request_tokens = 0;        ///< that one request may have; 0: what the others say
    std::vector<std::string> devices, draft_devices;            ///< ggml's names, or rpc://host:port
    std::vector<std::string> kept_tensors, kept_draft_tensors;  ///< patterns of what stays on the CPU
    bool fits_layers = true;         ///< as many on devices as their memory holds; false: all
    bool rests_adapters = false;     ///< the LoRA adapters have no effect at first
    bool prefills_assistant = true;  ///< chats that end with an assistant's message go on with it
    bool preserves_reasoning = true;
    bool suffix_first = false;      ///< of /infill
    bool escapes = true;            ///< of texts that end answers or sequences
    std::vector<std::size_t> cpus;  ///< that threads may use; empty: all
    std::vector<std::string> keys;
    std::size_t most_per_key = 0;  ///< requests at once; 0: no limit
    std::string slot_save_path;    ///< empty: states of slots are not saved
    std::string cors_origins;      ///< empty: browsers' pages of other origins are refused
    std::string cors_methods = "GET, POST, DELETE, OPTIONS";
    std::string cors_headers = "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta";
    bool cors_credentials = false;
    std::string allowed_hosts;               ///< names of a server that only this machine reaches
    std::string api_prefix;                  ///< of all paths: empty, or "/llm"
    std::chrono::seconds ping_interval{30};  ///< of streams that have nothing to say; 0: no pings
    bool allows_templates = false;           ///< requests may bring a chat template of their own
    bool offers_metrics = false, offers_slots = true, changes_props = false, offers_page = true;
    bool verbose = false, logs_json = false, is_quiet = false;
    bool shows_help = false, shows_version = false, lists_devices = false;
    bool shows_parameters = false;  ///< of requests, which the program prints itself
    bool shows_llama_server_flags = false;
    bool shows_completion = false;   ///< the whole program's script, which the program prints itself
    std::vector<std::string> notes;  ///< of options that were taken and do nothing

    /// Something is printed, and nothing served.
    bool only_shows() const {
        return shows_help || shows_version || shows_parameters || shows_llama_server_flags ||
               shows_completion || lists_devices;
    }
};

/// The options of the program's arguments, the environment (LLAMA_ARG_...) and a file (--config), the former
/// first. Errors name the flag, and one that is spelled alike.
Result<ServeOptions> serve_options(std::span<const std::string> arguments,
                                   const std::map<std::string, std::string>& environment);

/// A caller's own, in place of what the options say.
void add_parameters(ServeOptions& options, const Parameters& parameters);

/// The same arguments again, with files as they are now.
Result<ServeOptions> read_again(const ServeOptions& options);

/// The rest of what `serve_options` does, of a model that a server lists.
Status finish_listed(ServeOptions& model, const ServeOptions& server);

/// What the flags of a model say that stand among another command's arguments. `rest` gets the others, in
/// their order, and all of which `keeps` tells that the command has them itself.
Result<ServeOptions> take_model_options(std::span<const std::string> arguments,
                                        const std::function<bool(const std::string&)>& keeps,
                                        std::vector<std::string>& rest);

/// The names of the program's flags, or of those alone.
std::vector<std::string_view> flag_names(bool of_models);
/// The name that an unknown long one is spelled like; empty if none is.
std::string near_name(std::string_view name, std::span<const std::string_view> names);

/// What llama-server sets where no option does. A program that has the model already gives its own
/// parameters.
void add_program_defaults(ServeOptions& options);

/// The path that --log-file names, or nothing.
std::string log_file(const ServeOptions& options);

/// Whether a file is there and no GGUF file.
bool is_graph_file(const std::string& path);

/// What the help says of the parameter that a flag sets.
struct ParameterHelp {
    std::string usual;  ///< its default as text, empty where it has none
    std::string_view summary, section;
};
using FindParameterHelp = std::function<ParameterHelp(std::string_view name)>;

/// The text of --help.
std::string serve_help(const FindParameterHelp& find);
/// docs/llama-server-flags.md: its flags that have no effect or are refused here.
std::string llama_server_flags_page();
/// The flags that set parameters of samplers, for the help of commands that take them.
std::string sampling_help(const FindParameterHelp& find);

}  // namespace headrace::serve
