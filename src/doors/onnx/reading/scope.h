#pragma once
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "doors/onnx/model/messages.h"
#include "doors/onnx/reading/values.h"

namespace headrace::onnx {

/// What names mean to some nodes: the model's, a branch's or a function's. They are views of the file.
struct Scope {
    const OperatorSets* sets = nullptr;
    const Scope* outer = nullptr;  ///< of a branch: what it sees besides
    std::unordered_map<std::string_view, Value> values;
    /// A function's parameters: attributes of its call, and the names that those see which are graphs.
    std::map<std::string, std::pair<AttributeMessage, const Scope*>, std::less<>> parameters;
    std::string caller;  ///< the node of the model whose function this is
    std::string where;   ///< the function and that node, for messages
    int depth = 0;

    /// Null where no node before has computed it; a null operand is one that is left out.
    const Value* find(std::string_view name) const {
        for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
            if (const auto at = scope->values.find(name); at != scope->values.end()) return &at->second;
        return nullptr;
    }
    std::int64_t version(std::string_view domain) const {
        const auto at = sets->find(domain);
        return at == sets->end() ? 1 : at->second;
    }
};

}  // namespace headrace::onnx
