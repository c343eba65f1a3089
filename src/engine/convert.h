#pragma once
#include <vector>

#include "headrace/graph_writer.h"
#include "ir/attr.h"

/// Between the public API's types and the IR's; shared with the doors.
namespace headrace {

Shape to_shape(const std::vector<Extent>& extents);
std::vector<Extent> to_extents(const Shape& shape);
AttrValue to_attr_value(const Option& option);
NamedAttrs to_attrs(const Options& options);

}  // namespace headrace
