// Versions of the library and of the specification it implements.
#pragma once

namespace palmshed {
inline namespace v1 {

/// The version of this library (semantic versioning).
inline constexpr char kVersion[] = "0.1.0";
/// The version of the runtime specification that results and capabilities follow.
inline constexpr char kSpecVersion[] = "1.4.0";

}  // namespace v1
}  // namespace palmshed
