#pragma once
#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

/// A window that slides along one axis.
struct Window {
    int size, stride, padding, dilation;
    int count;  ///< of its positions
};

/// x padded with `fill` so far that every window lies within it.
array padded(const array& x, int first_axis, const std::vector<Window>& windows, float fill);

/// All windows over the axes from first_axis on, without a copy: those axes become the windows' positions,
/// and as many axes behind all others count within a window.
array sliding_windows(const array& x, int first_axis, const std::vector<Window>& windows, float fill);

}  // namespace headrace::mlx
