// Written by tools/webnn_header.py from the table of the WebNN door (make docs).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/graph_writer.h"

/// The options of WebNN's operators as structs: a misspelled option does not compile. Each turns into what
/// the methods of MLGraphBuilder take; a member without a value is left to the specification's default.
/// Options that are operands are parameters of the methods.
namespace headrace::webnn {

using MLNumber = std::variant<std::int64_t, double>;

enum class MLConv2dFilterOperandLayout { kOihw, kHwio, kOhwi, kIhwo };
inline const char* name_of(MLConv2dFilterOperandLayout value) {
    static constexpr const char* kNames[] = {"oihw", "hwio", "ohwi", "ihwo"};
    return kNames[static_cast<int>(value)];
}

enum class MLConvTranspose2dFilterOperandLayout { kIohw, kHwoi, kOhwi };
inline const char* name_of(MLConvTranspose2dFilterOperandLayout value) {
    static constexpr const char* kNames[] = {"iohw", "hwoi", "ohwi"};
    return kNames[static_cast<int>(value)];
}

enum class MLGruWeightLayout { kZrn, kRzn };
inline const char* name_of(MLGruWeightLayout value) {
    static constexpr const char* kNames[] = {"zrn", "rzn"};
    return kNames[static_cast<int>(value)];
}

enum class MLInputOperandLayout { kNchw, kNhwc };
inline const char* name_of(MLInputOperandLayout value) {
    static constexpr const char* kNames[] = {"nchw", "nhwc"};
    return kNames[static_cast<int>(value)];
}

enum class MLInterpolationMode { kNearestNeighbor, kLinear };
inline const char* name_of(MLInterpolationMode value) {
    static constexpr const char* kNames[] = {"nearest-neighbor", "linear"};
    return kNames[static_cast<int>(value)];
}

enum class MLLstmWeightLayout { kIofg, kIfgo };
inline const char* name_of(MLLstmWeightLayout value) {
    static constexpr const char* kNames[] = {"iofg", "ifgo"};
    return kNames[static_cast<int>(value)];
}

enum class MLPaddingMode { kConstant, kEdge, kReflection };
inline const char* name_of(MLPaddingMode value) {
    static constexpr const char* kNames[] = {"constant", "edge", "reflection"};
    return kNames[static_cast<int>(value)];
}

enum class MLRecurrentNetworkActivation { kRelu, kSigmoid, kTanh };
inline const char* name_of(MLRecurrentNetworkActivation value) {
    static constexpr const char* kNames[] = {"relu", "sigmoid", "tanh"};
    return kNames[static_cast<int>(value)];
}

enum class MLRecurrentNetworkDirection { kForward, kBackward, kBoth };
inline const char* name_of(MLRecurrentNetworkDirection value) {
    static constexpr const char* kNames[] = {"forward", "backward", "both"};
    return kNames[static_cast<int>(value)];
}

enum class MLRoundingType { kFloor, kCeil };
inline const char* name_of(MLRoundingType value) {
    static constexpr const char* kNames[] = {"floor", "ceil"};
    return kNames[static_cast<int>(value)];
}

namespace adding {

inline void add_number(Options& options, const char* name, const std::optional<MLNumber>& number) {
    if (number) std::visit([&](auto value) { options.emplace_back(name, value); }, *number);
}
template <class T>
void add_value(Options& options, const char* name, const std::optional<T>& value) {
    if (value) options.emplace_back(name, *value);
}
template <class Enum>
void add_name(Options& options, const char* name, const std::optional<Enum>& value) {
    if (value) options.emplace_back(name, std::string(name_of(*value)));
}
/// "sigmoid,tanh", as the ops have several.
template <class Enum>
void add_names(Options& options, const char* name, const std::optional<std::vector<Enum>>& values) {
    if (!values) return;
    std::string names;
    for (const Enum value : *values) names.append(names.empty() ? "" : ",").append(name_of(value));
    options.emplace_back(name, names);
}

}  // namespace adding

/// Options of MLGraphBuilder's argMax, argMin.
struct MLArgMinMaxOptions {
    /// keep the searched dimension with extent 1
    std::optional<bool> keepDimensions = {};
    /// i32 or i64
    std::optional<DType> outputDataType = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "keep_dimensions", keepDimensions);
        adding::add_value(options, "output_data_type", outputDataType);
        return options;
    }
};

