#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_pages.h"
#include "doors/onnx/reading/elements.h"
#include "doors/onnx/reading/extents.h"
#include "doors/onnx/reading/limits.h"
#include "doors/onnx/reading/ranges.h"
#include "doors/onnx/reading/refused.h"
#include "doors/onnx/reading/values.h"
#include "ir/graph_builder.h"

namespace headrace::onnx {

inline constexpr std::int64_t kMostDimensions = 8;
/// The largest extent of constants that are computed while a model is read: places, weights of interpolation.
inline constexpr std::int64_t kLargestExtent = std::int64_t{1} << 24;

/// How long extents may be whose smallest and largest ones are kept as formulas.
struct Patience {
    static constexpr std::size_t kShort = 24;
    std::size_t longest = 160;
    bool was_needed = false;  ///< for one that would otherwise be long
};

struct Branch;

/// Reads the nodes of graphs that are attributes.
class BranchReader {
public:
    virtual ~BranchReader() = default;
    /// The results of a branch's nodes, which become ops of `into`.
    virtual Values read_branch(OpWriter& into, const Branch& branch, const Values& inputs) = 0;
};

/// What all graphs of a model share: the limits, and what is known of its symbols.
struct Shared {
    Shared(std::size_t bytes, BranchReader& reader) : budget(bytes), branches(reader) {}

    Budget budget;
    BranchReader& branches;
    Ranges ranges;
    Patience patience;
    std::map<std::string, Dim> symbols;
    std::set<std::string> made;  ///< symbols that no input of the model has
    std::vector<std::shared_ptr<OpWriter>>
        bodies;                      ///< of all graphs: operands know their graph by its address
    FilePages pages;                 ///< of the model
    std::int64_t channel_block = 0;  ///< where the model has images of such blocks: channel_block.h
};

/// The graph in the making: the catalog's ops on operands that are values at run time or known already. What
/// is known is computed at once (folding.h). Its functions throw Refused, Invalid and Undecided.
class OpWriter {
public:
    explicit OpWriter(Shared& shared) : shared_(shared) {}
    OpWriter(const OpWriter&) = delete;
    OpWriter& operator=(const OpWriter&) = delete;
    virtual ~OpWriter() = default;

    std::string label;                    ///< of the ops that are added: the node's name
    std::string operator_title;           ///< the node's operator and name
    std::vector<std::string> dimensions;  ///< named ones of the inputs
    std::set<std::string> counts;         ///< symbols that a run of this graph gives values
    /// Elements that were counted, by the operands that tell them.
    std::map<const OperandData*, std::pair<Operand, Dim>> told;
    std::map<ValueId, Operand> places;  ///< of non-zeros, by the value that has them

    GraphBuilder& builder() { return builder_; }
    Shared& shared() { return shared_; }
    Ranges& ranges() { return shared_.ranges; }
    Budget& budget() { return shared_.budget; }

    // --- shapes ---
    /// A run-time operand of a type of ONNX's.
    Operand input(const std::string& name, ElementType type, const Shape& shape);
    /// An input of the graph as it stores it.
    virtual ValueId declare(const std::string& name, DType stored, const Shape& shape);
    Shape shape(const Operand& x) const;
    int rank(const Operand& x) const;
    Dim size(const Operand& x) const { return product_of(shape(x)); }
    /// Counted from the front.
    int axis(const Operand& x, std::int64_t axis) const;
    /// A new symbol, and one which the model's run gives a value.
    Dim fresh(const std::string& word);
    Dim counted();
    /// Whether it is such a symbol, and none of the model's dimensions.
    bool is_made(const Dim& d) const;
    /// Whether its shape has extents that are known only at run time.
    bool is_open(const Operand& x) const { return onnx::is_open(shape(x)); }
    /// The error for an extent that must be a number here.
    Refused unknown(const Dim& d, std::string_view what) const;
    std::int64_t fixed(const Dim& d, std::string_view what) const;
    std::vector<std::int64_t> fixed_shape(const Operand& x,
                                          std::string_view what = "an extent of the input") const;
    bool has_shape(const Operand& x, const Shape& wanted) const;
    /// Whether smallest and largest ones of these are kept as formulas. Where they are not, what holds in
    /// every model that works is believed, and a run shows it.
    bool is_short(const std::vector<Dim>& extents);
    /// The larger of it and 0.
    Dim at_least_0(const Dim& d);

