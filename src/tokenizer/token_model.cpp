#include "tokenizer/token_model.h"

namespace headrace::text {

Result<Vocabulary> read_vocabulary(const JsonPlace& place) {
    HR_ASSIGN(const JsonPlace given, place.object("vocab"));
    Vocabulary all;
    all.reserve(given.value().size());
    for (const auto& [token, value] : given.value().items()) {
        const std::optional<std::int32_t> id = JsonPlace::as_number(value);
        if (!id) return JsonPlace(value, fmt::format("{}['{:.60}']", given.path(), token)).wrong("an id");
        all.emplace(token, *id);
    }
    return all;
}

MadeModel read_model(const JsonPlace& place) {
    // Older files do not name it: WordPiece has a prefix, byte pairs have merges.
    const std::string otherwise = place.find("merges")                     ? "BPE"
                                  : place.find("unk_id")                   ? "Unigram"
                                  : place.find("max_input_chars_per_word") ? "WordPiece"
                                                                           : "";
    HR_ASSIGN(const std::string type, place.text("type", otherwise));
    if (type == "WordPiece") return read_word_piece(place);
    if (type == "Unigram") return read_unigram(place);
    if (type == "BPE") return read_byte_pairs(place);
    return unsupported(
        "{}: the type '{:.60}' is not known here. Known are WordPiece, Unigram and BPE; a GGUF file of the "
        "model may "
        "do instead",
        place.path(), type);
}

}  // namespace headrace::text
