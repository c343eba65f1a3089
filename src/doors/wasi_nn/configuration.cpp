#include "doors/wasi_nn/configuration.h"

#include "llm/parameters/json.h"

namespace headrace::wasi_nn {

Result<llm::Settings> with_configuration(const llm::Settings& base, std::string_view json, llm::Level level,
                                         llm::Notes& notes) {
    Result<llm::Settings> changed = llm::with_parameters(base, json, level, notes);
    if (changed.ok() || !base.lenient || base.strict || llm::parse_object(json).ok()) return changed;
    notes.push_back(defaults_note(changed.error()));
    return base;
}

llm::Note defaults_note(const Error& error) {
    return {"parameters", error.message + "; the defaults are used"};
}

}  // namespace headrace::wasi_nn
