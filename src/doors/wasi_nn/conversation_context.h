#pragma once
#include <memory>
#include <mutex>

#include "doors/wasi_nn/context.h"
#include "doors/wasi_nn/metadata_json.h"
#include "headrace/hosted_models.h"

namespace headrace::wasi_nn {

/// A place in a session with a language model: input 0 is the prompt, 1 parameters as JSON; output 0 the
/// answer, 1 its metadata, or the error of a call that failed.
class ConversationContext final : public Context {
public:
    explicit ConversationContext(HostedConversation opened) : conversation_(std::move(opened)) {}

    Status set_input(std::uint32_t index, const GuestTensor& tensor) override;
    Status compute() override;
    Result<ContextInfo> info() override;
    Result<int> read_output(std::uint32_t index, const OutputReader& read) override;
    Result<std::string> run(std::string_view prompt, std::string_view parameters) override;
    Result<Answer> infer(std::string_view prompt, std::string_view parameters) override;
    Result<std::optional<std::string>> compute_piece() override;
    Result<std::string> last_piece() override;
    Status end_pieces() override;
    void cancel() override { conversation_.cancel(); }
    bool is_orphan() const override { return !conversation_.has_model() && !conversation_.has_requests(); }
    void close() override { conversation_.close(); }
    Origin origin() override;

private:
    Result<Answer> answer_inputs();
    Status start_pieces();
    Status finish_pieces();
    void keep(Answer made);
    void note_held();
    Status hold(std::size_t bytes, std::string_view what);
    Status hold_request(std::string_view prompt, std::string_view parameters);
    template <class T>
    Result<T> noting_error(Result<T> result);

    HostedConversation conversation_;
    std::mutex mutex_;  // of what follows, up to error_
    std::string prompt_, parameters_;
    std::size_t parameter_bytes_ = 0;  // as they count
    bool has_prompt_ = false;
    std::uint64_t prompt_number_ = 0;    // that it is, of those that were set
    std::uint64_t earlier_request_ = 0;  // the latest one when an input was set
    std::optional<Answer> answer_;
    std::string piece_, piece_metadata_;
    std::optional<Error> error_;  // of the last call

    std::mutex pieces_;  // of what follows; taken before mutex_
    std::optional<Generation> by_pieces_;
    std::uint64_t pieces_prompt_number_ = 0;
    bool tells_speed_ = false;  // beside every piece
    std::optional<PieceTime> first_piece_;
};

}  // namespace headrace::wasi_nn
