#include "backends/native/remedies.h"

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

struct Setting {
  std::string_view file;
  std::string_view refuses;  ///< The value that makes the kernel refuse.
  std::string_view reason;
  std::string_view remedy;
};

// Whatever keeps an ordinary user from making user namespaces, the most specific first.
constexpr std::array<Setting, 3> kUserNamespaceSettings{{
    {"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0",
     "sudo sysctl -w user.max_user_namespaces=15000"},
    {"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0",
     "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "kernel.apparmor_restrict_unprivileged_userns is 1",
     "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
}};

// What follows user.max_ in the names of the limits on namespaces (namespaces(7)).
constexpr std::array<std::string_view, 7> kNamespaces{"user", "mnt", "pid",   "net",
                                                      "ipc",  "uts", "cgroup"};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

bool IsNamespaceStep(std::string_view op) {
  return op.starts_with("clone") || op.starts_with("unshare") || op.ends_with("uid_map") ||
         op.ends_with("gid_map") || op == "setgroups" || op == "private_mounts";
}

bool UnderSeccomp(const ReadKernelFile& read) {
  const auto status = read("/proc/self/status");
  return status && status->find("\nSeccomp:\t2") != std::string::npos;
}

/// ENOSPC: the limit of some kind has been reached, or allows none at all.
plan::Offer::Missing ExplainNamespaceLimit(const Error& failed, const ReadKernelFile& read) {
  for (const std::string_view kind : kNamespaces) {
    const std::string name = "max_" + std::string(kind) + "_namespaces";
    const auto value = read("/proc/sys/user/" + name);
    if (!value || Trimmed(*value) != "0") continue;
    return {.reason = "user." + name + " is 0", .remedy = "sudo sysctl -w user." + name + "=15000"};
  }
  return {
      .reason = failed.message + "; as many namespaces are in use as user.max_*_namespaces allow",
      .remedy = "end other sandboxes, or raise the limits that `sysctl user` shows"};
}

}  // namespace

std::optional<std::string> ReadKernelFileFromHost(const std::string& path) {
  auto content = sys::ReadFile(path);
  if (!content) return std::nullopt;
  return *std::move(content);
}

plan::Offer::Missing ExplainRefusal(const Error& failed, const ReadKernelFile& read) {
  if (IsNamespaceStep(failed.op) && failed.sys_errno == ENOSPC) {
    return ExplainNamespaceLimit(failed, read);
  }
  if (IsNamespaceStep(failed.op)) {
    for (const Setting& setting : kUserNamespaceSettings) {
      const auto value = read(std::string(setting.file));
      if (value && Trimmed(*value) == setting.refuses) {
        return {.reason = std::string(setting.reason), .remedy = std::string(setting.remedy)};
      }
    }
    if (failed.sys_errno == EPERM && UnderSeccomp(read)) {
      return {.reason = failed.message + "; a seccomp filter is active, as in a container",
              .remedy = "start the container with --security-opt seccomp=unconfined"};
    }
    return {.reason = failed.message, .remedy = "allow user namespaces for this user"};
  }
  if (failed.op.ends_with("proc") && failed.sys_errno == EPERM) {
    return {.reason = "the kernel refuses a fresh /proc because parts of this one are masked",
            .remedy =
                "start the container with --security-opt systempaths=unconfined, or name "
                "\"proc\" in `degraded`"};
  }
  return {.reason = failed.message, .remedy = "run `palmshed doctor`"};
}

Control NamespacesRefused(const Error& refused) {
  const auto missing = ExplainRefusal(refused, ReadKernelFileFromHost);
  return {.name = "userNamespaces",
          .works = false,
          .mechanism = "user namespace",
          .detail = missing.reason,
          .lost = "a file view, a process list and a loopback of the sandbox's own",
          .remedy = missing.remedy};
}

}  // namespace palmshed::backends::native
