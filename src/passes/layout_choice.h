#pragma once
#include <vector>

#include "passes/image_orders.h"

namespace headrace {

/// The order in which each node of a concrete graph should work on images, by its index; unknown: as it is
/// and without a say. The sum of what nodes gain and what transpositions between them cost is the best
/// possible.
Result<std::vector<ImageOrder>> choose_image_orders(const Graph& graph, const ImageOrders& images,
                                                    bool low_memory);

}  // namespace headrace
