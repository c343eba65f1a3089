#include <algorithm>
#include <map>

#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/ops/movement.h"
#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Einsum as products of matrices.
namespace headrace::onnx {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kEllipsis = "...";

bool has_letter(std::string_view labels, char letter) {
    return labels.find(letter) != std::string_view::npos;
}

template <class Predicate>
std::string letters_where(std::string_view labels, Predicate holds) {
    std::string kept;
    std::ranges::copy_if(labels, std::back_inserter(kept), holds);
    return kept;
}

/// An operand and a letter for each of its dimensions.
struct Term {
    Operand x;
    std::string labels;
};

std::string without_spaces(const std::string& text) {
    return letters_where(text, [](char c) { return c != ' '; });
}

std::vector<std::string> split_at_commas(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// Letters that stand for the dimensions of an ellipsis, the last of them for the last one.
std::string hidden_letters(const std::string& free, std::size_t count) {
    std::string letters = free.substr(0, count);
    std::ranges::reverse(letters);
    return letters;
}

std::string with_letters(std::string term, const std::string& letters) {
    if (const std::size_t at = term.find(kEllipsis); at != std::string::npos)
        term.replace(at, kEllipsis.size(), letters);
    return term;
}

struct Labels {
    std::vector<std::string> terms;
    std::string result;
};

/// Where the equation does not say it: what is there once, in the letters' order.
std::string implied_result(const std::vector<std::string>& terms, const std::string& every) {
    std::string all;
    for (const std::string& term : terms) all += term;
    std::string once =
        letters_where(all, [&](char c) { return !has_letter(every, c) && std::ranges::count(all, c) == 1; });
    std::ranges::sort(once);
    return every + once;
}

/// The labels of each operand and of the result.
Labels labels_of(OpWriter& g, const Node& node) {
    const std::string equation = without_spaces(node.text("equation", ""));
    const std::size_t arrow = equation.find("->");
    std::vector<std::string> terms = split_at_commas(equation.substr(0, arrow));
    const std::string right = arrow == std::string::npos ? "" : equation.substr(arrow + 2);
    invalid_if(terms.size() != node.inputs.size(), "equation '{}' has {} terms for {} inputs", equation,
               terms.size(), node.inputs.size());
    const std::string free = letters_where(kLetters, [&](char c) { return !has_letter(equation, c); });
    std::size_t longest = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const std::string term = terms[i];
        const int rank = g.rank(node.operand(i));
        if (term.find(kEllipsis) != std::string::npos) {
            const int hidden = rank - static_cast<int>(term.size() - kEllipsis.size());
            invalid_if(hidden < 0, "'{}' of equation '{}' has more dimensions than input {}", term, equation,
                       i);
            terms[i] = with_letters(term, hidden_letters(free, static_cast<std::size_t>(hidden)));
            longest = std::max(longest, static_cast<std::size_t>(hidden));
        }
        invalid_if(static_cast<int>(terms[i].size()) != rank,
                   "'{}' of equation '{}' is for another rank than input {}'s {}", term, equation, i, rank);
    }
    const std::string every = hidden_letters(free, longest);
    const std::string result =
        arrow == std::string::npos ? implied_result(terms, every) : with_letters(right, every);
    for (const char c : result) {
        const bool is_there =
            std::ranges::any_of(terms, [c](const std::string& t) { return has_letter(t, c); });
        invalid_if(!is_there || std::ranges::count(result, c) != 1,
                   "the result '{}' of equation '{}' has a letter that no input has, or one twice", right,
                   equation);
    }
    return {terms, result};
}

/// The elements whose indices are the same in two dimensions, which become the last one.
Term one_diagonal(OpWriter& g, const Term& term, std::size_t first, std::size_t second) {
    const Shape sizes = g.shape(term.x);
    const Dim count = sizes.at(first), other = sizes.at(second);
    const char letter = term.labels[first];
    invalid_if(!count.is_symbolic() && !other.is_symbolic() && count != other,
               "dimensions '{}' are {} and {}", letter, count.str(), other.str());
    std::vector<std::int64_t> order;
    Shape flat;
    std::string labels;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i == first || i == second) continue;
        order.push_back(static_cast<std::int64_t>(i));
        flat.push_back(sizes[i]);
        labels += term.labels[i];
    }
    const auto axis = static_cast<std::int64_t>(flat.size());
    order.insert(order.end(), {static_cast<std::int64_t>(first), static_cast<std::int64_t>(second)});
    flat.push_back(count * count);
    const Operand places = g.times(g.positions(count), Item(count + 1));
    const Operand rows = g.reshape(g.transpose(term.x, order), flat);
    return {g.op("gather", {rows, places}, {{"axis", axis}}), labels + letter};
}

/// Where a letter is there twice, the elements whose indices are the same in both dimensions.
Term diagonal(OpWriter& g, Term term) {
    for (const char letter : std::string(term.labels))
        while (std::ranges::count(term.labels, letter) > 1)
            term = one_diagonal(g, term, term.labels.find(letter), term.labels.rfind(letter));
    return term;
}

