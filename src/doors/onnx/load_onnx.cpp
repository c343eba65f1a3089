#include "doors/onnx/model/source.h"
#include "doors/onnx/reading/importer.h"
#include "doors/onnx/reading/operators.h"
#include "headrace/onnx.h"

namespace headrace {
namespace {

std::shared_ptr<const Graph> graph_of(Result<std::shared_ptr<onnx::Source>> source,
                                      const OnnxOptions& options) {
    const auto model = value_or_throw(std::move(source));
    return std::make_shared<const Graph>(value_or_throw(onnx::read_model(*model, options)));
}

}  // namespace

std::shared_ptr<const Graph> load_onnx(const std::string& path, const OnnxOptions& options) {
    return graph_of(onnx::open_model(path), options);
}

std::shared_ptr<const Graph> load_onnx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                       const OnnxOptions& options) {
    return graph_of(onnx::open_model(bytes, std::move(owner)), options);
}

std::vector<OnnxOperator> onnx_operators() {
    std::vector<OnnxOperator> list;
    for (const onnx::Operator* o : onnx::all_operators())
        list.push_back({std::string(o->domain), std::string(o->name), o->since});
    return list;
}

}  // namespace headrace
