#include "passes/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "ir/verify.h"
#include "passes/passes.h"

namespace headrace {
namespace {

/// No-ops hide patterns, so they go early. Folding comes before common subexpressions because it makes
/// constants equal, and after absorb_transposed_weights, which leaves it nothing large to transpose. Halves
/// become f32 before folding converts their constants, and before all patterns; integers are multiplied
/// before folding makes real numbers of small constants; the biases of networks are added before, too.
/// Compositions come after common subexpressions, which make x one value in x · f(x), and before epilogues
/// take their parts. Every pass removes what it makes dead itself.
constexpr std::array kPasses{
    Pass{"eliminate_dead_code", "removes what no output and no state needs", &eliminate_dead_code},
    Pass{"eliminate_no_ops", "removes nodes that equal one of their operands", &eliminate_no_ops},
    Pass{"absorb_transposed_weights", "lets products read transposed constant matrices as they lie",
         &absorb_transposed_weights},
    Pass{"compute_halves_in_f32", "leaves f16 and bf16 to what is stored, where the CPU runs the graph",
         &compute_halves_in_f32},
    Pass{"multiply_recurrent_inputs", "multiplies the inputs of all steps of an lstm at once",
         &multiply_recurrent_inputs},
    Pass{"fake_quantization_to_integer", "leaves out real numbers between operations on quantised ones",
         &fake_quantization_to_integer},
    Pass{"fold_constants", "computes nodes whose operands are constant", &fold_constants},
    Pass{"keep_block_weights", "lets products read integer matrices and their scales as ggml's blocks",
         &keep_block_weights},
    Pass{"eliminate_common_subexpressions", "merges equal constants and equal nodes",
         &eliminate_common_subexpressions},
    Pass{"fold_batch_normalization", "multiplies normalisations into the convolutions before them",
         &fold_batch_normalization},
    Pass{"recognise_compositions", "makes one node of rms_norm, glu, rotary_embedding … spelt out",
         &recognise_compositions},
    Pass{"update_states_in_place", "writes only the slices of a state that change", &update_states_in_place},
    Pass{"delay_reshapes", "moves reshapes of images past what follows them", &delay_reshapes},
    Pass{"fuse_matmul_epilogue", "joins product, bias, activation and residual", &fuse_matmul_epilogue},
    Pass{"fuse_integer_product_epilogue", "joins product of integers, scales, bias, activation and residual",
         &fuse_integer_product_epilogue},
    Pass{"fuse_convolution_epilogue", "joins convolution, activation or limits, and residual",
         &fuse_convolution_epilogue},
    Pass{"choose_layouts", "puts the channels of images first or last, as kernels are fastest",
         &choose_layouts},
    Pass{"quantise_weights", "stores constant matrices of products in blocks, when asked to",
         &quantise_weights},
};

Status check_name(const std::string& name) {
    std::string known;
    for (const Pass& pass : kPasses) {
        if (pass.name == name) return success();
        known.append(known.empty() ? "" : ", ").append(pass.name);
    }
    return invalid("no pass is called '{}'; the passes are {}", name, known);
}

Result<PassReport> run_pass(const Pass& pass, Graph& graph, const PassOptions& options) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto counts = pass.run(graph, options.context);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!counts.ok()) return counts.error().within(pass.name);
    if (options.verify) {
        if (auto status = verify(graph); !status.ok())
            return status.error().within(fmt::format("the graph that {} left", pass.name));
    }
    if (options.observe) options.observe(pass.name, graph);
    return PassReport{std::string(pass.name), std::move(counts).value(), ms, true};
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

Result<std::vector<PassReport>> run_passes(Graph& graph, const PassOptions& options) {
    for (const std::string& name : options.disabled) HR_TRY(check_name(name));
    if (!options.stop_after.empty()) HR_TRY(check_name(options.stop_after));
    std::vector<PassReport> reports;
    bool is_stopped = false;
    for (const Pass& pass : kPasses) {
        if (is_stopped || options.disabled.contains(std::string(pass.name))) {
            reports.push_back({.name = std::string(pass.name)});
        } else {
            HR_ASSIGN(auto report, run_pass(pass, graph, options));
            reports.push_back(std::move(report));
        }
        is_stopped = is_stopped || pass.name == options.stop_after;
    }
    return reports;
}

}  // namespace headrace
