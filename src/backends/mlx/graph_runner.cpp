#include "backends/mlx/graph_runner.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/layout.h"
#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/graph/builder.h"
#include "backends/mlx/graph/visible_nodes.h"
#include "backends/mlx/ops/table.h"
#include "ggml-impl.h"

namespace headrace::mlx {
namespace {

/// Different shapes of a batch, and the parts that a scheduler cuts a graph into, are graphs of their own.
constexpr std::size_t kCachedTranslations = 64;

/// Everything about a tensor that decides what is computed and from which memory.
void append(std::vector<std::uint64_t>& words, const ggml_tensor* t) {
    const auto word = [&](auto value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        words.push_back(bits);
    };
    word(t);
    word(t->data);
    word(t->buffer);
    word(t->view_src);
    words.push_back(static_cast<std::uint64_t>(t->type) << 32 | static_cast<std::uint64_t>(t->op) << 16 |
                    static_cast<std::uint64_t>(t->flags));
    for (int d = 0; d < 4; ++d) {
        word(t->ne[d]);
        word(t->nb[d]);
    }
}

std::vector<std::uint64_t> signature_of(const ggml_cgraph* graph) {
    std::vector<std::uint64_t> words;
    words.reserve(static_cast<std::size_t>(graph->n_nodes) * 64);
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        append(words, node);
        words.push_back(static_cast<std::uint64_t>(ggml_node_get_use_count(graph, i)));
        const std::size_t at = words.size();
        words.resize(at + GGML_MAX_OP_PARAMS / 8);
        std::memcpy(&words[at], node->op_params, sizeof node->op_params);
        for (const ggml_tensor* source : node->src) {
            if (!source) continue;
            append(words, source);
            if (source->view_src) append(words, root_of(source));
        }
        if (node->view_src) append(words, root_of(node));
    }
    return words;
}

/// MLX on the CPU does not look whether it got memory and crashes, so it is asked for before.
void require_memory(std::size_t bytes) {
    void* volatile memory = std::malloc(bytes);
    const bool granted = bytes == 0 || memory;
    std::free(memory);
    if (!granted) throw std::runtime_error("Unable to allocate " + std::to_string(bytes) + " bytes");
}

using Clock = std::chrono::steady_clock;
std::int64_t ns_since(Clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

GraphRunner::Translation* GraphRunner::find(const std::vector<std::uint64_t>& signature) {
    for (auto it = cache_.begin(); it != cache_.end(); ++it)
        if (it->signature == signature) {
            cache_.splice(cache_.begin(), cache_, it);
            return &cache_.front();
        }
    return nullptr;
}

std::vector<array> GraphRunner::translate(const ggml_cgraph* graph, Translation& translation) {
    Builder builder(host_);
    std::unordered_set<const ggml_tensor*> defined;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if (!is_computed(node)) continue;
        if (node == root_of(node))
            defined.insert(node);
        else if (!defined.contains(root_of(node)))
            builder.expect_write(root_of(node));
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if (!is_computed(node)) continue;
        const OpRow* row = find_op(node);
        if (!row) throw std::runtime_error(std::string(ggml_op_desc(node)) + " is not supported");
        row->translate(builder, node);
    }
    const auto visible = visible_roots(graph);
    std::vector<array> outputs;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        const array* value = visible.contains(node) ? builder.find(node) : nullptr;
        if (!value) continue;
        outputs.push_back(in_row_order(in_memory_order(*value, node)));
        translation.written_back.push_back(node);
    }
    for (const auto& [root, version] : builder.versions()) outputs.push_back(version);
    translation.tape = std::make_unique<Tape>(outputs, builder.leaves());
    return outputs;
}

void GraphRunner::run(const ggml_cgraph* graph) {
    const auto begin = Clock::now();
    ++counts_.graphs;
    std::vector<std::uint64_t> signature = signature_of(graph);
    Translation made, *translation = find(signature);
    const bool is_new = !translation;
    std::vector<array> outputs;
    const bool is_on_cpu = !is_new && translation->tape->runs_on_cpu();
    if (is_new) {
        made.signature = std::move(signature);
        outputs = translate(graph, made);
        ++counts_.translations;
        translation = &made;
    } else if (!is_on_cpu) {
        outputs = translation->tape->play();
    }
    counts_.build_ns += ns_since(begin);
    require_memory(translation->tape->peak_bytes());
    const auto evaluating = Clock::now();
    if (is_on_cpu)
        outputs = translation->tape->run(stream_);
    else
        mx::eval(outputs);
    counts_.eval_ns += ns_since(evaluating);
    counts_.primitives += static_cast<std::int64_t>(translation->tape->size());
    if (is_new) {
        made.tape->learn_views();
        cache_.push_front(std::move(made));
        if (cache_.size() > kCachedTranslations) cache_.pop_back();
        translation = &cache_.front();
    }
    // Not before everything is computed: ggml may have placed a later node where an earlier one still reads.
    for (std::size_t i = 0; i < translation->written_back.size(); ++i) {
        const ggml_tensor* node = translation->written_back[i];
        std::memmove(node->data, outputs[i].data<char>(), ggml_nbytes(node));
    }
    counts_.write_backs += static_cast<std::int64_t>(translation->written_back.size());
}

}  // namespace headrace::mlx
