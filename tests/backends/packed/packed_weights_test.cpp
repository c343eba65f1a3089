#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "backends/packed/format.h"
#include "checkout.h"
#include "kernels/gemm/block_gemm_int8.h"

namespace headrace::packed {
namespace {

struct WeightCase {
    ggml_type type;
    std::int64_t k, n, rows;
};

std::vector<float> random_weights(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& v : values) v = normal(random);
    return values;
}

/// The one that the library has added to the CPU's, as llama.cpp finds it; null if there is none.
ggml_backend_buffer_type_t offered_buffer_type() {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
    for (ggml_backend_buffer_type_t* type = list(cpu); *type; ++type)
        if (std::string(ggml_backend_buft_name(*type)) == "HEADRACE_PACKED") return *type;
    return nullptr;
}

ggml_backend_buffer_type_t packed_buffer_type() {
    static ggml_backend_reg_t loaded = ggml_backend_load(packed_library().c_str());
    return loaded ? offered_buffer_type() : nullptr;
}

/// Weights · rows on ggml's CPU, with the weights in a buffer of the given type.
class Product {
public:
    Product(const WeightCase& c, ggml_backend_t backend, ggml_backend_buffer_type_t weights_type)
        : backend_(backend) {
        context_ = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        weights_ = ggml_new_tensor_2d(context_, c.type, c.k, c.n);
        ggml_set_name(weights_, "weights");
        buffer_ = ggml_backend_buft_alloc_buffer(weights_type,
                                                 ggml_backend_buft_get_alloc_size(weights_type, weights_));
        ggml_backend_buffer_set_usage(buffer_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_backend_tensor_alloc(buffer_, weights_, ggml_backend_buffer_get_base(buffer_));
        graph_context_ = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        input_ = ggml_new_tensor_2d(graph_context_, GGML_TYPE_F32, c.k, c.rows);
        output_ = ggml_mul_mat(graph_context_, weights_, input_);
        graph_ = ggml_new_graph(graph_context_);
        ggml_build_forward_expand(graph_, output_);
        graph_buffer_ = ggml_backend_alloc_ctx_tensors(graph_context_, backend);
    }
    ~Product() {
        ggml_backend_buffer_free(graph_buffer_);
        ggml_backend_buffer_free(buffer_);
        ggml_free(graph_context_);
        ggml_free(context_);
    }

    void set_weights(const std::vector<char>& blocks, std::size_t piece) {
        for (std::size_t at = 0; at < blocks.size(); at += piece)
            ggml_backend_tensor_set(weights_, blocks.data() + at, at, std::min(piece, blocks.size() - at));
    }
    std::vector<float> run(const std::vector<float>& rows) {
        ggml_backend_tensor_set(input_, rows.data(), 0, ggml_nbytes(input_));
        EXPECT_EQ(ggml_backend_graph_compute(backend_, graph_), GGML_STATUS_SUCCESS);
        std::vector<float> out(static_cast<std::size_t>(ggml_nelements(output_)));
        ggml_backend_tensor_get(output_, out.data(), 0, ggml_nbytes(output_));
        return out;
    }
    ggml_tensor* output() { return output_; }

private:
    ggml_backend_t backend_;
    ggml_context *context_, *graph_context_;
    ggml_tensor *weights_, *input_, *output_;
    ggml_cgraph* graph_;
    ggml_backend_buffer_t buffer_, graph_buffer_;
};

class PackedWeights : public ::testing::Test {
protected:
    void SetUp() override {
        if (!kernels::has_block_gemm_int8(BlockFormat::q8_0))
            GTEST_SKIP() << "this CPU has neither AVX2 nor 64-bit NEON";
        packed_ = packed_buffer_type();
        ASSERT_NE(packed_, nullptr) << "the library was not loaded";
        cpu_ = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(cpu_, 2);
    }
    void TearDown() override {
        if (cpu_) ggml_backend_free(cpu_);
    }

    static std::vector<char> blocks_of(const WeightCase& c) {
        const std::vector<float> values = random_weights(static_cast<std::size_t>(c.k * c.n), 1);
        std::vector<char> blocks(ggml_row_size(c.type, c.k) * static_cast<std::size_t>(c.n));
        ggml_quantize_chunk(c.type, values.data(), blocks.data(), 0, c.n, c.k, nullptr);
        return blocks;
    }

    /// Root mean square of the difference to ggml's own kernels, relative to their result.
    double difference(const WeightCase& c, std::size_t piece) {
        const std::vector<char> blocks = blocks_of(c);
        const std::vector<float> rows = random_weights(static_cast<std::size_t>(c.k * c.rows), 2);
        Product ours(c, cpu_, packed_), theirs(c, cpu_, ggml_backend_cpu_buffer_type());
        EXPECT_TRUE(ggml_backend_supports_op(cpu_, ours.output()));
        ours.set_weights(blocks, std::min(piece, blocks.size()));
        theirs.set_weights(blocks, blocks.size());
        const std::vector<float> a = ours.run(rows), b = theirs.run(rows);
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2), size += std::pow(b[i], 2);
        return std::sqrt(sum / size);
    }