/// A single element goes with all of another operand: without that dimension.
std::vector<Term> without_ones(OpWriter& g, const std::vector<Term>& terms) {
    std::string longer;  // letters of more elements than one, in some operand
    for (const Term& term : terms) {
        const Shape sizes = g.shape(term.x);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (!is_same(sizes[i], 1)) longer += term.labels[i];
    }
    std::vector<Term> found;
    for (const Term& term : terms) {
        const Shape sizes = g.shape(term.x);
        Shape kept;
        std::string labels;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (is_same(sizes[i], 1) && has_letter(longer, term.labels[i])) continue;
            kept.push_back(sizes[i]);
            labels += term.labels[i];
        }
        found.push_back({g.reshape(term.x, kept), labels});
    }
    return found;
}

/// A number, or a dimension as an input of the model has it, and no arithmetic of such.
bool is_plain_extent(const Dim& d) {
    return !d.is_symbolic() || d.expression().names() == std::vector{d.text()};
}

/// As in ONNX Runtime, a single element goes with all of another operand, also where only a run knows that it
/// is one: dimensions of one letter to which the model gives different names.
void broadcast_letters(OpWriter& g, Term& a, Term& b, const std::string& letters) {
    Shape of_a = g.shape(a.x), of_b = g.shape(b.x);
    for (const char letter : letters) {
        Dim &one = of_a[a.labels.find(letter)], &other = of_b[b.labels.find(letter)];
        if (is_same(one, other) || !is_plain_extent(one) || !is_plain_extent(other)) continue;
        invalid_if(!one.is_symbolic() && !other.is_symbolic(), "'{}' stands for the extents {} and {}",
                   letter, one.str(), other.str());
        one = other = broadcast(g, {one}, {other}).front();
    }
    a.x = g.expand(a.x, of_a);
    b.x = g.expand(b.x, of_b);
}

/// Summed over the dimensions that nobody needs any more.
Term without_unneeded(OpWriter& g, const Term& term, const std::string& kept) {
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < term.labels.size(); ++i)
        if (!has_letter(kept, term.labels[i])) axes.push_back(static_cast<std::int64_t>(i));
    if (axes.empty()) return term;
    return {g.op("reduce_sum", {term.x}, {{"axes", axes}}),
            letters_where(term.labels, [&](char c) { return has_letter(kept, c); })};
}

/// Transposed into the groups' order; all but the first become one dimension each.
Operand grouped_dimensions(OpWriter& g, const Term& term, const std::vector<std::string>& groups) {
    std::vector<std::int64_t> order;
    for (const std::string& group : groups)
        for (const char letter : group) order.push_back(static_cast<std::int64_t>(term.labels.find(letter)));
    const Operand x = g.transpose(term.x, order);
    const Shape sizes = g.shape(x);
    Shape shape(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(groups[0].size()));
    std::size_t at = groups[0].size();
    for (std::size_t i = 1; i < groups.size(); ++i) {
        shape.push_back(product_of(std::span(sizes).subspan(at, groups[i].size())));
        at += groups[i].size();
    }
    return g.reshape(x, shape);
}

Term pair_product(OpWriter& g, Term a, Term b, const std::string& kept) {
    a = without_unneeded(g, a, kept + b.labels);
    b = without_unneeded(g, b, kept + a.labels);
    const auto is_batch = [&](char c) { return has_letter(b.labels, c) && has_letter(kept, c); };
    const auto is_inner = [&](char c) { return has_letter(b.labels, c) && !has_letter(kept, c); };
    const std::string batch = letters_where(a.labels, is_batch), inner = letters_where(a.labels, is_inner);
    broadcast_letters(g, a, b, inner);
    const std::string rows = letters_where(a.labels, [&](char c) { return !has_letter(b.labels, c); });
    const std::string columns = letters_where(b.labels, [&](char c) { return !has_letter(a.labels, c); });
    std::map<char, Dim> sizes;
    for (const Term& term : {a, b}) {
        const Shape own = g.shape(term.x);
        for (std::size_t i = 0; i < own.size(); ++i) sizes[term.labels[i]] = own[i];
    }
    const Operand y = matrix_product(g, grouped_dimensions(g, a, {batch, rows, inner}),
                                     grouped_dimensions(g, b, {batch, inner, columns}));
    const Shape made = g.shape(y);
    for (std::size_t i = 0; i < batch.size(); ++i) sizes[batch[i]] = made.at(i);  // one of the two may be 1
    const std::string labels = batch + rows + columns;
    Shape shape;
    for (const char c : labels) shape.push_back(sizes[c]);
    return {g.reshape(y, shape), labels};
}

Operand einsum(OpWriter& g, const Node& node) {
    const Labels labels = labels_of(g, node);
    std::vector<Term> terms;
    for (std::size_t i = 0; i < labels.terms.size(); ++i)
        terms.push_back(diagonal(g, {node.operand(i), labels.terms[i]}));
    terms = without_ones(g, terms);
    Term whole = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) {
        std::string kept = labels.result;
        for (std::size_t j = i + 1; j < terms.size(); ++j) kept += terms[j].labels;
        whole = pair_product(g, whole, terms[i], kept);
    }
    whole = without_unneeded(g, whole, labels.result);
    std::vector<std::int64_t> order;
    for (const char c : labels.result) order.push_back(static_cast<std::int64_t>(whole.labels.find(c)));
    const Operand y = g.transpose(whole.x, order);
    return y != node.x() ? y : g.op("identity", {y});
}

}  // namespace

std::span<const Operator> einsum_operators() {
    static const Operator kOperators[] = {{"Einsum", 12, einsum, "1.. -> 1, equation string"}};
    return kOperators;
}

}  // namespace headrace::onnx
