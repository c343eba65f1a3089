#include "checkout.h"

namespace headrace {

std::string checkout_path(std::string_view relative) {
    const std::string root = HEADRACE_SOURCE_DIR;
    return relative.empty() ? root : root + "/" + std::string(relative);
}

std::string packed_library() { return HEADRACE_PACKED_LIBRARY; }
std::string wasi_nn_folder() { return HEADRACE_WASI_NN_FOLDER; }
std::string test_program_folder() { return HEADRACE_PROGRAM_FOLDER; }

}  // namespace headrace
