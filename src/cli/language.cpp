#include "cli/language.h"

#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/chat.h"
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
    return serve::chat({.url = options.server,
                        .key = options.key,
                        .model = options.served_model,
                        .system = options.system,
                        .parameters = command_parameters(options.parameters, {}),
                        .prompts = options.prompts});
}

/// Runs a command that uses the public API.
template <class Command>
Status caught(Command command) {
    try {
        return command();
    } catch (const Exception& error) {
        return Error{error.code(), error.what()};
    }
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

void add_language_commands(CLI::App& app, Status& status) {
    constexpr const char* parameters_help = "JSON, see docs/parameters.md";
    constexpr const char* device_help = "of ggml, or rpc://host:port; several of those share the model";
    auto* chat_command = app.add_subcommand("chat", "talk to a GGUF language model, here or on a server");
    auto chat_options = std::make_shared<ChatOptions>();
    chat_command->add_option("model", chat_options->model, "GGUF file");
    chat_command->add_option("--server", chat_options->server,
                             "http://host:port of a server with OpenAI's API, such as headrace serve");
    chat_command->add_option("--api-key", chat_options->key, "of that server")->needs("--server");
    chat_command->add_option("--model", chat_options->served_model, "of that server")->needs("--server");
    add_device_option(*chat_command, device_help, [=](const auto& names) { chat_options->devices = names; });
    chat_command->add_option("--parameters", chat_options->parameters, parameters_help);
    chat_command->add_option("--session", chat_options->session, "the conversation's name");
    chat_command->add_option("--system", chat_options->system, "the conversation's first message");
    chat_command->add_option("--prompt", chat_options->prompts, "say this and end; may be repeated");
    chat_command->final_callback(
        [=, &status] { status = caught([&] { return chat_anywhere(*chat_options); }); });

    auto* embed_command = app.add_subcommand("embed", "turn texts into vectors with a GGUF model");
    auto embed_options = std::make_shared<EmbedOptions>();
    embed_command->add_option("model", embed_options->model, "GGUF file")->required();
    add_device_option(*embed_command, device_help,
                      [=](const auto& names) { embed_options->devices = names; });
    embed_command->add_option("text", embed_options->texts, "without one: the lines of standard input");
    embed_command->add_option("--parameters", embed_options->parameters, parameters_help);
    embed_command->final_callback([=, &status] { status = caught([&] { return embed(*embed_options); }); });

    constexpr int most = 1 << 20;
    auto* bench_command =
        app.add_subcommand("bench-llm", "time a GGUF language model with one and several streams");
    auto bench_options = std::make_shared<LanguageBenchOptions>();
    bench_command->add_option("model", bench_options->model, "GGUF file")->required();
    add_device_option(*bench_command, device_help,
                      [=](const auto& names) { bench_options->devices = names; });
    bench_command
        ->add_option("--scenario", bench_options->scenario,
                     "streams; prefix: sessions that start alike; stall: a long prompt beside a stream; "
                     "priority: urgent "
                     "requests under load; speculation: repetitive text")
        ->check(CLI::IsMember({"streams", "prefix", "stall", "priority", "speculation"}));
    bench_command->add_option("--parameters", bench_options->parameters, parameters_help);
    bench_command->add_option("--prompt", bench_options->prompt, "tokens of a prompt")
        ->check(CLI::Range(1, most));
    bench_command->add_option("--generate", bench_options->generate, "tokens of an answer")
        ->check(CLI::Range(1, most));
    bench_command->add_option("--streams", bench_options->streams, "at once; may be repeated")
        ->check(CLI::Range(1, 256));
    bench_command->add_option("--rounds", bench_options->rounds, "the median is shown")
        ->check(CLI::Range(1, most));
    bench_command->add_option("--threads", bench_options->threads, "0: one per CPU")
        ->check(CLI::Range(0, 512));
    bench_command->add_option("--json", bench_options->json, "write the result there, too");
    bench_command->final_callback([=, &status] { status = bench_language_model(*bench_options); });

    app.add_subcommand("parameters", "describe every parameter of language models, as Markdown")
        ->final_callback([] { std::fputs(llm::parameters_page().c_str(), stdout); });
}

}  // namespace headrace::cli
