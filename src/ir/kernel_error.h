#pragma once
#include <stdexcept>

namespace headrace {

/// What a kernel throws for values that its op does not take. The run, or the folding of constants, fails
/// with its message and the node's title.
class KernelError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

}  // namespace headrace
