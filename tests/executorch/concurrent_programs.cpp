/// Runs programs in several threads at once, which ExecuTorch's Python module cannot: it keeps the
/// interpreter's lock while a program runs.
///
///   concurrent_programs model.pte CASES [model.pte CASES ...]
///
/// A thread for each pair loads the program for itself and runs it on every case in turn. A file of cases has
/// for each: u32 rows, u32 elements of the input, u32 elements of the result, and both as f32.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using executorch::extension::Module;

constexpr float kTolerance = 1e-4f;

struct Case {
    std::int32_t rows = 0;
    std::vector<float> input, expected;
};

std::vector<Case> read_cases(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<Case> cases;
    std::uint32_t sizes[3];
    while (file.read(reinterpret_cast<char*>(sizes), sizeof(sizes))) {
        Case one{static_cast<std::int32_t>(sizes[0]), std::vector<float>(sizes[1]),
                 std::vector<float>(sizes[2])};
        for (std::vector<float>* values : {&one.input, &one.expected})
            if (!file.read(reinterpret_cast<char*>(values->data()),
                           static_cast<std::streamsize>(values->size() * sizeof(float))))
                throw std::runtime_error(std::string(path) + " ends within a case");
        cases.push_back(std::move(one));
    }
    if (cases.empty()) throw std::runtime_error(std::string(path) + " has no cases");
    return cases;
}

/// What is wrong with a run; empty when nothing is.
std::string problem(Module& module, const Case& one) {
    const std::int32_t columns = static_cast<std::int32_t>(one.input.size()) / one.rows;
    const auto input = executorch::extension::make_tensor_ptr({one.rows, columns}, one.input);
    const auto results = module.forward(input);
    if (!results.ok()) return executorch::runtime::to_string(results.error());
    const auto& tensor = results.get().at(0).toTensor();
    if (static_cast<std::size_t>(tensor.numel()) != one.expected.size())
        return std::to_string(tensor.numel()) + " elements, not " + std::to_string(one.expected.size());
    float largest = 1e-6f, difference = 0;
    for (std::size_t i = 0; i < one.expected.size(); ++i) {
        const float actual = tensor.const_data_ptr<float>()[i];
        if (std::isnan(actual)) return "a NaN";
        largest = std::max(largest, std::abs(one.expected[i]));
        difference = std::max(difference, std::abs(actual - one.expected[i]));
    }
    return difference <= kTolerance * largest ? "" : "differs by " + std::to_string(difference / largest);
}

/// One line of its own, or "" when every run is right.
std::string run(const char* program, const std::vector<Case>& cases) {
    Module module(program, Module::LoadMode::Mmap);
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (const std::string wrong = problem(module, cases[i]); !wrong.empty())
            return std::string(program) + ", run " + std::to_string(i) + ": " + wrong;
    return "";
}

int run_all(int pairs, char** arguments) {
    std::vector<std::vector<Case>> cases;
    for (int i = 0; i < pairs; ++i) cases.push_back(read_cases(arguments[2 * i + 1]));
    std::vector<std::string> answers(cases.size());
    std::barrier start(pairs);
    std::vector<std::thread> threads;
    for (int i = 0; i < pairs; ++i)
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            answers[i] = run(arguments[2 * i], cases[i]);
        });
    for (std::thread& thread : threads) thread.join();
    int wrong = 0;
    for (int i = 0; i < pairs; ++i) {
        wrong += !answers[i].empty();
        std::printf("thread %d: %s\n", i,
                    answers[i].empty() ? (std::to_string(cases[i].size()) + " runs are right").c_str()
                                       : answers[i].c_str());
    }
    return wrong ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    executorch::runtime::runtime_init();
    try {
        if (argc < 3 || argc % 2 == 0)
            throw std::runtime_error("usage: concurrent_programs model.pte CASES [...]");
        return run_all(argc / 2, argv + 1);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "concurrent_programs: %s\n", error.what());
        return 2;
    }
}
