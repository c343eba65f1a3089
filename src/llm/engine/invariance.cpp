#include "llm/engine/invariance.h"

#include <ggml-backend.h>
#include <ggml.h>

namespace headrace::llm {
namespace {

/// "MUL_MAT 'ffn_up-0' with weights of q2_K in CPU_REPACK".
std::string description_of(const ggml_tensor* node) {
    std::string text = fmt::format("{} '{}'", ggml_op_desc(node), node->name);
    const ggml_tensor* first = node->src[0];
    if (!first) return text;
    text += fmt::format(" of {} '{}'", ggml_type_name(first->type), first->name);
    if (first->buffer) text += fmt::format(" in {}", ggml_backend_buffer_name(first->buffer));
    return text;
}

}  // namespace

void Invariance::watch(llama_context_params& params) {
    params.cb_eval = &Invariance::see_node;
    params.cb_eval_user_data = this;
}

/// llama.cpp asks before a graph is computed whether somebody wants to look at this node: nobody does, so
/// that the whole graph is computed at once.
bool Invariance::see_node(ggml_tensor* node, bool is_before, void* self) {
    auto& invariance = *static_cast<Invariance*>(self);
    if (is_before && !invariance.make_invariant_(node) && invariance.uncovered_.empty())
        invariance.uncovered_ = description_of(node);
    return false;
}

Status Invariance::check() const {
    if (uncovered_.empty()) return success();
    return unsupported(
               "batch_invariant does not cover {}. It covers attention over f16 caches and weights that lie "
               "on this "
               "machine as they are in the file or in our own format: repack false leaves others as they are",
               uncovered_)
        .of_parameter("batch_invariant");
}

}  // namespace headrace::llm
