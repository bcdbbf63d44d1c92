// The helper program, which travels inside the library.
#pragma once

#include <cstddef>
#include <span>

// Symbols of image.S.
extern "C" const unsigned char palmshed_helper_image[];      // NOLINT(*-identifier-naming)
extern "C" const unsigned char palmshed_helper_image_end[];  // NOLINT(*-identifier-naming)

namespace palmshed::child {

/// The bytes of `palmshed-init`, a static program.
inline std::span<const std::byte> HelperImage() {
  return {reinterpret_cast<const std::byte*>(palmshed_helper_image),
          static_cast<std::size_t>(palmshed_helper_image_end - palmshed_helper_image)};
}

}  // namespace palmshed::child
