#include "base/small_letters.h"
#include "doors/onnx/ops/convolution.h"
#include "doors/onnx/reading/numbers.h"

/// Regions of images, and convolutions whose elements are moved by offsets.
namespace headrace::onnx {
namespace {

/// The type in which regions are computed.
ElementType region_type(const Operand& x) {
    return x->type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

/// The regions as rows of `width` numbers; a run checks what is not known before.
Operand rows_of(OpWriter& g, const Operand& regions, std::int64_t width) {
    const Shape shape = g.shape(regions);
    const bool is_open_width = shape.size() == 2 && shape[1].is_symbolic();
    return is_open_width ? g.reshape(regions, {shape[0], width}) : regions;
}

bool has_half_pixel(const Node& node) {
    const std::string mode =
        node.text("coordinate_transformation_mode", node.opset >= 16 ? "half_pixel" : "output_half_pixel");
    invalid_if(mode != "half_pixel" && mode != "output_half_pixel",
               "coordinate_transformation_mode is '{}'; half_pixel, output_half_pixel are ONNX's", mode);
    return mode == "half_pixel";
}

std::string pooling_of(const Node& node) {
    std::string pooling = in_small_letters(node.text("mode", "avg"));
    invalid_if(pooling != "avg" && pooling != "max", "mode is '{}'; avg and max are ONNX's", pooling);
    return pooling;
}

/// Each region as a grid of cells; before operator set 16 coordinates are of elements' centres.
Operand roi_align(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const bool is_half_pixel = has_half_pixel(node);
    const std::string pooling = pooling_of(node);
    invalid_if(g.rank(x) != 4, "the input has {} dimensions; images of 4 are ONNX's", g.rank(x));
    const ElementType through = region_type(x);
    const Operand regions = rows_of(g, g.cast(node.operand(1), through), 4);
    const Operand images = checked_numbers(g, g.cast(node.operand(2), ElementType::i64),
                                           "the number of a region's image", 0, g.shape(x)[0] - 1);
    const Operand y = g.op("roi_align", {g.cast(x, through), regions, images},
                           {{"height", node.integer("output_height", 1)},
                            {"width", node.integer("output_width", 1)},
                            {"sampling_ratio", node.integer("sampling_ratio", 0)},
                            {"scale", node.real("spatial_scale", 1)},
                            {"half_pixel", is_half_pixel},
                            {"mode", pooling}});
    return g.cast(y, x->type);
}

Operand max_roi_pool(OpWriter& g, const Node& node) {
    const auto shape = node.integer_list("pooled_shape").value_or(std::vector<std::int64_t>());
    invalid_if(shape.size() != 2, "pooled_shape is {}; a height and a width", str(shape));
    const Operand x = node.x();
    const ElementType through = region_type(x);
    const Operand regions = rows_of(g, g.cast(node.operand(1), through), 5);
    const Operand y =
        g.op("roi_max_pool", {g.cast(x, through), regions},
             {{"height", shape[0]}, {"width", shape[1]}, {"scale", node.real("spatial_scale", 1)}});
    return g.cast(y, x->type);
}

/// The rows or columns of a crop's points, [regions, count]: from the first corner to the last one, in
/// elements; the middle where there is one point. In ONNX Runtime's order, since 1 ulp outside is outside.
Operand crop_places(OpWriter& g, const Operand& first, const Operand& last, const Dim& extent,
                    const Dim& count) {
    const ElementType type = first->type;
    const Item whole(extent - 1);
    const Operand middle = g.times(g.times(g.op("add", {first, last}), 0.5), whole);
    if (count.is(1)) return middle;
    const Operand gaps = g.at_run_time(Item(count - 1), type);
    const Operand step = g.op("div", {g.times(g.op("sub", {last, first}), whole), gaps});
    const Operand along = g.op("mul", {g.reshape(g.positions(count, type), {1, count}), step});
    const Operand places = g.op("add", {g.times(first, whole), along});
    if (!count.is_symbolic()) return places;
    const Operand is_one = g.op("equal", {gaps, known(0, type)});
    return g.op("where", {is_one, middle, places});
}

/// Crops of images between corners in parts of the image, each of one size.
Operand crop_and_resize(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::string mode = node.text("mode", "bilinear");
    invalid_if(mode != "bilinear" && mode != "nearest", "mode is '{}'; bilinear and nearest are there", mode);
    invalid_if(g.rank(x) != 4, "the input has {} dimensions; images of 4 are read", g.rank(x));
    const ElementType through = region_type(x);
    const Operand regions = rows_of(g, g.cast(node.operand(1), through), 4);
    invalid_if(g.rank(regions) != 2 || !g.shape(regions)[1].is(4),
               "the regions have the shape {}, not [n, 4]", str(g.shape(regions)));
    const Shape size = dims_of(g, node, 3, "crop_size"), image = g.shape(x);
    invalid_if(size.size() != 2, "crop_size (input 3) has {} numbers; a height and a width", size.size());
    for (const Dim& extent : size)
        invalid_if(!extent.is_symbolic() && extent.size() < 1, "crop_size (input 3) is {}; at least 1",
                   str(size));
    const Operand images = checked_numbers(g, g.cast(node.operand(2), ElementType::i64),
                                           "the number of a region's image", 0, image[0] - 1);
    const auto corner = [&](std::int64_t i) { return g.cut(regions, 1, i, 1); };
    const Operand y = g.op("sample_regions",
                           {g.cast(x, through), crop_places(g, corner(0), corner(2), image[2], size[0]),
                            crop_places(g, corner(1), corner(3), image[3], size[1]), images},
                           {{"mode", mode == "nearest" ? "nearest" : "linear"},
                            {"outside", node.real("extrapolation_value", 0)}});
    return g.cast(y, x->type);
}

/// A product of the filters with the elements that the offsets choose.
Operand deform_conv(OpWriter& g, const Node& node) {
    const Operand x = node.optional(0), weight = node.optional(1), offset = node.optional(2);
    const Operand bias = node.optional(3), mask = node.optional(4);
    invalid_if(!x || !weight || !offset, "the input, the filter or the offsets are missing");
    if (g.rank(x) != 4)
        throw Refused(fmt::format("the input has {} dimensions; images of 4 are read", g.rank(x)),
                      "Run it with ONNX Runtime");
    const Shape image = g.shape(x), kernel = kernel_of(g, node, weight, 4), shape = g.shape(offset);
    const Window window = window_of(node, Shape(image.begin() + 2, image.end()), kernel);
    const auto filters = g.fixed_shape(weight);
    const std::int64_t outputs = filters[0], groups = node.integer("group", 1);
    invalid_if(groups < 1 || outputs % groups != 0, "group is {}, into which {} filters do not divide",
               groups, outputs);
    invalid_if(shape.size() != 4, "the offsets (input 2) have {} dimensions; 4 are ONNX's", shape.size());
    const Shape padding = window.padding();
    refuse_if(is_open(padding), "auto_pad makes pads of {}; ones that are known are read", str(padding));
    const ElementType through = region_type(x);
    const auto as_real = [&](const Operand& v) { return v ? g.cast(v, through) : nullptr; };
    Operand columns = g.op("deformed_columns", {as_real(x), as_real(offset), as_real(mask)},
                           {{"kernel", numbers_of(kernel)},
                            {"strides", window.strides},
                            {"padding", numbers_of(padding)},
                            {"dilations", window.dilations},
                            {"offset_groups", node.integer("offset_group", 1)}});
    const Shape own = g.shape(columns);
    columns = g.reshape(columns, {own.at(0), groups, divided_down(own.at(1), groups), own.at(2)});
    const Operand rows = g.reshape(
        as_real(weight), {1, groups, outputs / groups, Dim(filters[1]) * Dim(filters[2]) * Dim(filters[3])});
    const Operand y = g.reshape(g.op("matmul", {rows, columns}), {own.at(0), outputs, shape[2], shape[3]});
    if (!bias) return g.cast(y, x->type);
    return g.cast(g.op("add", {y, g.reshape(as_real(bias), {outputs, 1, 1})}), x->type);
}

}  // namespace

std::span<const Operator> regions_operators() {
    static const Operator kOperators[] = {
        {"CropAndResize", 1, crop_and_resize, "4 -> 1, extrapolation_value float, mode string", kMicrosoft},
        {"DeformConv", 19, deform_conv,
         "3..5 -> 1, dilations ints, group int, kernel_shape ints, offset_group int, pads ints, strides "
         "ints"},
        {"MaxRoiPool", 1, max_roi_pool, "2 -> 1, pooled_shape ints, spatial_scale float"},
        {"RoiAlign", 10, roi_align,
         "3 -> 1, mode string, output_height int, output_width int, sampling_ratio int, spatial_scale float; "
         "16: 3 -> 1, coordinate_transformation_mode string, mode string, output_height int, output_width "
         "int, sampling_ratio int, spatial_scale float"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
