#pragma once
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/tensor_type.h"

/// Arithmetic of extents, which may be open: numbers stay numbers, others become expressions. It throws
/// Undecided for what depends on open values, and for what no expression can hold (src/ir/expression.h).
namespace headrace::onnx {

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim divided_down(const Dim& a, const Dim& b);
Dim divided_up(const Dim& a, const Dim& b);
/// The remainder, with the divisor's sign.
Dim rest(const Dim& a, const Dim& b);
Dim largest(const std::vector<Dim>& of);
Dim smallest(const std::vector<Dim>& of);

/// Equal whatever the dimensions are; false also where that is open.
bool is_same(const Dim& a, const Dim& b);
/// Throws Undecided where that is open.
bool is_less(const Dim& a, const Dim& b);
bool is_equal(const Dim& a, const Dim& b);

/// a < b and a == b as 0 or 1, an expression where that is open.
Dim less(const Dim& a, const Dim& b);
Dim equal(const Dim& a, const Dim& b);
/// a where the condition, 0 or 1, is 1; b where it is 0.
Dim either(const Dim& condition, const Dim& a, const Dim& b);

/// a / b where that is a polynomial, whatever the symbols' values are: (n-1)*batch*64 by (n-1)*batch.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);

Dim product_of(std::span<const Dim> extents);
bool is_open(const Shape& shape);
/// The numbers of a shape that has no open extents.
std::vector<std::int64_t> numbers_of(const Shape& shape);
/// "[1, n, 3]"
std::string text_of(const Shape& shape);

}  // namespace headrace::onnx