/// Options of MLGraphBuilder's averagePool2d, l2Pool2d, maxPool2d.
struct MLPool2dOptions {
    /// height and width of the window; absent: the whole image
    std::optional<std::vector<std::int64_t>> windowDimensions = {};
    /// vertical and horizontal step of the window
    std::optional<std::vector<std::int64_t>> strides = {};
    /// vertical and horizontal distance of the window's elements
    std::optional<std::vector<std::int64_t>> dilations = {};
    /// elements above, below, left and right of the image, which never count
    std::optional<std::vector<std::int64_t>> padding = {};
    /// order of the dimensions
    std::optional<MLInputOperandLayout> layout = {};
    /// whether a last window that sticks out is kept
    std::optional<MLRoundingType> outputShapeRounding = {};
    /// the output's height and width, rounded down or up
    std::optional<std::vector<std::int64_t>> outputSizes = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "window_dimensions", windowDimensions);
        adding::add_value(options, "strides", strides);
        adding::add_value(options, "dilations", dilations);
        adding::add_value(options, "padding", padding);
        adding::add_name(options, "layout", layout);
        adding::add_name(options, "output_shape_rounding", outputShapeRounding);
        adding::add_value(options, "output_sizes", outputSizes);
        return options;
    }
};

/// Options of MLGraphBuilder's batchNormalization.
struct MLBatchNormalizationOptions {
    /// added to the variance
    std::optional<double> epsilon = {};
    /// the channels
    std::optional<std::int64_t> axis = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "epsilon", epsilon);
        adding::add_value(options, "axis", axis);
        return options;
    }
};

/// Options of MLGraphBuilder's clamp.
struct MLClampOptions {
    /// smallest value of the output; absent or NaN: no limit
    std::optional<MLNumber> minValue = {};
    /// largest value of the output; absent or NaN: no limit
    std::optional<MLNumber> maxValue = {};

    operator Options() const {
        Options options;
        adding::add_number(options, "min_value", minValue);
        adding::add_number(options, "max_value", maxValue);
        return options;
    }
};

/// Options of MLGraphBuilder's conv2d.
struct MLConv2dOptions {
    /// vertical and horizontal step of the window
    std::optional<std::vector<std::int64_t>> strides = {};
    /// vertical and horizontal distance of the filter's elements
    std::optional<std::vector<std::int64_t>> dilations = {};
    /// zeros above, below, left and right of the image
    std::optional<std::vector<std::int64_t>> padding = {};
    /// input and output channels are split in so many independent convolutions
    std::optional<std::int64_t> groups = {};
    /// order of input's and output's dimensions
    std::optional<MLInputOperandLayout> inputLayout = {};
    /// order of the filter's dimensions
    std::optional<MLConv2dFilterOperandLayout> filterLayout = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "strides", strides);
        adding::add_value(options, "dilations", dilations);
        adding::add_value(options, "padding", padding);
        adding::add_value(options, "groups", groups);
        adding::add_name(options, "input_layout", inputLayout);
        adding::add_name(options, "filter_layout", filterLayout);
        return options;
    }
};

/// Options of MLGraphBuilder's convTranspose2d.
struct MLConvTranspose2dOptions {
    /// vertical and horizontal distance of neighbouring pixels' filters
    std::optional<std::vector<std::int64_t>> strides = {};
    /// vertical and horizontal distance of the filter's elements
    std::optional<std::vector<std::int64_t>> dilations = {};
    /// rows and columns cut off above, below, left and right of the output
    std::optional<std::vector<std::int64_t>> padding = {};
    /// rows and columns added below and right; less than the stride
    std::optional<std::vector<std::int64_t>> outputPadding = {};
    /// the output's height and width, in place of output_padding
    std::optional<std::vector<std::int64_t>> outputSizes = {};
    /// input and output channels are split in so many independent convolutions
    std::optional<std::int64_t> groups = {};
    /// order of input's and output's dimensions
    std::optional<MLInputOperandLayout> inputLayout = {};
    /// order of the filter's dimensions
    std::optional<MLConvTranspose2dFilterOperandLayout> filterLayout = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "strides", strides);
        adding::add_value(options, "dilations", dilations);
        adding::add_value(options, "padding", padding);
        adding::add_value(options, "output_padding", outputPadding);
        adding::add_value(options, "output_sizes", outputSizes);
        adding::add_value(options, "groups", groups);
        adding::add_name(options, "input_layout", inputLayout);
        adding::add_name(options, "filter_layout", filterLayout);
        return options;
    }
};

