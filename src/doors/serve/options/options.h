#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "doors/serve/http/listener.h"
#include "headrace/language_model.h"
#include "headrace/text_encoder.h"

namespace headrace::serve {

/// What a server is started with.
struct ServeOptions {
    ListenerOptions listener;
    std::string model;                 ///< GGUF file; may be empty beside one of the others
    std::vector<std::string> aliases;  ///< names that requests may give it; empty: the file's
    std::vector<std::string> tags;
    Parameters parameters;        ///< of the model, and defaults of its requests
    std::string embedding_model;  ///< GGUF file or graph that turns texts into vectors beside it
    std::string ranking_model;    ///< one that ranks documents beside it
    TextEncoderOptions encoder;   ///< of those two, where they are graphs
    std::size_t parallel = 4;     ///< requests that run at once
    bool divides = false;         ///< each has its part of the context, as --parallel says
    std::optional<bool> unified;  ///< what --kv-unified says of that
    std::vector<std::string> keys;
    std::size_t most_per_key = 0;   ///< requests at once; 0: no limit
    std::string slot_save_path;     ///< empty: states of slots are not saved
    std::string cors_origins;       ///< empty: browsers' pages of other origins are refused
    bool allows_templates = false;  ///< requests may bring a chat template of their own
    bool offers_metrics = false, offers_slots = true, changes_props = false, offers_page = true;
    bool verbose = false, logs_json = false, is_quiet = false;
    bool shows_help = false, shows_version = false;
};

/// Of the program's arguments, the environment (LLAMA_ARG_...) and a file (--config), the former first.
/// Errors name the flag, and one that is spelled alike.
Result<ServeOptions> serve_options(std::span<const std::string> arguments,
                                   const std::map<std::string, std::string>& environment);

/// Whether a file is there and no GGUF file.
bool is_graph_file(const std::string& path);

/// Of --help.
std::string serve_help();

}  // namespace headrace::serve
