#include "run/device_operands.h"

#include <algorithm>
#include <map>
#include <set>

#include "ggml-backend.h"
#include "ggml.h"
#include "run/arena.h"
#include "run/device_call.h"

namespace headrace {
namespace {

const ggml_tensor* root_of(const ggml_tensor* t) { return t->view_src ? t->view_src : t; }

std::vector<ggml_tensor*> views_of(const LoweredGraph& lowered, const ggml_tensor* root) {
    std::vector<ggml_tensor*> views;
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i)
        if (ggml_tensor* t = ggml_graph_node(lowered.graph, i); t->view_src == root) views.push_back(t);
    return views;
}

/// Whether somebody reads it, all of them on the device, and nobody writes into it.
bool is_read_there_alone(const LoweredGraph& lowered, const ggml_tensor* input,
                         std::span<ggml_backend* const> backends, const ggml_backend* device) {
    bool is_read = false;
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i) {
        const ggml_tensor* node = ggml_graph_node(lowered.graph, i);
        if (is_view(node)) continue;
        if (node->view_src == input) return false;
        const bool reads = std::ranges::any_of(
            node->src, [&](const ggml_tensor* source) { return source && root_of(source) == input; });
        if (reads && backends[static_cast<std::size_t>(i)] != device) return false;
        is_read |= reads;
    }
    return is_read;
}

/// Whether the device takes the tensor and its views, and one buffer of its holds it.
bool is_taken(ggml_backend* device, const ggml_tensor* tensor, std::span<ggml_tensor* const> views) {
    const auto takes = [&](const ggml_tensor* t) { return ggml_backend_supports_op(device, t); };
    return takes(tensor) && std::ranges::all_of(views, takes) &&
           ggml_nbytes(tensor) <=
               ggml_backend_buft_get_max_size(ggml_backend_get_default_buffer_type(device));
}

/// The tensor whose memory is the output's, if it has all of it and no leaf has; else null.
ggml_tensor* memory_of_output(ggml_tensor* output) {
    ggml_tensor* root = output->view_src ? output->view_src : output;
    const bool is_whole = output->view_offs == 0 && ggml_is_contiguous(output) &&
                          output->type == root->type && ggml_nbytes(output) == ggml_nbytes(root);
    return root->op == GGML_OP_NONE || root->data || !is_whole ? nullptr : root;
}

}  // namespace

void DeviceOperand::hold_place(ggml_backend_buffer* placeholder) {
    alignas(64) static char somewhere[64];
    tensor_->buffer = placeholder;
    tensor_->data = somewhere;
}

Status DeviceOperand::use_own(const Device& device) {
    return device_call(device.name, [&]() -> Status {
        if (!own_) {
            HR_ASSIGN(own_, allocate_buffer(device, tensor_, what_));
        }
        return place_in_buffer(own_.get(), tensor_, views_, device, what_);
    });
}

DeviceOperands choose_device_operands(const LoweredGraph& lowered, const Graph& graph,
                                      std::span<ggml_backend* const> backends, ggml_backend* device) {
    DeviceOperands chosen;
    std::set<const ggml_tensor*> handed_out;
    for (const ggml_tensor* output : lowered.outputs) handed_out.insert(root_of(output));
    for (std::size_t i = 0; i < lowered.inputs.size(); ++i) {
        ggml_tensor* input = lowered.inputs[i];
        auto& operand = chosen.inputs.emplace_back();
        if (input->data || handed_out.contains(input) ||
            !is_read_there_alone(lowered, input, backends, device))
            continue;
        if (!is_taken(device, input, views_of(lowered, input))) continue;
        operand = std::make_unique<DeviceOperand>(
            input, views_of(lowered, input), fmt::format("input '{}'", graph.value(graph.inputs[i]).name));
    }
    std::map<const ggml_tensor*, ggml_backend*> backend_of;
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i)
        backend_of[ggml_graph_node(lowered.graph, i)] = backends[static_cast<std::size_t>(i)];
    std::set<const ggml_tensor*> taken;
    for (std::size_t i = 0; i < lowered.outputs.size(); ++i) {
        ggml_tensor* memory = memory_of_output(lowered.outputs[i]);
        auto& operand = chosen.outputs.emplace_back();
        if (!memory || backend_of[memory] != device || !taken.insert(memory).second) continue;
        if (!is_taken(device, memory, views_of(lowered, memory))) continue;
        operand = std::make_unique<DeviceOperand>(memory, views_of(lowered, memory),
                                                  fmt::format("output '{}'", graph.outputs[i].first));
    }
    return chosen;
}

SplitCopies count_split_copies(const LoweredGraph& lowered) {
    std::set<const ggml_tensor*> known(lowered.inputs.begin(), lowered.inputs.end());
    known.insert(lowered.states.begin(), lowered.states.end());
    for (const ConstantTensor& c : lowered.constants) known.insert(c.tensor);
    const int nodes = ggml_graph_n_nodes(lowered.graph);
    for (int i = 0; i < nodes; ++i) known.insert(ggml_graph_node(lowered.graph, i));
    SplitCopies copies;
    for (int i = 0; i < nodes; ++i)
        for (const ggml_tensor* source : ggml_graph_node(lowered.graph, i)->src) {
            if (!source || !known.insert(source).second) continue;
            ++copies.count;
            copies.bytes += ggml_nbytes(source);
        }
    return copies;
}

}  // namespace headrace
