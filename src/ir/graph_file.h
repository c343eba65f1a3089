#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// Graph files. All numbers are little-endian:
///
///     offset 0    "HDRGRAPH"
///            8    u32 version of this container, 1
///           12    u32 zero
///           16    u64 size of the FlatBuffer
///           24    u64 file offset of the weights, a multiple of 64
///           32    FlatBuffer (schema/ggml_ir.fbs)
///     weights     bytes of each distinct constant, each at a multiple of 64
///
/// Constants that share one Constant are stored once and share one again after loading.

/// Whether bytes begin as a graph file does.
bool is_graph_file(std::span<const std::byte> bytes);

/// Whether a file's name says that it is an ONNX model. No graph file may take such a name.
bool is_onnx_file(std::string_view path);

/// Writes the graph, which must pass verify(). The file appears under its name only when it is complete, so
/// that a graph whose constants are mapped from `path` can be saved there. Errors: verify()'s; unsupported
/// when the graph without weights exceeds 2 GiB; io.
Status write_graph(const Graph& graph, const std::string& path);

/// Reads a file of write_graph. Constants point into the mapped file, which they keep open: the file must not
/// be shortened meanwhile. Errors: io; invalid_argument when the content is damaged or hostile;
/// unsupported when it is newer than this build. Never crashes on any content, and allocates in proportion to
/// its size.
Result<Graph> read_graph(const std::string& path, const OpLookup& find_op);

/// The content of the file that write_graph would write. by_key: constants that have a key are only named;
/// the caller keeps their bytes.
Result<std::vector<std::byte>> graph_bytes(const Graph& graph, bool by_key = false);

/// The constant that a graph names by its key.
using FindWeight = std::function<Result<std::shared_ptr<const Constant>>(const std::string& key)>;

/// Reads what graph_bytes made. Constants point into `bytes`, which `owner` keeps alive, where it starts at a
/// 16-byte boundary; otherwise into an aligned copy.
Result<Graph> graph_from_bytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                               const OpLookup& find_op, const FindWeight& find_weight = {});

}  // namespace headrace
