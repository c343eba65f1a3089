#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/content_hash.h"
#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// How a kind of node is to run, as `headrace bench --tune` found it.
struct NodeChoice {
    std::string implementation;  ///< name_of(NodePlan)
    bool one_thread = false;     ///< the others leave it alone; of kernels and references
    std::string node;            ///< what kind of node it is, for readers of the file

    friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
};

/// What makes nodes alike for a choice: op, attributes, types, which operands are constant, and threads.
std::string kind_of(const Graph& graph, const Node& node, int threads);

/// Choices that were measured on one machine and differ from the rules.
class Tuning {
public:
    /// Null: the rules decide. kind: of kind_of.
    const NodeChoice* find(std::string_view kind) const;
    void set(std::string_view kind, NodeChoice choice);
    void erase(std::string_view kind);
    bool empty() const { return choices_.empty(); }

    /// A file's text: a line for the format, the machine and the checksum each, and one for each choice.
    std::string text() const;
    /// Errors: it is damaged, of another version, or another machine's.
    static Result<Tuning> parse(std::string_view text);

private:
    std::map<ContentHash, NodeChoice> choices_;
};

/// This machine's file in a folder.
std::string tuning_file(const std::string& folder);

/// What the file holds; nothing where there is none. Errors: io, and those of parse.
Result<Tuning> read_tuning(const std::string& path);
Status write_tuning(const std::string& path, const Tuning& tuning);

}  // namespace headrace
