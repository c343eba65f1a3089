#include <limits>

#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/ops/loops.h"
#include "doors/onnx/ops/token_rules.h"
#include "doors/onnx/reading/numbers.h"

/// What models of texts and speech have of ONNX Runtime's own: words of characters, hashes, alignments.
namespace headrace::onnx {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Operand same_value(OpWriter& g, const Node& node) { return g.op("identity", {node.x()}); }

/// No token may end an n-gram that the sequence has already.
Operand ngram_repeat_block(OpWriter& g, const Node& node) {
    const Operand sequences = g.cast(node.x(), ElementType::i64), scores = node.operand(1);
    const Operand is_there = repeats_ngram(g, sequences, scores, node.integer("ngram_size"));
    return g.op("where", {is_there, known(-kInfinite, scores->type), scores});
}

// --- words ------------------------------------------------------------------------------------------------

/// A convolution over each word's characters, of which the largest element counts; 0 is no character.
Operand word_conv_embedding(OpWriter& g, const Node& node) {
    const Operand words = g.cast(node.x(), ElementType::i64), filter = node.operand(1),
                  bias = node.operand(2), table = node.operand(3);
    const Shape sizes = g.shape(words), f = g.shape(filter);
    invalid_if(
        sizes.size() != 2 || f.size() != 4 || g.rank(table) != 2,
        "the words, the filter and the characters' embeddings have {}, {} and {} dimensions; 2, 4 and 2 "
        "are right",
        sizes.size(), f.size(), g.rank(table));
    const Dim count = sizes[0], length = sizes[1], width = f[2], places = length - width + 1;
    Operand x = g.op("gather", {table, checked_indices(g, table, as_indices(g, words), {0})}, {{"axis", 0}});
    x = g.reshape(x, {count, 1, length, g.shape(table)[1]});
    x = g.op("conv2d", {x, filter, g.reshape(bias, {f[0]})});
    x = g.op("tanh", {g.reshape(x, {count, f[0], places})});
    const Operand none = known(0, ElementType::i64);
    const Numbers is_one(g, g.op("greater", {words, none}));
    const Numbers letters = is_one.reduced("sum", 1) * Numbers(g, g.cut(is_one.x(), 1, 0, 1)).shaped({count});
    const Numbers windows =
        letters.at_least(Numbers(g, Shape{width}).shaped({})) - Numbers(g, Shape{width - 1}).shaped({});
    const Operand is_within = (windows.shaped({count, 1, 1}) > Numbers(g, g.positions(places))).x();
    x = g.op("where", {is_within, x, known(-kInfinite, x->type)});
    x = g.op("reduce_max", {x}, {{"axes", std::vector<std::int64_t>{2}}});
    const Operand is_word = (letters > 0).shaped({count, 1}).x();
    return g.op("where", {g.cast(is_word, ElementType::boolean), x, known(0, x->type)});
}

// --- hashes -----------------------------------------------------------------------------------------------

/// Arithmetic of 32 bits, which wraps.
class HashBits {
public:
    HashBits(OpWriter& g, Operand x) : g_(&g), x_(std::move(x)) {}
    const Operand& x() const { return x_; }
    HashBits times(std::int64_t factor) const { return op("mul", number(factor)); }
    HashBits plus(std::int64_t other) const { return op("add", number(other)); }
    HashBits mixed(const Operand& other) const { return op("bitwise_xor", other); }
    HashBits mixed(std::int64_t other) const { return mixed(number(other)); }
    HashBits down(int bits) const { return op("shift_right", number(bits)); }
    HashBits turned(int bits) const {
        constexpr int kBits = 32;
        return op("shift_left", number(bits)).mixed(down(kBits - bits).x());
    }

private:
    Operand number(std::int64_t n) const { return known(n, ElementType::u32); }
    HashBits op(std::string_view name, const Operand& other) const {
        return {*g_, g_->op(name, {x_, other})};
    }

