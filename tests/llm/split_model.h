#pragma once
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <string>

#include "temporary_folder.h"

namespace headrace::llm {

/// A copy of a model in two files, as llama.cpp's gguf-split writes them; removed in the end.
class SplitModel {
public:
    explicit SplitModel(const std::string& whole) {
        ggml_context* tensors = nullptr;
        gguf_context* model = gguf_init_from_file(whole.c_str(), {.no_alloc = false, .ctx = &tensors});
        const std::int64_t count = gguf_get_n_tensors(model);
        for (const int part : {0, 1}) {
            gguf_context* file = gguf_init_empty();
            if (part == 0) gguf_set_kv(file, model);
            gguf_set_val_u16(file, "split.no", static_cast<std::uint16_t>(part));
            gguf_set_val_u16(file, "split.count", 2);
            gguf_set_val_i32(file, "split.tensors.count", static_cast<std::int32_t>(count));
            for (std::int64_t i = part * count / 2; i < (part + 1) * count / 2; ++i)
                gguf_add_tensor(file, ggml_get_tensor(tensors, gguf_get_tensor_name(model, i)));
            EXPECT_TRUE(gguf_write_to_file(file, this->part(part).c_str(), false));
            gguf_free(file);
        }
        gguf_free(model);
        ggml_free(tensors);
    }

    std::string part(int number) const { return folder_ / fmt::format("m-{:05}-of-00002.gguf", number + 1); }

private:
    const TemporaryFolder folder_;
};

}  // namespace headrace::llm
