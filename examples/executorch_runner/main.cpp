/// Runs methods of a .pte file once each for the results, and the last a few times for the clock:
///
///   executorch_runner model.pte [--data weights.ptd] [--method forward ...] [--runs 10] [INPUT ...]
///
/// INPUT is the file of an argument's raw elements, in order; arguments without a file are ones. The sizes
/// are those that the program was exported with, for dynamic dimensions the largest.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

struct Options {
    std::string program, data;
    int runs = 10;
    std::vector<std::string> methods, inputs;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--data" || argument == "--method" || argument == "--runs") {
            if (++i == argc) throw std::runtime_error(argument + " needs a value");
            if (argument == "--data")
                options.data = argv[i];
            else if (argument == "--method")
                options.methods.push_back(argv[i]);
            else if ((options.runs = std::atoi(argv[i])) < 1)
                throw std::runtime_error(std::string("--runs must be a number above 0, not ") + argv[i]);
        } else if (options.program.empty()) {
            options.program = argument;
        } else {
            options.inputs.push_back(argument);
        }
    }
    if (options.program.empty())
        throw std::runtime_error(
            "usage: executorch_runner model.pte [--data weights.ptd] [--method forward ...] [--runs 10] "
            "[INPUT ...]");
    if (options.methods.empty()) options.methods.push_back("forward");
    return options;
}

/// The value of a Result, or an exception that says what was being done.
template <class T>
T take(executorch::runtime::Result<T> result, const std::string& doing) {
    if (!result.ok())
        throw std::runtime_error(doing + ": ExecuTorch error " +
                                 std::to_string(static_cast<int>(result.error())) + ", " +
                                 executorch::runtime::to_string(result.error()));
    return std::move(result.get());
}

std::vector<std::uint8_t> read_file(const std::string& path, std::size_t bytes) {
    std::ifstream file(path, std::ios::binary);
    std::vector<std::uint8_t> content((std::istreambuf_iterator<char>(file)), {});
    if (!file && content.empty()) throw std::runtime_error("cannot read " + path);
    if (content.size() != bytes)
        throw std::runtime_error(path + " has " + std::to_string(content.size()) +
                                 " bytes, the argument takes " + std::to_string(bytes));
    return content;
}

std::vector<std::uint8_t> ones(ScalarType type, std::size_t bytes) {
    std::vector<std::uint8_t> content(bytes);
    const auto fill = [&](auto one) {
        auto* first = reinterpret_cast<decltype(one)*>(content.data());
        std::fill(first, first + bytes / sizeof(one), one);
    };
    switch (type) {
        case ScalarType::Float: fill(1.0f); break;
        case ScalarType::Double: fill(1.0); break;
        case ScalarType::Long: fill(std::int64_t{1}); break;
        case ScalarType::Int: fill(std::int32_t{1}); break;
        case ScalarType::Byte:
        case ScalarType::Char:
        case ScalarType::Bool: fill(std::uint8_t{1}); break;
        default: throw std::runtime_error("arguments of this type need a file");
    }
    return content;
}

/// Keeps its tensors alive for as long as the module reads them.
std::vector<TensorPtr> make_inputs(Module& module, const std::string& method,
                                   const std::vector<std::string>& files) {
    const auto meta = take(module.method_meta(method), "reading method '" + method + "'");
    if (files.size() > meta.num_inputs())
        throw std::runtime_error(std::to_string(files.size()) + " files given, the method takes " +
                                 std::to_string(meta.num_inputs()) + " arguments");
    std::vector<TensorPtr> tensors;
    for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
        const auto info = take(meta.input_tensor_meta(i), "argument " + std::to_string(i) + " is no tensor");
        auto content =
            i < files.size() ? read_file(files[i], info.nbytes()) : ones(info.scalar_type(), info.nbytes());
        std::vector<executorch::aten::SizesType> sizes(info.sizes().begin(), info.sizes().end());
        tensors.push_back(executorch::extension::make_tensor_ptr(
            std::move(sizes), std::move(content), {}, {}, info.scalar_type(),
            executorch::aten::TensorShapeDynamism::STATIC));
    }
    return tensors;
}

double element(const Tensor& tensor, std::ptrdiff_t i) {
    switch (tensor.scalar_type()) {
        case ScalarType::Float: return tensor.const_data_ptr<float>()[i];
        case ScalarType::Double: return tensor.const_data_ptr<double>()[i];
        case ScalarType::Long: return static_cast<double>(tensor.const_data_ptr<std::int64_t>()[i]);
        case ScalarType::Int: return tensor.const_data_ptr<std::int32_t>()[i];
        case ScalarType::Byte: return tensor.const_data_ptr<std::uint8_t>()[i];
        case ScalarType::Bool: return tensor.const_data_ptr<bool>()[i];
        default: return 0;
    }
}

void print(std::size_t index, const EValue& value) {
    if (!value.isTensor()) {
        std::printf("output %zu is no tensor\n", index);
        return;
    }
    constexpr std::ptrdiff_t kShown = 8;
    const Tensor& tensor = value.toTensor();
    std::printf("output %zu [", index);
    for (std::ptrdiff_t i = 0; i < tensor.dim(); ++i)
        std::printf("%s%d", i ? ", " : "", static_cast<int>(tensor.size(i)));
    std::printf("]:");
    for (std::ptrdiff_t i = 0; i < std::min<std::ptrdiff_t>(kShown, tensor.numel()); ++i)
        std::printf(" %.7g", element(tensor, i));
    std::printf(tensor.numel() > kShown ? " ...\n" : "\n");
}

void time_runs(Module& module, const std::string& method, const std::vector<EValue>& inputs, int runs) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> milliseconds;
    for (int i = 0; i < runs; ++i) {
        const auto start = Clock::now();
        take(module.execute(method, inputs), "running '" + method + "'");
        milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + runs / 2, milliseconds.end());
    std::printf("median of %d runs: %.3f ms\n", runs, milliseconds[runs / 2]);
}

void run(const Options& options) {
    for (const std::string& path : {options.program, options.data})
        if (!path.empty() && !std::filesystem::is_regular_file(path))
            throw std::runtime_error("there is no file " + path);
    // Weights are read where the files are mapped.
    std::vector<std::string> data_files;
    if (!options.data.empty()) data_files.push_back(options.data);
    Module module(options.program, data_files, Module::LoadMode::Mmap);
    const auto status = module.load(executorch::runtime::Program::Verification::InternalConsistency);
    if (status != executorch::runtime::Error::Ok)
        throw std::runtime_error(options.program +
                                 " is no complete .pte file: " + executorch::runtime::to_string(status));
    for (const std::string& method : options.methods) {
        const std::vector<TensorPtr> tensors = make_inputs(module, method, options.inputs);
        const std::vector<EValue> inputs(tensors.begin(), tensors.end());
        const auto outputs = take(module.execute(method, inputs), "running '" + method + "'");
        for (std::size_t i = 0; i < outputs.size(); ++i) print(i, outputs[i]);
        if (&method == &options.methods.back()) time_runs(module, method, inputs, options.runs);
    }
}

}  // namespace

int main(int argc, char** argv) {
    executorch::runtime::runtime_init();
    try {
        run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "executorch_runner: %s\n", error.what());
        return 1;
    }
}
