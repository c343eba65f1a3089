#pragma once
#include <algorithm>
#include <string_view>

#include "ir/graph.h"
#include "ops/catalog.h"

namespace headrace {

/// The name of an op of the catalog. One that is spelled out is looked up when it is compiled.
class OpName {
public:
    consteval OpName(const char* name) : name_(name) {
        if (std::ranges::find(kNames, name_) == std::end(kNames)) throw "src/ops has no op of this name";
    }
    /// The name of an op of the catalog.
    explicit OpName(const OpDef& op) : name_(op.name) {}
    constexpr operator std::string_view() const { return name_; }

    /// CMake reads them in the sources of the ops; a test compares them with the catalog.
    static constexpr std::string_view kNames[] = {
#include "op_names.inc"
    };

private:
    std::string_view name_;
};

inline const OpDef& catalog_op(OpName name) { return *find_op(name); }

inline bool is(const OpDef& op, OpName name) { return op.name == std::string_view(name); }
inline bool is(const Node& node, OpName name) { return is(*node.op, name); }

}  // namespace headrace
