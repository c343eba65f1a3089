#pragma once

/// Marks what libheadrace.so exports; everything else is hidden.
#if defined(_WIN32)
#define HEADRACE_API __declspec(dllexport)
#else
#define HEADRACE_API __attribute__((visibility("default")))
#endif
