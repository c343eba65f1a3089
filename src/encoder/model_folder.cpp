#include "encoder/model_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "tokenizer/json_reader.h"

namespace headrace {
namespace {

using text::Json;
using text::JsonPlace;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

/// The file's content, or nothing where there is no such file.
Result<Json> read_json(const std::string& model, const std::string& name) {
    const std::string path = file_beside(model, name);
    if (path.empty()) return Json();
    HR_ASSIGN(const std::string text, text::read_text_file(path, kMostBytes));
    Result<Json> made = text::parse_json(text);
    if (!made.ok()) return made.error().within(path);
    return made;
}

/// It has one of several names, by the model; the first that is there counts.
Result<Json> read_sentence_config(const std::string& model) {
    for (const char* kind :
         {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
        HR_ASSIGN(Json found, read_json(model, fmt::format("sentence_{}_config.json", kind)));
        if (!found.is_null()) return found;
    }
    return Json();
}

/// The numbers of tokens that files name are sometimes 1e30, for any number.
std::int64_t size_in(const Json& file, const char* key) {
    const auto found = file.is_object() ? file.find(key) : file.end();
    if (!file.is_object() || found == file.end()) return 0;
    return JsonPlace::as_number(*found).value_or(0);
}

/// The smaller of two numbers, where 0 stands for none.
std::int64_t smaller_given(std::int64_t a, std::int64_t b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

constexpr const char* kPoolings = "one of mean, cls, lasttoken, max and mean_sqrt_len_tokens is known here";

/// The one that the file names in a text, as newer ones do.
Result<TextPooling> named_pooling(const Json& name) {
    constexpr std::array<std::pair<const char*, TextPooling>, 5> kKnown = {{
        {"cls", TextPooling::cls},
        {"mean", TextPooling::mean},
        {"lasttoken", TextPooling::last},
        {"max", TextPooling::max},
        {"mean_sqrt_len_tokens", TextPooling::mean_sqrt_length},
    }};
    for (const auto& [known, pooling] : kKnown)
        if (name == known) return pooling;
    return unsupported("1_Pooling/config.json has the pooling_mode {:.60}; {}", name.dump(), kPoolings);
}

Result<std::optional<TextPooling>> read_pooling(const Json& file) {
    constexpr std::array<std::pair<const char*, TextPooling>, 5> kKnown = {{
        {"pooling_mode_cls_token", TextPooling::cls},
        {"pooling_mode_mean_tokens", TextPooling::mean},
        {"pooling_mode_lasttoken", TextPooling::last},
        {"pooling_mode_max_tokens", TextPooling::max},
        {"pooling_mode_mean_sqrt_len_tokens", TextPooling::mean_sqrt_length},
    }};
    std::optional<TextPooling> found;
    if (!file.is_object()) return found;
    if (file.value("include_prompt", Json(true)) == false)
        return unsupported("1_Pooling/config.json sets include_prompt to false; prompts are pooled here");
    if (const auto mode = file.find("pooling_mode"); mode != file.end()) {
        HR_ASSIGN(found, named_pooling(*mode));
        return found;
    }
    for (const auto& [key, value] : file.items()) {
        if (!key.starts_with("pooling_mode_") || !value.is_boolean() || !value.get<bool>()) continue;
        std::optional<TextPooling> known;
        for (const auto& [name, pooling] : kKnown)
            if (key == name) known = pooling;
        if (!known || found)
            return unsupported("1_Pooling/config.json sets {}{}; {}", key,
                               found ? " besides another one" : "", kPoolings);
        found = known;
    }
    return found;
}

/// Whether one of sentence-transformers' modules normalises. Errors: Code::unsupported of one that is not
/// known.
Result<std::optional<bool>> read_normalizes(const Json& modules) {
    std::optional<bool> found;
    if (!modules.is_array() || modules.empty()) return found;
    found = false;
    for (const Json& entry : modules) {
        const auto type = entry.is_object() ? entry.find("type") : entry.end();
        if (!entry.is_object() || type == entry.end() || !type->is_string()) continue;
        const auto& full = type->get_ref<const std::string&>();
        const std::string name = full.substr(full.rfind('.') + 1);
        if (name == "Normalize")
            found = true;
        else if (name != "Transformer" && name != "Pooling")
            return unsupported("modules.json has {:.60}; Transformer, Pooling and Normalize are known here",
                               name);
    }
    return found;
}

}  // namespace

std::string file_beside(const std::string& model, const std::string& name) {
    const std::filesystem::path folder = std::filesystem::path(model).parent_path();
    std::error_code ignored;
    if (std::filesystem::exists(folder / name, ignored)) return (folder / name).string();
    const std::filesystem::path above = std::filesystem::absolute(folder, ignored).parent_path();
    const bool is_inner = std::filesystem::absolute(folder, ignored).filename() == "onnx";
    return is_inner && std::filesystem::exists(above / name, ignored) ? (above / name).string() : "";
}

Result<ModelFolder> ModelFolder::read(const std::string& model, bool ranks) {
    ModelFolder made;
    if (!ranks) {
        HR_ASSIGN(const Json pooling, read_json(model, "1_Pooling/config.json"));
        HR_ASSIGN(made.pooling, read_pooling(pooling));
        HR_ASSIGN(const Json modules, read_json(model, "modules.json"));
        HR_ASSIGN(made.normalizes, read_normalizes(modules));
    }
    HR_ASSIGN(const Json sentences, read_sentence_config(model));
    HR_ASSIGN(const Json tokens, read_json(model, "tokenizer_config.json"));
    HR_ASSIGN(const Json config, read_json(model, "config.json"));
    made.most_tokens = size_in(sentences, "max_seq_length");
    made.lower_cases = sentences.is_object() && sentences.value("do_lower_case", Json()) == true;
    if (made.most_tokens == 0) made.most_tokens = size_in(tokens, "model_max_length");
    made.tokenizer_tokens = smaller_given(size_in(tokens, "model_max_length"), size_in(tokens, "max_length"));
    std::int64_t positions = size_in(config, "max_position_embeddings");
    // RoBERTa's positions begin behind that of padding.
    const bool is_roberta = config.is_object() && config.value("model_type", Json()).is_string() &&
                            config["model_type"].get<std::string>().find("roberta") != std::string::npos;
    if (is_roberta && positions > 2) positions -= 2;
    made.positions = positions;
    made.most_tokens = smaller_given(made.most_tokens, positions);
    made.tokenizer_tokens = smaller_given(made.tokenizer_tokens, positions);
    return made;
}

}  // namespace headrace
