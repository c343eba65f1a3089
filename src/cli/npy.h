#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/dtype.h"

namespace headrace::cli {

/// A dense array with its bytes.
struct Array {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
};

/// NumPy's file format, versions 1 to 3, little-endian and row-major
/// (https://numpy.org/neps/nep-0001-npy-format).
Result<Array> read_npy(const std::string& path);
Status write_npy(const std::string& path, const Array& array);

}  // namespace headrace::cli
