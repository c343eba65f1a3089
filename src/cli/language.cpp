#include "cli/language.h"

#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/language_bench.h"
#include "doors/serve/client.h"
#include "headrace/language_model.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/parameters.h"

namespace headrace::cli {
namespace {

struct EmbedOptions {
    std::string model, parameters;
    std::vector<std::string> devices;
    std::vector<std::string> texts;
};

/// tokens: they are of one text's tokens.
void print_vectors(const std::vector<std::vector<float>>& vectors, bool tokens) {
    std::vector<ParameterValue> rows;
    for (const auto& vector : vectors)
        rows.push_back(std::vector<ParameterValue>(vector.begin(), vector.end()));
    const Parameters line{{"embedding", tokens ? ParameterValue(std::move(rows)) : std::move(rows.front())},
                          {"n_embedding", static_cast<std::int64_t>(vectors.front().size())}};
    std::printf("%s\n", line.to_json().c_str());
}

/// One JSON line for each text, of the command line or else of standard input's lines.
Status embed(const EmbedOptions& options) {
    std::vector<std::string> texts = options.texts;
    std::string line;
    if (texts.empty())
        while (std::getline(std::cin, line)) texts.push_back(line);
    Parameters parameters{{"embeddings", true}};
    const Parameters given = command_parameters(options.parameters, options.devices);
    for (const auto& [name, value] : given.entries())
        if (name != "embeddings") parameters.set(name, value);
    LanguageModel model = LanguageModel::load(options.model, {.parameters = parameters});
    if (model.kind() == ModelKind::token_vectors) {
        for (const std::string& text : texts) print_vectors(model.embed_tokens(text).vectors, true);
    } else {
        for (auto& vector : model.embed(texts).vectors) print_vectors({std::move(vector)}, false);
    }
    return success();
}

Status chat_anywhere(const ChatOptions& options) {
    if (options.model.empty() == options.server.empty())
        return invalid("chat needs a GGUF file or the --server that has a model, and not both");
    if (options.server.empty()) return chat(options);
    if (!options.json.path.empty())
        return unsupported("--json has the answers of a model here, not of a --server");
    return serve::chat({.url = options.server,
                        .key = options.key,
                        .model = options.served_model,
                        .system = options.system,
                        .parameters = command_parameters(options.parameters, {}),
                        .prompts = options.prompts});
}

}  // namespace

Parameters command_parameters(const std::string& json, const std::vector<std::string>& devices) {
    Parameters parameters;
    if (!devices.empty())
        parameters.set("devices", std::vector<ParameterValue>(devices.begin(), devices.end()));
    const Parameters given = Parameters::from_json(json);
    for (const auto& [name, value] : given.entries())
        if (!parameters.find(name)) parameters.set(name, value);
    return parameters;
}

Result<llm::Settings> command_settings(const std::string& parameters, const std::vector<std::string>& devices,
                                       llm::Settings defaults) {
    defaults.log = llm::environment_log();
    llm::Notes notes;
    HR_ASSIGN(llm::Settings settings, llm::with_parameters(defaults, parameters, llm::Level::service, notes));
    if (!devices.empty()) settings.model.devices = devices;
    HR_TRY(llm::set_log(settings.log));
    llm::log_notes(notes);
    return settings;
}

namespace {

constexpr const char *kJsonHelp = "a JSON object, see docs/parameters.md",
                     *kDeviceHelp = "of ggml, or rpc://host:port; several of those share the model";

void add_model_options(CLI::App& command, std::string& model, std::string& parameters,
                       std::vector<std::string>& devices, bool is_required) {
    command.add_option("model", model, "GGUF file")->required(is_required)->type_name("FILE");
    command.add_option("--parameters", parameters, kJsonHelp)->type_name("JSON");
    add_device_option(command, kDeviceHelp, [&](const auto& names) { devices = names; });
}

void add_chat(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("chat", "talk to a GGUF language model, here or on a server")->group(kLanguage);
    auto options = std::make_shared<ChatOptions>();
    add_model_options(*command, options->model, options->parameters, options->devices, false);
    command->add_option("--session", options->session, "the conversation's name")->type_name("NAME");
    command->add_option("--system", options->system, "the conversation's first message")->type_name("TEXT");
    command->add_option("--prompt", options->prompts, "say this and end; may be repeated")->type_name("TEXT");
    add_json_option(*command, options->json);
    command->get_option("--json")->needs("--prompt");
    constexpr const char* kServer = "A server in place of a file";
    command
        ->add_option("--server", options->server,
                     "http://host:port of a server with OpenAI's API, such as headrace serve")
        ->type_name("URL")
        ->group(kServer);
    const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
        command->add_option(name, value, help)->needs("--server")->type_name(type)->group(kServer);
    };
    add("--api-key", options->key, "of that server", "KEY");
    add("--model", options->served_model, "of that server", "NAME");
    command->footer(
        "Examples:\n"
        "    headrace chat model.gguf\n"
        "    headrace chat model.gguf --prompt 'What is 2+3?' --parameters '{\"temp\": 0}' --json -\n"
        "    headrace chat --server http://localhost:8080");
    command->final_callback([=, &status] { run_command(status, [&] { return chat_anywhere(*options); }); });
}

void add_embed(CLI::App& app, Status& status) {
    auto* command = app.add_subcommand("embed", "turn texts into vectors with a GGUF model, as lines of JSON")
                        ->group(kLanguage);
    auto options = std::make_shared<EmbedOptions>();
    add_model_options(*command, options->model, options->parameters, options->devices, true);
    command->add_option("text", options->texts, "without one: the lines of standard input")
        ->type_name("TEXT");
    command->footer(
        "Examples:\n"
        "    headrace embed model.gguf 'a text' 'another'\n"
        "    headrace embed model.gguf < texts.txt > vectors.jsonl");
    command->final_callback([=, &status] { run_command(status, [&] { return embed(*options); }); });
}

void add_bench_llm(CLI::App& app, Status& status) {
    constexpr int kMost = 1 << 20;
    auto* command = app.add_subcommand("bench-llm", "time a GGUF language model with one and several streams")
                        ->group(kLanguage);
    auto options = std::make_shared<LanguageBenchOptions>();
    add_model_options(*command, options->model, options->parameters, options->devices, true);
    command
        ->add_option("--scenario", options->scenario,
                     "streams; prefix: sessions that start alike; stall: a long prompt beside a stream; "
                     "priority: urgent requests under load; speculation: repetitive text")
        ->check(CLI::IsMember({"streams", "prefix", "stall", "priority", "speculation"}))
        ->type_name("");
    const auto add = [&](const char* name, auto& value, const char* help, int least, int most) {
        command->add_option(name, value, help)->check(CLI::Range(least, most))->type_name("N");
    };
    add("--prompt", options->prompt, "tokens of a prompt; default: 512", 1, kMost);
    add("--generate", options->generate, "tokens of an answer; default: 64", 1, kMost);
    add("--streams", options->streams, "at once; several numbers are measured in turn; default: 1 8", 1, 256);
    add("--rounds", options->rounds, "the median is shown; default: 3", 1, kMost);
    add("--threads", options->threads, "default: 0, one per CPU", 0, 512);
    add_json_option(*command, options->json);
    command->footer(
        "Examples:\n"
        "    headrace bench-llm model.gguf\n"
        "    headrace bench-llm model.gguf --streams 1 4 16 --json -");
    command->final_callback(
        [=, &status] { run_command(status, [&] { return bench_language_model(*options); }); });
}

}  // namespace

void add_language_commands(CLI::App& app, Status& status) {
    add_chat(app, status);
    add_embed(app, status);
    add_bench_llm(app, status);
}

void add_parameters(CLI::App& app, Status& status) {
    app.add_subcommand("parameters", "describe every parameter of language models, as Markdown")
        ->group(kReference)
        ->final_callback([&] {
            std::fputs(llm::parameters_page().c_str(), stdout);
            status = success();
        });
}

}  // namespace headrace::cli
