#include "doors/onnx/ops/recurrent_functions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/small_letters.h"
#include "doors/onnx/ops/onnx_node.h"

namespace headrace::onnx {
namespace {

/// A function and its parameters where the attributes say none: as its operator has them, or as ONNX Runtime
/// where there is none. Those that it has take the next of the lists.
struct KnownFunction {
    std::string_view name;
    std::optional<double> alpha, beta;
};

constexpr KnownFunction kFunctions[] = {
    {"Affine", 0, 0},     {"Elu", 1, {}},       {"HardSigmoid", 0.2, 0.5},  {"LeakyRelu", 0.01, {}},
    {"Relu", {}, {}},     {"ScaledTanh", 0, 0}, {"Sigmoid", {}, {}},        {"Softplus", {}, {}},
    {"Softsign", {}, {}}, {"Tanh", {}, {}},     {"ThresholdedRelu", 1, {}},
};

const KnownFunction& function_named(const std::string& name) {
    const auto* found = std::ranges::find_if(kFunctions, [&](const KnownFunction& f) {
        return in_small_letters(f.name) == in_small_letters(name);
    });
    if (found != std::end(kFunctions)) return *found;
    std::vector<std::string_view> names;
    for (const KnownFunction& f : kFunctions) names.push_back(f.name);
    throw Invalid(fmt::format("activation '{}' is none of {}", name, fmt::join(names, ", ")));
}

/// The next of a list, or what there is without one.
double next_of(const std::vector<double>& list, std::size_t& at, const std::optional<double>& otherwise) {
    if (!otherwise) return 0;
    return at < list.size() ? list[at++] : *otherwise;
}

}  // namespace

Operand CellFunction::of(OpWriter& g, const Node& node, const Operand& x) const {
    if (name == "Affine") return g.plus(g.times(x, alpha), beta);
    if (name == "ScaledTanh") return g.times(g.op("tanh", {g.times(x, beta)}), alpha);
    Node made = onnx_node(node, name, 10, {x});
    made.outputs.resize(1);
    made.attributes.clear();
    const KnownFunction& known = function_named(name);
    if (known.alpha) made.attributes.emplace_back("alpha", alpha);
    if (known.beta) made.attributes.emplace_back("beta", beta);
    return read_onnx(g, made).at(0);
}

std::string CellFunctions::in_catalog() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string& name = all[i].name;
        const bool is_there = name == "Relu" || name == "Sigmoid" || name == "Tanh";
        if (limit != 0 || !is_there || all[i] != all[i % each]) return "";
        if (i < each) names.push_back(in_small_letters(name));
    }
    return fmt::format("{}", fmt::join(names, ","));
}

Operand CellFunctions::limited(OpWriter& g, const Operand& sum) const {
    if (limit == 0) return sum;
    return g.op("min", {g.op("max", {sum, known(-limit, sum->type)}), known(limit, sum->type)});
}

CellFunctions cell_functions(const Node& node, const std::vector<std::string>& usual) {
    std::vector<std::string> names = node.text_list("activations").value_or(std::vector<std::string>());
    if (names.empty()) names = usual;
    invalid_if(names.size() % usual.size() != 0, "activations are ['{}']; each direction has {}",
               fmt::join(names, "', '"), usual.size());
    const auto alphas = node.real_list("activation_alpha").value_or(std::vector<double>());
    const auto betas = node.real_list("activation_beta").value_or(std::vector<double>());
    CellFunctions made{.all = {}, .each = usual.size(), .limit = node.real("clip", 0)};
    std::size_t alpha = 0, beta = 0;
    for (const std::string& name : names) {
        const KnownFunction& f = function_named(name);
        made.all.push_back(
            {std::string(f.name), next_of(alphas, alpha, f.alpha), next_of(betas, beta, f.beta)});
    }
    invalid_if(!(made.limit >= 0), "clip is {:.6g}; it must be positive", made.limit);
    return made;
}

}  // namespace headrace::onnx
