#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <set>

#include "cli/commands.h"
#ifdef HEADRACE_LLM
#include "doors/serve/options/flags.h"
#endif

namespace headrace::cli {
namespace {

/// Within single quotes of a shell.
std::string shell_quoted(std::string_view text) {
    std::string all = "'";
    for (const char c : text) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return all + "'";
}

/// In zsh's lists a colon ends what is completed.
std::string described(std::string_view name, std::string_view summary) {
    std::string escaped;
    for (const char c : name) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
    return shell_quoted(fmt::format("{}:{}", escaped, summary));
}

const std::vector<std::string> kShells{"bash", "zsh", "fish"};

/// For a shell: the words of an argument.
std::string words_of(const CompletionCommand& command) {
    return fmt::format("{}", fmt::join(command.words, " "));
}

template <class Visit>
void for_each_name(const CompletionCommand& command, Visit visit) {
    for (const auto& option : command.options)
        for (const std::string& name : option.names) visit(name, option);
}

std::string bash_script(const std::vector<CompletionCommand>& commands) {
    std::string names, cases, arguments;
    for (const CompletionCommand& command : commands) {
        names += (names.empty() ? "" : " ") + command.name;
        if (!command.words.empty())
            arguments +=
                fmt::format("        {}) words={} ;;\n", command.name, shell_quoted(words_of(command)));
        std::string words;
        for_each_name(command, [&](const std::string& name, const auto&) {
            words += (words.empty() ? "" : " ") + name;
        });
        cases += fmt::format("        {}) words={} ;;\n", command.name, shell_quoted(words));
    }
    // Where nothing begins like that, bash's own completion finds files.
    return fmt::format(
        "# bash: source <(headrace completion bash)\n"
        "_headrace() {{\n"
        "    local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=''\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W {} -- \"$word\"))\n"
        "        return\n"
        "    fi\n"
        "    case \"$word\" in\n"
        "    -*) case \"${{COMP_WORDS[1]}}\" in\n"
        "{}"
        "        esac ;;\n"
        "    *) case \"${{COMP_WORDS[1]}}\" in\n"
        "{}"
        "        esac ;;\n"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "}}\n"
        "complete -o default -F _headrace headrace\n",
        shell_quoted(names), cases, arguments);
}

std::string zsh_script(const std::vector<CompletionCommand>& commands) {
    std::string names, cases, arguments;
    for (const CompletionCommand& command : commands) {
        if (!command.words.empty())
            arguments += fmt::format("        {}) compadd {} ;;\n", command.name, words_of(command));
        names += fmt::format("        {}\n", described(command.name, command.summary));
        cases += fmt::format("        {}) options=(\n", command.name);
        for_each_name(command, [&](const std::string& name, const auto& option) {
            cases += fmt::format("            {}\n", described(name, option.summary));
        });
        cases += "        ) ;;\n";
    }
    return fmt::format(
        "#compdef headrace\n"
        "# zsh: source <(headrace completion zsh), after compinit\n"
        "_headrace() {{\n"
        "    local -a commands options\n"
        "    commands=(\n"
        "{}"
        "    )\n"
        "    if (( CURRENT == 2 )); then\n"
        "        _describe 'command' commands\n"
        "        return\n"
        "    fi\n"
        "    if [[ $words[CURRENT] != -* ]]; then\n"
        "        case $words[2] in\n"
        "{}"
        "        *) _files ;;\n"
        "        esac\n"
        "        return\n"
        "    fi\n"
        "    case $words[2] in\n"
        "{}"
        "    esac\n"
        "    _describe 'option' options\n"
        "}}\n"
        "compdef _headrace headrace\n",
        names, arguments, cases);
}

std::string fish_script(const std::vector<CompletionCommand>& commands) {
    std::string lines = "# fish: headrace completion fish | source\n";
    for (const CompletionCommand& command : commands) {
        lines += fmt::format("complete -c headrace -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                             shell_quoted(command.summary));
        if (!command.words.empty())
            lines += fmt::format("complete -c headrace -n '__fish_seen_subcommand_from {}' -f -a {}\n",
                                 command.name, shell_quoted(words_of(command)));
        for_each_name(command, [&](const std::string& name, const auto& option) {
            const std::size_t dashes = name.starts_with("--") ? 2 : 1;
            const char* form = dashes == 2 ? "-l" : name.size() == 2 ? "-s" : "-o";
            lines += fmt::format("complete -c headrace -n '__fish_seen_subcommand_from {}' {} {}{} -d {}\n",
                                 command.name, form, name.substr(dashes), option.takes_value ? " -r" : "",
                                 shell_quoted(option.summary));
        });
    }
    return lines;
}

#ifdef HEADRACE_LLM
/// llama-server's options, such as -ngl, which are not of CLI11; of_models: those that other commands take,
/// too.
std::vector<CompletionCommand::Option> server_options(bool of_models) {
    std::vector<CompletionCommand::Option> options;
    for (const serve::Flag& flag : serve::flags()) {
        if (of_models && !serve::is_model_flag(flag)) continue;
        // A flag for something that this program lacks may only be switched off.
        const bool is_refused = flag.kind == serve::FlagKind::is_refused;
        CompletionCommand::Option on{.summary = std::string(flag.summary),
                                     .takes_value = !flag.value.empty()},
            off{.summary = fmt::format("off: {}", flag.summary)};
        if (!is_refused)
            for (const std::string_view name : serve::words(flag.names)) on.names.emplace_back(name);
        for (const std::string_view name : serve::words(flag.negative)) off.names.emplace_back(name);
        for (auto* option : {&on, &off})
            if (!option->names.empty()) options.push_back(std::move(*option));
    }
    return options;
}

/// Behind the command's own, which come first where names are the same.
void add_server_options(CompletionCommand& command) {
    if (command.name == "serve")
        command.options = {
            {.names = {"--config"}, .summary = "options as lines of `name = value`", .takes_value = true}};
    else if (command.name != "chat" && command.name != "embed" && command.name != "bench-llm")
        return;
    std::set<std::string> known;
    for_each_name(command, [&](const std::string& name, const auto&) { known.insert(name); });
    for (CompletionCommand::Option& option : server_options(command.name != "serve")) {
        std::erase_if(option.names, [&](const std::string& name) { return known.contains(name); });
        if (!option.names.empty()) command.options.push_back(std::move(option));
    }
}
#endif

std::vector<CompletionCommand> commands_of(const CLI::App& app) {
    std::vector<CompletionCommand> commands;
    for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
        CompletionCommand command{.name = one->get_name(), .summary = one->get_description()};
        for (const CLI::Option* option : one->get_options()) {
            CompletionCommand::Option known{.summary = option->get_description(),
                                            .takes_value = option->get_items_expected_max() > 0};
            for (const std::string& name : option->get_snames()) known.names.push_back("-" + name);
            for (const std::string& name : option->get_lnames()) known.names.push_back("--" + name);
            if (!known.names.empty()) command.options.push_back(std::move(known));
        }
        if (command.name == "completion") command.words = kShells;
#ifdef HEADRACE_LLM
        add_server_options(command);
#endif
        commands.push_back(std::move(command));
    }
    return commands;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CompletionCommand>& commands) {
    if (shell == "zsh") return zsh_script(commands);
    return shell == "fish" ? fish_script(commands) : bash_script(commands);
}

void add_completion(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("completion", "print a script by which a shell completes commands and options")
            ->group(kReference);
    auto shell = std::make_shared<std::string>();
    command->add_option("shell", *shell, "bash, zsh or fish")
        ->required()
        ->type_name("SHELL")
        ->check(CLI::IsMember(kShells));
    command->footer(
        "Examples:\n"
        "    source <(headrace completion bash)\n"
        "    headrace completion fish > ~/.config/fish/completions/headrace.fish");
    command->final_callback([=, &app, &status] {
        run_command(status, [&] {
            std::fputs(completion_script(*shell, commands_of(app)).c_str(), stdout);
            return success();
        });
    });
}

}  // namespace headrace::cli
