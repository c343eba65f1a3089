#include <mutex>

#include "base/utf8.h"
#include "doors/onnx/model/source.h"
#include "doors/onnx/reading/declared.h"
#include "doors/onnx/reading/importer.h"
#include "doors/onnx/reading/operators.h"
#include "headrace/onnx.h"

namespace headrace {
namespace {

constexpr std::int64_t kFirstWithDefaults = 4;  ///< ir_version; before, all initializers are listed as inputs

OnnxMetadata metadata_of(const onnx::ModelMessage& model) {
    OnnxMetadata found{.producer = valid_utf8(model.producer),
                       .domain = valid_utf8(model.domain),
                       .description = valid_utf8(model.description),
                       .graph_name = std::string(model.graph->name),
                       .graph_description = valid_utf8(model.graph->description),
                       .version = model.version,
                       .properties = {}};
    for (const auto& [key, text] : model.properties) found.properties[valid_utf8(key)] = valid_utf8(text);
    return found;
}

}  // namespace

struct OnnxModel::Impl {
    std::shared_ptr<onnx::Source> source;
    std::vector<OnnxValue> inputs, outputs, overridable;
    OnnxMetadata metadata;
    std::map<std::string, std::int64_t> operator_sets;
    std::mutex reading;  ///< one opens the files of external data

    explicit Impl(Result<std::shared_ptr<onnx::Source>> opened) : source(value_or_throw(std::move(opened))) {
        const onnx::ListedInputs listed = value_or_throw(onnx::inputs_of(*source));
        for (const onnx::ValueMessage* v : listed.given) inputs.push_back(onnx::declared(*v));
        if (source->model.ir_version >= kFirstWithDefaults)
            for (const onnx::ValueMessage* v : listed.initializers) overridable.push_back(onnx::declared(*v));
        for (const onnx::ValueMessage& v : source->graph().outputs) outputs.push_back(onnx::declared(v));
        metadata = metadata_of(source->model);
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
const std::vector<OnnxValue>& OnnxModel::overridable_initializers() const { return impl_->overridable; }
const OnnxMetadata& OnnxModel::metadata() const { return impl_->metadata; }
const std::map<std::string, std::int64_t>& OnnxModel::operator_sets() const { return impl_->operator_sets; }

OnnxReading OnnxModel::read(const OnnxOptions& options) {
    const std::scoped_lock lock(impl_->reading);
    onnx::ImportedModel made = value_or_throw(onnx::read_model(*impl_->source, options));
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