    OpWriter* g_;
    Operand x_;
};

/// The words of 32 bits that elements consist of, the low ones first.
std::vector<Operand> words_of(OpWriter& g, const Operand& x) {
    const auto as = [&](DType type, ElementType element) {
        return x->type == element ? x : g.op("bitcast", {x}, {{"data_type", type}});
    };
    if (bits_of(x->type) == 32) return {as(DType::u32, ElementType::u32)};
    refuse_if(bits_of(x->type) != 64, "its input is {}; numbers of 32 and 64 bits are read",
              name_of(x->type));
    constexpr std::int64_t kLow = 0xFFFFFFFF;
    const Operand whole = as(DType::u64, ElementType::u64);
    const Operand low = g.op("bitwise_and", {whole, known(kLow, ElementType::u64)});
    const Operand high = g.op("shift_right", {whole, known(32, ElementType::u64)});
    return {g.cast(low, ElementType::u32), g.cast(high, ElementType::u32)};
}

/// MurmurHash3 of each element's bytes, in 32 bits.
Operand murmur_hash(OpWriter& g, const Node& node) {
    const std::vector<Operand> words = words_of(g, node.x());
    const auto seed = static_cast<std::uint32_t>(node.integer("seed", 0));
    HashBits hash(g, g.filled(seed, ElementType::u32, g.shape(node.x())));
    for (const Operand& word : words) {
        const HashBits mixed = HashBits(g, word).times(0xCC9E2D51).turned(15).times(0x1B873593);
        hash = hash.mixed(mixed.x()).turned(13).times(5).plus(0xE6546B64);
    }
    hash = hash.mixed(static_cast<std::int64_t>(4 * words.size()));
    hash = hash.mixed(hash.down(16).x()).times(0x85EBCA6B);
    hash = hash.mixed(hash.down(13).x()).times(0xC2B2AE35);
    hash = hash.mixed(hash.down(16).x());
    return node.integer("positive", 1) != 0 ? hash.x()
                                            : g.op("bitcast", {hash.x()}, {{"data_type", DType::i32}});
}

// --- alignments -------------------------------------------------------------------------------------------

/// The cheapest ways through a matrix of costs, by diagonals: of each cell from where it is reached (0: from
/// the cell before in both, 1: in the rows, 2: in the columns): [rows + columns - 1, rows + 1].
Operand cheapest_steps(OpWriter& g, const Operand& costs) {
    const Shape s = g.shape(costs);
    const Dim rows = s.at(0), columns = s.at(1);
    const Operand flat = g.reshape(costs, {rows * columns});
    const Operand far = g.filled(kInfinite, costs->type, {1});
    const Operand nowhere = g.filled(kInfinite, costs->type, {rows + 1});
    const Operand origin =
        g.concat({g.filled(0, costs->type, {1}), g.filled(kInfinite, costs->type, {rows})}, 0);
    const auto diagonal = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const auto behind = [&](const Operand& x) { return body.concat({far, body.cut(x, 0, 0, rows)}, 0); };
        const Operand both = behind(carried.at(1)), down = behind(carried.at(0)), right = carried.at(0);
        const auto is_less = [&](const Operand& a, const Operand& b) { return body.op("lesser", {a, b}); };
        const auto is_least = [&](const Operand& a, const Operand& b, const Operand& c) {
            return body.op("logical_and", {is_less(a, b), is_less(a, c)});
        };
        const Operand is_both = is_least(both, down, right), is_down = is_least(down, both, right);
        const auto pick = [&](const Operand& a, const Operand& b, const Operand& c) {
            return body.op("where", {is_both, a, body.op("where", {is_down, b, c})});
        };
        const Numbers row = Numbers(body, body.positions(rows + 1)) - 1, column = Numbers(body, number) - row;
        const Numbers last_row(body, Shape{rows - 1}), last_column(body, Shape{columns - 1});
        const Numbers wide(body, Shape{columns});
        const Numbers is_inside = (row >= 0).both(column >= 0).both(last_column >= column);
        const Numbers place =
            row.at_least(0).at_most(last_row) * wide + column.at_least(0).at_most(last_column);
        const Operand own = body.op("gather", {flat, place.x()}, {{"axis", 0}});
        const Operand cost = body.op("where", {body.cast(is_inside.x(), ElementType::boolean),
                                               body.op("add", {own, pick(both, down, right)}), nowhere});
        const auto way = [&](std::int64_t n) {
            return body.filled(static_cast<double>(n), ElementType::i64, {rows + 1});
        };
        return Iteration{known(1, ElementType::boolean), {cost, right}, {pick(way(0), way(1), way(2))}};
    };
    return repeat(g, known(Shape{rows + columns - 1}), nullptr, {nowhere, origin}, diagonal).at(2);
}

/// The cells of the cheapest way through a matrix, i32[2, cells].
Operand dynamic_time_warping(OpWriter& g, const Node& node) {
    Operand costs = node.x();
    Shape s = g.shape(costs);
    if (s.size() == 3 && s[0].is(1)) costs = g.reshape(costs, s = {s[1], s[2]});
    invalid_if(s.size() != 2, "the costs have the shape {}; [rows, columns] is right",
               str(g.shape(node.x())));
    const Operand steps = cheapest_steps(g, costs);
    const Dim wide = s[0] + 1;
    const Operand flat = g.reshape(steps, {(s[0] + s[1] - 1) * wide});
    const auto back = [&](Body& body, const Operand&, const std::vector<Operand>& carried) {
        const Numbers i(body, carried.at(0)), j(body, carried.at(1));
        const Numbers line = (i + j - 2).at_least(0) * Numbers(body, Shape{wide}).shaped({}) + i;
        const Numbers found(body, body.op("gather", {flat, line.x()}, {{"axis", 0}}));
        const Numbers step = i.equals(0).choose(2, j.equals(0).choose(1, found));
        const Numbers next_i = i - step.equals(2).choose(0, 1), next_j = j - step.equals(1).choose(0, 1);
        const auto cell = [&](const Numbers& n) { return (n - 1).shaped({1}).x(); };
        return Iteration{
            ((next_i + next_j) > 0).x(), {next_i.x(), next_j.x()}, {body.concat({cell(i), cell(j)}, 0)}};
    };
    const auto end = [&](const Dim& d) { return Numbers(g, Shape{d}).shaped({}).x(); };
    const Operand cells = repeat(g, known(Shape{s[0] + s[1]}), nullptr, {end(s[0]), end(s[1])}, back).at(2);
    const Operand forwards = g.op("reverse", {cells}, {{"axes", std::vector<std::int64_t>{0}}});
    return g.cast(g.transpose(forwards, {1, 0}), ElementType::i32);
}

}  // namespace

std::span<const Operator> contrib_texts_operators() {
    static const Operator kOperators[] = {
        {"DynamicTimeWarping", 1, dynamic_time_warping, "1 -> 1", kMicrosoft},
        {"MurmurHash3", 1, murmur_hash, "1 -> 1, positive int, seed int", kMicrosoft},
        {"NGramRepeatBlock", 1, ngram_repeat_block, "2 -> 1, ngram_size int", kMicrosoft},
        {"SampleOp", 1, same_value, "1 -> 1", kMicrosoft},
        {"WordConvEmbedding", 1, word_conv_embedding,
         "4 -> 1, char_embedding_size int, conv_window_size int, embedding_size int", kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
