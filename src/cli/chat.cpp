#include "cli/chat.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/language.h"
#include "llm/parameters/parameters.h"
#include "llm/service/service.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C ends the answer; a second one, or one at the prompt, ends the program as usual.
void on_interrupt(int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);
}

constexpr const char* help =
    "/set NAME VALUE   a parameter of what follows, as /set temp 0.2 (docs/parameters.md)\n"
    "/set NAME         the parameter as it was at first\n"
    "/parameters       those that were set\n"
    "/priority LEVEL   low, normal, high or urgent\n"
    "/session NAME     another conversation, or back to one\n"
    "/system TEXT      a new conversation's first message\n"
    "/statistics       sessions, queue, cache and memory\n"
    "/quit\n";

class Chat {
public:
    Chat(std::unique_ptr<llm::Service> service, llm::Service::GraphId graph)
        : service_(std::move(service)), graph_(graph) {}

    Status use_session(const std::string& name) {
        HR_ASSIGN(const llm::Service::ContextId opened, service_->open(graph_, name));
        if (const auto before = std::exchange(context_, opened)) HR_TRY(service_->close(before));
        return success();
    }
    /// Checked here with those set before, so that a mistake spoils no later message.
    Status set(const std::string& name, json value) {
        json all = parameters_;
        all[name] = std::move(value);
        llm::Settings strict;
        strict.strict = true;
        llm::Notes shown_with_replies;
        const auto text = all.dump(-1, ' ', false, json::error_handler_t::replace);
        HR_ASSIGN(strict, llm::with_parameters(strict, text, llm::Level::session, shown_with_replies));
        parameters_ = json::parse(text);  // what is no UTF-8 cannot be written as JSON again
        return success();
    }

    Status say(const std::string& text) {
        HR_TRY(service_->set_input(context_, 0, text));
        HR_TRY(service_->set_input(context_, 1, parameters_.empty() ? "" : parameters_.dump()));
        interrupted = 0;
        auto* before = std::signal(SIGINT, on_interrupt);
        Status status = stream();
        std::signal(SIGINT, before);
        if (status.ok()) show_speed();
        return status;
    }

    /// A line that starts with a slash. False: the program ends.
    Result<bool> command(const std::string& line) {
        const size_t space = line.find(' ');
        const std::string name = line.substr(1, space == std::string::npos ? space : space - 1);
        const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
        if (name == "quit" || name == "exit") return false;
        if (name == "help") {
            std::fputs(help, stdout);
        } else if (name == "parameters") {
            std::printf("%s\n", parameters_.dump(2).c_str());
        } else if (name == "priority") {
            HR_TRY(set("priority", rest));
        } else if (name == "system") {
            HR_TRY(set("system_prompt", rest));
            HR_TRY(use_session("chat " + std::to_string(++conversations_)));
        } else if (name == "session") {
            if (rest.empty()) return invalid("/session needs a name");
            HR_TRY(use_session(rest));
        } else if (name == "statistics") {
            std::printf("%s\n", json::parse(service_->statistics()).dump(2).c_str());
        } else if (name == "set") {
            HR_TRY(set_parameter(rest));
        } else {
            return invalid("there is no /{}; /help lists the commands", name);
        }
        return true;
    }

private:
    Status set_parameter(const std::string& text) {
        const size_t space = text.find_first_of(" =");
        if (text.empty() || space == 0) return invalid("/set needs a name and a value, as /set temp 0.2");
        const std::string name = text.substr(0, space);
        if (space == std::string::npos) {
            if (!parameters_.erase(name))
                return invalid("'{}' was not set; /parameters lists what was", name);
            return success();
        }
        const std::string value = text.substr(space + 1);
        const json parsed = json::parse(value, nullptr, false);
        return set(name, parsed.is_discarded() ? json(value) : parsed);
    }

    Status stream() {
        for (;;) {
            HR_ASSIGN(const auto piece, service_->compute_piece(context_));
            if (!piece) break;
            std::fputs(piece->c_str(), stdout);
            std::fflush(stdout);
            if (interrupted) {
                HR_TRY(service_->end_pieces(context_));
                break;
            }
        }
        std::printf("\n");
        std::fflush(stdout);  // the line of the speed comes after it
        return success();
    }

    void show_speed() {
        const auto text = service_->output(context_, 1);
        if (!text.ok()) return;
        const json metadata = json::parse(text.value());
        const json& timings = metadata["timings"];
        std::fprintf(stderr, "[%d tokens, %.1f a second; prompt %d, %d of them remembered, %.0f ms; %s]\n",
                     metadata.value("output_tokens", 0), timings.value("generated_per_second", 0.0),
                     metadata.value("input_tokens", 0), metadata.value("cached_tokens", 0),
                     timings.value("prompt_ms", 0.0), metadata.value("stop_reason", "").c_str());
        for (const json& warning : metadata.value("warnings", json::array()))
            std::fprintf(stderr, "[%s: %s]\n", warning.value("parameter", "").c_str(),
                         warning.value("message", "").c_str());
    }

    std::unique_ptr<llm::Service> service_;
    llm::Service::GraphId graph_;
    llm::Service::ContextId context_ = 0;
    json parameters_ = json::object();
    int conversations_ = 1;
};

}  // namespace

Status chat(const ChatOptions& options) {
    llm::Settings defaults;
    defaults.session.idle_timeout_ms = 0;  // whoever comes back from lunch goes on where they were
    HR_ASSIGN(const llm::Settings settings, command_settings(options.parameters, options.devices, defaults));
    HR_ASSIGN(std::unique_ptr<llm::Service> service, llm::Service::create("", settings));
    HR_ASSIGN(const llm::Service::GraphId graph, service->load(options.model, ""));
    Chat chat(std::move(service), graph);
    if (!options.system.empty()) HR_TRY(chat.set("system_prompt", options.system));
    HR_TRY(chat.use_session(options.session));
    for (const std::string& prompt : options.prompts) HR_TRY(chat.say(prompt));
    if (!options.prompts.empty()) return success();
    const bool interactive = isatty(STDIN_FILENO);
    if (interactive) std::printf("%s. /help lists the commands.\n", options.model.c_str());
    std::string line;
    while (interactive && std::printf("> "), std::fflush(stdout), std::getline(std::cin, line)) {
        if (line.ends_with('\r')) line.pop_back();  // of a file from Windows
        if (line.empty()) continue;
        Result<bool> go_on = true;
        if (line[0] == '/') {
            go_on = chat.command(line);
        } else if (const Status said = chat.say(line); !said.ok()) {
            go_on = said.error();
        }
        if (!go_on.ok()) std::fprintf(stderr, "%s\n", go_on.error().message.c_str());
        if (go_on.ok() && !go_on.value()) break;
    }
    return success();
}

}  // namespace headrace::cli
