// For programs that end at the first call that fails.
#pragma once

#include <cstdlib>
#include <iostream>
#include <type_traits>
#include <utility>

#include "palmshed/palmshed.h"

template <class T>
T Must(palmshed::Result<T> result) {
  if (!result) {
    std::cerr << ToString(result.error().code) << ": " << result.error().message << '\n';
    std::exit(EXIT_FAILURE);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
