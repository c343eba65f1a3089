#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "checkout.h"
#include "llm/engine/engine.h"
#include "llm/engine/registry.h"
#include "llm/service/conversation.h"

namespace headrace::llm {

/// The chat model of this repository, which answers a closed domain; see models/README.md.
inline std::string tiny_model() { return checkout_path("models/tiny-chat-q8_0.gguf"); }

/// Greedy, one thread, nothing shared with other tests unless they ask for the same context.
inline Settings tiny_settings() {
    Settings settings;
    settings.request.sampling.temp = 0;
    settings.request.n_predict = 64;
    settings.context.n_ctx = 512;
    settings.context.n_threads = 1;
    return settings;
}

/// A request's settings that go on until `n_predict` tokens, -1 for ever, whatever the model says.
inline RequestSettings endless_request(RequestSettings settings, int n_predict = -1) {
    settings.sampling.ignore_eos = true;
    settings.n_predict = n_predict;
    return settings;
}

inline std::shared_ptr<Engine> tiny_engine(const Settings& settings = tiny_settings()) {
    Result<Runner> runner = open_runner(tiny_model(), settings);
    if (!runner.ok()) throw std::runtime_error(runner.error().message);
    return runner.value().engine;
}

/// The request of a question, as a user's message.
inline GenerationRequest question(Engine& engine, const std::string& text, RequestSettings settings) {
    settings.chat = "on";
    Result<Prompt> prompt = make_prompt(engine.model(), {}, text, engine.context_size(), settings);
    if (!prompt.ok()) throw std::runtime_error(prompt.error().message);
    return {.prompt = prompt.value().tokens, .settings = settings, .owner = text};
}
inline GenerationRequest question(Engine& engine, const std::string& text) {
    return question(engine, text, tiny_settings().request);
}

inline std::shared_ptr<Generation> ask(Engine& engine, GenerationRequest request) {
    auto generation = engine.submit(std::move(request));
    if (!generation.ok()) throw std::runtime_error(generation.error().message);
    return generation.value();
}

}  // namespace headrace::llm
