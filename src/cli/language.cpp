#include "cli/language.h"

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/language_bench.h"
#include "cli/language_flags.h"
#include "cli/report.h"
#include "doors/serve/client.h"
#include "doors/serve/options/options.h"
#include "headrace/language_model.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/page.h"
#include "llm/parameters/parameters.h"

namespace headrace::cli {
namespace {

struct EmbedOptions {
    std::string model;
    Parameters parameters;
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
    for (const auto& [name, value] : options.parameters.entries())
        if (name != "embeddings") parameters.set(name, value);
    LanguageModel model = LanguageModel::load(options.model, {.parameters = parameters});
    if (model.kind() == ModelKind::token_vectors) {
        if (!parameters.find("pooling"))
            return invalid(
                "{}: the model gives a vector of each token, and none of a text. --pooling mean makes one of "
                "them; --pooling none prints them all",
                options.model);
        for (const std::string& text : texts) print_vectors(model.embed_tokens(text).vectors, true);
    } else {
        for (auto& vector : model.embed(texts).vectors) print_vectors({std::move(vector)}, false);
    }
    return success();
}

/// A file's text, without the newline that editors end it with.
Result<std::string> text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return failure(Code::not_found, "'{}' cannot be read", path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

/// Options that exclude each other, or lack what they go with.
Status check_chat(const ChatOptions& options) {
    if (options.model.empty() && options.server.empty())
        return invalid("no model is named: headrace chat model.gguf, or --server URL of what has one");
    if (!options.model.empty() && !options.server.empty())
        return invalid("chat has the file '{}' and a --server: name one of them", options.model);
    if (options.server.empty() && !options.key.empty())
        return invalid("--api-key is for a --server; a file needs none");
    if (!options.json.path.empty() && options.prompts.empty())
        return invalid("--json has the answers to prompts: give them by --prompt or --file");
    if (!options.json.path.empty() && !options.server.empty())
        return invalid("--json has the answers of a model here, not of a --server");
    return success();
}

Status chat_anywhere(ChatOptions& options) {
    if (!options.prompt_file.empty()) {
        HR_ASSIGN(std::string prompt, text_of_file(options.prompt_file));
        options.prompts.push_back(std::move(prompt));
    }
    if (!options.system_file.empty()) {
        HR_ASSIGN(options.system, text_of_file(options.system_file));
    }
    // --model is the file, as in llama-cli, or with --server a model's name there.
    if (options.model.empty() && options.server.empty()) options.model = std::move(options.served_model);
    check_usage(check_chat(options));
    if (options.server.empty()) return chat(options);
    return serve::chat({.url = options.server,
                        .key = options.key,
                        .model = options.served_model,
                        .system = options.system,
                        .parameters = options.parameters,
                        .prompts = options.prompts,
                        .single_turn = options.single_turn});
}

}  // namespace

Result<std::vector<std::string>> take_model_flags(const CLI::App& app, std::span<char* const> arguments,
                                                  ModelFlags& flags) {
    std::vector<std::string> all(arguments.begin() + 1, arguments.end()), rest;
    const bool is_ours = !all.empty() && (all[0] == "chat" || all[0] == "embed" || all[0] == "bench-llm");
    if (!is_ours) return all;
    Parameters more;
    if (all[0] == "chat") take_chat_flags(all, more);
    const CLI::App* command = app.get_subcommand(all[0]);
    const auto keeps = [&](const std::string& name) { return command->get_option_no_throw(name) != nullptr; };
    HR_ASSIGN(const serve::ServeOptions given, serve::take_model_options(all, keeps, rest));
    for (const auto& [set, name] :
         {std::pair(!given.embedding_model.empty(), "--embed"),
          std::pair(!given.ranking_model.empty(), "--rank"),
          std::pair(!given.encoder.tokenizer.empty(), "--tokenizer"),
          std::pair(given.encoder.compile.precision == Precision::fast, "--precision"),
          std::pair(!given.cpus.empty(), "--cpu-mask or --cpu-range")})
        if (set) return unsupported("{} is an option of `headrace serve`, and not of {}", name, all[0]);
    for (const std::string& note : given.notes) tell_user(note);
    flags = {given.model, given.parameters};
    for (const auto& [name, value] : more.entries()) flags.parameters.set(name, value);
    return rest;
}

Result<llm::Settings> command_settings(const Parameters& parameters, llm::Settings defaults) {
    defaults.log = llm::environment_log();
    llm::Warnings warnings;
    HR_ASSIGN(llm::Settings settings,
              llm::with_parameters(defaults, parameters.to_json(), llm::Level::service, warnings));
    HR_TRY(llm::set_log(settings.log));
    llm::log_warnings(warnings);
    return settings;
}

namespace {

constexpr const char *kJsonHelp = "a JSON object, see docs/parameters.md",
                     *kDeviceHelp = "of ggml, or rpc://host:port; several of those share the model";

/// What a command's own options say of its model.
struct ModelArguments {
    std::string model, parameters;
    std::vector<std::string> devices;