/// Options of MLGraphBuilder's cumulativeSum.
struct MLCumulativeSumOptions {
    /// leave an element out of its own sum
    std::optional<bool> exclusive = {};
    /// sum from the end
    std::optional<bool> reversed = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "exclusive", exclusive);
        adding::add_value(options, "reversed", reversed);
        return options;
    }
};

/// Options of MLGraphBuilder's elu.
struct MLEluOptions {
    /// limit for x to -infinity, negated
    std::optional<double> alpha = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        return options;
    }
};

/// Options of MLGraphBuilder's gather, gatherElements.
struct MLGatherOptions {
    /// dimension of the input that is indexed
    std::optional<std::int64_t> axis = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "axis", axis);
        return options;
    }
};

/// Options of MLGraphBuilder's gemm.
struct MLGemmOptions {
    /// factor of the product
    std::optional<double> alpha = {};
    /// factor of c
    std::optional<double> beta = {};
    /// a is [k, m]
    std::optional<bool> aTranspose = {};
    /// b is [n, k]
    std::optional<bool> bTranspose = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        adding::add_value(options, "beta", beta);
        adding::add_value(options, "a_transpose", aTranspose);
        adding::add_value(options, "b_transpose", bTranspose);
        return options;
    }
};

/// Options of MLGraphBuilder's gru.
struct MLGruOptions {
    /// the reset gate scales the state after its product with the weights
    std::optional<bool> resetAfter = {};
    /// one more output has the state after every step
    std::optional<bool> returnSequence = {};
    /// both: two networks, one of them from the end to the beginning
    std::optional<MLRecurrentNetworkDirection> direction = {};
    /// order of the gates: update z, reset r, new n
    std::optional<MLGruWeightLayout> layout = {};
    /// functions of the gates z and r, and of n
    std::optional<std::vector<MLRecurrentNetworkActivation>> activations = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "reset_after", resetAfter);
        adding::add_value(options, "return_sequence", returnSequence);
        adding::add_name(options, "direction", direction);
        adding::add_name(options, "layout", layout);
        adding::add_names(options, "activations", activations);
        return options;
    }
};

/// Options of MLGraphBuilder's gruCell.
struct MLGruCellOptions {
    /// the reset gate scales the state after its product with the weights
    std::optional<bool> resetAfter = {};
    /// order of the gates: update z, reset r, new n
    std::optional<MLGruWeightLayout> layout = {};
    /// functions of the gates z and r, and of n
    std::optional<std::vector<MLRecurrentNetworkActivation>> activations = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "reset_after", resetAfter);
        adding::add_name(options, "layout", layout);
        adding::add_names(options, "activations", activations);
        return options;
    }
};

/// Options of MLGraphBuilder's hardSigmoid.
struct MLHardSigmoidOptions {
    /// factor
    std::optional<double> alpha = {};
    /// offset
    std::optional<double> beta = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        adding::add_value(options, "beta", beta);
        return options;
    }
};

/// Options of MLGraphBuilder's hardSwish.
struct MLHardSwishOptions {
    /// factor of the gate, 1/6 if absent
    std::optional<double> alpha = {};
    /// offset of the gate, 0.5 if absent
    std::optional<double> beta = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        adding::add_value(options, "beta", beta);
        return options;
    }
};

/// Options of MLGraphBuilder's instanceNormalization.
struct MLInstanceNormalizationOptions {
    /// added to the variance
    std::optional<double> epsilon = {};
    /// where the channels are
    std::optional<MLInputOperandLayout> layout = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "epsilon", epsilon);
        adding::add_name(options, "layout", layout);
        return options;
    }
};

/// Options of MLGraphBuilder's layerNormalization.
struct MLLayerNormalizationOptions {
    /// added to the variance
    std::optional<double> epsilon = {};
    /// axes over which to normalise; absent: all but the first
    std::optional<std::vector<std::int64_t>> axes = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "epsilon", epsilon);
        adding::add_value(options, "axes", axes);
        return options;
    }
};

/// Options of MLGraphBuilder's leakyRelu.
struct MLLeakyReluOptions {
    /// slope for negative x
    std::optional<double> alpha = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        return options;
    }
};

/// Options of MLGraphBuilder's linear.
struct MLLinearOptions {
    /// factor
    std::optional<double> alpha = {};
    /// offset
    std::optional<double> beta = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "alpha", alpha);
        adding::add_value(options, "beta", beta);
        return options;
    }
};

