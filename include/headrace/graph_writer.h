#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/headrace.h"

namespace headrace {

/// A fixed extent, or a named one that is given at run time and lies in [min_size, max_size].
struct Dimension {
    std::int64_t size = 0;
    std::string name;
    std::int64_t max_size = INT64_MAX;
    std::int64_t min_size = 1;

    Dimension(std::int64_t fixed) : size(fixed) {}
    Dimension(std::string symbol, std::int64_t max, std::int64_t min = 1)
        : name(std::move(symbol)), max_size(max), min_size(min) {}
    bool is_dynamic() const { return !name.empty(); }
};

/// Extents that become one, as reshape merges them: 8 and "n" are "8*n".
HEADRACE_API Dimension product(const std::vector<Dimension>& extents);
/// A number times named extents; without names the number alone.
struct ExtentTerm {
    std::int64_t factor = 1;
    std::vector<std::string> names;
};
/// What an extent is the sum of: "(2*n+8)" of 2 times "n", and 8.
HEADRACE_API std::vector<ExtentTerm> terms_of(const Dimension& extent);
/// The names that an extent is computed from, also within quotients; none of those that are known is taken
/// apart.
HEADRACE_API std::vector<std::string> names_of(const Dimension& extent, const std::set<std::string>& known);
/// The names that have a value when the extent has one: "(n+1)" and "n".
HEADRACE_API std::vector<std::string> names_bound_by(const Dimension& extent);
/// The extent with others in place of names.
HEADRACE_API Dimension substituted(const Dimension& extent, const std::map<std::string, Dimension>& instead);

/// One option of an operator: a flag, number, text, list of numbers, shape or data type.
using Option = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                            std::vector<double>, std::vector<Dimension>, DType>;
using Options = std::vector<std::pair<std::string, Option>>;

/// Builds a graph of any ops of the catalog, as `headrace ops` lists them; each call checks and infers.
/// Values are numbers that this writer gave.
class HEADRACE_API GraphWriter {
public:
    using Value = std::int32_t;
    static constexpr Value kAbsent = -1;  ///< an optional operand that is left out

    GraphWriter();
    Value input(const std::string& name, DType type, const std::vector<Dimension>& shape);
    /// Bytes that `owner` keeps alive. With a key, graph_bytes() only names them. With a block format (of
    /// f32) they are blocks of it, as quantise_rows() makes them.
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
    std::vector<Dimension> shape(Value value) const;
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
HEADRACE_API std::vector<std::byte> quantise_rows(std::string_view format, std::span<const float> values,
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
