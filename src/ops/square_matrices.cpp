/// Inverses and determinants, by elimination with the largest element of a column as its pivot.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/corners.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

constexpr OperandRule kSquareMatrices{.name = "input", .dtypes = kReal, .min_rank = 2};

Status check_square(const Operands& in) {
    const Shape& shape = in[0].shape;
    const Dim &rows = shape[shape.size() - 2], &columns = shape.back();
    if (!same_extent(in, rows, columns))
        return invalid("Wrong shape: matrices of {} x {} are not square", rows.str(), columns.str());
    return success();
}

/// A matrix in f64 whose rows are reduced; `right` goes through the same steps, where there is one.
class Elimination {
public:
    Elimination(std::int64_t size, bool inverts)
        : size_(size), rows_(cells()), right_(inverts ? cells() : 0) {}

    template <class T>
    void take(const T* matrix) {
        std::copy_n(matrix, rows_.size(), rows_.begin());
        std::fill(right_.begin(), right_.end(), 0.0);
        if (!right_.empty())
            for (std::int64_t i = 0; i < size_; ++i) right_[static_cast<std::size_t>(i * size_ + i)] = 1;
    }

    /// The determinant; the matrix becomes triangular, and with `right` the identity.
    double run() {
        double determinant = 1;
        for (std::int64_t column = 0; column < size_; ++column) {
            const std::int64_t pivot = pivot_of(column);
            if (pivot != column) {
                swap_rows(pivot, column);
                determinant = -determinant;
            }
            determinant *= at(column, column);
            if (!right_.empty())
                scale_row(column, 1 / at(column, column));
            else if (at(column, column) == 0)
                return 0;
            for (std::int64_t row = right_.empty() ? column + 1 : 0; row < size_; ++row)
                if (row != column) subtract(row, column, at(row, column) / at(column, column));
        }
        return determinant;
    }

    const std::vector<double>& right() const { return right_; }

private:
    std::size_t cells() const { return static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_); }
    double& at(std::int64_t row, std::int64_t column) {
        return rows_[static_cast<std::size_t>(row * size_ + column)];
    }

    std::int64_t pivot_of(std::int64_t column) {
        std::int64_t best = column;
        for (std::int64_t row = column + 1; row < size_; ++row) {
            const double size = std::abs(at(row, column));
            if (size > std::abs(at(best, column)) || std::isnan(size)) best = row;
        }
        return best;
    }
    template <class F>
    void each_side(F&& f) {
        f(rows_);
        if (!right_.empty()) f(right_);
    }
    void swap_rows(std::int64_t a, std::int64_t b) {
        each_side([&](std::vector<double>& m) {
            std::swap_ranges(m.begin() + a * size_, m.begin() + (a + 1) * size_, m.begin() + b * size_);
        });
    }
    void scale_row(std::int64_t row, double factor) {
        each_side([&](std::vector<double>& m) {
            for (std::int64_t i = row * size_; i < (row + 1) * size_; ++i)
                m[static_cast<std::size_t>(i)] *= factor;
        });
    }
    void subtract(std::int64_t row, std::int64_t from, double factor) {
        if (factor == 0) return;
        each_side([&](std::vector<double>& m) {
            for (std::int64_t i = 0; i < size_; ++i)
                m[static_cast<std::size_t>(row * size_ + i)] -=
                    factor * m[static_cast<std::size_t>(from * size_ + i)];
        });
    }

    std::int64_t size_;
    std::vector<double> rows_, right_;
};

Cost elimination_cost(const Operands& in, std::span<const TensorType> out) {
    const auto elements = static_cast<double>(in[0].elements());
    return {2 * elements * static_cast<double>(in[0].sizes().back()),
            static_cast<double>(in[0].bytes() + out[0].bytes())};
}

struct MatrixInverse {
    static constexpr std::string_view name = "matrix_inverse",
                                      summary =
                                          "the inverse of each square matrix; not finite where there is none";
    static constexpr std::array operands{kSquareMatrices};

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_TRY(check_square(in));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const std::int64_t size = args.in[0].shape.back();
        if (size == 0) return;
        visit_real(args.in[0].dtype, [&]<class T>() {
            Elimination elimination(size, true);
            const auto part = args.share.of(args.out[0].elements() / (size * size));
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                elimination.take(args.in[0].as<T>() + i * size * size);
                elimination.run();
                std::ranges::transform(elimination.right(), args.out[0].as<T>() + i * size * size,
                                       [](double v) { return static_cast<T>(v); });
            }
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elimination_cost(in, out);
    }
    static std::vector<Sample> samples() {
        return {{{{.type = {DType::f32, {2, 3, 3}}}}, {}}, {{{.type = {DType::f64, {5, 5}}}}, {}}};
    }
};

struct Determinant {
    static constexpr std::string_view name = "determinant", summary = "the determinant of each square matrix";
    static constexpr std::array operands{kSquareMatrices};

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_TRY(check_square(in));
        return Types{{in[0].dtype, Shape(in[0].shape.begin(), in[0].shape.end() - 2)}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const std::int64_t size = args.in[0].shape.back();
        visit_real(args.in[0].dtype, [&]<class T>() {
            Elimination elimination(size, false);
            const auto part = args.share.of(args.out[0].elements());
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                elimination.take(args.in[0].as<T>() + i * size * size);
                args.out[0].as<T>()[i] = static_cast<T>(elimination.run());
            }
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elimination_cost(in, out);
    }
    static std::vector<Sample> samples() {
        return {{{{.type = {DType::f32, {2, 4, 4}}}}, {}}, {{{.type = {DType::f64, {3, 3}}}}, {}}};
    }
};

}  // namespace

std::span<const OpDef> square_matrices_ops() { return OpList<MatrixInverse, Determinant>::defs(); }

}  // namespace headrace::ops
