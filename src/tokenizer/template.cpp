#include "tokenizer/template.h"

#include <algorithm>

#include "tokenizer/normalizer.h"

namespace headrace::text {
namespace {

/// ["[SEP]", 102]
Result<std::int32_t> read_mark(const JsonPlace& place, std::string_view key) {
    HR_ASSIGN(const JsonPlace given, place.list(key));
    const Json& value = given.value();
    const auto id = value.size() == 2 ? JsonPlace::as_number(value[1]) : std::nullopt;
    if (!id) return given.wrong("a list of a token and its id");
    return *id;
}

/// The ids of a special token that a template names.
Result<std::vector<std::int32_t>> read_ids(const JsonPlace& tokens, const std::string& name) {
    HR_ASSIGN(const JsonPlace token, tokens.object(name));
    HR_ASSIGN(const JsonPlace given, token.list("ids"));
    std::vector<std::int32_t> ids;
    for (const Json& entry : given.value()) {
        const auto id = JsonPlace::as_number(entry);
        if (!id) return given.wrong("a list of ids");
        ids.push_back(*id);
    }
    return ids;
}

Result<Template::Part> read_part(const JsonPlace& place, const std::optional<JsonPlace>& tokens) {
    Template::Part part;
    if (const auto sequence = place.find("Sequence")) {
        HR_ASSIGN(const std::string name, sequence->text("id"));
        if (name != "A" && name != "B") return sequence->wrong("id", "A or B");
        part.text = name == "A" ? 1 : 2;
        HR_ASSIGN(part.type, sequence->number("type_id", 0));
        return part;
    }
    HR_ASSIGN(const JsonPlace special, place.object("SpecialToken"));
    HR_ASSIGN(const std::string name, special.text("id"));
    HR_ASSIGN(part.type, special.number("type_id", 0));
    if (!tokens) return special.wrong("id", "one of special_tokens, which is missing");
    HR_ASSIGN(part.ids, read_ids(*tokens, name));
    return part;
}

Result<std::vector<Template::Part>> read_parts(const JsonPlace& place, std::string_view key,
                                               const std::vector<int>& needed) {
    HR_ASSIGN(const JsonPlace list, place.list(key));
    std::vector<Template::Part> parts;
    std::vector<int> texts;
    for (std::size_t i = 0; i < list.value().size(); ++i) {
        HR_ASSIGN(Template::Part part, read_part(list.entry(i), place.find("special_tokens")));
        if (part.text) texts.push_back(part.text);
        parts.push_back(std::move(part));
    }
    std::ranges::sort(texts);
    if (texts != needed) return list.wrong("a list that has each text once");
    return parts;
}

}  // namespace

Result<Template> Template::read(const JsonPlace& place) {
    Template made;
    HR_TRY(made.add(place, 0));
    return made;
}

Status Template::add(const JsonPlace& place, int depth) {
    HR_ASSIGN(const std::string type, place.type());
    if (type == "ByteLevel") return success();  // of places in the text only
    if (type == "Sequence") {
        if (depth == kMostNesting) return invalid("{} is nested too deeply", place.path());
        HR_ASSIGN(const JsonPlace all, place.list("processors"));
        for (std::size_t i = 0; i < all.value().size(); ++i) HR_TRY(add(all.entry(i), depth + 1));
        return success();
    }
    const bool is_known =
        type == "TemplateProcessing" || type == "BertProcessing" || type == "RobertaProcessing";
    if (!is_known || is_read_)
        return unsupported(
            "{}: the post-processor '{:.60}' is not known here{}. Known are TemplateProcessing, "
            "BertProcessing, "
            "RobertaProcessing, ByteLevel and Sequence with one of the former",
            place.path(), type, is_known ? " after another one" : "");
    is_read_ = true;
    return type == "TemplateProcessing" ? read_template(place)
                                        : read_marks(place, type == "RobertaProcessing");
}

Status Template::read_template(const JsonPlace& place) {
    HR_ASSIGN(single_, read_parts(place, "single", {1}));
    if (place.find("pair")) {
        HR_ASSIGN(pair_, read_parts(place, "pair", {1, 2}));
    }
    return success();
}

Status Template::read_marks(const JsonPlace& place, bool is_roberta) {
    HR_ASSIGN(const std::int32_t end, read_mark(place, "sep"));
    HR_ASSIGN(const std::int32_t begin, read_mark(place, "cls"));
    const std::int32_t second = is_roberta ? 0 : 1;
    single_ = {{0, {begin}, 0}, {1, {}, 0}, {0, {end}, 0}};
    pair_ = single_;
    if (is_roberta) pair_.push_back({0, {end}, 0});
    pair_.push_back({2, {}, second});
    pair_.push_back({0, {end}, second});
    return success();
}

std::size_t Template::special_count(bool is_pair) const {
    std::size_t count = 0;
    for (const Part& part : parts(is_pair)) count += part.ids.size();
    return count;
}

std::int32_t Template::largest_id() const {
    std::int32_t largest = -1;
    for (const bool is_pair : {false, true})
        for (const Part& part : parts(is_pair))
            for (const std::int32_t id : part.ids) largest = std::max(largest, id);
    return largest;
}

}  // namespace headrace::text
