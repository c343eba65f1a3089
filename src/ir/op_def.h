#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/share.h"
#include "ir/attr.h"
#include "ir/condition.h"
#include "ir/tensor_type.h"

struct ggml_tensor;

namespace headrace {

class Emit;

/// What one operand may be. Drives validation, opSupportLimits and `headrace ops`.
struct OperandRule {
    std::string_view name;
    DTypeSet dtypes;
    int same_dtype_as = -1;  ///< index of an earlier operand with which the dtype must agree
    bool optional = false;
    int min_rank = 0;
    int max_rank = kMaxRank;
    bool blocks = false;  ///< may be a constant stored in a BlockFormat, seen by kernels as its blocks
    bool mixed = false;   ///< where it repeats, each may have a dtype of its own
    std::string_view title = {};  ///< what messages about its rank call it ("Conv2d input"); empty: the name
};

/// Types of a node's operands; absent optional operands are empty. What inference needs of their extents and
/// cannot decide goes into `open`, where there is one: whoever adds a node keeps it, whoever infers again
/// knows it already.
class Operands {
public:
    explicit Operands(std::span<const TensorType* const> types, std::vector<Condition>* open = nullptr)
        : types_(types), open_(open) {}
    int size() const { return static_cast<int>(types_.size()); }
    bool has(int i) const { return i < size() && types_[i] != nullptr; }
    const TensorType& operator[](int i) const { return *types_[i]; }

    void require(Condition::Kind kind, const Dim& left, const Dim& right) const {
        if (open_) open_->push_back({kind, left, right, {}});
    }

private:
    std::span<const TensorType* const> types_;
    std::vector<Condition>* open_;
};

/// Typed bytes of one execution of a node, and this thread's share of the work.
struct TensorArgs {
    std::span<const ConstView> in;
    std::span<const MutView> out;
    Share share;

    bool has(int i) const { return i < static_cast<int>(in.size()) && in[i]; }
};

/// Work of one node, for thread and kernel choice and for rooflines.
struct Cost {
    double flops = 0;
    double bytes = 0;
};

/// Which memory layouts an op works in; the layout pass reads it.
enum class LayoutRule : std::uint8_t {
    row_major,  ///< needs its declared dimension order
    any,        ///< element-wise: whatever the producer chose
    channels,   ///< takes images as nchw or nhwc, by its attribute `input_layout` or `layout`
    axes,       ///< any of operand 0 (all, if variadic), when `axis`, `axes` or lists with 4 values follow
};

/// Ops that no kernel computes: the run goes through their bodies, which are attributes.
enum class Control : std::uint8_t {
    none,
    branch,  ///< one body or the other (`if`)
    repeat,  ///< one body again and again (`loop`)
};

/// A packed CPU kernel that may stand in for the op: named in plans, statistics and cache keys.
struct KernelDef {
    std::string_view name;
    /// True when the kernel computes this node; is_constant says which operands are known at compile time.
    bool (*applies)(const Operands&, std::span<const bool> is_constant, const void* attrs) = nullptr;
    int packed_operand = -1;  ///< operand that the kernel reads in its packed form; -1: none
    std::size_t (*packed_bytes)(const Operands&, const void* attrs) = nullptr;
    void (*pack)(const ConstView& plain, const void* attrs, std::byte* packed) = nullptr;
    void (*run)(const TensorArgs&, const void* attrs) = nullptr;
    /// pack() reads by OnePassReader, and so at any place.
    bool packs_in_one_pass = false;
};

/// An operand of a sample: the parametrised tests fill it with reproducible values.
struct SampleOperand {
    TensorType type;
    double low = -2, high = 2;  ///< range of values; integers are drawn from the rounded range
    bool constant = false;
    bool absent = false;
};

/// A node that tests compare over every implementation.
struct Sample {
    std::vector<SampleOperand> operands;
    NamedAttrs attrs;
    double tolerance = 1e-5;  ///< largest |difference| relative to max(1, |expected|)
};

/// Everything about one op. Ops are declared in src/ops; see ops/op.h for how a struct becomes an OpDef.
struct OpDef {
    std::string_view name;
    std::string_view summary;
    std::span<const OperandRule> operands;
    bool variadic = false;  ///< the last operand may repeat
    int outputs = 1;        ///< -1: as many as inference yields
    int version = 1;        ///< of the attributes' meaning, written into graph files
    std::vector<Field> fields;

    Result<AttrBox> (*make_attrs)(const NamedAttrs&) = nullptr;
    std::vector<AttrValue> (*attr_values)(const void*) = nullptr;
    Result<std::vector<TensorType>> (*infer)(const Operands&, const void*) = nullptr;
    void (*reference)(const TensorArgs&, const void*) = nullptr;

    /// The values of output extents that the operands' elements decide, one for each
    /// symbol of its attribute `counts`, by which its types know them. Null: the op has none. Throws
    /// KernelError for elements that are no extents.
    std::vector<std::int64_t> (*count)(std::span<const ConstView> in, const void* attrs) = nullptr;

    /// Optional facets: null where the op has none.
    std::optional<int> (*same_as)(const Operands&, const void*) = nullptr;
    Status (*lowerable)(const Operands&, const void*) = nullptr;
    std::vector<ggml_tensor*> (*lower)(Emit&, std::span<ggml_tensor* const>, const Operands&,
                                       const void*) = nullptr;
    std::span<const KernelDef> kernels;
    Cost (*cost)(const Operands&, std::span<const TensorType> outputs, const void*) = nullptr;
    std::vector<Sample> (*samples)() = nullptr;
    LayoutRule layout = LayoutRule::row_major;
    Control control = Control::none;  ///< else `counts` has what its results' extents turn out to be
    int writes_state = -1;      ///< operand (a state) that the op updates in place; its output 0 aliases it
    bool folds_always = false;  ///< of constants: computed when compiling, however large the result is

    bool is_pure() const { return writes_state < 0; }
    const OperandRule& rule(int i) const { return operands[std::min<std::size_t>(i, operands.size() - 1)]; }
};

/// Finds an op by name; what files and doors are given, so that ir does not know the catalog.
using OpLookup = std::function<const OpDef*(std::string_view)>;

/// Checks arity, dtypes and ranks by the op's rules, then infers the output types.
/// Errors name the operand, what it is and what would be right; the caller prefixes op and label.
Result<std::vector<TensorType>> check_and_infer(const OpDef& op, const Operands& in, const void* attrs);

}  // namespace headrace
