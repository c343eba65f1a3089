#pragma once

struct ggml_tensor;

namespace headrace::llm {

/// Loads libggml-headrace.so, which lies beside us, where its matmul kernels beat those of ggml's CPU
/// backend: on x86 with AVX2 and without AMX. A model that is loaded without `repack` does not use them.
void offer_packed_kernels();
/// Loads it wherever it runs. No other thread may compute meanwhile: every node asks what it brings.
void load_packed_kernels();

/// Asks a node of a graph to give each of its rows whatever rows are beside it; false where nothing promises
/// that.
using MakeInvariant = bool (*)(ggml_tensor* node);
/// That library's function; null where it is not loaded.
MakeInvariant find_make_invariant();

}  // namespace headrace::llm
