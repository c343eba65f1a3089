#pragma once
#include <llama.h>

#include <string>

#include "base/result.h"
#include "llm/model/packed_kernels.h"

namespace headrace::llm {

/// Has every node of a context's graphs computed so that a row of its result depends on what the row's own
/// sequence has, and not on the rows beside it, where keys lie in the cache, or the number of threads.
class Invariance {
public:
    /// After require_packed_kernels(): those do that.
    Invariance() : make_invariant_(find_make_invariant()) {}

    /// Before the context is made, which must not outlive this.
    void watch(llama_context_params& params);
    void begin_step() { uncovered_.clear(); }
    /// The step's first node that nothing promises that of.
    Status check() const;

private:
    static bool see_node(ggml_tensor* node, bool is_before, void* self);

    MakeInvariant make_invariant_;
    std::string uncovered_;
};

}  // namespace headrace::llm