    ggml_backend_buffer_type_t packed_ = nullptr;
    ggml_backend_t cpu_ = nullptr;
};

constexpr WeightCase kCases[] = {{GGML_TYPE_Q8_0, 64, 48, 1},  {GGML_TYPE_Q8_0, 1024, 300, 70},
                                 {GGML_TYPE_Q4_0, 256, 64, 9}, {GGML_TYPE_Q4_1, 96, 65, 33},
                                 {GGML_TYPE_Q4_K, 512, 40, 5}, {GGML_TYPE_Q8_0, 32, 2, 3},
                                 {GGML_TYPE_F16, 513, 77, 1},  {GGML_TYPE_F16, 320, 130, 37},
                                 {GGML_TYPE_BF16, 513, 77, 1}, {GGML_TYPE_BF16, 320, 130, 37}};

TEST_F(PackedWeights, AreMultipliedByGgmlsCpuAsItsOwnAre) {
    for (const WeightCase& c : kCases)
        EXPECT_LT(difference(c, SIZE_MAX), 0.012) << ggml_type_name(c.type) << " " << c.k << "x" << c.n;
}

TEST_F(PackedWeights, MayBeWrittenInPieces) {
    for (const WeightCase& c : kCases) EXPECT_LT(difference(c, 1000), 0.012) << ggml_type_name(c.type);
}

TEST_F(PackedWeights, ComeBeforeGgmlsOwnPackedFormats) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
    EXPECT_EQ(list(cpu)[0], packed_);
    EXPECT_FALSE(ggml_backend_buft_is_host(packed_)) << "others would read it as blocks";
}

TEST_F(PackedWeights, AreOfferedForProductsOfKnownFormatsOnly) {
    Product of_another_format({GGML_TYPE_Q6_K, 256, 32, 4}, cpu_, packed_);
    EXPECT_FALSE(ggml_backend_supports_op(cpu_, of_another_format.output()));
    ggml_context* context = ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true});
    EXPECT_FALSE(packed_format(ggml_new_tensor_3d(context, GGML_TYPE_Q8_0, 64, 8, 4)));
    EXPECT_FALSE(packed_format(ggml_new_tensor_2d(context, GGML_TYPE_F32, 64, 8)));
    ggml_free(context);
}

TEST_F(PackedWeights, TakeThePlainWeightsMemoryAndAThirdMoreForK) {
    ggml_context* context = ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true});
    for (ggml_type type :
         {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_K, GGML_TYPE_F16, GGML_TYPE_BF16}) {
        const ggml_tensor* t = ggml_new_tensor_2d(context, type, 1024, 256);
        const double ratio = static_cast<double>(allocation_size(t)) / static_cast<double>(ggml_nbytes(t));
        EXPECT_NEAR(ratio, type == GGML_TYPE_Q4_K ? 4.0 / 3 : 1.0, 0.001) << ggml_type_name(type);
    }
    ggml_free(context);
}

TEST_F(PackedWeights, GiveTheSameProductWhateverThreadsCompute) {
    const WeightCase& c = kCases[1];
    const std::vector<char> blocks = blocks_of(c);
    const std::vector<float> rows = random_weights(static_cast<std::size_t>(c.k * c.rows), 2);
    Product product(c, cpu_, packed_);
    product.set_weights(blocks, blocks.size());
    ggml_backend_cpu_set_n_threads(cpu_, 1);
    const std::vector<float> expected = product.run(rows);
    for (int threads : {2, 5, 3}) {
        ggml_backend_cpu_set_n_threads(cpu_, threads);
        EXPECT_EQ(product.run(rows), expected) << threads;
    }
}

TEST(PreloadedLibrary, OffersItsWeightsWithoutBeingLoadedAsABackend) {
    if (!kernels::has_block_gemm_int8(BlockFormat::q8_0)) GTEST_SKIP() << "this CPU has no products of bytes";
    if (const char* is_offered = std::getenv("HEADRACE_TEST_IS_OFFERED")) {  // as a program started below
        EXPECT_EQ(offered_buffer_type() != nullptr, std::string(is_offered) == "yes");
        return;
    }
    const auto run_with = [](const std::string& environment) {
        const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
        const std::string filter = " --gtest_filter=PreloadedLibrary.* > /dev/null";
        return std::system(("env " + environment + " '" + program + "'" + filter).c_str());
    };
    EXPECT_EQ(run_with("HEADRACE_TEST_IS_OFFERED=yes LD_PRELOAD='" + packed_library() + "'"), 0);
    EXPECT_EQ(run_with("HEADRACE_TEST_IS_OFFERED=no LD_PRELOAD="), 0);
}

}  // namespace
}  // namespace headrace::packed
