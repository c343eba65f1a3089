// The entries of settings/*.inc as rows; llm/settings.h says what an entry is.
#include "llm/parameters/custom.h"

namespace headrace::llm {
namespace {

constexpr std::string_view kCacheTypes = "f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1";

// HR_OF(field) is where the settings of the file below lie, HR_SCOPE what they decide on.
#define HR_PARAMETER(type, field, value, ...)                        \
    {[](Settings & settings) -> auto& {return settings.HR_OF(field); \
    }                                                                \
    , HR_SCOPE, __VA_ARGS__                                          \
    }                                                                \
    ,
#define HR_FIELD(...)
#define HR_CUSTOM(custom, ...) {custom, HR_SCOPE, __VA_ARGS__},

/// In the order in which they are applied, and which the sections of their documentation follow.
std::span<const Row> rows_with_effect() {
    using enum Level;
    using enum ParameterScope;
    static const Row rows[] = {
#define HR_SCOPE answers
#define HR_OF(field) request.field
#include "llm/settings/request.inc"
#undef HR_OF
#define HR_OF(field) request.stopping.field
#include "llm/settings/stopping.inc"
#undef HR_OF
#define HR_OF(field) request.sampling.field
#include "llm/settings/sampling.inc"
#undef HR_OF
#define HR_OF(field) request.speculation.field
#include "llm/settings/speculation.inc"
#undef HR_OF
#undef HR_SCOPE
#define HR_SCOPE weights
#define HR_OF(field) model.field
#include "llm/settings/model.inc"
#undef HR_OF
#undef HR_SCOPE
#define HR_SCOPE engine
#define HR_OF(field) context.field
#include "llm/settings/context_memory.inc"
// The rest of the context's.
#include "llm/settings/context.inc"
#undef HR_OF
#define HR_OF(field) cache.field
#include "llm/settings/cache.inc"
#undef HR_OF
#undef HR_SCOPE
#define HR_SCOPE answers
#define HR_OF(field) session.field
#include "llm/settings/session.inc"
#undef HR_OF
#undef HR_SCOPE
#define HR_SCOPE engine
#define HR_OF(field) queue.field
#include "llm/settings/queue.inc"
#undef HR_OF
#undef HR_SCOPE
#define HR_SCOPE answers
#define HR_OF(field) log.field
#include "llm/settings/log.inc"
#undef HR_OF
#define HR_OF(field) field
#include "llm/settings/service.inc"
#undef HR_OF
#undef HR_SCOPE
    };
    return rows;
}

}  // namespace

const std::vector<const Row*>& parameter_rows() {
    static const std::vector<const Row*> all = [] {
        std::vector<const Row*> rows;
        for (auto part : {rows_with_effect(), ignored_rows()})
            for (const Row& row : part) rows.push_back(&row);
        return rows;
    }();
    return all;
}

}  // namespace headrace::llm
