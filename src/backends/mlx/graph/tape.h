#pragma once
#include <mlx/primitives.h>

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/memory/leaf.h"

namespace headrace::mlx {

/// An expression as a list of primitives, so that the same graph need not be translated again.
///
/// MLX's arrays are used up by their evaluation. Making them again from their primitives costs a tenth of
/// what MLX's functions cost, which check and broadcast, and of what deciding which to call costs.
class Tape {
public:
    /// Records how `outputs`, not evaluated yet, come from the leaves. Other arrays with data are constants.
    Tape(const std::vector<array>& outputs, const std::vector<std::pair<Leaf, array>>& leaves);

    /// To be called when the recorded expression was evaluated: what turned out to be a view of a leaf, such
    /// as a matrix transposed, is made without a primitive from then on.
    void learn_views();

    /// The outputs again, over what the leaves' memory holds now: an expression, not evaluated.
    std::vector<array> play() const;
    /// The outputs again, computed. Only where runs_on_cpu(), and after views were learnt.
    std::vector<array> run(mx::Stream stream) const;
    /// Whether every primitive is on the CPU's stream, so that run() can take the place of MLX's evaluation.
    bool runs_on_cpu() const;

    std::size_t size() const { return steps_.size(); }
    /// Most bytes that intermediate values and outputs take at a time; an upper bound, but for what a
    /// primitive allocates for its own use.
    std::size_t peak_bytes() const { return peak_bytes_; }

private:
    struct Step {
        std::shared_ptr<mx::Primitive> primitive;
        std::vector<int> inputs;        ///< slots
        std::vector<bool> is_last_use;  ///< of each input, once views are learnt
        std::vector<Shape> shapes;
        std::vector<mx::Dtype> dtypes;
        std::vector<int> outputs;  ///< slots, one for each shape
    };

    /// A leaf's memory, seen otherwise.
    struct View {
        int slot, leaf;  ///< slots
        Shape shape;
        Strides strides;
        mx::Dtype dtype;
        array::Flags flags;
        std::size_t data_size;
        std::int64_t offset;  ///< of the dtype's elements, from the leaf's first
    };
    /// A step whose result may prove to be a view.
    struct Candidate {
        std::size_t step;
        int source;  ///< slot
        array result;
    };

    class Recorder;
    class Run;

    /// Values by slot: those that are there before any step.
    std::vector<std::optional<array>> given() const;

    std::vector<std::pair<int, Leaf>> leaves_;
    std::vector<std::pair<int, array>> constants_;
    std::vector<View> views_;
    std::vector<Step> steps_;
    std::vector<int> outputs_;
    std::vector<Candidate> candidates_;               ///< until views are learnt
    std::unordered_map<int, array> recorded_leaves_;  ///< the same
    int slots_ = 0;
    std::size_t peak_bytes_ = 0;

    std::size_t measure_peak() const;
    void note_last_uses();
};

}  // namespace headrace::mlx
