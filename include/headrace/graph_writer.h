#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/extent.h"
#include "headrace/headrace.h"

namespace headrace {

/// One option of an operator: a flag, number, text, list of numbers, shape, data type, or the graph that is
/// its body.
using Option = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                            std::vector<double>, std::vector<Extent>, DType, std::shared_ptr<const Graph>>;
using Options = std::vector<std::pair<std::string, Option>>;

/// Builds a graph of any ops of the catalog, as `headrace ops` lists them; each call checks and infers.
/// Values are numbers that this writer gave.
class HEADRACE_API GraphWriter {
public:
    using Value = std::int32_t;
    static constexpr Value kAbsent = -1;  ///< an optional operand that is left out

    GraphWriter();
    Value input(const std::string& name, DType type, const std::vector<Extent>& shape);
    /// Bytes that `owner` keeps alive. With a key, graph_bytes() only names them. With a block format (of
    /// f32) they are blocks of it, as quantize_rows() makes them.
    Value constant(DType type, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes,
                   std::shared_ptr<const void> owner, const std::string& key = "",
                   std::string_view format = "");
    /// A tensor that persists between runs; no bytes: it starts as zeros.
    Value state(const std::string& name, DType type, const std::vector<std::int64_t>& shape,
                std::span<const std::byte> initial, std::shared_ptr<const void> owner,
                const std::string& key = "");
    std::vector<Value> op(std::string_view name, const std::vector<Value>& operands,
                          const Options& options = {}, const std::string& label = "");
    /// Dtype and shape of a value.
    DType dtype(Value value) const;
    /// Whether the value is a constant in a block format.
    bool is_blocks(Value value) const;
    std::vector<Extent> shape(Value value) const;
    void output(const std::string& name, Value value);
    /// Hands the graph over, which must have an output.
    std::shared_ptr<const Graph> finish();

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

/// A way to store weights in quantised blocks, by ggml's name for it.
struct BlockFormatInfo {
    std::string_view name;  ///< "q8_0", "q4_k", ...
    std::int64_t elements;  ///< of a block; rows hold whole blocks
    std::size_t bytes;      ///< of a block
};
HEADRACE_API std::vector<BlockFormatInfo> block_formats();

/// Finite f32 rows of `columns` elements in a block format, by ggml's own quantiser.
HEADRACE_API std::vector<std::byte> quantize_rows(std::string_view format, std::span<const float> values,
                                                  std::int64_t columns);

/// Elements as another type, by the op `cast`: what a graph would make of them. 4-bit elements are packed,
/// the low nibble first.
HEADRACE_API std::vector<std::byte> cast_elements(DType from, std::span<const std::byte> elements,
                                                  std::int64_t count, DType to);

/// The graph as bytes, without the constants that have a key.
HEADRACE_API std::vector<std::byte> graph_to_bytes(const Graph& graph);

/// Weights that lie outside: their bytes and what keeps them alive. Throw to report that there are none.
struct NamedWeight {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
};
using FindNamedWeight = std::function<NamedWeight(const std::string& key)>;

/// Reads what graph_to_bytes made, from anywhere, and trusts nothing in it. Bytes are used in place where
/// their alignment allows; `owner` keeps them alive. Errors: invalid_argument when they are damaged,
/// unsupported when they are newer than this build.
HEADRACE_API std::shared_ptr<const Graph> graph_from_memory(std::span<const std::byte> bytes,
                                                            std::shared_ptr<const void> owner,
                                                            const FindNamedWeight& find);

}  // namespace headrace
