#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doors/serve/options/options.h"

namespace headrace::serve {

/// How a flag's value is read.
enum class FlagKind {
    a_text,      ///< as it is
    a_number,    ///< of JSON
    a_count,     ///< a number, or a word for one
    a_list,      ///< by commas
    some_json,   ///< a value of JSON
    a_switch,    ///< without a value
    is_ignored,  ///< llama-server's; has no effect here, and the summary says why
    is_refused,  ///< llama-server's; cannot be had here, and the summary says what to do instead
};

/// An option of the program. llama-server's name where it means the same; all of its names are in the table,
/// which a test compares with its README.
struct Flag {
    std::string_view names;     ///< by spaces: "-m --model"
    std::string_view negative;  ///< of a switch: what turns it off
    std::string_view value;     ///< what its value is called; empty for a switch
    std::string_view variable;  ///< of the environment
    std::string_view summary;
    FlagKind kind = FlagKind::a_text;
    std::string_view parameter = {};  ///< of the engine that it sets; else `apply` reads it
    Status (*apply)(ServeOptions&, const std::string& value) = nullptr;
};

std::span<const Flag> flags();
/// Whether it names a model, or says how that computes, answers and logs; the others are a server's.
bool is_model_flag(const Flag& flag);

/// The words of a list by spaces, as a flag's names are.
std::vector<std::string_view> words(std::string_view list);

}  // namespace headrace::serve
