#include "fuzz/onnx_target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "checkout.h"
#include "doors/onnx/model_bytes.h"
#include "fuzz/message_mutator.h"
#include "headrace/onnx.h"
#include "ir/verify.h"

namespace headrace::fuzz {
namespace {

bool load_model(const Parts& parts) {
    const auto owner = std::make_shared<std::string>(parts[0]);
    try {
        const OnnxReading reading = OnnxModel::open(std::as_bytes(std::span(*owner)), owner)->read();
        if (const Status status = verify(*reading.graph); !status.ok())
            throw std::logic_error("a graph that is read is wrong: " + status.error().message);
        return true;
    } catch (const Exception& error) {
        if (std::string_view(error.what()).empty()) throw std::logic_error("an error without a message");
        return false;
    }
}

std::vector<Parts> few_models() {
    using namespace onnx;
    const std::string weights(16, '\1');
    return {
        {model({node("Mul", {"x", "w"}, "z"), node("Relu", {"z"}, "y")}, float_tensor("w", 4, weights))},
        {model({node("Shape", {"x"}, "s"), node("Reshape", {"x", "s"}, "y")})},
        {model({node("Softmax", {"x"}, "z"), node("Add", {"z", "x"}, "y")})},
    };
}

std::vector<Parts> written_models() {
    const std::filesystem::path folder = checkout_path("build/fuzz/onnx");
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        paths.push_back(entry.path());
    std::ranges::sort(paths);  // so that an iteration can be repeated
    std::vector<Parts> models;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        models.push_back({std::string(std::istreambuf_iterator<char>(file), {})});
    }
    return models;
}

}  // namespace

Target onnx_target() {
    Target target{"onnx", written_models(), {}, load_model};
    if (target.corpus.empty()) target.corpus = few_models();
    target.mutate = [corpus = target.corpus](const Parts& parts, Mutator& mutator) {
        std::string model = parts[0];
        for (std::size_t i = 1 + mutator.below(3); i > 0; --i)
            model = mutate_message(model, corpus[mutator.below(corpus.size())][0], mutator);
        if (mutator.below(4) == 0)
            model = mutator.mutate(std::move(model), corpus[mutator.below(corpus.size())][0], {});
        return Parts{std::move(model)};
    };
    return target;
}

}  // namespace headrace::fuzz
