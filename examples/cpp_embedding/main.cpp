/// Headrace in a C++ program: one dense layer and a softmax, built once with the WebNN API and run on ggml's
/// CPU for batches of different sizes, on the program's own memory.
#include <headrace/webnn.h>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

using headrace::DType;
using namespace headrace::webnn;

constexpr std::int64_t kFeatures = 4, kClasses = 3, kMaxBatch = 16;

/// probabilities = softmax(features · weights + bias), features [batch, 4] with any batch up to 16.
MLGraph build_classifier(const MLContext& context) {
    MLGraphBuilder builder(context);
    const MLOperand features =
        builder.input("features", {DType::f32, {MLDimension("batch", kMaxBatch), kFeatures}});
    const float weights[kFeatures][kClasses] = {{1, 0, -1}, {0, 1, 0}, {0.5f, 0, 1}, {0, -1, 0.25f}};
    const float bias[kClasses] = {0.1f, 0, -0.1f};
    const MLOperand dense = builder.add(
        builder.matmul(features,
                       builder.constant({DType::f32, {kFeatures, kClasses}}, weights, sizeof(weights))),
        builder.constant({DType::f32, {kClasses}}, bias, sizeof(bias)), {}, "dense");
    return builder.build({{"probabilities", builder.softmax(dense, 1)}});
}

void classify(const MLGraph& graph, std::int64_t batch) {
    std::vector<float> features(static_cast<std::size_t>(batch * kFeatures));
    std::iota(features.begin(), features.end(), -4.0f);
    std::vector<float> probabilities(static_cast<std::size_t>(batch * kClasses));

    const std::int64_t shape[] = {batch, kFeatures};
    const headrace::InputView inputs[] = {{DType::f32, shape, features.data()}};
    const headrace::OutputView outputs[] = {{probabilities.data(), probabilities.size() * sizeof(float)}};
    graph.run(inputs, outputs);

    for (std::int64_t row = 0; row < batch; ++row) {
        std::printf("batch %d row %d:", static_cast<int>(batch), static_cast<int>(row));
        for (std::int64_t i = 0; i < kClasses; ++i) std::printf(" %.4f", probabilities[row * kClasses + i]);
        std::printf("\n");
    }
}

}  // namespace

int main() {
    try {
        for (const headrace::DeviceInfo& device : headrace::devices())
            std::printf("device %s: %s\n", device.name.c_str(), device.description.c_str());
        const MLContext context({.accelerated = false});
        const MLGraph graph = build_classifier(context);
        for (const std::int64_t batch : {1, 2}) classify(graph, batch);
    } catch (const headrace::Exception& error) {
        std::fprintf(stderr, "cpp_embedding: %s\n", error.what());
        return 1;
    }
}
