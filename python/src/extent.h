#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/extent.h"

namespace headrace::python {

namespace nb = nanobind;

/// Reads a list of integers and Extents; TypeError for others.
std::vector<Extent> to_extents(nb::handle list);
/// Numbers as integers, others as Extents.
nb::object to_object(const Extent& extent);
nb::list to_list(const std::vector<Extent>& extents);
/// Whether it is a list or tuple with an Extent.
bool has_extents(nb::handle value);

}  // namespace headrace::python
