#include "llm/service/language_model.h"

namespace headrace {

// A conversation.

Conversation::Impl::Impl(std::shared_ptr<LanguageModel::Impl> of, std::shared_ptr<llm::Session> opened,
                         Parameters defaults)
    : model(std::move(of)), session(std::move(opened)), parameters(std::move(defaults)) {
    session->keep();
}

Conversation::Impl::~Impl() {
    session->release();
    model->sessions.close(session);
}

Result<std::unique_ptr<llm::TextRequest>> Conversation::Impl::start(std::string_view message,
                                                                    const Parameters& given,
                                                                    bool is_read_by_pieces) {
    HR_TRY(model->model().check_writes_text());
    model->sessions.close_idle();
    HR_ASSIGN(llm::RequestInput made, model->input(session, &parameters, given));
    made.prompt = message;
    made.is_read_by_pieces = is_read_by_pieces;
    return model->requests.start(std::move(made));
}

Result<Reply> whole_reply(Result<std::unique_ptr<llm::TextRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<llm::TextRequest> request, std::move(started));
    Reply reply = request->end();
    HR_TRY(request->status());
    return reply;
}

Conversation::Conversation(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Reply Conversation::say(std::string_view message, const Parameters& parameters) {
    return throwing([&] { return whole_reply(impl_->start(message, parameters, false)); });
}

Generation Conversation::stream(std::string_view message, const Parameters& parameters) {
    return Generation(throwing(
        [&] { return Generation::Impl::of(impl_->model, impl_->start(message, parameters, true)); }));
}

std::vector<Message> Conversation::messages() const { return impl_->session->messages(); }

void Conversation::cancel() { impl_->model->requests.cancel(impl_->session.get()); }

// An answer piece by piece.

Result<std::unique_ptr<Generation::Impl>> Generation::Impl::of(
    std::shared_ptr<const void> owner, Result<std::unique_ptr<llm::TextRequest>> started) {
    auto impl = std::make_unique<Generation::Impl>();
    impl->owner = std::move(owner);
    HR_ASSIGN(impl->request, std::move(started));
    return impl;
}

Result<std::optional<Piece>> Generation::Impl::next() {
    HR_ASSIGN(llm::Generation::Piece piece, request->next());
    if (!piece.text.empty() || piece.progress) return std::optional<Piece>(std::move(piece));
    end();
    HR_TRY(request->status());
    return std::optional<Piece>();
}

const Reply& Generation::Impl::end() {
    const std::lock_guard lock(mutex);
    if (!reply) reply = request->end();
    return *reply;
}

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

std::optional<Generation::Piece> Generation::next() {
    return throwing([&] { return impl_->next(); });
}

std::optional<MessagePart> Generation::next_part() {
    return throwing([&]() -> Result<std::optional<MessagePart>> {
        if (!impl_->reader) impl_->reader.emplace(impl_->request->answer_reader());
        HR_ASSIGN(std::optional<Piece> piece, impl_->next());
        if (piece) {
            MessagePart part = impl_->reader->read(piece->text);
            part.piece = std::move(*piece);
            return std::optional(std::move(part));
        }
        MessagePart rest = impl_->reader->finish();
        if (rest.content.empty() && rest.reasoning.empty() && rest.calls.empty())
            return std::optional<MessagePart>();
        return std::optional(std::move(rest));
    });
}

bool Generation::wait_for(std::chrono::milliseconds patience) { return impl_->request->wait_for(patience); }

Reply Generation::reply() {
    return throwing([&]() -> Result<Reply> {
        const Reply& reply = impl_->end();
        if (reply.stop_reason != StopReason::cancelled) HR_TRY(impl_->request->status());
        return reply;
    });
}

Reply Generation::end() {
    return throwing([&]() -> Result<Reply> { return impl_->end(); });
}

void Generation::check() const {
    throwing([&] { return impl_->request->status(); });
}

Parameters Generation::parameters() const {
    return throwing([&]() -> Result<Parameters> { return impl_->request->parameters(); });
}

void Generation::cancel() { impl_->request->cancel(); }

}  // namespace headrace
