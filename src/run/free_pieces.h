#pragma once
#include "base/result.h"
#include "lower/lower.h"

struct ggml_backend_sched;

namespace headrace {

/// ggml's allocator ends the process when the memory that activations gave back lies in more than 256 pieces.
/// Where so many are alive at once that it might, the small ones keep theirs to the end: marks those as
/// outputs. To be called when everything else has its memory or is marked; sched: with all tensors assigned,
/// for what it copies between devices; null: none. Errors: it copies too many at once.
Status limit_free_pieces(const LoweredGraph& lowered, ggml_backend_sched* sched = nullptr);

}  // namespace headrace
