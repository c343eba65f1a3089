/// Fuzzes the reader of stored blocks of prompts.
#include "fuzz/block_file_target.h"
#include "fuzz/fuzz_main.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the reader of stored blocks of prompts.", {block_file_target()});
}
