#pragma once
#include <stdexcept>
#include <string>

#include "headrace/export.h"

namespace headrace {

/// What kind of failure was reported; each door maps it to its own convention.
enum class Code {
    invalid_argument,  ///< the caller's graph, tensor, attribute or file content is wrong
    unsupported,       ///< valid, but this build or device cannot do it
    out_of_memory,     ///< an allocation of known size failed
    invalid_state,     ///< right call, wrong moment (destroyed tensor, finished builder)
    io,                ///< a file could not be read or written
    backend_failure,   ///< ggml or a device reported a failure at run time
    not_found,         ///< no model, session or handle of that name
    denied,            ///< a file outside the folder that is allowed
    busy,              ///< a queue or a table is full: later it may work
    timed_out,         ///< the time that the caller allowed is over
    cancelled,         ///< the caller gave up
    prompt_too_long,   ///< a prompt does not fit into the model's context
    context_full,      ///< a conversation has filled the model's context
};

/// Thrown by every function of the public API that fails. The message names the op or tensor, what is wrong,
/// the actual values and what would be right.
class HEADRACE_API Exception : public std::runtime_error {
public:
    Exception(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    Code code() const { return code_; }

private:
    Code code_;
};

}  // namespace headrace
