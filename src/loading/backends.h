#pragma once

namespace headrace {

/// Loads ggml's backends that are libraries of their own, and the one that GGML_BACKEND_PATH names.
void load_all_backends();

/// The same where ggml has no device yet.
void load_backends();

/// The tables of ggml's CPU backend, where that is no library of its own: other devices are not looked for.
void make_cpu_tables();

}  // namespace headrace
