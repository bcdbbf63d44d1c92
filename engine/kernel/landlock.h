// Landlock: what the running kernel knows and the sets of rights of each version. The constants
// are our own, because headers of the oldest distribution we build on end at version 2.
#pragma once

#include <cstdint>

namespace palmshed::kernel {

namespace landlock {

// Rights on files and directories, struct landlock_ruleset_attr::handled_access_fs.
inline constexpr std::uint64_t kExecute = 1ULL << 0;
inline constexpr std::uint64_t kWriteFile = 1ULL << 1;
inline constexpr std::uint64_t kReadFile = 1ULL << 2;
inline constexpr std::uint64_t kReadDir = 1ULL << 3;
inline constexpr std::uint64_t kRemoveDir = 1ULL << 4;
inline constexpr std::uint64_t kRemoveFile = 1ULL << 5;
inline constexpr std::uint64_t kMakeChar = 1ULL << 6;
inline constexpr std::uint64_t kMakeDir = 1ULL << 7;
inline constexpr std::uint64_t kMakeReg = 1ULL << 8;
inline constexpr std::uint64_t kMakeSock = 1ULL << 9;
inline constexpr std::uint64_t kMakeFifo = 1ULL << 10;
inline constexpr std::uint64_t kMakeBlock = 1ULL << 11;
inline constexpr std::uint64_t kMakeSym = 1ULL << 12;
inline constexpr std::uint64_t kRefer = 1ULL << 13;     ///< Version 2: link, rename across.
inline constexpr std::uint64_t kTruncate = 1ULL << 14;  ///< Version 3.
inline constexpr std::uint64_t kIoctlDev = 1ULL << 15;  ///< Version 5.

// handled_access_net, version 4.
inline constexpr std::uint64_t kBindTcp = 1ULL << 0;
inline constexpr std::uint64_t kConnectTcp = 1ULL << 1;

// scoped, version 6: abstract sockets and signals of processes outside.
inline constexpr std::uint64_t kScopeAbstractUnixSocket = 1ULL << 0;
inline constexpr std::uint64_t kScopeSignal = 1ULL << 1;

/// The only rights that a rule for something other than a directory may have (EINVAL otherwise).
inline constexpr std::uint64_t kFileRights =
    kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

}  // namespace landlock

/// The first version with scopes (Linux 6.12).
inline constexpr int kLandlockAbiWithScopes = 6;

/// What a ruleset can restrict.
struct LandlockRights {
  std::uint64_t fs = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
  bool operator==(const LandlockRights&) const = default;
};

/// Everything that version `abi` knows; all zero for 0. A version newer than ours adds nothing.
LandlockRights RightsOfLandlock(int abi);

/// The running kernel's version; 0 where Landlock is missing or not enabled at boot.
int LandlockAbi();

}  // namespace palmshed::kernel
