#include "functions.h"
#include "model.h"

namespace headrace::node {
namespace {

struct Row {
    const char* name;
    napi_callback function;
};
constexpr Row kFunctions[] = {
    {"createContext", entry<create_context>},
    {"destroyContext", entry<destroy_context>},
    {"createTensor", entry<create_tensor>},
    {"createConstantTensor", entry<create_constant_tensor>},
    {"destroyTensor", entry<destroy_tensor>},
    {"writeTensor", entry<write_tensor>},
    {"readTensor", entry<read_tensor>},
    {"dispatch", entry<dispatch>},
    {"destroyGraph", entry<destroy_graph>},
    {"createBuilder", entry<create_builder>},
    {"input", entry<input>},
    {"constant", entry<constant>},
    {"constantTensor", entry<constant_tensor>},
    {"operator", entry<add_operator>},
    {"build", entry<build>},
    {"saveGraph", entry<save_graph>},
    {"loadGraph", entry<load_graph>},
    {"outputShapes", entry<output_shapes>},
    {"newBytes", entry<new_bytes>},
    {"addBytes", entry<add_bytes>},
    {"openModel", entry<open_model>},
    {"runModel", entry<run_model>},
    {"newStop", entry<new_stop>},
    {"stopRuns", entry<stop_runs>},
    {"saveModel", entry<save_model>},
    {"closeModel", entry<close_model>},
    {"devices", entry<list_devices>},
    {"openTokenizer", entry<open_tokenizer>},
    {"encodeTexts", entry<encode_texts>},
};

}  // namespace
}  // namespace headrace::node

/// Every environment, the main thread's and each worker's, gets functions of its own; nothing is global.
NAPI_MODULE_INIT() {
    for (const auto& [name, function] : headrace::node::kFunctions) {
        napi_value value;
        if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value) != napi_ok ||
            napi_set_named_property(env, exports, name, value) != napi_ok)
            return nullptr;
    }
    return exports;
}
