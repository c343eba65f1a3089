#include "fuzz/delegate_target.h"

#include <cmath>
#include <memory>

#include "doors/executorch/blobs.h"
#include "ir/graph.h"

namespace headrace::fuzz {
namespace {

using namespace testing;
using Value = GraphWriter::Value;

// The arguments of every blob here; the damage changes what blobs declare, not what the program passes.
constexpr int kRows = 2, kIn = 4, kOut = 3;
constexpr double kMostElements = 1 << 15;

Parts parts_of(GraphWriter& w, std::span<const std::byte> weight) {
    return {as_string(graph_to_bytes(*w.finish())), as_string(weight)};
}

Parts layer() {
    const Layer made(1);
    return {made.blob, made.weights.contents.begin()->second};
}

/// A product that reads its weight in blocks.
Parts blocks() {
    std::vector<float> values(32 * kOut);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    const auto weight = quantize_rows("q8_0", values, 32);
    GraphWriter w;
    const Value x = w.input("in0", DType::f32, {kRows, kIn});
    const Value wide =
        w.op("expand", {w.op("reshape", {x}, {{"new_shape", std::vector<Extent>{2, 4, 1}}})[0]},
             {{"new_shape", std::vector<Extent>{2, 4, 8}}})[0];
    const Value rows = w.op("reshape", {wide}, {{"new_shape", std::vector<Extent>{2, 32}}})[0];
    const Value blocks = w.constant(DType::f32, {kOut, 32}, weight, nullptr, "layer.weight", "q8_0");
    const Value y = w.op("fused_matmul", {rows, blocks}, {{"transpose_b", true}})[0];
    w.output("out0", y);
    w.output("out1", w.op("reduce_max", {y}, {{"axes", std::vector<std::int64_t>{0}}})[0]);
    return parts_of(w, weight);
}

/// Indices, shapes that follow a symbol, and constants inside of the blob.
Parts movement() {
    const std::vector<float> weight{1, 2, 3};
    const std::vector<std::int64_t> places{2, 0, 1};
    GraphWriter w;
    const Extent n("n", kMostRows);
    const Value x = w.input("in0", DType::f32, {n, kIn});
    const Value columns = w.constant(DType::i64, {3}, std::as_bytes(std::span(places)), nullptr);
    const Value taken = w.op("gather", {x, columns}, {{"axis", std::int64_t{1}}})[0];
    const Value scale =
        w.constant(DType::f32, {3}, std::as_bytes(std::span(weight)), nullptr, "layer.weight");
    const Value wide = w.op("expand", {scale}, {{"new_shape", std::vector<Extent>{n, 3}}})[0];
    const Value y = w.op("softmax", {w.op("mul", {taken, wide})[0]}, {{"axis", std::int64_t{1}}})[0];
    w.output("out0", y);
    w.output("out1", w.op("reduce_sum", {y}, {{"axes", std::vector<std::int64_t>{0}}})[0]);
    return parts_of(w, std::as_bytes(std::span(weight)));
}

/// A cache that is written at a place, from an initial value that lies outside.
Parts cache() {
    const std::vector<float> initial(kMostRows * kOut, 0.5f);
    const std::vector<std::int64_t> first{0, 0};
    GraphWriter w;
    const Value x = w.input("in0", DType::f32, {kRows, kIn});
    const auto bytes = std::as_bytes(std::span(initial));
    const Value state = w.state("cache", DType::f32, {kMostRows, kOut}, bytes, nullptr, "layer.weight");
    const Value rows =
        w.op("slice", {x}, {{"starts", first}, {"sizes", std::vector<Extent>{kRows, kOut}}})[0];
    const Value rest = w.op("slice", {state},
                            {{"starts", std::vector<std::int64_t>{kRows, 0}},
                             {"sizes", std::vector<Extent>{kMostRows - kRows, kOut}}})[0];
    const Value fresh = w.op("concat", {rows, rest}, {{"axis", std::int64_t{0}}})[0];
    const Value kept = w.op("assign", {state, fresh})[0];
    w.output("out0", rows);
    w.output("out1", w.op("reduce_sum", {kept}, {{"axes", std::vector<std::int64_t>{0}}})[0]);
    return parts_of(w, bytes);
}

/// Damage can ask for results of any size, which take their time and are no danger.
bool is_small(const std::string& blob, const Weights& weights) {
    const auto bytes = std::as_bytes(std::span(blob));
    try {
        const auto graph = graph_from_memory(bytes, nullptr, [&](const std::string& key) {
            const auto found = weights.contents.find(key);
            if (found == weights.contents.end()) throw Exception(Code::io, "no weights named " + key);
            return NamedWeight{std::as_bytes(std::span(found->second)), nullptr};
        });
        for (const headrace::Value& value : graph->values) {
            double count = 1;
            for (const Dim& dim : value.type.shape) count *= static_cast<double>(dim.max_size());
            if (count > kMostElements) return false;
        }
    } catch (const Exception&) {
        // The delegate must say so itself.
    }
    return true;
}

void run(const Delegate& delegate) {
    const TensorPtr x = tensor({kRows, kIn}, std::vector<float>(kRows * kIn, 0.5f));
    for (int i = 0; i < 2; ++i) (void)delegate.run({x, room({kMostRows, kOut}), room({kOut})});
    for (int i = 0; i < kRows * kIn; ++i)
        if (x->const_data_ptr<float>()[i] != 0.5f) throw std::logic_error("an input was written");
}

bool load(const Parts& parts) {
    Weights weights;
    weights.contents["layer.weight"] = parts[1];
    if (!is_small(parts[0], weights)) return false;
    std::unique_ptr<Delegate> delegate;
    const auto lines = logged([&] { delegate = std::make_unique<Delegate>(parts[0], &weights); });
    const bool accepted = delegate->error() == et::Error::Ok;
    if (lines.size() != (accepted ? 0 : 1)) throw std::logic_error("a refusal is one line in the log");
    if (accepted) logged([&] { run(*delegate); });
    return accepted;
}

}  // namespace

Target delegate_target() {
    return {"delegate",
            {layer(), blocks(), movement(), cache()},
            {"HDRGRAPH", "in0", "in1", "in2", "out0", "layer.weight", "n"},
            load};
}

}  // namespace headrace::fuzz