/// Options of MLGraphBuilder's lstm.
struct MLLstmOptions {
    /// one more output has the state after every step
    std::optional<bool> returnSequence = {};
    /// both: two networks, one of them from the end to the beginning
    std::optional<MLRecurrentNetworkDirection> direction = {};
    /// order of the gates: input i, output o, forget f, cell g
    std::optional<MLLstmWeightLayout> layout = {};
    /// functions of the gates i, o and f, of g, and of the cell in the output
    std::optional<std::vector<MLRecurrentNetworkActivation>> activations = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "return_sequence", returnSequence);
        adding::add_name(options, "direction", direction);
        adding::add_name(options, "layout", layout);
        adding::add_names(options, "activations", activations);
        return options;
    }
};

/// Options of MLGraphBuilder's lstmCell.
struct MLLstmCellOptions {
    /// order of the gates: input i, output o, forget f, cell g
    std::optional<MLLstmWeightLayout> layout = {};
    /// functions of the gates i, o and f, of g, and of the cell in the output
    std::optional<std::vector<MLRecurrentNetworkActivation>> activations = {};

    operator Options() const {
        Options options;
        adding::add_name(options, "layout", layout);
        adding::add_names(options, "activations", activations);
        return options;
    }
};

/// Options of MLGraphBuilder's pad.
struct MLPadOptions {
    /// value, nearest element, or mirror image without the edge itself
    std::optional<MLPaddingMode> mode = {};
    /// of the margin in mode constant
    std::optional<MLNumber> value = {};

    operator Options() const {
        Options options;
        adding::add_name(options, "mode", mode);
        adding::add_number(options, "value", value);
        return options;
    }
};

/// Options of MLGraphBuilder's reduceL1, reduceL2, reduceLogSum, reduceLogSumExp, reduceMax, reduceMean,
/// reduceMin, reduceProduct, reduceSum, reduceSumSquare.
struct MLReduceOptions {
    /// dimensions to reduce; all by default; none: every element by itself
    std::optional<std::vector<std::int64_t>> axes = {};
    /// keep reduced dimensions with extent 1
    std::optional<bool> keepDimensions = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "axes", axes);
        adding::add_value(options, "keep_dimensions", keepDimensions);
        return options;
    }
};

/// Options of MLGraphBuilder's resample2d.
struct MLResample2dOptions {
    /// how values between elements come about
    std::optional<MLInterpolationMode> mode = {};
    /// output extent / input extent of each axis; ignored when sizes are given
    std::optional<std::vector<double>> scales = {};
    /// output extent of each axis
    std::optional<std::vector<std::int64_t>> sizes = {};
    /// the two dimensions to resize, in either order
    std::optional<std::vector<std::int64_t>> axes = {};

    operator Options() const {
        Options options;
        adding::add_name(options, "mode", mode);
        adding::add_value(options, "scales", scales);
        adding::add_value(options, "sizes", sizes);
        adding::add_value(options, "axes", axes);
        return options;
    }
};

/// Options of MLGraphBuilder's reverse.
struct MLReverseOptions {
    /// dimensions to reverse; all by default
    std::optional<std::vector<std::int64_t>> axes = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "axes", axes);
        return options;
    }
};

/// Options of MLGraphBuilder's scatterElements.
struct MLScatterOptions {
    /// dimension in which the indices point
    std::optional<std::int64_t> axis = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "axis", axis);
        return options;
    }
};

/// Options of MLGraphBuilder's slice.
struct MLSliceOptions {
    /// step in each dimension; all 1 by default
    std::optional<std::vector<std::int64_t>> strides = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "strides", strides);
        return options;
    }
};

/// Options of MLGraphBuilder's split.
struct MLSplitOptions {
    /// dimension to split
    std::optional<std::int64_t> axis = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "axis", axis);
        return options;
    }
};

/// Options of MLGraphBuilder's transpose.
struct MLTransposeOptions {
    /// output dimension i is input dimension permutation[i]; by default the dimensions are reversed
    std::optional<std::vector<std::int64_t>> permutation = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "permutation", permutation);
        return options;
    }
};

/// Options of MLGraphBuilder's triangular.
struct MLTriangularOptions {
    /// keep columns from row + diagonal on; else those up to it
    std::optional<bool> upper = {};
    /// 0: the main one; above it positive, below it negative
    std::optional<std::int64_t> diagonal = {};

    operator Options() const {
        Options options;
        adding::add_value(options, "upper", upper);
        adding::add_value(options, "diagonal", diagonal);
        return options;
    }
};

}  // namespace headrace::webnn
