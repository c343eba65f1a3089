#include "doors/serve/api/anthropic_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "doors/serve/request/images.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {
namespace {

bool is_space(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }

void add_image(const Fields& block, Message& message) {
    message.images.push_back(image_of_block(block));
    message.images.back().part = message.parts.size();
}

/// The text of a block, which may not be empty.
std::string text_of_block(const Fields& block) {
    std::string text = block.required_text("text");
    if (text.empty()) throw wrong_field(block.name("text"), "text content blocks must be non-empty");
    if (std::ranges::all_of(text, is_space))
        throw wrong_field(block.name("text"), "text content blocks must contain non-whitespace text");
    return text;
}

/// The only text of a message is its content.
void join_only_part(Message& message) {
    if (message.parts.size() == 1 && message.images.empty())
        message.content = std::exchange(message.parts, {}).front();
}

/// A content that is a text or a list of blocks: a tool's result, which may be empty, or the system's.
void read_texts(const Json& content, const std::string& place, Message& message) {
    if (content.is_string()) {
        message.content = content.get<std::string>();
        return;
    }
    if (!content.is_array())
        throw wrong_field(place,
                          fmt::format("is {}; it must be a text or a list of blocks", kind_of(content)));
    const bool is_system = message.role == "system";
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields block(content[i], fmt::format("{}.{}", place, i));
        const std::string type = block.required_text("type");
        if (type == "text")
            message.parts.push_back(is_system ? text_of_block(block) : block.required_text("text"));
        else if (type == "image" && !is_system)
            add_image(block, message);
        else
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}'; texts and images of messages are read, and no documents", type));
    }
    join_only_part(message);
}

/// Uses of tools and their results, turn by turn.
class ToolTurns {
public:
    /// knows_all: every use is in these messages.
    explicit ToolTurns(bool knows_all) : knows_all_(knows_all) {}

    /// Before each message.
    void begin(const std::string& role, const std::string& place) {
        const bool is_answer = role == "assistant";
        if (is_answer && has_answered_) end();
        if (is_answer) place_ = place;
        has_answered_ = !is_answer;
    }
    void use(const Fields& block, const std::string& id) {
        if (!all_.insert(id).second)
            throw wrong_field(block.name("id"),
                              fmt::format("`tool_use` ids must be unique, and '{:.60}' is another's", id));
        open_.insert(id);
    }
    void result(const Fields& block, const std::string& id) {
        if (!knows_all_) return;
        if (!open_.contains(id))
            throw wrong_field(block.name("tool_use_id"),
                              fmt::format("is '{:.60}', and the previous message has no tool_use block of "
                                          "that id",
                                          id));
        if (!answered_.insert(id).second)
            throw wrong_field(block.name("tool_use_id"),
                              fmt::format("is '{:.60}', and each tool_use must have a single result", id));
    }
    /// Throws for uses that have no result.
    void end() {
        std::string missing;
        for (const std::string& id : open_)
            if (!answered_.contains(id)) missing += fmt::format("{}{:.60}", missing.empty() ? "" : ", ", id);
        if (knows_all_ && !missing.empty())
            throw wrong_field(
                place_, fmt::format("`tool_use` ids were found without `tool_result` blocks immediately "
                                    "after: {:.400}. Each `tool_use` block must have a corresponding "
                                    "`tool_result` block in the next message",
                                    missing));
        open_.clear();
        answered_.clear();
    }

private:
    const bool knows_all_;
    std::set<std::string> all_;
    std::set<std::string> open_, answered_;  // of the last turn of the assistant
    std::string place_;                      // of its last message
    bool has_answered_ = false;              // the user, to that turn
};

/// A message's blocks: texts, thoughts, uses of tools and their results, of which each is a message here.
void add_blocks(const Json& content, const std::string& role, const std::string& place, ToolTurns& turns,
                std::vector<Message>& messages) {
    Message message{.role = role};
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields block(content[i], fmt::format("{}.{}", place, i));
        const std::string type = block.required_text("type");
        if (type == "text") {
            message.parts.push_back(text_of_block(block));
        } else if (type == "thinking") {
            message.reasoning += block.text("thinking").value_or("");
        } else if (type == "redacted_thinking") {
            continue;
        } else if (type == "tool_use" && role == "assistant") {
            message.tool_calls.push_back({.name = block.required_text("name"),
                                          .arguments = text_of(block.required("input")),
                                          .id = block.required_text("id")});
            turns.use(block, message.tool_calls.back().id);
        } else if (type == "tool_result" && role == "user") {
            Message result{.role = "tool", .tool_call_id = block.required_text("tool_use_id")};
            turns.result(block, result.tool_call_id);
            if (const Json* inner = block.any("content")) read_texts(*inner, block.name("content"), result);
            messages.push_back(std::move(result));
        } else if (type == "image" && role == "user") {
            add_image(block, message);
        } else {
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}', which a message of the {} cannot have here", type, role));
        }
    }
    join_only_part(message);
    const bool is_empty = message.content.empty() && message.parts.empty() && message.images.empty() &&
                          message.tool_calls.empty() && message.reasoning.empty();
    if (!is_empty || content.empty()) messages.push_back(std::move(message));
}

/// What an answer is to go on with.
void check_last_answer(const Json& content, const std::string& place) {
    const Json* text = &content;
    std::string where = place;
    if (content.is_array()) {
        if (content.empty() || content.back()["type"] != "text") return;
        text = &content.back()["text"];
        where += fmt::format(".{}.text", content.size() - 1);
    }
    const auto& said = text->get_ref<const std::string&>();
    if (!said.empty() && is_space(said.back()))
        throw wrong_field(where, "final assistant content cannot end with trailing whitespace");
}

}  // namespace

std::vector<Message> anthropic_messages_of(const Fields& body) {
    std::vector<Message> messages;
    if (const Json* system = body.any("system")) {
        Message first{.role = "system"};
        read_texts(*system, "system", first);
        messages.push_back(std::move(first));
    }
    const Json* given = body.list("messages");
    if (!given || given->empty()) throw wrong_field("messages", "must be a list of at least one message");
    ToolTurns turns(!body.any("session") && !body.any("session_id"));
    for (std::size_t i = 0; i < given->size(); ++i) {
        const std::string place = fmt::format("messages.{}", i);
        const Fields entry((*given)[i], place);
        const std::string role = entry.required_text("role");
        if (role != "user" && role != "assistant")
            throw wrong_field(entry.name("role"),
                              fmt::format("is '{:.40}'; it must be user or assistant", role));
        const Json& content = entry.required("content");
        const bool is_last_answer = role == "assistant" && i + 1 == given->size();
        turns.begin(role, place);
        if (content.is_array())
            add_blocks(content, role, entry.name("content"), turns, messages);
        else if (content.is_string())
            messages.push_back({role, content.get<std::string>()});
        else
            entry.wrong("content", "a text or a list of blocks");
        if (is_last_answer)
            check_last_answer(content, entry.name("content"));
        else if (content == "" || content == Json::array())
            throw wrong_field(entry.name("content"),
                              "is empty; all messages must have non-empty content except for the optional "
                              "final assistant message");
    }
    turns.end();
    return messages;
}

}  // namespace headrace::serve
