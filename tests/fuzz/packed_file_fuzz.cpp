/// Fuzzes the reader of packed weights.
#include "fuzz/fuzz_main.h"
#include "fuzz/packed_file_target.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the reader of packed weights.", {packed_file_target()});
}