    /// Flags come first, then --device, then --parameters. Throws where the last is no JSON object.
    template <class Options>
    void resolve(const ModelFlags& flags, Options& options) const {
        options.model = model.empty() ? flags.model : model;
        options.parameters = flags.parameters;
        const auto add = [&](const std::string& name, const ParameterValue& value) {
            if (!options.parameters.find(name)) options.parameters.set(name, value);
        };
        if (!devices.empty()) add("devices", std::vector<ParameterValue>(devices.begin(), devices.end()));
        const Parameters given = Parameters::from_json(parameters);
        for (const auto& [name, value] : given.entries()) add(name, value);
    }
};

/// `run` gets what these options and the flags say of the model besides its own options.
template <class Options>
void add_model_command(CLI::App& command, Status& status, const ModelFlags& flags,
                       std::shared_ptr<Options> options,
                       std::function<Status(Options&, const ModelArguments&)> run) {
    auto arguments = std::make_shared<ModelArguments>();
    command.add_option("model", arguments->model, "GGUF file; also -m FILE")->type_name("FILE");
    command.add_option("--parameters", arguments->parameters, kJsonHelp)->type_name("JSON");
    add_device_option(command, kDeviceHelp, [=](const auto& names) { arguments->devices = names; });
    command.final_callback([=, &status, &flags] {
        run_command(status, [&] {
            arguments->resolve(flags, *options);
            return run(*options, *arguments);
        });
    });
}

constexpr const char* kFlagsHelp =
    "llama.cpp's flags for models work here, too: -c, -ngl, --lora and all others that\n"
    "`headrace serve --help` lists for the model.\n\n";
constexpr const char* kAnswerFlagsHelp =
    "llama.cpp's flags for models and answers work here, too: -c, -ngl, --lora, --grammar-file and all\n"
    "others that `headrace serve --help` lists for them. Those of the samplers:\n\n";

void needs_model(const std::string& model) {
    if (model.empty()) throw CLI::RequiredError("model (a GGUF file, the first argument or by -m)");
}

void add_chat(CLI::App& app, Status& status, const ModelFlags& flags) {
    auto* command =
        app.add_subcommand("chat", "talk to a GGUF language model, here or on a server")->group(kLanguage);
    auto options = std::make_shared<ChatOptions>();
    add_model_command<ChatOptions>(
        *command, status, flags, options,
        [](ChatOptions& chosen, const ModelArguments&) { return chat_anywhere(chosen); });
    command->add_option("--session", options->session, "the conversation's name")->type_name("NAME");
    command->add_option("--system", options->system, "the conversation's first message; also -sys")
        ->type_name("TEXT");
    command->add_option("--system-file", options->system_file, "the same from a file; also -sysf")
        ->type_name("FILE");
    command->add_option("-p,--prompt", options->prompts, "say this and end; may be repeated")
        ->type_name("TEXT");
    command->add_option("-f,--file", options->prompt_file, "say what the file has and end")
        ->type_name("FILE");
    command->add_flag("--single-turn", options->single_turn, "end after the first answer; also -st");
    add_json_option(*command, options->json);
    constexpr const char* kServer = "A server in place of a file";
    command
        ->add_option("--server", options->server,
                     "http://host:port of a server with OpenAI's API, such as headrace serve")
        ->type_name("URL")
        ->group(kServer);
    const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
        command->add_option(name, value, help)->type_name(type)->group(kServer);
    };
    add("--api-key", options->key, "the server's API key", "KEY");
    add("--model", options->served_model, "which of the server's models; without --server: the file, as -m",
        "NAME");
    command->footer(kAnswerFlagsHelp + serve::sampling_help(parameter_help) +
                    "\nExamples:\n"
                    "    headrace chat model.gguf\n"
                    "    headrace chat -m model.gguf -c 4096 --temp 0 -p 'What is 2+3?' --json -\n"
                    "    headrace chat -m model.gguf -sys 'Answer in French.' -f question.txt --log-disable\n"
                    "    headrace chat --server http://localhost:8080");
}

void add_embed(CLI::App& app, Status& status, const ModelFlags& flags) {
    auto* command = app.add_subcommand("embed", "turn texts into vectors with a GGUF model, as lines of JSON")
                        ->group(kLanguage);
    auto options = std::make_shared<EmbedOptions>();
    add_model_command<EmbedOptions>(*command, status, flags, options,
                                    [&flags](EmbedOptions& chosen, const ModelArguments& arguments) {
                                        // Behind -m FILE the first text is where the model would be.
                                        if (!flags.model.empty() && !arguments.model.empty()) {
                                            chosen.model = flags.model;
                                            chosen.texts.insert(chosen.texts.begin(), arguments.model);
                                        }
                                        needs_model(chosen.model);
                                        return embed(chosen);
                                    });
    command->add_option("text", options->texts, "without one: the lines of standard input")
        ->type_name("TEXT");
    command->footer(std::string(kFlagsHelp) +
                    "Examples:\n"
                    "    headrace embed model.gguf 'a text' 'another'\n"
                    "    headrace embed -m model.gguf --pooling mean < texts.txt > vectors.jsonl");
}

void add_bench_llm(CLI::App& app, Status& status, const ModelFlags& flags) {
    constexpr int kMost = 1 << 20;
    auto* command = app.add_subcommand("bench-llm", "time a GGUF language model with one and several streams")
                        ->group(kLanguage);
    auto options = std::make_shared<LanguageBenchOptions>();
    add_model_command<LanguageBenchOptions>(*command, status, flags, options,
                                            [](LanguageBenchOptions& chosen, const ModelArguments&) {
                                                needs_model(chosen.model);
                                                return bench_language_model(chosen);
                                            });
    command
        ->add_option("--scenario", options->scenario,
                     "streams; prefix: sessions that start alike; stall: a long prompt beside a stream; "
                     "priority: urgent requests under load; speculation: repetitive text")
        ->check(CLI::IsMember({"streams", "prefix", "stall", "priority", "speculation"}))
        ->type_name("");
    const auto add = [&](const char* name, auto& value, const char* help, int least, int most) {
        command->add_option(name, value, help)->check(CLI::Range(least, most))->type_name("N");
    };
    add("-p,--prompt", options->prompt, "tokens of a prompt; default: 512", 1, kMost);
    add("-n,--generate", options->generate, "tokens of an answer; default: 64", 1, kMost);
    add("--streams", options->streams, "at once; several numbers are measured in turn; default: 1 8", 1, 256);
    add("-r,--rounds,--repetitions", options->rounds, "the median is shown; default: 3", 1, kMost);
    add("-t,--threads", options->threads, "default: 0, one per CPU", 0, 512);
    add_json_option(*command, options->json);
    command->footer(std::string(kFlagsHelp) +
                    "Examples:\n"
                    "    headrace bench-llm model.gguf\n"
                    "    headrace bench-llm -m model.gguf -p 512 -n 64 -t 2 --streams 1 4 16 --json -");
}

}  // namespace

serve::ParameterHelp parameter_help(std::string_view name) {
    const llm::ParameterText text = llm::parameter_text(name);
    return {.usual = llm::parameter_default(name), .summary = text.summary, .section = text.section};
}

void add_language_commands(CLI::App& app, Status& status, const ModelFlags& flags) {
    add_chat(app, status, flags);
    add_embed(app, status, flags);
    add_bench_llm(app, status, flags);
}

void add_parameters(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("parameters", "describe every parameter of language models, as Markdown")
            ->group(kReference);
    auto json = std::make_shared<JsonOption>();
    add_json_option(*command, *json);
    command->footer(
        "Examples:\n"
        "    headrace parameters\n"
        "    headrace parameters --json -");
    command->final_callback(
        [=, &status] { status = report(llm::parameters_page(), llm::parameters_list(), *json); });
}

}  // namespace headrace::cli
