#include "cli/chat.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/language.h"
#include "headrace/language_model.h"

namespace headrace::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C ends the answer; a second one, or one at the prompt, ends the program as usual.
void on_interrupt(int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);
}

constexpr const char* kHelp =
    "/set NAME VALUE   a parameter of what follows, as /set temp 0.2 (docs/parameters.md)\n"
    "/set NAME         the parameter as it was at first\n"
    "/parameters       those that were set\n"
    "/priority LEVEL   low, normal, high or urgent\n"
    "/session NAME     another conversation, or back to one\n"
    "/clear            forgets the conversation, which begins anew\n"
    "/system TEXT      a new conversation's first message\n"
    "/statistics       sessions, queue, cache and memory\n"
    "/quit, /exit\n";

/// For people to read.
Parameters shown(const LanguageModelStatistics& s) {
    const auto number = [](auto count) { return static_cast<std::int64_t>(count); };
    return {{"model",
             Parameters{
                 {"name", s.name}, {"description", s.description}, {"weight_bytes", number(s.weight_bytes)}}},
            {"requests", Parameters{{"submitted", number(s.submitted)},
                                    {"finished", number(s.finished)},
                                    {"failed", number(s.failed)},
                                    {"cancelled", number(s.cancelled)},
                                    {"rejected", number(s.rejected)},
                                    {"waiting", number(s.waiting)},
                                    {"running", number(s.running)}}},
            {"tokens", Parameters{{"prompt", number(s.prompt_tokens)},
                                  {"cached", number(s.cached_tokens)},
                                  {"generated", number(s.generated_tokens)},
                                  {"drafted", number(s.drafted_tokens)},
                                  {"accepted", number(s.accepted_tokens)}}},
            {"steps", Parameters{{"count", number(s.steps)},
                                 {"longest_ms", s.longest_step_ms},
                                 {"threads", s.threads},
                                 {"pauses", number(s.pauses)},
                                 {"overtaken", number(s.overtaken_steps)}}},
            {"cache", Parameters{{"sequences", number(s.remembered_sequences)},
                                 {"tokens", number(s.remembered_tokens)},
                                 {"ram_bytes", number(s.ram_cache_bytes)},
                                 {"evictions", number(s.evictions)},
                                 {"context_shifts", number(s.context_shifts)},
                                 {"context_tokens", number(s.context_tokens)},
                                 {"disk_bytes", number(s.disk_cache_bytes)},
                                 {"disk_tokens", number(s.disk_cached_tokens)},
                                 {"disk_failures", number(s.disk_failures)}}},
            {"sessions",
             Parameters{{"named", number(s.named_sessions)}, {"anonymous", number(s.anonymous_sessions)}}},
            {"process", Parameters{{"models", number(s.process_models)},
                                   {"engines", number(s.process_engines)},
                                   {"resident_bytes", number(s.process_resident_bytes)},
                                   {"memory_share_in_use", s.memory_share_in_use}}}};
}

class Chat {
public:
    explicit Chat(LanguageModel model) : model_(std::move(model)) {}

    void use_session(const std::string& name) {
        sessions_.try_emplace(name, model_.conversation(name));
        session_ = name;
    }
    /// Checked here with those set before, so that a mistake, which is an Exception, spoils no later message.
    void set(const std::string& name, ParameterValue value) {
        Parameters all = parameters_;
        all.set(name, std::move(value));
        Parameters strict = {{"strict", true}};
        for (const auto& [given, set_before] : all.entries()) strict.set(given, set_before);
        model_.conversation(session_, strict);
        parameters_ = std::move(all);
    }

    /// The answer, which is shown as it comes unless `quietly`.
    Reply say(const std::string& text, bool quietly = false) {
        interrupted = 0;
        const Interruption until_the_end;
        Conversation conversation = model_.conversation(session_, parameters_);
        Generation answer = conversation.stream(text);
        while (const auto piece = answer.next()) {
            if (!quietly) std::fputs(piece->text.c_str(), stdout);
            std::fflush(stdout);
            if (!interrupted) continue;
            answer.cancel();
            break;
        }
        Reply reply = answer.reply();
        if (quietly) return reply;
        std::printf("\n");
        std::fflush(stdout);  // the line of the speed comes after it
        show_speed(reply);
        return reply;
    }

