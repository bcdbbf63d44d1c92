// Visibility of public symbols.
#pragma once

/// Marks a declaration as part of the library's binary interface.
#define PALMSHED_EXPORT __attribute__((visibility("default")))
