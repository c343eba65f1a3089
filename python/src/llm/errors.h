#pragma once

namespace headrace::python {

/// headrace::Exception becomes LanguageModelError in the module that calls this.
void translate_errors();

}  // namespace headrace::python
