#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/json_reader.h"

namespace headrace::text {

/// Which special tokens stand around a text, or two, and of which types all are.
class Template {
public:
    struct Part {
        int text = 0;                   ///< 1 or 2: all of that text; 0: special tokens
        std::vector<std::int32_t> ids;  ///< special tokens
        std::int32_t type = 0;
    };

    /// From the field "post_processor". Errors:
    /// Code::unsupported with the types that are known.
    static Result<Template> read(const JsonPlace& place);

    const std::vector<Part>& parts(bool is_pair) const { return is_pair ? pair_ : single_; }
    /// Special tokens among them.
    std::size_t special_count(bool is_pair) const;
    std::int32_t largest_id() const;

private:
    Status add(const JsonPlace& place, int depth);
    Status read_template(const JsonPlace& place);
    /// BERT's and RoBERTa's: begin A end, and then B end or end B end.
    Status read_marks(const JsonPlace& place, bool is_roberta);

    std::vector<Part> single_ = {{1, {}, 0}}, pair_ = {{1, {}, 0}, {2, {}, 1}};
    bool is_read_ = false;
};

}  // namespace headrace::text
