#pragma once

namespace headrace::llm {

/// Loads libggml-headrace.so, which lies beside us, where its products beat those of ggml's CPU backend: on
/// x86 with AVX2 and without AMX. A model that is loaded without `repack` does not use them.
void offer_packed_products();

}  // namespace headrace::llm
