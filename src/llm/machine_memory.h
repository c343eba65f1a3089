#pragma once

namespace headrace::llm {

/// The share of the machine's memory that is in use, 0 to 1; the control group's limit counts when there is
/// one.
double memory_share_in_use();

}  // namespace headrace::llm
