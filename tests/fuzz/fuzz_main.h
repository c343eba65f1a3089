#pragma once
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// The program of a fuzzer: for how long, which target, and one iteration again.
int fuzz_main(int argc, char** argv, const std::string& about, const std::vector<Target>& targets);

}  // namespace headrace::fuzz
