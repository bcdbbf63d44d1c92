#include "model/names.h"

#include <array>
#include <span>
#include <string_view>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/options.h"
#include "palmshed/result.h"

namespace palmshed {
namespace model {
namespace {

constexpr auto kErrorCodes = std::to_array<Spelling<ErrorCode>>({
    {ErrorCode::kExecFailed, "EXEC_FAILED"},
    {ErrorCode::kFsError, "FS_ERROR"},
    {ErrorCode::kInvalidBackend, "INVALID_BACKEND"},
    {ErrorCode::kCpuExceeded, "ERR_CPU_EXCEEDED"},
    {ErrorCode::kOomExceeded, "ERR_OOM_EXCEEDED"},
    {ErrorCode::kDiskQuotaExceeded, "ERR_DISK_QUOTA_EXCEEDED"},
    {ErrorCode::kTimeout, "TIMEOUT"},
    {ErrorCode::kUnknown, "UNKNOWN"},
    {ErrorCode::kInvalidOptions, "INVALID_OPTIONS"},
    {ErrorCode::kUnsupported, "UNSUPPORTED"},
    {ErrorCode::kNotFound, "NOT_FOUND"},
    {ErrorCode::kConflict, "CONFLICT"},
    {ErrorCode::kUnauthorized, "UNAUTHORIZED"},
    {ErrorCode::kOverloaded, "OVERLOADED"},
    {ErrorCode::kBackendLost, "BACKEND_LOST"},
});

constexpr auto kStatuses = std::to_array<Spelling<Status>>({
    {Status::kRunning, "running"},
    {Status::kCompleted, "completed"},
    {Status::kFailed, "failed"},
    {Status::kCancelled, "cancelled"},
    {Status::kTimedOut, "timedout"},
});

constexpr auto kCauses = std::to_array<Spelling<Cause>>({
    {Cause::kExited, "exited"},
    {Cause::kSignaled, "signaled"},
    {Cause::kWallTimeout, "wall_timeout"},
    {Cause::kCpuTime, "cpu_time"},
    {Cause::kMemory, "memory"},
    {Cause::kDisk, "disk"},
    {Cause::kPids, "pids"},
    {Cause::kCancelled, "cancelled"},
    {Cause::kStartupFailed, "startup_failed"},
    {Cause::kBackendLost, "backend_lost"},
    {Cause::kInternal, "internal"},
});

constexpr auto kNetworks = std::to_array<Spelling<Network>>({
    {Network::kDisabled, "disabled"},
    {Network::kAllow, "allow"},
    {Network::kProxy, "proxy"},
});

constexpr auto kStorages = std::to_array<Spelling<Storage>>({
    {Storage::kDisk, "disk"},
    {Storage::kMemory, "memory"},
    {Storage::kLoop, "loop"},
});

constexpr auto kDescendants = std::to_array<Spelling<Descendants>>({
    {Descendants::kKill, "kill"},
    {Descendants::kDetach, "detach"},
    {Descendants::kWait, "wait"},
});

constexpr auto kFileTypes = std::to_array<Spelling<FileType>>({
    {FileType::kFile, "file"},
    {FileType::kDirectory, "directory"},
    {FileType::kSymlink, "symlink"},
    {FileType::kOther, "other"},
});

constexpr auto kSupports = std::to_array<Spelling<Support>>({
    {Support::kSupported, "supported"},
    {Support::kUnsupported, "unsupported"},
    {Support::kUnknown, "unknown"},
});

}  // namespace

template <>
std::span<const Spelling<ErrorCode>> Spellings() {
  return kErrorCodes;
}
template <>
std::span<const Spelling<Status>> Spellings() {
  return kStatuses;
}
template <>
std::span<const Spelling<Cause>> Spellings() {
  return kCauses;
}
template <>
std::span<const Spelling<Network>> Spellings() {
  return kNetworks;
}
template <>
std::span<const Spelling<Storage>> Spellings() {
  return kStorages;
}
template <>
std::span<const Spelling<Descendants>> Spellings() {
  return kDescendants;
}
template <>
std::span<const Spelling<FileType>> Spellings() {
  return kFileTypes;
}
template <>
std::span<const Spelling<Support>> Spellings() {
  return kSupports;
}

std::string_view ResourceOf(ErrorCode code) {
  if (code == ErrorCode::kCpuExceeded) return "cpu";
  if (code == ErrorCode::kOomExceeded) return "memory";
  if (code == ErrorCode::kDiskQuotaExceeded) return "disk";
  return {};
}

}  // namespace model

inline namespace v1 {

std::string_view ToString(ErrorCode code) { return model::Spell(code); }
std::string_view ToString(Status status) { return model::Spell(status); }
std::string_view ToString(Cause cause) { return model::Spell(cause); }

}  // namespace v1
}  // namespace palmshed
