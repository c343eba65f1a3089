/// Fuzzes the loaders of graph files: our own, `.webnn` text and JSON with its weights.
#include "fuzz/fuzz_main.h"
#include "fuzz/graph_file_targets.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the loaders of graph files.", graph_file_targets());
}
