#pragma once
#include <string>
#include <vector>

namespace headrace::llm {

/// What was done with a parameter other than taking it as it is: clamped, adjusted to others, not known,
/// ignored.
struct Note {
    std::string key;
    std::string message;
};
using Notes = std::vector<Note>;

}  // namespace headrace::llm
