#include "backends/native/uid_lease.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

constexpr std::uint64_t kFirstUnusable = 1ULL << 31;
constexpr std::uint64_t kNobody = 65534;
constexpr int kCandidates = 16;
constexpr std::string_view kEntry = "palmshed";

/// Ids from `begin` to before `end`.
struct Ids {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool Overlaps(const Ids& other) const { return begin < other.end && other.begin < end; }
  bool Holds(const Ids& other) const { return begin <= other.begin && other.end <= end; }
};

using Fields = std::vector<std::string_view>;

Fields Split(std::string_view line, std::string_view separators) {
  Fields fields;
  while (true) {
    const std::size_t end = line.find_first_of(separators);
    if (end != 0 || separators == ":") fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The lines of a file; a file that does not exist has none.
Result<std::string> ReadIfPresent(const std::string& path) {
  auto content = sys::ReadFile(path);
  if (!content && content.error().sys_errno == ENOENT) return std::string();
  return content;
}

/// `count` ids from `start`; nullopt when the text says no such thing.
std::optional<Ids> Range(std::string_view start, std::string_view count) {
  const auto begin = Number(start);
  const auto size = Number(count);
  if (!begin || !size) return std::nullopt;
  return Ids{.begin = *begin, .end = *begin + *size};
}

/// Everything that the host's accounts say about ids.
struct Accounts {
  std::vector<Ids> used{};     ///< By other accounts.
  std::optional<Ids> entry{};  ///< Ours in /etc/subuid.
  std::vector<Ids> uid_map{};  ///< What this user namespace has.
  std::vector<Ids> gid_map{};
};

/// passwd(5) and group(5): the id is the third field of both.
void ReadAccounts(std::string_view text, std::vector<Ids>& used) {
  for (const std::string_view line : Split(text, "\n")) {
    const Fields fields = Split(line, ":");
    if (fields.size() < 3) continue;
    if (const auto id = Number(fields[2])) used.push_back({.begin = *id, .end = *id + 1});
  }
}

/// subuid(5) and subgid(5): name, first id, count. The first entry of ours goes to `entry`.
void ReadSubordinates(std::string_view text, std::vector<Ids>& used, std::optional<Ids>& entry) {
  for (const std::string_view line : Split(text, "\n")) {
    const Fields fields = Split(line, ":");
    if (fields.size() != 3) continue;
    const auto ids = Range(fields[1], fields[2]);
    if (!ids) continue;
    if (fields[0] != kEntry) {
      used.push_back(*ids);
    } else if (!entry) {
      entry = ids;
    }
  }
}

/// user_namespaces(7): first id inside, first id outside, count.
std::vector<Ids> ReadMap(std::string_view text) {
  std::vector<Ids> map;
  for (const std::string_view line : Split(text, "\n")) {
    const Fields fields = Split(line, " \t");
    if (fields.size() < 3) continue;
    if (const auto ids = Range(fields[0], fields[2])) map.push_back(*ids);
  }
  return map;
}

Result<Accounts> ReadAll(const AccountFiles& files) {
  PALMSHED_TRY(const std::string passwd, ReadIfPresent(files.passwd));
  PALMSHED_TRY(const std::string group, ReadIfPresent(files.group));
  PALMSHED_TRY(const std::string subuid, ReadIfPresent(files.subuid));
  PALMSHED_TRY(const std::string subgid, ReadIfPresent(files.subgid));
  PALMSHED_TRY(const std::string uid_map, sys::ReadFile(files.uid_map));
  PALMSHED_TRY(const std::string gid_map, sys::ReadFile(files.gid_map));
  Accounts accounts{.uid_map = ReadMap(uid_map), .gid_map = ReadMap(gid_map)};
  std::optional<Ids> same_for_groups;
  ReadAccounts(passwd, accounts.used);
  ReadAccounts(group, accounts.used);
  ReadSubordinates(subuid, accounts.used, accounts.entry);
  ReadSubordinates(subgid, accounts.used, same_for_groups);
  return accounts;
}

/// Why `ids` cannot be used; empty when they can.
std::string_view Problem(const Ids& ids, const Accounts& accounts) {
  const auto mapped = [&](const std::vector<Ids>& map) {
    return std::ranges::any_of(map, [&](const Ids& part) { return part.Holds(ids); });
  };
  if (ids.begin >= ids.end) return "is empty";
  if (ids.begin == 0) return "holds root";
  if (ids.begin <= kNobody && kNobody < ids.end) return "holds nobody (65534)";
  if (ids.end > kFirstUnusable) return "goes beyond 2147483647";
  if (std::ranges::any_of(accounts.used, [&](const Ids& used) { return used.Overlaps(ids); })) {
    return "overlaps ids of other accounts";
  }
  if (!mapped(accounts.uid_map) || !mapped(accounts.gid_map)) {
    return "is not part of this user namespace";
  }
  return {};
}

Error NoRange(const Ids& ids, std::string_view problem) {
  return Unsupported("uid",
                     "the range of uids for sandboxes, " + std::to_string(ids.begin) + " to " +
                         std::to_string(ids.end - 1) + ", " + std::string(problem),
                     "Put a line palmshed:START:65536 with unused uids into /etc/subuid.");
}

UidRange ToRange(const Ids& ids) {
  return {.start = static_cast<std::uint32_t>(ids.begin),
          .count = static_cast<std::uint32_t>(ids.end - ids.begin)};
}

Result<std::uint32_t> RandomBelow(std::uint32_t bound) {
  std::uint64_t random = 0;
  PALMSHED_TRY_VOID(sys::GetRandom(std::as_writable_bytes(std::span(&random, 1))));
  return static_cast<std::uint32_t>(random % bound);
}

}  // namespace

Result<UidRange> ChooseUidRange(const AccountFiles& files) {
  PALMSHED_TRY(const Accounts accounts, ReadAll(files));
  if (accounts.entry) {
    const std::string_view problem = Problem(*accounts.entry, accounts);
    if (problem.empty()) return ToRange(*accounts.entry);
    return std::unexpected(NoRange(*accounts.entry, problem));
  }
  Ids ids{.begin = kDefaultUidRange.start, .end = kDefaultUidRange.start + kDefaultUidRange.count};
  std::string_view problem;
  for (int i = 0; i < kCandidates; ++i) {
    problem = Problem(ids, accounts);
    if (problem.empty()) return ToRange(ids);
    ids = {.begin = ids.end, .end = ids.end + kDefaultUidRange.count};
  }
  return std::unexpected(NoRange(ids, problem));
}

UidLease::UidLease(std::uint32_t uid, UniqueFd lock) : uid_(uid), lock_(std::move(lock)) {}

Result<UidLease> UidLease::Take(BorrowedFd state, UidRange range) {
  PALMSHED_CHECK(range.count > 0);
  // A description of its own: locks of one description do not exclude each other.
  PALMSHED_TRY(UniqueFd lock, sys::OpenAt(state, "uids", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  PALMSHED_TRY(const std::uint32_t first, RandomBelow(range.count));
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint32_t uid =
        range.start + static_cast<std::uint32_t>((std::uint64_t{first} + i) % range.count);
    auto locked = sys::LockByte(lock.get(), uid);
    if (locked) return UidLease(uid, std::move(lock));
    if (locked.error().sys_errno != EAGAIN && locked.error().sys_errno != EACCES) {
      return std::unexpected(std::move(locked.error()));
    }
  }
  return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                               .message = "Every uid for sandboxes is in use.",
                               .op = "fcntl",
                               .remedy = "Give palmshed a larger range in /etc/subuid."});
}

UniqueFd UidLease::TakeLock() { return std::move(lock_); }

}  // namespace palmshed::backends::native
