#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/edit_distance.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/python.h"
#ifdef HEADRACE_LLM
#include "cli/language.h"
#include "doors/serve/program.h"
#include "llm/model/library_versions.h"
#include "llm/parameters/page.h"
#endif

namespace {

using namespace headrace;
using namespace headrace::cli;

/// What the program ends with; docs/command-line.md.
enum ExitStatus { kSuccess = 0, kFailure = 1, kUsage = 2 };

std::string version_text() {
#ifdef HEADRACE_LLM
    return fmt::format("headrace " HEADRACE_VERSION "\n{}", llm::library_versions());
#else
    return "headrace " HEADRACE_VERSION;
#endif
}

#ifndef HEADRACE_LLM
/// Without language models no command has any.
struct ModelFlags {};
Result<std::vector<std::string>> take_model_flags(const CLI::App&, std::span<char* const> arguments,
                                                  ModelFlags&) {
    return std::vector<std::string>(arguments.begin() + 1, arguments.end());
}
#endif

int report_error(const Status& status) {
    if (status.ok()) return kSuccess;
    tell_user(status.error().message);
    return kFailure;
}

#ifdef HEADRACE_LLM
/// Its options are llama-server's, such as -ngl, which CLI11 cannot read.
bool is_for_server(std::span<char* const> arguments) {
    return arguments.size() > 1 && std::string_view(arguments[1]) == "serve";
}
#endif

void add_commands(CLI::App& app, Status& status, [[maybe_unused]] const ModelFlags& flags) {
    add_run(app, status);
    add_bench(app, status);
    add_inspect(app, status);
    add_convert(app, status);
    app.add_subcommand("serve",
                       "serve a language model over HTTP by the APIs of OpenAI, Anthropic, Ollama and "
                       "llama-server")
        ->group(kLanguage);
#ifdef HEADRACE_LLM
    add_language_commands(app, status, flags);
#endif
    app.add_subcommand("wasm", "run a WebAssembly guest that uses language models")->group(kLanguage);
    add_devices(app, status);
    add_serve_rpc(app, status);
    add_ops(app, status);
#ifdef HEADRACE_LLM
    add_parameters(app, status);
#endif
    add_completion(app, status);
}

bool is_number(const std::string& text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && stop == text.data() + text.size();
}

/// What is wrong with an option's number, in a sentence. CLI11's own are "Could not convert: --threads = two"
/// and
/// "--port: Value two not in range 0 to 65535".
std::string explained(const std::string& text) {
    constexpr std::string_view kNoNumber = "Could not convert: ", kEquals = " = ", kValue = ": Value ",
                               kOutside = " not in range ";
    const std::size_t equals = text.find(kEquals), value = text.find(kValue), range = text.rfind(kOutside);
    if (text.starts_with(kNoNumber) && equals != text.npos) {
        const std::string name = text.substr(kNoNumber.size(), equals - kNoNumber.size()),
                          given = text.substr(equals + kEquals.size());
        return fmt::format("{} takes a {}number, not '{}'", name, is_number(given) ? "whole " : "", given);
    }
    if (value == text.npos || range == text.npos || range < value) return text;
    const std::size_t begin = value + kValue.size();
    return fmt::format("{} takes a number from {}, not '{}'", text.substr(0, value),
                       text.substr(range + kOutside.size()), text.substr(begin, range - begin));
}

/// Of the arguments that a command does not know the first option, or else the first.
std::string unknown_argument(const std::vector<std::string>& arguments) {
    for (const std::string& argument : arguments)
        if (argument.starts_with("-")) return argument.substr(0, argument.find('='));
    return arguments.empty() ? "" : arguments.front();
}

/// "; did you mean '--temp'?" of an argument that the command does not know.
std::string meant_option(const CLI::App& command, const std::string& unknown) {
#ifdef HEADRACE_LLM
    if (!unknown.starts_with("-")) return command.get_name() == "chat" ? "; -p says a text" : "";
    std::vector<std::string> own;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) own.push_back("--" + name);
    std::vector<std::string_view> names(own.begin(), own.end());
    if (command.get_group() == kLanguage) {
        const auto flags = serve::flag_names(true);
        names.insert(names.end(), flags.begin(), flags.end());
    }
    const std::string near = serve::near_name(unknown, names);
    return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
#else
    static_cast<void>(command), static_cast<void>(unknown);
    return {};
#endif
}

