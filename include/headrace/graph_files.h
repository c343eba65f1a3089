#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "headrace/headrace.h"

/// Graph files of every form that this build reads and writes: its own, and the WebNN graph tools' `.webnn`
/// text and JSON. headrace::load_graph and save_graph know the first alone.
namespace headrace::webnn {

/// Reads a graph file. The paths name the weights of `.webnn` and JSON graphs if they are not beside it as
/// `<stem>.manifest.json` and `<stem>.weights`. Weights stay in their file's pages as in
/// headrace::load_graph.
HEADRACE_API std::shared_ptr<const Graph> load_graph_file(const std::string& path,
                                                          const std::string& manifest_path = "",
                                                          const std::string& weights_path = "");
/// Reads the content of a graph file of our own, which starts at a multiple of 16 bytes and which `owner`
/// keeps alive: weights stay in it. Code::invalid_argument for the other forms, whose weights are files.
HEADRACE_API std::shared_ptr<const Graph> load_graph_bytes(std::span<const std::byte> bytes,
                                                           std::shared_ptr<const void> owner);
/// Writes the form that the extension says: `.webnn` and `.json` with the weights beside it, else our own.
HEADRACE_API void save_graph_file(const Graph& graph, const std::string& path);

}  // namespace headrace::webnn
