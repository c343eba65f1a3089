#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "array_run.h"
#include "arrays.h"
#include "bindings.h"
#include "stats.h"

/// headrace.Session: a stream of runs on arrays.
namespace headrace::python {
namespace {

/// A session whose calls take turns, also with those of sessions that share states with it.
class TurnSession {
public:
    TurnSession(const Executable& executable, const std::vector<const TurnSession*>& sharing)
        : inputs_(executable.inputs()),
          outputs_(executable.outputs()),
          states_(executable.states()),
          turns_{std::make_shared<std::mutex>()},
          session_(make_session(executable, sharing)) {
        for (const TurnSession* other : sharing)
            turns_.insert(turns_.end(), other->turns_.begin(), other->turns_.end());
        std::sort(turns_.begin(), turns_.end());
        turns_.erase(std::unique(turns_.begin(), turns_.end()), turns_.end());
    }

    const std::vector<TensorInfo>& inputs() const { return inputs_; }
    const std::vector<TensorInfo>& outputs() const { return outputs_; }
    const std::vector<TensorInfo>& states() const { return states_; }

    /// Calls function(session) when it is this session's turn; not with the GIL, which others need for
    /// theirs.
    template <class Function>
    auto in_turn(Function function) {
        std::vector<std::unique_lock<std::mutex>> locks;
        for (const auto& turn : turns_) locks.emplace_back(*turn);
        return function(session_);
    }

private:
    static Session make_session(const Executable& executable,
                                const std::vector<const TurnSession*>& sharing) {
        std::vector<const Session*> sessions;
        for (const TurnSession* other : sharing) sessions.push_back(&other->session_);
        return Session(executable, sessions);
    }

    std::vector<TensorInfo> inputs_, outputs_, states_;
    std::vector<std::shared_ptr<std::mutex>> turns_;  ///< sorted, so that all sessions lock in one order
    Session session_;
};

nb::dict run(TurnSession& self, nb::dict inputs, nb::object outputs, bool reuse_buffers, bool profile,
             std::int64_t most_iterations) {
    const RunOptions options{
        .reuse_buffers = reuse_buffers, .profile = profile, .most_iterations = most_iterations};
    const ArrayRun on_arrays{.call = "run",
                             .inputs = self.inputs(),
                             .outputs = self.outputs(),
                             .run = [&](std::span<const InputView> in, const Session::MakeOutputs& make) {
                                 self.in_turn([&](Session& s) { s.run(in, make, options); });
                             }};
    return on_arrays(inputs, outputs);
}

nb::dict output_shapes(TurnSession& self, nb::dict given) {
    Shapes shapes;
    for (const TensorInfo& info : self.inputs()) {
        const nb::handle shape = needed_entry("output_shapes", "input", given, info.name, self.inputs());
        shapes.push_back(nb::cast<std::vector<std::int64_t>>(shape));
    }
    {
        const nb::gil_scoped_release others_run;
        shapes = self.in_turn([&](Session& s) { return s.output_shapes(shapes); });
    }
    nb::dict result;
    for (std::size_t i = 0; i < shapes.size(); ++i) result[to_str(self.outputs()[i].name)] = shapes[i];
    return result;
}

const TensorInfo& find_state(const TurnSession& self, const std::string& name) {
    std::string known;
    for (const TensorInfo& info : self.states()) {
        if (info.name == name) return info;
        known += (known.empty() ? "" : ", ") + info.name;
    }
    throw nb::value_error(
        ("the graph has no state '" + name + "'; it has: " + (known.empty() ? "none" : known)).c_str());
}

nb::object read_state(TurnSession& self, const std::string& name) {
    const TensorInfo& info = find_state(self, name);
    ArrayWriter writer(info.dtype, info.shape);
    const OutputView view = writer.view();
    {
        const nb::gil_scoped_release others_run;
        self.in_turn([&](Session& s) { s.read_state(name, view.data, view.bytes); });
    }
    return writer.finish();
}

void write_state(TurnSession& self, const std::string& name, nb::handle data) {
    const TensorInfo& info = find_state(self, name);
    const ArrayReader reader(data, info.dtype, ("state '" + name + "'").c_str());
    if (reader.shape() != info.shape)
        throw nb::value_error(("write_state: the array has shape " + shape_text(reader.shape()) +
                               ", state '" + name + "' " + shape_text(info.shape))
                                  .c_str());
    const nb::gil_scoped_release others_run;
    self.in_turn([&](Session& s) { s.write_state(name, reader.data(), reader.bytes()); });
}

nb::dict stats(TurnSession& self) {
    RunStats found;
    {
        const nb::gil_scoped_release others_run;
        found = self.in_turn([](Session& s) { return s.stats(); });
    }
    return to_dict(found);
}

constexpr const char* kRunSignature =
    "def run(self, inputs: dict[str, numpy.typing.ArrayLike | Tensor], outputs: dict[str, numpy.ndarray | "
    "Tensor | type[Tensor]] | None = None, *, reuse_buffers: bool = True, profile: bool = False, "
    "most_iterations: int = 10000000) -> dict[str, "
    "numpy.ndarray | Tensor]";

constexpr const char* kRunDoc = R"(Runs the graph on arrays by name and returns every output by name.

inputs: arrays of NumPy or, by DLPack, of others. Dense ones of the declared dtype are read where they are; others
are converted where numbers keep their meaning: to floats by rounding, to integers without. outputs: arrays of the
caller's for some outputs; dense ones of the right dtype are written in place. They may be inputs, too, but not
overlap each other. A Tensor is used where its content lies, as an input or for an output; the class Tensor in place of
one makes it for an output, and both are what comes back for it. reuse_buffers: take activations from the executable's pool. profile: run and time one node after
the other; stats has the times. most_iterations: of all loops of the run together; one that would go on after that
is an error.

Errors: ValueError for missing, unknown or unfit arrays; RuntimeError of the device.)";

}  // namespace

void bind_session(nb::module_& m) {
    nb::class_<TurnSession>(m, "Session",
                            "One stream of runs of an executable, with states of its own. Calls from several "
                            "threads take turns; sessions of one executable run at the same time.")
        .def(
            nb::init<const Executable&, const std::vector<const TurnSession*>&>(), nb::arg("executable"),
            nb::arg("sharing") = nb::make_tuple(),
            nb::sig("def __init__(self, executable: Executable, sharing: collections.abc.Sequence[Session] = "
                    "()) -> None"),
            "States that one of `sharing` has, too (the same name and type), are shared with it.")
        .def("run", &run, nb::arg("inputs"), nb::arg("outputs") = nb::none(), nb::kw_only(),
             nb::arg("reuse_buffers") = true, nb::arg("profile") = false,
             nb::arg("most_iterations") = RunOptions().most_iterations, nb::sig(kRunSignature), kRunDoc)
        .def("output_shapes", &output_shapes, nb::arg("input_shapes"),
             nb::sig("def output_shapes(self, input_shapes: dict[str, collections.abc.Sequence[int]]) -> "
                     "dict[str, list[int]]"),
             "Shapes that the outputs will have for these shapes of inputs, by name.")
        .def("read_state", &read_state, nb::arg("name"), "A copy of a state.")
        .def("write_state", &write_state, nb::arg("name"), nb::arg("data"),
             "Replaces a state; ValueError when the array does not fit it.")
        .def(
            "reset_states", [](TurnSession& self) { self.in_turn([](Session& s) { s.reset_states(); }); },
            nb::call_guard<nb::gil_scoped_release>(), "All states back to their initial values.")
        .def_prop_ro("stats", &stats, "How the last run went: a dict of RunStats' members.");
}

}  // namespace headrace::python
