// Kernel interfaces that musl's headers do not name: values of the kernel's own uapi headers, which
// stay out of the helper's include path.
#pragma once

#include <cstdint>

namespace palmshed::child {

// capability.h
inline constexpr unsigned kCapSetgid = 6;
inline constexpr unsigned kCapSetuid = 7;
inline constexpr unsigned kCapSetpcap = 8;
inline constexpr unsigned kCapNetAdmin = 12;
inline constexpr unsigned kCapSysAdmin = 21;
inline constexpr std::uint32_t kCapabilityVersion3 = 0x20080522;
inline constexpr unsigned kMaxCapability = 63;  ///< The width of a set; the kernel knows fewer.

struct CapabilityHeader {
  std::uint32_t version;
  std::int32_t pid;
};
struct CapabilityWord {
  std::uint32_t effective;
  std::uint32_t permitted;
  std::uint32_t inheritable;
};

// mount.h, openat2.h, fcntl.h
inline constexpr unsigned kOpenTreeClone = 1;
inline constexpr unsigned kMoveMountFromEmptyPath = 0x04;
inline constexpr unsigned kMoveMountToEmptyPath = 0x40;
inline constexpr std::uint64_t kMountAttrReadOnly = 0x01;
inline constexpr std::uint64_t kMountAttrNoSuid = 0x02;
inline constexpr std::uint64_t kMountAttrNoDev = 0x04;
inline constexpr std::uint64_t kMountAttrNoExec = 0x08;
inline constexpr unsigned kFsOpenCloexec = 1;
inline constexpr unsigned kFsMountCloexec = 1;
inline constexpr unsigned kFsConfigSetString = 1;
inline constexpr unsigned kFsConfigCreate = 6;
inline constexpr std::uint64_t kResolveNoMagicLinks = 0x02;
inline constexpr std::uint64_t kResolveNoSymlinks = 0x04;
inline constexpr std::uint64_t kResolveInRoot = 0x10;

struct MountAttributes {
  std::uint64_t set;
  std::uint64_t clear;
  std::uint64_t propagation;
  std::uint64_t user_namespace;
};
struct OpenHow {
  std::uint64_t flags;
  std::uint64_t mode;
  std::uint64_t resolve;
};

// stat.h: struct statx, of which only the mount is of interest.
inline constexpr unsigned kStatxMountId = 0x1000;

struct StatxMount {
  char before[144];
  std::uint64_t mount_id;
  char after[104];
};
static_assert(sizeof(StatxMount) == 256);

// close_range.h, futex.h, keyctl.h, ioprio.h
inline constexpr int kFutexWait = 0;
inline constexpr int kFutexWake = 1;
inline constexpr int kKeyctlJoinSessionKeyring = 1;
inline constexpr int kKeyctlSetPermissions = 5;
inline constexpr int kKeySessionKeyring = -3;
inline constexpr int kIoPriorityProcess = 1;
inline constexpr unsigned kCloseRangeUnshare = 1U << 1;
inline constexpr unsigned kCloseRangeCloexec = 1U << 2;

// prctl.h
inline constexpr std::uint64_t kDefaultTimerSlackNs = 50000;

// landlock.h
inline constexpr unsigned kLandlockRulePathBeneath = 1;
inline constexpr std::uint64_t kLandlockRefer = 1ULL << 13;
inline constexpr std::uint64_t kLandlockScopeSignal = 2;

struct LandlockRuleset {
  std::uint64_t handled_fs;
  std::uint64_t handled_net;
  std::uint64_t scoped;
};
struct [[gnu::packed]] LandlockPathBeneath {
  std::uint64_t access;
  std::int32_t parent_fd;
};

// seccomp.h, filter.h
inline constexpr unsigned kSeccompSetModeFilter = 1;
inline constexpr std::uint32_t kMaxFilterInstructions = 4096;

struct FilterInstruction {
  std::uint16_t code;
  std::uint8_t jump_true;
  std::uint8_t jump_false;
  std::uint32_t k;
};
struct FilterProgram {
  std::uint16_t length;
  const FilterInstruction* instructions;
};

// wait.h
inline constexpr int kPPidfd = 3;

// getdents64(2)
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t record_length;
  std::uint8_t type;
  char name[1];
};

}  // namespace palmshed::child