    // --- constants ---
    /// The graph's value; known elements become a constant.
    ValueId value(const Operand& x);
    /// A value of this graph as it is stored.
    Operand existing(ValueId id) { return made(id, element_type(builder_.type(id).dtype)); }
    /// Adds the bytes of known numbers to the budget, once.
    void count(const Operand& x);
    /// The same value, which the graph stores alike, as another type of ONNX's.
    Operand retyped(const Operand& x, ElementType type);
    /// A number, an extent or a quotient of two, as a scalar: of an extent, as many ones are added up.
    Operand at_run_time(const Item& item, ElementType type);
    /// A scalar of each element of the shape.
    Operand filled(double number, ElementType type, const Shape& wanted);
    /// 0, 1, 2, ... up to an extent that may be known only at run time.
    Operand positions(const Dim& count, ElementType type = ElementType::i64);
    /// How many runs a session has done, i64[1]: a state, which random numbers are of.
    Operand run_number();
    /// That so many places along an extent can be laid out.
    static void check_extent(std::int64_t count);

    // --- ops ---
    virtual std::vector<Operand> ops(std::string_view name, std::vector<Operand> operands,
                                     const NamedAttrs& attrs);
    std::vector<Operand> ops(std::string_view name, std::vector<Operand> operands) {
        return ops(name, std::move(operands), NamedAttrs());
    }
    Operand op(std::string_view name, std::vector<Operand> operands, const NamedAttrs& attrs = {}) {
        return ops(name, std::move(operands), attrs).at(0);
    }
    /// An op of one result on values of the graph, as it is: nothing is computed.
    ValueId append(std::string_view name, std::vector<ValueId> operands, const NamedAttrs& attrs,
                   const std::string& title);
    Operand cast(const Operand& x, ElementType type);
    Operand reshape(const Operand& x, const Shape& wanted);
    Operand transpose(const Operand& x, const std::vector<std::int64_t>& permutation);
    Operand expand(const Operand& x, const Shape& wanted);
    Operand concat(const std::vector<Operand>& parts, int axis);
    /// `size` elements along an axis, every step-th of them.
    Operand cut(const Operand& x, int axis, const Dim& start, const Dim& size, std::int64_t step = 1);
    Operand times(const Operand& x, double factor);
    Operand times(const Operand& x, const Item& factor);
    Operand plus(const Operand& x, double number);
    Operand plus(const Operand& x, const Item& number);
    /// Clamped to [low, high].
    Operand within(const Operand& x, const Item& low, const Item& high);
    /// With extents of 1 behind the others.
    Operand add_axes(const Operand& x, std::int64_t after);
    /// The axis as the last one, and the permutation, which is its own inverse.
    std::pair<Operand, std::vector<std::int64_t>> swap_to_last(const Operand& x, int axis);

protected:
    /// A value of another graph.
    virtual ValueId capture(const Operand& x);
    Operand made(ValueId id, ElementType type);

private:
    ValueId constant(const Operand& x);
    void align(Elements& elements);
    ValueId computed(const Operand& x);
    Operand product_at_run_time(const std::vector<Expression>& parts);
    Operand count_of(const Dim& d);
    std::vector<Operand> typed(std::string_view name, const std::vector<Operand>& operands,
                               std::vector<Operand> results);

    Shared& shared_;
    GraphBuilder builder_;
    std::map<const OperandData*, std::pair<Operand, ValueId>> constants_;  ///< that are another graph's, too
    std::map<std::string, Operand> as_numbers_;                            ///< extents as numbers at run time
    Operand runs_;
};

}  // namespace headrace::onnx
