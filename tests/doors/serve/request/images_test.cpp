#include "doors/serve/request/images.h"

#include <gmock/gmock.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

std::string file(const Image& image) { return *image.file; }

TEST(Images, AreWhatTheirBase64StandsFor) {
    EXPECT_EQ(file(image_of_base64("YQ==", "x")), "a");
    EXPECT_EQ(file(image_of_base64("YWI=", "x")), "ab");
    EXPECT_EQ(file(image_of_base64("YWJj", "x")), "abc");
    EXPECT_EQ(file(image_of_base64("YWJj\r\nZGVm\n", "x")), "abcdef") << "lines, as base64 writes them";
    EXPECT_EQ(file(image_of_base64("_-8", "x")), "\xff\xef") << "letters of URLs, and no padding";
    const std::string zeros(3, '\0');
    EXPECT_EQ(file(image_of_base64("AAAA", "x")), zeros);
}

TEST(Images, OfATextThatIsNoBase64AreWrong) {
    for (const char* text : {"", "=", "a", "a*bc", "abcde", "ab=c", "\x80\x80\x80\x80"}) {
        const ApiError error = error_of([&] { image_of_base64(text, "images[2]"); });
        EXPECT_EQ(error.field, "images[2]") << text;
        EXPECT_THAT(error.what(), HasSubstr("no base64"));
    }
}

TEST(Images, AreNotFetched) {
    EXPECT_EQ(file(image_of_url("data:image/jpeg;base64,YWJj", "x")), "abc");
    EXPECT_EQ(file(image_of_url("YWJj", "x")), "abc");
    for (const char* url : {"http://a/b.png", "https://a/b.png", "file:///a.png", "ftp://a", "HTTP://a"}) {
        const ApiError error = error_of([&] { image_of_url(url, "x"); });
        EXPECT_EQ(error.status, 400);
        EXPECT_THAT(error.what(), HasSubstr("nothing is fetched")) << url;
    }
    for (const char* url :
         {"data:image/png,abc", "data:;base64,YWJj", "data:text/plain;base64,YWJj", "data:"})
        EXPECT_THAT(error_of([&] { image_of_url(url, "x"); }).what(), HasSubstr("data:image/png;base64"))
            << url;
}

TEST(Images, StandWhereTheirPartsDo) {
    const Json part = {{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,YWJj"}}}};
    const Image image = image_of_part(Fields(part, "content[1]"));
    EXPECT_EQ(file(image), "abc");
    EXPECT_EQ(image.name, "content[1].image_url.url");
    const Json flat = {{"type", "input_image"}, {"image_url", "data:image/png;base64,YWJj"}};
    EXPECT_EQ(image_of_part(Fields(flat, "content[1]")).name, "content[1].image_url");
}

TEST(Images, OfAModelThatReadsTextsAloneAreWrong) {
    const std::vector<Message> messages{{.role = "user", .images = {image_of_base64("YWJj", "images[0]")}}};
    EXPECT_EQ(error_of([&] { check_images(messages, {}); }).field, "images[0]");
    check_images(messages, {.reads_images = true});
    check_images({{.role = "user", .content = "a"}}, {});
}

}  // namespace
}  // namespace headrace::serve
