// Buffers of every size: nothing is written behind them, and no character is cut.
#include <gmock/gmock.h>

#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

class WasiNnOutputs : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnOutputs);

const std::string kSymbols = "äöü€😀";  // 2, 2, 2, 3 and 4 bytes
constexpr std::string_view kGrammar = R"({"grammar": "root ::= \"äöü€😀\""})";

/// The bytes of the symbols that fit into a size.
std::uint32_t whole_characters(std::uint32_t size) {
    for (const std::uint32_t end : {13u, 9u, 6u, 4u, 2u})
        if (size >= end) return end;
    return 0;
}

void expect_fitting(const Library& library, const Output& output, std::uint32_t capacity) {
    SCOPED_TRACE("a buffer of " + std::to_string(capacity));
    const std::uint32_t fitting = whole_characters(capacity);
    const bool cut_is_fine = library.abi == Abi::backend && fitting > 0;
    if (fitting == kSymbols.size() || cut_is_fine) {
        EXPECT_EQ(output.code, 0);
        EXPECT_EQ(output.text(), kSymbols.substr(0, fitting));
    } else {
        EXPECT_EQ(output.code, library.numbers.too_large);
        EXPECT_EQ(output.size, kSymbols.size()) << "the size that is needed";
        EXPECT_EQ(output.bytes.find_first_not_of('#'), std::string::npos) << "nothing is written";
    }
}

TEST_P(WasiNnOutputs, HoldWholeCharactersInBuffersOfEverySize) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(host.ask(context, "Say it.", kGrammar), kSymbols);
    for (std::uint32_t capacity = 0; capacity <= kSymbols.size() + 3; ++capacity) {
        expect_fitting(*library, library->get_output(host.ctx(), context, 0, capacity), capacity);
        expect_fitting(*library, library->run_inference(host.ctx(), context, "Say it.", kGrammar, capacity),
                       capacity);
    }
}

TEST_P(WasiNnOutputs, PiecesAreWholeCharactersInBuffersOfEverySize) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    library->set_input(host.ctx(), context, 0, "Say it.");
    library->set_input(host.ctx(), context, 1, kGrammar);
    std::string joined;
    while (library->compute_single(host.ctx(), context) == 0) {
        const std::string piece = library->get_output_single(host.ctx(), context, 0).text();
        for (std::uint32_t capacity = 0; capacity < piece.size(); ++capacity) {
            const Output output = library->get_output_single(host.ctx(), context, 0, capacity);
            if (output.code == 0)
                EXPECT_EQ(whole_characters(joined.size() + output.size), joined.size() + output.size);
            else
                EXPECT_EQ(output.code, library->numbers.too_large);
        }
        joined += piece;
        EXPECT_EQ(whole_characters(std::uint32_t(joined.size())), joined.size()) << joined;
    }
    EXPECT_EQ(joined, kSymbols);
}

TEST_P(WasiNnOutputs, MetadataNeedsTheSizeThatTheErrorNames) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    host.ask(context, "Hello");
    const Output none = library->get_output(host.ctx(), context, 1, 0);
    EXPECT_EQ(none.code, library->numbers.too_large);
    const Output less = library->get_output(host.ctx(), context, 1, none.size - 1);
    EXPECT_EQ(less.code, library->numbers.too_large) << "a part of JSON is none";
    EXPECT_EQ(less.size, none.size);
    const Output whole = library->get_output(host.ctx(), context, 1, none.size);
    EXPECT_EQ(whole.code, 0);
    EXPECT_EQ(whole.text().back(), '}');
}

TEST_P(WasiNnOutputs, ATextWithoutDimensionsEndsAtItsNulByte) {
    if (GetParam() != Abi::backend) GTEST_SKIP() << "tensors of this interface carry their size";
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    std::string prompt = "What is 2+3?";
    const std::string expected = host.ask(context, prompt, R"({"history": false})");
    auto* data = reinterpret_cast<std::uint8_t*>(prompt.data());
    std::uint32_t one = 1, right = std::uint32_t(prompt.size()), beyond = right + 1;
    Dimensions scalar{&one, 1}, empty{nullptr, 0}, counted{&right, 1}, with_nul{&beyond, 1};
    for (Dimensions* dimensions : {static_cast<Dimensions*>(nullptr), &empty, &scalar, &counted, &with_nul}) {
        PlainTensor tensor{dimensions, 0, data};
        Buffer buffer(GetParam(), 256);
        const char options[] = R"({"history": false})";
        const int code = library->raw_run_inference(host.ctx(), context, 0, &tensor, buffer.get(),
                                                    &buffer.size, options, sizeof options - 1);
        EXPECT_EQ(buffer.output(code).text(), expected);
    }
}

}  // namespace
}  // namespace headrace::wasi_nn_test
