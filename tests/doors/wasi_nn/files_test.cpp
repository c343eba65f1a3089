// Which files a guest may name, and where the configuration comes from.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "doors/wasi_nn/chat_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// A model root with the model inside, and a second copy outside.
class WasiNnFiles : public EachLibrary {
protected:
    void SetUp() override {
        EachLibrary::SetUp();
        if (IsSkipped()) return;
        fs::create_directories(root() / "sub");
        fs::create_directories(folder_.path() / "root-2");
        fs::copy_file(model_path(), root() / "chat.gguf");
        fs::copy_file(model_path(), folder_.path() / "root-2" / "outside.gguf");
        fs::create_symlink(outside(), root() / "link.gguf");
        fs::create_symlink(folder_.path() / "root-2", root() / "linked");
    }
    fs::path root() const { return folder_.path() / "root"; }
    fs::path outside() const { return folder_.path() / "root-2" / "outside.gguf"; }
    int load(const Host& host, const std::string& name, std::string_view config = kModelConfig) const {
        std::uint32_t graph = 77;
        return host.try_load(name, config, &graph);
    }
    void expect_confined(const Host& host) const {
        EXPECT_EQ(load(host, "chat.gguf"), 0);
        EXPECT_EQ(load(host, (root() / "chat.gguf").string()), 0);
        EXPECT_EQ(load(host, "sub/../chat.gguf"), 0);
        EXPECT_EQ(load(host, "missing.gguf"), 103);
        for (const std::string& name :
             {outside().string(), std::string("../root-2/outside.gguf"),
              std::string("sub/../../root-2/outside.gguf"), std::string("link.gguf"),
              std::string("linked/outside.gguf"), std::string("/etc/passwd"), std::string("../nothing.gguf"),
              std::string(".."), std::string("/")})
            EXPECT_EQ(load(host, name), library->numbers.outside_root) << name;
    }

private:
    const TemporaryFolder folder_;
};
HR_EACH_LIBRARY(WasiNnFiles);

TEST_P(WasiNnFiles, TheConfigurationConfinesNamesToARoot) {
    expect_confined(Host(*library, R"({"model_root": ")" + root().string() + R"("})"));
}

TEST_P(WasiNnFiles, TheEnvironmentConfinesNamesToARoot) {
    const EnvironmentVariable variable("HEADRACE_MODEL_ROOT", root().string());
    expect_confined(Host(*library));
}

TEST_P(WasiNnFiles, ANameWithALongPartIsToldOf) {
    for (const std::string& config : {std::string(), R"({"model_root": ")" + root().string() + R"("})"}) {
        const Host host(*library, config);
        EXPECT_EQ(load(host, "sub/" + std::string(256, 'x') + "/chat.gguf"), 1);
        EXPECT_THAT(library->get_output(host.ctx(), 0, 1).text(),
                    HasSubstr("the model's name has a part of 256 bytes, 'xxxx"));
        EXPECT_EQ(load(host, std::string(255, 'x')), 103);
    }
}

TEST_P(WasiNnFiles, AnAliasNamesAFileOutside) {
    const EnvironmentVariable config("HEADRACE_CONFIG", R"({"model_root": ")" + root().string() +
                                                            R"(", "model_aliases": {"tiny": ")" +
                                                            outside().string() + R"("}})");
    const Host host(*library);
    EXPECT_EQ(load(host, "tiny"), 0);
    EXPECT_EQ(load(host, outside().string()), library->numbers.outside_root);
}

TEST_P(WasiNnFiles, ErrorsNameFilesAsTheGuestDidAndNoFolderOfTheHost) {
    std::ofstream(root() / "sub" / "cut.gguf") << "GGUF\3";
    std::ofstream(root() / "text.gguf") << "hello";
    std::ofstream(outside().parent_path() / "cut.gguf") << "GGUF\3";
    const std::string cut = (outside().parent_path() / "cut.gguf").string();
    const Host host(*library, R"({"model_aliases": {"mine": ")" + cut + R"("}, "model_root": ")" +
                                  root().string() + R"("})");
    struct Wrong {
        const char *name, *config, *said;
    };
    const Wrong wrong[] = {
        {"missing.gguf", "", "missing.gguf"},
        {"sub/missing.gguf", "", "sub/missing.gguf"},
        {"sub", "", "sub"},
        {"sub/cut.gguf", "", "sub/cut.gguf"},
        {"text.gguf", "", "text.gguf"},
        {"mine", "", "mine"},
        {"../x.gguf", "", "../x.gguf"},
        {"chat.gguf", R"({"n_threads": 1, "draft_model": "sub/cut.gguf"})", "sub/cut.gguf"},
        {"chat.gguf", R"({"n_threads": 1, "lora": [{"path": "text.gguf", "scale": 1}]})", "text.gguf"},
        {"chat.gguf", R"({"n_ctx": 2000000000})", "chat.gguf"},
    };
    for (const auto& [name, config, said] : wrong) {
        SCOPED_TRACE(std::string(name) + config);
        ASSERT_NE(load(host, name, config), 0);
        const std::string error = library->get_output(host.ctx(), 0, 1).text();
        EXPECT_THAT(error, HasSubstr(R"({"error":)"));
        EXPECT_THAT(error, Not(HasSubstr("wasi_nn_files_")));
        EXPECT_THAT(error, HasSubstr(said));
    }
}

TEST_P(WasiNnFiles, TheConfigurationMayBeAFile) {
    const fs::path file = root() / "headrace.json";
    std::ofstream(file) << R"({"model_root": ")" << root().string() << R"("})";
    {
        const EnvironmentVariable config("HEADRACE_CONFIG", "@" + file.string());
        expect_confined(Host(*library));
    }
    for (const std::string& name : {file.string() + "-missing", root().string()}) {
        const EnvironmentVariable config("HEADRACE_CONFIG", "@" + name);
        void* ctx = nullptr;
        EXPECT_EQ(library->init_backend(&ctx), library->numbers.not_found) << name;
        EXPECT_EQ(ctx, nullptr);
    }
}

TEST_P(WasiNnFiles, RepliesTellWhatBothConfigurationsGotWrong) {
    const EnvironmentVariable config("HEADRACE_CONFIG", R"({"max_sesions": 5, "pressure_threshold": 7})");
    const Host host(*library, R"({"max_concurent": 3})");
    const std::uint32_t context = host.open(host.load());
    host.ask(context, "What is 2+3?");
    EXPECT_THAT(
        library->get_output(host.ctx(), context, 1).text(),
        testing::AllOf(HasSubstr("did you mean 'max_sessions'"), HasSubstr("'pressure_threshold' is 7"),
                       HasSubstr("did you mean 'max_concurrent'")));
}

TEST_P(WasiNnFiles, AGuestsConfigurationReachesNoOtherFiles) {
    const Host host(*library, R"({"model_root": ")" + root().string() + R"("})");
    const std::string other = outside().string();
    EXPECT_EQ(load(host, "chat.gguf", R"({"draft_model": ")" + other + R"("})"),
              library->numbers.outside_root);
    EXPECT_EQ(load(host, "chat.gguf", R"({"lora": [{"path": ")" + other + R"("}]})"),
              library->numbers.outside_root);
    EXPECT_EQ(load(host, other, R"({"model_root": "/", "n_threads": 1})"), library->numbers.outside_root);
    const fs::path log = root() / "log.txt";
    load(host, "chat.gguf", R"({"log_file": ")" + log.string() + R"(", "n_threads": 1})");
    EXPECT_FALSE(fs::exists(log));
}

}  // namespace
}  // namespace headrace::wasi_nn_test
