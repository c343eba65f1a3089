#include "doors/serve/options/listed_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace headrace::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ListedModels : public testing::Test {
protected:
    std::string file(const std::string& name, const std::string& text = "GGUF") {
        const std::filesystem::path path = folder_.path() / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }
    Result<std::vector<ServeOptions>> read(std::vector<std::string> arguments,
                                           const std::map<std::string, std::string>& environment = {}) {
        HR_ASSIGN(const ServeOptions server, serve_options(arguments, environment));
        return listed_models(server);
    }
    std::string folder() const { return (folder_.path() / "models").string(); }

private:
    TemporaryFolder folder_;
};

std::int64_t context(const ServeOptions& model) {
    const ParameterValue* value = model.parameters.find("n_ctx");
    return value ? std::get<std::int64_t>(*value) : -999;
}

TEST_F(ListedModels, AreAFoldersFilesAndFoldersWithOneModelEach) {
    file("models/b.gguf");
    file("models/mmproj-b.gguf");
    file("models/read.me");
    file("models/a/x-00002-of-00002.gguf");
    file("models/a/x-00001-of-00002.gguf");
    file("models/empty/notes.txt");
    const auto models = read({"--models-dir", folder()}).value();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_THAT(models[0].aliases, ElementsAre("a"));
    EXPECT_THAT(models[1].aliases, ElementsAre("b"));
    EXPECT_THAT(models[0].model, HasSubstr("x-00001-of-00002.gguf"));
}

TEST_F(ListedModels, ReadImagesByTheFileBesideThemInTheirFolder) {
    file("models/seeing/model.gguf");
    const std::string projector = file("models/seeing/mmproj-f16.gguf");
    file("models/alone.gguf");
    file("models/mmproj-other.gguf");
    const auto projector_of = [](const ServeOptions& model) {
        const ParameterValue* value = model.parameters.find("mmproj");
        return value ? std::get<std::string>(*value) : "";
    };
    const auto models = read({"--models-dir", folder()}).value();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_EQ(projector_of(models[0]), "") << "a file that lies among the models is of none";
    EXPECT_EQ(projector_of(models[1]), projector);
    EXPECT_THAT(models[1].model, HasSubstr("seeing/model.gguf"));
    EXPECT_EQ(projector_of(read({"--models-dir", folder(), "--no-mmproj"}).value()[1]), "");
    const std::string preset = file("m.ini", "[seeing]\nmmproj = mine.gguf\n");
    EXPECT_EQ(projector_of(read({"--models-dir", folder(), "--models-preset", preset}).value()[1]),
              "mine.gguf");
}

TEST_F(ListedModels, HaveOptionsByTheirRank) {
    file("models/a.gguf");
    const std::string preset = file("m.ini", "[*]\nc = 3\nnp = 2\n[a]\nc = 2\n");
    const std::string config = file("serve.ini", "c = 5\nn-predict = 9\n");
    const std::vector<std::string> usual = {"--models-dir", folder(),   "--models-preset",
                                            preset,         "--config", config};
    const std::map<std::string, std::string> environment = {{"LLAMA_ARG_CTX_SIZE", "4"},
                                                            {"LLAMA_ARG_N_PARALLEL", "7"}};
    const auto model = read(usual, environment).value().front();
    EXPECT_EQ(context(model), 2);
    EXPECT_EQ(model.parallel, 2u) << "a section's comes before the environment's";
    EXPECT_EQ(std::get<std::int64_t>(*model.parameters.find("n_predict")), 9);
    std::vector<std::string> more = usual;
    more.insert(more.end(), {"-c", "1"});
    EXPECT_EQ(context(read(more, environment).value().front()), 1);
}

TEST_F(ListedModels, HaveNamesOfTheirOwnAndNotTheProgramsFirstModels) {
    const std::string preset = file("m.ini", "[a]\nmodel = x/y.gguf\nalias = c,d\ntags = new\npin = on\n");
    const auto models =
        read({"-m", "own.gguf", "-a", "own", "--tags", "old", "--models-preset", preset}).value();
    ASSERT_EQ(models.size(), 1u);
    EXPECT_EQ(models[0].model, "x/y.gguf");
    EXPECT_THAT(models[0].aliases, ElementsAre("a", "c", "d"));
    EXPECT_THAT(models[0].tags, ElementsAre("new"));
    EXPECT_TRUE(models[0].is_pinned);
    EXPECT_FALSE(models[0].loads_at_start);
}

TEST_F(ListedModels, MayBeGraphs) {
    const std::string graph = file("g.hrg", "no GGUF");
    const std::string preset = file(
        "m.ini", "[v]\nmodel = " + graph + "\npooling = cls\n[r]\nmodel = " + graph + "\nreranking = true\n");
    const auto models = read({"--models-preset", preset}).value();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_EQ(models[0].ranking_model, graph);
    EXPECT_EQ(models[1].embedding_model, graph);
    EXPECT_EQ(models[1].encoder.pooling, TextPooling::cls);
    EXPECT_TRUE(models[0].model.empty() && models[1].model.empty());
}

TEST_F(ListedModels, KeepTheValuesOfACallerAndTheProgramsDefaults) {
    file("models/a.gguf");
    ServeOptions server = serve_options(std::vector<std::string>{"--models-dir", folder()}, {}).value();
    EXPECT_EQ(context(listed_models(server).value().front()), -999);
    add_program_defaults(server);
    add_parameters(server, {{"n_batch", std::int64_t{64}}});
    const auto model = listed_models(server).value().front();
    EXPECT_EQ(context(model), 0);
    EXPECT_EQ(std::get<std::int64_t>(*model.parameters.find("n_batch")), 64);
    EXPECT_EQ(std::get<std::int64_t>(*read_again(server).value().parameters.find("n_batch")), 64);
}

TEST_F(ListedModels, HaveOneSectionEach) {
    const std::string twice = file("m.ini", "[a]\nmodel = x.gguf\n\n[b]\nmodel = y.gguf\n[a]\nc = 5\n");
    EXPECT_THAT(read({"--models-preset", twice}).error().message,
                HasSubstr("m.ini, line 6: [a] is there already, at line 1"));
    file("models/a.gguf");
    const std::string all = file("n.ini", "[*]\nc = 5\n[*]\nnp = 2\n");
    EXPECT_THAT(read({"--models-dir", folder(), "--models-preset", all}).error().message,
                HasSubstr("n.ini, line 3: [*] is there already"));
}

TEST_F(ListedModels, AreNotTakenAwayByAnEmptyFile) {
    for (const char* nothing : {"", "# later\n", "version = 1\n", "[*]\nc = 5\n"})
        EXPECT_THAT(read({"--models-preset", file("m.ini", nothing)}).error().message,
                    HasSubstr("m.ini: it names no model"));
    file("models/a.gguf");
    EXPECT_FALSE(read({"--models-dir", folder(), "--models-preset", file("m.ini", "")}).ok());
    EXPECT_TRUE(read({"--models-dir", folder(), "--models-preset", file("m.ini", "[*]\nc = 5\n")}).ok());
}

TEST_F(ListedModels, AreNotThereWhereNoFolderIs) {
    EXPECT_THAT(read({"--models-dir", "/nowhere"}).error().message, HasSubstr("--models-dir: '/nowhere'"));
    EXPECT_THAT(read({"--models-preset", "/nowhere.ini"}).error().message, HasSubstr("--models-preset"));
    EXPECT_TRUE(read({"a.gguf"}).value().empty());
}

}  // namespace
}  // namespace headrace::serve
