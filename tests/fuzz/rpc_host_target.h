#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "rpc_host": the replies of a host, from its greeting to the result of a small graph.
Target rpc_host_target();

}  // namespace headrace::fuzz