    /// A line that starts with a slash. False: the program ends.
    Result<bool> command(const std::string& line) {
        const std::size_t space = line.find(' ');
        const std::string name = line.substr(1, space == std::string::npos ? space : space - 1);
        const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
        if (name == "quit" || name == "exit") return false;
        if (name == "help") {
            std::fputs(kHelp, stdout);
        } else if (name == "parameters") {
            std::printf("%s\n", parameters_.to_json(2).c_str());
        } else if (name == "priority") {
            set("priority", rest);
        } else if (name == "system") {
            set("system_prompt", rest);
            use_session("chat " + std::to_string(++conversations_));
        } else if (name == "clear") {
            use_session("chat " + std::to_string(++conversations_));
        } else if (name == "session") {
            if (rest.empty()) return invalid("/session needs a name");
            use_session(rest);
        } else if (name == "statistics") {
            std::printf("%s\n", shown(model_.statistics()).to_json(2).c_str());
        } else if (name == "set") {
            HR_TRY(set_parameter(rest));
        } else {
            return invalid("there is no /{}; /help lists the commands", name);
        }
        return true;
    }

private:
    /// While an answer is written, Ctrl-C ends that.
    class Interruption {
    public:
        Interruption() : before_(std::signal(SIGINT, on_interrupt)) {}
        ~Interruption() { std::signal(SIGINT, before_); }
        Interruption(const Interruption&) = delete;
        Interruption& operator=(const Interruption&) = delete;

    private:
        void (*before_)(int);
    };

    Status set_parameter(const std::string& text) {
        const std::size_t space = text.find_first_of(" =");
        if (text.empty() || space == 0) return invalid("/set needs a name and a value, as /set temp 0.2");
        const std::string name = text.substr(0, space);
        if (space == std::string::npos) {
            if (!parameters_.erase(name))
                return invalid("'{}' was not set; /parameters lists what was", name);
            return success();
        }
        set(name, value_of(text.substr(space + 1)));
        return success();
    }

    /// A value of JSON, or else the text itself.
    static ParameterValue value_of(const std::string& text) {
        try {
            return ParameterValue::from_json(text);
        } catch (const Exception&) {
            return text;
        }
    }

    static void show_speed(const Reply& reply) {
        std::fprintf(stderr,
                     "[%lld tokens, %.1f a second; prompt %lld, %lld of them remembered, %.0f ms; %s]\n",
                     static_cast<long long>(reply.generated_tokens), reply.timings.generated_per_second,
                     static_cast<long long>(reply.prompt_tokens), static_cast<long long>(reply.cached_tokens),
                     reply.timings.prompt_ms, std::string(to_string(reply.stop_reason)).c_str());
        for (const Warning& warning : reply.warnings)
            std::fprintf(stderr, "[%s: %s]\n", warning.parameter.c_str(), warning.message.c_str());
    }

    LanguageModel model_;
    std::map<std::string, Conversation> sessions_;  // whoever comes back from lunch goes on where they were
    std::string session_;
    Parameters parameters_;
    int conversations_ = 1;
};

nlohmann::json json_of(const std::string& prompt, const Reply& reply) {
    nlohmann::json warnings = nlohmann::json::array();
    for (const Warning& warning : reply.warnings)
        warnings.push_back({{"parameter", warning.parameter}, {"message", warning.message}});
    return {{"prompt", prompt},
            {"text", reply.text},
            {"stop_reason", to_string(reply.stop_reason)},
            {"prompt_tokens", reply.prompt_tokens},
            {"cached_tokens", reply.cached_tokens},
            {"generated_tokens", reply.generated_tokens},
            {"prompt_ms", reply.timings.prompt_ms},
            {"generated_per_second", reply.timings.generated_per_second},
            {"warnings", std::move(warnings)}};
}

/// Says each prompt of the command line, and ends.
Status say_all(Chat& chat, const ChatOptions& options) {
    nlohmann::json answers = nlohmann::json::array();
    for (const std::string& prompt : options.prompts)
        answers.push_back(json_of(prompt, chat.say(prompt, options.json.replaces_text())));
    return report("", answers, options.json);
}

}  // namespace

Status chat(const ChatOptions& options) {
    Chat chat(LanguageModel::load(options.model, {.parameters = options.parameters}));
    chat.use_session(options.session);
    if (!options.system.empty()) chat.set("system_prompt", valid_utf8(options.system));
    if (!options.prompts.empty()) return say_all(chat, options);
    const bool interactive = isatty(STDIN_FILENO);
    if (interactive) std::printf("%s. /help lists the commands.\n", options.model.c_str());
    std::string line;
    while (interactive && std::printf("> "), std::fflush(stdout), std::getline(std::cin, line)) {
        if (line.ends_with('\r')) line.pop_back();  // of a file from Windows
        if (line.empty()) continue;
        Result<bool> go_on = true;
        try {
            if (line[0] == '/')
                go_on = chat.command(valid_utf8(line));
            else
                chat.say(line);
        } catch (const Exception& error) {
            go_on = Error{error.code(), error.what()};
        }
        if (!go_on.ok()) tell_user(go_on.error().message);
        if (go_on.ok() && !go_on.value()) break;
        if (options.single_turn && line[0] != '/') break;
    }
    return success();
}

}  // namespace headrace::cli