/// The command that a file is for, where it stands in a command's place.
std::string meant_command(std::string_view file) {
    if (file.ends_with(".gguf")) return "chat";
    for (const char* ending : {".onnx", ".hrg", ".webnn", ".json"})
        if (file.ends_with(ending)) return "run";
    return file.ends_with(".wasm") ? "wasm" : "";
}

/// What is wrong with the command line, and where its help is.
int explain(const CLI::App& app, const CLI::ParseError& error, std::span<char* const> arguments) {
    const std::string word = arguments.size() > 1 ? arguments[1] : "";
    std::string nearest;
    std::size_t least = word.size() / 2 + 1;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        const std::size_t distance = edit_distance(word, command->get_name(), least);
        if (distance >= least) continue;
        least = distance;
        nearest = command->get_name();
    }
    if (const std::string command = meant_command(word); !command.empty())
        nearest = fmt::format("headrace {} {}", command, word);
    if (word == "help" || word == "version") nearest = "headrace --" + word;
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (least == 0 && dynamic_cast<const CLI::ExtrasError*>(&error)) {
        const std::string unknown = unknown_argument(app.remaining(true));
        text = fmt::format(
            "{} '{}'{}",
            unknown.starts_with("-") ? "there is no option" : "there is no place for the argument", unknown,
            meant_option(*app.get_subcommand(word), unknown));
    } else {
        text = explained(text);
    }
    if (least > 0 && word.starts_with("-"))
        text = fmt::format(
            "there is no option '{}'; there are --help and --version, and commands; headrace --help lists "
            "them",
            word);
    else if (least > 0 && !word.empty())
        text = fmt::format("there is no command '{}'{}; headrace --help lists them", word,
                           nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
    else
        text += fmt::format("; headrace {}--help explains", least == 0 ? word + " " : "");
    tell_user(text);
    return kUsage;
}

int dispatch(int argc, char** argv) {
    CLI::App app{"Runs models on ggml.", "headrace"};
    app.formatter(std::make_shared<HelpFormatter>());
    app.require_subcommand(1);
    app.set_version_flag("--version", version_text(), "print the version and exit");
    app.footer(
        "Examples:\n"
        "    headrace run model.onnx\n"
        "    headrace chat model.gguf\n"
        "    headrace COMMAND --help");
    Status status = success();
    ModelFlags flags;
    add_commands(app, status, flags);
    const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
    auto rest = take_model_flags(app, arguments, flags);
    if (!rest.ok()) return report_error(rest.error()), kUsage;
    std::ranges::reverse(rest.value());  // as CLI11 wants them
    try {
        app.parse(std::move(rest).value());
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == kSuccess) return app.exit(error);  // --help, --version
        return explain(app, error, arguments);
    }
    return report_error(status);
}

#ifdef HEADRACE_LLM
int serve_models(std::span<char* const> arguments) {
    const std::vector<std::string> behind(arguments.begin() + 2, arguments.end());
    const Result<serve::ServeOptions> options = serve::program_options(behind);
    if (!options.ok()) return report_error(options.error()), kUsage;
    const auto shown = [](const std::string& text) { return std::printf("%s\n", text.c_str()), kSuccess; };
    if (options.value().shows_help) return shown(serve::serve_help(parameter_help));
    if (options.value().shows_version) return shown(version_text());
    if (options.value().shows_parameters) return shown(llm::request_parameters_text());
    if (options.value().shows_llama_server_flags) return shown(serve::llama_server_flags_page());
    if (options.value().shows_completion) {
        // A shell has one script for a program, whichever command it is asked of.
        std::string words[] = {"headrace", "completion", "bash"};
        char* asked[] = {words[0].data(), words[1].data(), words[2].data()};
        return dispatch(static_cast<int>(std::size(asked)), asked);
    }
    return report_error(serve::run(options.value()));
}
#endif

int run_program(int argc, char** argv) {
    try {
        const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
        if (is_for_python(arguments)) return report_error(become_python(arguments));
#ifdef HEADRACE_LLM
        if (is_for_server(arguments)) return serve_models(arguments);
#endif
        return dispatch(argc, argv);
    } catch (const Exception& e) {
        return report_error(Error{e.code(), e.what()});
    } catch (const std::bad_alloc&) {
        return report_error(failure(Code::out_of_memory, "out of memory"));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int status = run_program(argc, argv);
    const bool is_written = std::fflush(stdout) == 0 && !std::ferror(stdout);
    if (status != kSuccess || is_written) return status;
    return report_error(failure(Code::io, "cannot write all of the output; is the disk full?"));
}
