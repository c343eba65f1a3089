#include <algorithm>

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Operators whose results are as large as their inputs' elements say.
namespace headrace::onnx {
namespace {

/// The places of elements that are not 0, a row for each dimension. The same ones are counted once.
Operand non_zero(OpWriter& g, const Node& node) {
    const Operand x = g.rank(node.x()) == 0 ? g.reshape(node.x(), {1}) : node.x();
    Operand& places = g.places[g.value(x)];
    if (!places) places = g.op("non_zero", {x}, {{"counts", Shape{g.counted()}}});
    return places;
}

/// Rows of batch, class and box: the best boxes that overlap no better one too much.
Operand non_max_suppression(OpWriter& g, const Node& node) {
    Operand boxes = g.cast(node.operand(0), ElementType::f32);
    const Operand scores = g.cast(node.operand(1), ElementType::f32);
    invalid_if(g.rank(boxes) != 3 || g.rank(scores) != 3, "boxes and scores have {} and {} dimensions, not 3",
               g.rank(boxes), g.rank(scores));
    // Where the model leaves them open, a run has to give extents that the scores have, too.
    const Shape own = g.shape(boxes), of_scores = g.shape(scores);
    if (is_open(own) || is_open(of_scores)) boxes = g.reshape(boxes, {of_scores[0], of_scores[2], 4});
    const Operand most = node.optional(2) ? node.optional(2) : known(0, ElementType::i64);
    const Operand overlap = node.optional(3) ? node.optional(3) : known(0, ElementType::f32);
    NamedAttrs options{{"centered", node.flag("center_point_box", false)}};
    if (most->has_numbers()) {
        invalid_if(most->known->count() != 1, "max_output_boxes_per_class (input 2) is {} numbers, not one",
                   most->known->count());
        options.emplace_back("room", std::max<std::int64_t>(most->integer(0), 0));
    }
    const Results rows =
        g.ops("non_max_suppression",
              {boxes, scores, g.cast(most, ElementType::i64), overlap, node.optional(4)}, options);
    return g.cut(rows.at(0), 0, 0, extents_of(g, rows.at(1)).at(0));
}

}  // namespace

std::span<const Operator> counting_operators() {
    static const Operator kOperators[] = {
        {"NonMaxSuppression", 10, non_max_suppression, "2..5 -> 1, center_point_box int"},
        {"NonZero", 9, non_zero, "1 -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
