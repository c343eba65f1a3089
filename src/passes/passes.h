#pragma once
#include "passes/pass.h"

/// The passes, each in the file of its name; pipeline.cpp says in which order they run. All take time linear
/// in the size of the graph.
namespace headrace {

/// Removes nodes whose results reach no output and no state write, and the values that only they used.
Result<Counts> eliminate_dead_code(Graph& graph, const PassContext& context);

/// Lets readers of a node that equals one of its operands (OpDef::same_as) read the operand.
Result<Counts> eliminate_no_ops(Graph& graph, const PassContext& context);

/// Turns a product with a transposed constant matrix into one that reads the matrix as it lies, so that large
/// mapped weights are not copied only to transpose them.
Result<Counts> absorb_transposed_weights(Graph& graph, const PassContext& context);

/// Computes what is in f16 or bf16 in f32, where the CPU runs it: results are rounded where the graph gives
/// them out, keeps them in a state or moves stored elements, not after each node. Constant matrices of
/// products keep their bytes.
Result<Counts> compute_halves_in_f32(Graph& graph, const PassContext& context);

/// Multiplies the input of an lstm in f32 with its weight in one product for all steps, and leaves an
/// lstm_recurrence of the rest; an lstm_cell becomes a sequence of one step.
Result<Counts> multiply_recurrent_inputs(Graph& graph, const PassContext& context);

/// Lets what lies between dequantize_linear and quantize_linear of bytes with one scale be computed in
/// integers, where the CPU runs it: convolutions and products with constant weights, bias and limits among
/// them, sums, and what only moves numbers; products that nothing quantizes become real numbers after their
/// exact sums. Results differ from those of real numbers by at most one step,
/// where these were not rounded as exactly.
Result<Counts> fake_quantization_to_integer(Graph& graph, const PassContext& context);

/// Computes pure nodes whose operands are all constant, within FoldLimits.
Result<Counts> fold_constants(Graph& graph, const PassContext& context);

/// Lets a product with a constant matrix of small integers and scales (dequantize_linear) read it in ggml's
/// blocks, where they say exactly the same: with the scales, or, where each column of the product has one,
/// with those multiplied to the product; else, where the CPU runs it, in blocks with scales in f32. Other
/// such matrices become f32 up to FoldLimits::grown_bytes each.
Result<Counts> keep_block_weights(Graph& graph, const PassContext& context);

/// Merges constants of equal type and bytes, then pure nodes of equal op, attributes and operands.
Result<Counts> eliminate_common_subexpressions(Graph& graph, const PassContext& context);

/// Multiplies a batch normalisation of constants into the constant filter and bias of the conv2d before it.
Result<Counts> fold_batch_normalization(Graph& graph, const PassContext& context);

/// Puts one node in the place of those that spell it out: rms_norm, silu, glu, rotary_embedding, attention,
/// and attention over heads that were repeated for it.
Result<Counts> recognise_compositions(Graph& graph, const PassContext& context);

/// Writes the slices of a state that change, where the state was assigned a copy of itself with those slices
/// replaced (scatter_elements) and nothing reads its old content afterwards.
Result<Counts> update_states_in_place(Graph& graph, const PassContext& context);

/// Lets nodes work on images with their channels first or last, so that what their kernels gain and what
/// transpositions between them cost is the best in sum: OpDef::layout says who can.
Result<Counts> choose_layouts(Graph& graph, const PassContext& context);

/// Moves reshapes of images past element-wise nodes and transpositions, so that convolutions of one
/// dimension, which are images of one row, meet what follows them.
Result<Counts> delay_reshapes(Graph& graph, const PassContext& context);

/// Makes one fused_matmul of a product with a constant matrix and what follows it: bias, activation,
/// residual.
Result<Counts> fuse_matmul_epilogue(Graph& graph, const PassContext& context);

/// Makes one dequantized_matmul of a matmul_integer with a constant matrix and what follows it: the scales of
/// both operands, bias, activation, residual; where the CPU runs it.
Result<Counts> fuse_integer_product_epilogue(Graph& graph, const PassContext& context);

/// Makes one fused_conv2d of a conv2d in f32 with a constant filter and what follows it: activation or
/// limits, residual, in either order.
Result<Counts> fuse_convolution_epilogue(Graph& graph, const PassContext& context);

/// Stores the constant matrices of products with f32 in PassContext::weights, where their inner extent is a
/// multiple of 32 and they are large enough; nodes that gather rows of such a matrix read the blocks, too.
/// Results change within the format's rounding, and that of the other operand where
/// PassContext::round_activations allows it.
Result<Counts> quantise_weights(Graph& graph, const PassContext& context);

}  // namespace headrace
