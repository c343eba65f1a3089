#pragma once
#include "headrace/language_model.h"

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/service/requests.h"

namespace headrace {

/// What fails inside is an exception outside, and never another one than headrace::Exception.
template <class Call>
auto throwing(Call call) {
    try {
        return value_or_throw(call());
    } catch (const Exception&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw Exception(Code::out_of_memory, "no memory is left");
    } catch (const std::exception& e) {
        throw Exception(Code::backend_failure, e.what());
    }
}

struct LanguageModel::Impl {
    static constexpr llm::ModelSlots::Id kSlot = 0;  // the only one

    explicit Impl(llm::LoadedModel model) : sessions(model.settings.session) {
        models.put(std::move(model), false);
    }

    llm::LoadedModel model() const { return models.find(kSlot).value(); }
    /// What a request asks for, in a session of its own.
    Result<llm::RequestInput> input(const Request& request);
    /// conversation: the parameters that are its defaults, or null.
    Result<llm::RequestInput> input(std::shared_ptr<llm::Session> session, const Parameters* conversation,
                                    const Parameters& parameters) const;
    Result<llm::RequestInput> vector_input(const Parameters& parameters);
    Result<std::unique_ptr<llm::TextRequest>> start(const Request& request, bool is_read_by_pieces);
    /// A session of a request that belongs to no conversation.
    std::shared_ptr<llm::Session> own_session(const std::string& owner = {});

    llm::Sessions sessions;
    llm::ModelSlots models;
    llm::Requests requests{models, sessions};
    std::atomic<std::uint64_t> next_request = 1;
};

struct Conversation::Impl {
    Impl(std::shared_ptr<LanguageModel::Impl> of, std::shared_ptr<llm::Session> opened, Parameters defaults);
    ~Impl();
    Result<std::unique_ptr<llm::TextRequest>> start(std::string_view message, const Parameters& given,
                                                    bool is_read_by_pieces);

    const std::shared_ptr<LanguageModel::Impl> model;
    const std::shared_ptr<llm::Session> session;
    const Parameters parameters;
};

struct Generation::Impl {
    std::shared_ptr<const void> owner;  // of what the request uses
    std::unique_ptr<llm::TextRequest> request;
    std::mutex mutex;
    std::optional<Reply> reply;
    std::optional<llm::AnswerReader> reader;  // of next_part

    static Result<std::unique_ptr<Impl>> of(std::shared_ptr<const void> owner,
                                            Result<std::unique_ptr<llm::TextRequest>> started);
    /// More than one that is done and empty, or nothing.
    Result<std::optional<Piece>> next();
    const Reply& end();
};

/// The end of a request that nobody reads piece by piece.
Result<Reply> whole_reply(Result<std::unique_ptr<llm::TextRequest>> started);

}  // namespace headrace
