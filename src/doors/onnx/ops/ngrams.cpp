#include <fmt/ranges.h>
#include <algorithm>

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Counts of sequences of numbers.
namespace headrace::onnx {
namespace {

/// N-grams of one length, one behind the other.
struct Grams {
    std::int64_t length;
    std::vector<std::int64_t> numbers;

    std::int64_t count() const { return static_cast<std::int64_t>(numbers.size()) / length; }
};

/// The pool's n-grams of each length, in the order of their places in the result.
std::vector<Grams> pool_of(const Node& node) {
    const auto pool = *node.integer_list("pool_int64s");
    const auto starts = node.integer_list("ngram_counts").value_or(std::vector<std::int64_t>());
    const auto size = static_cast<std::int64_t>(pool.size());
    invalid_if(
        starts.empty() || !std::ranges::is_sorted(starts) || starts.front() < 0 || starts.back() > size,
        "ngram_counts are [{}] for a pool of {}", fmt::join(starts, ", "), size);
    std::vector<Grams> parts;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
        const auto length = static_cast<std::int64_t>(i) + 1;
        invalid_if((end - begin) % length != 0, "{} numbers are no {}-grams", end - begin, length);
        parts.push_back({length, {pool.begin() + begin, pool.begin() + end}});
    }
    return parts;
}

/// How often each occurs with its elements so far apart: [batch, n-grams], f32.
Operand occurrences_apart(OpWriter& g, const Operand& x, const Grams& grams, std::int64_t count,
                          std::int64_t distance) {
    OpWriter::check_extent(count);
    OpWriter::check_extent((Dim(count) * Dim(static_cast<std::int64_t>(grams.numbers.size()))).size());
    std::vector<std::int64_t> windows;
    for (std::int64_t begin = 0; begin < count; ++begin)
        for (std::int64_t i = 0; i < grams.length; ++i) windows.push_back(begin + i * distance);
    const Operand places = g.reshape(known(windows), {count, grams.length});
    Operand taken = g.op("gather", {x, places}, {{"axis", 1}});
    taken = g.reshape(taken, {g.shape(x)[0], count, 1, grams.length});
    const Operand pool = g.reshape(known(grams.numbers), {grams.count(), grams.length});
    const Operand same = g.cast(g.op("equal", {taken, pool}), ElementType::f32);
    const Operand found = g.op("reduce_min", {same}, {{"axes", std::vector<std::int64_t>{3}}});
    return g.op("reduce_sum", {found}, {{"axes", std::vector<std::int64_t>{1}}});
}

/// skips: by how many its elements may be further apart than neighbours.
Operand occurrences_of(OpWriter& g, const Operand& x, std::int64_t extent, const Grams& grams,
                       std::int64_t skips) {
    Operand total = g.filled(0, ElementType::f32, {g.shape(x)[0], grams.count()});
    const std::int64_t most = grams.length > 1 ? skips : 0;
    for (std::int64_t distance = 1; distance - 1 <= most; ++distance) {
        const std::int64_t count = extent - (grams.length - 1) * distance;
        if (count < 1) break;
        total = g.op("add", {total, occurrences_apart(g, x, grams, count, distance)});
    }
    return total;
}

/// How often the n-grams of all lengths occur, side by side.
Operand all_occurrences(OpWriter& g, const Node& node, const Operand& x, const std::vector<Grams>& pool) {
    const std::int64_t low = node.integer("min_gram_length", 1), high = node.integer("max_gram_length", 1);
    const Shape shape = g.shape(x);
    invalid_if(shape.size() != 2, "the input has {} dimensions; 1 and 2 are ONNX's", shape.size());
    const std::int64_t extent = g.fixed(shape[1], "the length of the sequences");
    std::vector<Operand> columns;
    for (const Grams& grams : pool) {
        if (grams.count() == 0) continue;
        const bool counts = low <= grams.length && grams.length <= high;
        columns.push_back(counts ? occurrences_of(g, x, extent, grams, node.integer("max_skip_count", 0))
                                 : g.filled(0, ElementType::f32, {shape[0], grams.count()}));
    }
    return g.concat(columns, 1);
}

/// Where each n-gram of the pool counts in the result.
std::vector<std::int64_t> places_of_grams(const Node& node, const std::vector<Grams>& pool) {
    auto places = node.integer_list("ngram_indexes").value_or(std::vector<std::int64_t>());
    std::int64_t count = 0;
    for (const Grams& grams : pool) count += grams.count();
    invalid_if(count != static_cast<std::int64_t>(places.size()), "{} ngram_indexes do not fit the pool",
               places.size());
    invalid_if(places.empty() || std::ranges::min(places) < 0, "ngram_indexes are no places of the result");
    return places;
}

/// The columns in the order of the result, of so many.
Operand in_order(OpWriter& g, const Operand& counts, const std::vector<std::int64_t>& places,
                 std::int64_t width) {
    std::vector<double> order(places.size() * static_cast<std::size_t>(width), 0);
    for (std::size_t i = 0; i < places.size(); ++i)
        order[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(places[i])] = 1;
    const Operand matrix = known(order, ElementType::f32);
    return g.op("matmul", {counts, g.reshape(matrix, {static_cast<std::int64_t>(places.size()), width})});
}

Operand weighted(OpWriter& g, const Node& node, const Operand& counts,
                 const std::vector<std::int64_t>& places, std::int64_t width) {
    const auto given = node.real_list("weights").value_or(std::vector<double>());
    invalid_if(!given.empty() && given.size() != places.size(), "{} weights do not fit {} ngram_indexes",
               given.size(), places.size());
    std::vector<double> weights(static_cast<std::size_t>(width), 1);
    for (std::size_t i = 0; i < given.size(); ++i) weights[static_cast<std::size_t>(places[i])] = given[i];
    const bool is_once = node.text("mode", "") == "IDF";
    const Operand times = is_once ? g.op("min", {counts, known(1.0, ElementType::f32)}) : counts;
    return g.op("mul", {times, known(weights, ElementType::f32)});
}

/// How often each n-gram of a pool of integers occurs, its elements so far apart as skips allow.
Operand tf_idf_vectorizer(OpWriter& g, const Node& node) {
    if (!node.has("pool_int64s"))
        throw Refused("its pool is of strings; pools of integers are read",
                      "Map the words to numbers before the model");
    const std::string mode = node.text("mode", "");
    invalid_if(mode != "TF" && mode != "IDF" && mode != "TFIDF", "mode is '{}'; TF, IDF, TFIDF are ONNX's",
               mode);
    const std::vector<Grams> pool = pool_of(node);
    const std::vector<std::int64_t> places = places_of_grams(node, pool);
    const std::int64_t last = std::ranges::max(places);
    OpWriter::check_extent(last);
    OpWriter::check_extent(static_cast<std::int64_t>(places.size()) * (last + 1));
    Operand x = g.cast(node.x(), ElementType::i64);
    const bool is_row = g.rank(x) == 1;
    if (is_row) x = g.reshape(x, {1, g.size(x)});
    Operand y = in_order(g, all_occurrences(g, node, x, pool), places, last + 1);
    if (mode != "TF") y = weighted(g, node, y, places, last + 1);
    return is_row ? g.reshape(y, {last + 1}) : y;
}

}  // namespace

std::span<const Operator> ngrams_operators() {
    static const Operator kOperators[] = {
        {"TfIdfVectorizer", 9, tf_idf_vectorizer,
         "1 -> 1, max_gram_length int, max_skip_count int, min_gram_length int, mode string, ngram_counts "
         "ints, ngram_indexes ints, pool_int64s ints, pool_strings strings, weights floats"}};
    return kOperators;
}

}  // namespace headrace::onnx
