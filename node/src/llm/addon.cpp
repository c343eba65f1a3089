#include "calls.h"
#include "language_model.h"

namespace headrace::node::llm {
namespace {

struct Row {
    const char* name;
    napi_callback function;
};
constexpr Row kFunctions[] = {
    {"load", entry<load>},
    {"dispose", entry<dispose>},
    {"information", entry<information>},
    {"statistics", entry<statistics>},
    {"stream", entry<stream>},
    {"conversation", entry<conversation>},
    {"streamIn", entry<stream_in>},
    {"messages", entry<messages>},
    {"next", entry<next>},
    {"reply", entry<reply>},
    {"cancel", entry<cancel>},
    {"end", entry<end>},
    {"embed", entry<embed>},
    {"rerank", entry<rerank>},
    {"tokenize", entry<tokenize>},
    {"detokenize", entry<detokenize>},
};

napi_value define(napi_env env, napi_value exports) {
    for (const auto& [name, function] : kFunctions) {
        napi_value value;
        check(napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value));
        set(env, exports, name, value);
    }
    Calls::create(env);
    return exports;
}

}  // namespace
}  // namespace headrace::node::llm

NAPI_MODULE_INIT() {
    try {
        return headrace::node::llm::define(env, exports);
    } catch (const headrace::node::PendingException&) {
        return nullptr;
    }
}
