#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::python {

void bind_graphs(nanobind::module_& m);
void bind_executable(nanobind::module_& m);
void bind_run_tensor(nanobind::module_& m);
void bind_session(nanobind::module_& m);
void bind_webnn(nanobind::module_& m);
void bind_extent(nanobind::module_& m);
void bind_graph_writer(nanobind::module_& m);
void bind_graph_view(nanobind::module_& m);
void bind_onnx(nanobind::module_& m);
void bind_exchange(nanobind::module_& m);
void bind_tokenizer(nanobind::module_& m);
void bind_text_encoder(nanobind::module_& m);

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

}  // namespace headrace::python
