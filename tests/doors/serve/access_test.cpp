#include "doors/serve/access.h"

#include <gtest/gtest.h>

#include "doors/serve/http/target.h"
#include "doors/serve/models/metrics.h"
#include "doors/serve/models/places.h"
#include "doors/serve/request/errors.h"
#include "doors/serve/routes.h"

namespace headrace::serve {
namespace {

HttpRequest with_header(const std::string& name, const std::string& value) {
    HttpRequest http;
    http.headers[name] = value;
    return http;
}

int status_of(const Access& access, const HttpRequest& http) {
    try {
        access.client_of(http);
        return 200;
    } catch (const ApiError& error) {
        return error.status;
    }
}

TEST(Access, IsGivenToWhoeverBringsAKey) {
    const Access access({"first", "second-key"});
    EXPECT_EQ(access.client_of(with_header("authorization", "Bearer second-key")), "1");
    EXPECT_EQ(access.client_of(with_header("x-api-key", "first")), "0");
    for (const char* wrong : {"", "f", "firs", "first ", "firstfirst", "second-kez", "firstt"}) {
        EXPECT_EQ(status_of(access, with_header("authorization", std::string("Bearer ") + wrong)), 401)
            << wrong;
        EXPECT_EQ(status_of(access, with_header("x-api-key", wrong)), 401) << wrong;
    }
    EXPECT_EQ(status_of(access, HttpRequest()), 401);
    EXPECT_EQ(status_of(access, with_header("authorization", "Basic first")), 401);
    EXPECT_EQ(access.client_of(with_header("authorization", "first")), "0");
    EXPECT_EQ(status_of(access, with_header("authorization", "firs")), 401);
}

TEST(Access, KeepsTheNamesOfKeysThatStayAndGivesThoseOfOthersToNobody) {
    const Access first({"alice", "bob"});
    const Access second({"mallory", "bob"}, &first);
    const Access third({"bob", "mallory", "alice"}, &second);
    const auto name = [](const Access& access, const std::string& key) {
        return access.client_of(with_header("x-api-key", key));
    };
    EXPECT_EQ(name(second, "bob"), name(first, "bob"));
    EXPECT_EQ(name(third, "bob"), name(first, "bob"));
    EXPECT_EQ(name(third, "mallory"), name(second, "mallory"));
    for (const std::string& other : {name(first, "alice"), name(first, "bob")})
        EXPECT_NE(name(second, "mallory"), other);
    EXPECT_NE(name(third, "alice"), name(first, "alice")) << "who comes back is somebody new";
}

TEST(Access, IsFreeWithoutKeys) { EXPECT_EQ(Access({}).client_of(HttpRequest()), ""); }

TEST(Routes, SayWhichMethodsAPathTakes) {
    EXPECT_EQ(methods_of("/props"), "GET, HEAD, POST, OPTIONS");
    EXPECT_EQ(methods_of("/v1/health"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(methods_of("/slots/3"), "POST, OPTIONS");
}

TEST(Targets, MayNameTheServer) {
    EXPECT_EQ(origin_form("http://a:1/v1/models?x=http://b/"), "/v1/models?x=http://b/");
    EXPECT_EQ(origin_form("http://a"), "/");
    EXPECT_EQ(origin_form("/v1/models"), "/v1/models");
    EXPECT_EQ(origin_form("*"), "*");
    EXPECT_EQ(request_to("GET", "http://a/slots?fail_on_no_slot=1").query.at("fail_on_no_slot"), "1");
}

TEST(Routes, AskForKeysButForHealthThePageAndTheVersion) {
    for (const char* path : {"/health", "/v1/health", "/", "/api/version"})
        EXPECT_TRUE(find_route("GET", path)->is_public) << path;
    for (const char* path :
         {"/v1/models", "/models", "/api/tags", "/props", "/slots", "/metrics", "/lora-adapters"})
        EXPECT_FALSE(find_route("GET", path)->is_public) << path;
}

TEST(Routes, AreFoundByMethodAndPath) {
    EXPECT_NE(find_route("POST", "/v1/chat/completions"), nullptr);
    EXPECT_EQ(find_route("GET", "/v1/chat/completions"), nullptr);
    EXPECT_NE(find_path("/v1/chat/completions"), nullptr);
    EXPECT_NE(find_route("GET", "/v1/models/some/model.gguf"), nullptr);
    EXPECT_EQ(find_route("GET", "/v1/models/"), nullptr);
    EXPECT_NE(find_route("HEAD", "/health"), nullptr);
    EXPECT_EQ(find_path("/v1/chat/completions/"), nullptr);
}

TEST(Places, AreGivenInOrderAndTakenBack) {
    Places places(2, 0);
    auto first = places.enter("", -1);
    auto second = places.enter("", -1);
    auto third = places.enter("", -1);
    EXPECT_EQ(first->slot(), 0);
    EXPECT_EQ(second->slot(), 1);
    EXPECT_EQ(third->slot(), -1);
    EXPECT_EQ(places.waiting(), 1u);
    first.reset();
    EXPECT_EQ(third->slot(), 0);
    EXPECT_EQ(places.waiting(), 0u);
    second.reset();
    auto wanted = places.enter("", 1);
    EXPECT_EQ(wanted->slot(), 1);
    Reply reply;
    reply.prompt = {1, 2};
    reply.tokens = {3};
    reply.prompt_tokens = 2;
    reply.cached_tokens = reply.generated_tokens = 1;
    wanted->ends_with(reply);
    wanted.reset();
    const PlaceState state = places.states()[1];
    EXPECT_FALSE(state.is_processing);
    EXPECT_EQ(state.tokens, (std::vector<std::int32_t>{1, 2, 3}));
    EXPECT_EQ(state.read_tokens, 1);
    EXPECT_EQ(state.cached_tokens, 1);
    EXPECT_EQ(state.generated_tokens, 1);
}

TEST(Places, ShowWhatTheirRequestsAskFor) {
    Places places(1, 0);
    auto first = places.enter("", -1);
    first->asks_for({{"top_k", 7}}, true, "mine");
    first->generated("a\nb", 2);
    PlaceState state = places.states().front();
    EXPECT_EQ(state.parameters, (Parameters{{"top_k", 7}}));
    EXPECT_TRUE(state.streams && state.has_new_line);
    EXPECT_EQ(state.client, "mine");
    EXPECT_EQ(state.generated_tokens, 2);
    auto second = places.enter("", -1);
    second->asks_for({{"top_k", 8}}, false, "yours");
    first.reset();
    second->slot();
    state = places.states().front();
    EXPECT_EQ(state.parameters, (Parameters{{"top_k", 8}}));
    EXPECT_FALSE(state.streams || state.has_new_line);
    EXPECT_EQ(state.client, "yours");
    places.set_tokens(0, {1, 2}, "mine");
    EXPECT_EQ(places.states().front().client, "mine");
}

TEST(Places, OfOneKeyAreLimited) {
    Places places(4, 1);
    auto mine = places.enter("a", -1);
    try {
        places.enter("a", -1);
        ADD_FAILURE() << "a second request of the key was let in";
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 429);
        EXPECT_GT(error.retry_after, 0);
    }
    EXPECT_NE(places.enter("b", -1), nullptr);
    mine.reset();
    EXPECT_NE(places.enter("a", -1), nullptr);
}

TEST(Histograms, CountWhatIsNoMoreThanEachBound) {
    Histogram histogram;
    histogram.observe(0.001);
    histogram.observe(0.02, 3);
    histogram.observe(1000);
    std::string text;
    histogram.write(text, "t", "m=\"x\"");
    EXPECT_NE(text.find("t_bucket{m=\"x\",le=\"0.001\"} 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_bucket{m=\"x\",le=\"0.01\"} 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_bucket{m=\"x\",le=\"0.025\"} 4\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_bucket{m=\"x\",le=\"60\"} 4\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_bucket{m=\"x\",le=\"+Inf\"} 5\n"), std::string::npos) << text;
    EXPECT_NE(text.find("t_count{m=\"x\"} 5\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::serve
