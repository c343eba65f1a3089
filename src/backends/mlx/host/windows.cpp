#include "backends/mlx/host/windows.h"

#include <algorithm>

#include "backends/mlx/arrays/layout.h"

namespace headrace::mlx {

array padded(const array& x, int first_axis, const std::vector<Window>& windows, float fill) {
    std::vector<int> axes, low, high;
    bool needed = false;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const Window& w = windows[i];
        const int axis = first_axis + static_cast<int>(i);
        const int reach = (w.count - 1) * w.stride + (w.size - 1) * w.dilation + 1;
        axes.push_back(axis);
        low.push_back(w.padding);
        high.push_back(std::max(0, reach - x.shape(axis) - w.padding));
        needed |= low.back() > 0 || high.back() > 0;
    }
    if (!needed) return x;
    return mx::pad(x, axes, Shape(low.begin(), low.end()), Shape(high.begin(), high.end()),
                   array(fill, x.dtype()));
}

array sliding_windows(const array& x, int first_axis, const std::vector<Window>& windows, float fill) {
    const array base = in_row_order(padded(x, first_axis, windows, fill));
    Shape shape = base.shape();
    Strides strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = step;
        step *= shape[axis];
    }
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const std::size_t axis = first_axis + i;
        shape.push_back(windows[i].size);
        strides.push_back(strides[axis] * windows[i].dilation);
        shape[axis] = windows[i].count;
        strides[axis] *= windows[i].stride;
    }
    return mx::as_strided(base, shape, strides, 0);
}

}  // namespace headrace::mlx
