#include <mutex>

#include "doors/onnx/model/source.h"
#include "doors/onnx/reading/declared.h"
#include "doors/onnx/reading/importer.h"
#include "doors/onnx/reading/operators.h"
#include "headrace/onnx.h"

namespace headrace {

struct OnnxModel::Impl {
    std::shared_ptr<onnx::Source> source;
    std::vector<OnnxValue> inputs, outputs;
    std::string graph_name;
    std::map<std::string, std::int64_t> operator_sets;
    std::mutex reading;  ///< one opens the files of external data

    explicit Impl(Result<std::shared_ptr<onnx::Source>> opened) : source(value_or_throw(std::move(opened))) {
        for (const onnx::ValueMessage* v : value_or_throw(onnx::inputs_of(*source)))
            inputs.push_back(onnx::declared(*v));
        for (const onnx::ValueMessage& v : source->graph().outputs) outputs.push_back(onnx::declared(v));
        graph_name = source->graph().name;
        operator_sets.insert(source->model.sets.begin(), source->model.sets.end());
    }
};

OnnxModel::OnnxModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OnnxModel::~OnnxModel() = default;

std::shared_ptr<OnnxModel> OnnxModel::open(const std::string& path) {
    return std::shared_ptr<OnnxModel>(new OnnxModel(std::make_unique<Impl>(onnx::open_model(path))));
}

std::shared_ptr<OnnxModel> OnnxModel::open(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner) {
    return std::shared_ptr<OnnxModel>(
        new OnnxModel(std::make_unique<Impl>(onnx::open_model(bytes, std::move(owner)))));
}

const std::vector<OnnxValue>& OnnxModel::inputs() const { return impl_->inputs; }
const std::vector<OnnxValue>& OnnxModel::outputs() const { return impl_->outputs; }
const std::string& OnnxModel::graph_name() const { return impl_->graph_name; }
const std::map<std::string, std::int64_t>& OnnxModel::operator_sets() const { return impl_->operator_sets; }

OnnxReading OnnxModel::read(const OnnxOptions& options) {
    const std::scoped_lock lock(impl_->reading);
    onnx::Reading made = value_or_throw(onnx::read_model(*impl_->source, options));
    return {std::make_shared<const Graph>(std::move(made.graph)), std::move(made.outputs),
            std::move(made.declared)};
}

std::shared_ptr<const Graph> load_onnx(const std::string& path, const OnnxOptions& options) {
    return OnnxModel::open(path)->read(options).graph;
}

std::shared_ptr<const Graph> load_onnx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                       const OnnxOptions& options) {
    return OnnxModel::open(bytes, std::move(owner))->read(options).graph;
}

std::vector<OnnxOperator> onnx_operators() {
    std::vector<OnnxOperator> list;
    for (const onnx::Operator* o : onnx::all_operators())
        list.push_back({std::string(o->domain), std::string(o->name), o->since});
    return list;
}

}  // namespace headrace
