#include "kernel/cgroup_place.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace palmshed::kernel {
namespace {

constexpr char kHybrid[] = "9:name=systemd:/\n4:memory:/jobs/a\n2:cpu,cpuacct:/\n0::/\n";
constexpr char kHybridMounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

CgroupHost Host(std::string self_cgroup, std::string mountinfo) {
  CgroupHost host;
  host.self_cgroup = std::move(self_cgroup);
  host.mountinfo = std::move(mountinfo);
  return host;
}

std::string Group(const std::optional<CgroupPlace>& place) { return place ? place->group : "none"; }

TEST(CgroupPlace, IsFoundInEachHierarchyOfAHybridHost) {
  const CgroupHost host = Host(kHybrid, kHybridMounts);
  EXPECT_EQ(Group(FindPlace1(host, "memory")), "/sys/fs/cgroup/memory/jobs/a");
  EXPECT_EQ(FindPlace1(host, "memory")->mount, "/sys/fs/cgroup/memory");
  EXPECT_EQ(Group(FindPlace1(host, "cpu")), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(Group(FindPlace1(host, "cpuacct")), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(Group(FindPlace1(host, "pids")), "none");
  EXPECT_EQ(Group(FindPlace1(host, "mem")), "none");
  EXPECT_EQ(Group(FindPlace2(host)), "/sys/fs/cgroup/unified");
}

TEST(CgroupPlace, IsRelativeToWhatAContainersMountShows) {
  const CgroupHost host =
      Host("4:memory:/docker/abc/sub\n3:pids:/docker/abc\n2:cpu:/docker/abcdef\n",
           "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n"
           "36 31 0:33 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
           "37 31 0:34 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  EXPECT_EQ(Group(FindPlace1(host, "memory")), "/sys/fs/cgroup/memory/sub");
  EXPECT_TRUE(FindPlace1(host, "memory")->read_only);
  EXPECT_EQ(Group(FindPlace1(host, "pids")), "/sys/fs/cgroup/pids");
  EXPECT_FALSE(FindPlace1(host, "pids")->read_only);
  EXPECT_EQ(Group(FindPlace1(host, "cpu")), "none") << "a name that only begins the same";
}

TEST(CgroupPlace, IsNotFoundWhereTheMountShowsAnotherPart) {
  EXPECT_EQ(Group(FindPlace2(Host("0::/a\n", "41 31 0:38 /b /cg rw - cgroup2 cgroup2 rw\n"))),
            "none");
  EXPECT_EQ(Group(FindPlace2(Host("0::/../a\n", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"))),
            "none");
  EXPECT_EQ(Group(FindPlace2(Host("0::/\n", "41 31 0:38 /../.. /cg rw - cgroup2 cgroup2 rw\n"))),
            "none");
  EXPECT_EQ(Group(FindPlace2(Host("0::/\n", ""))), "none");
}

TEST(CgroupPlace, PrefersAMountThatMayBeWritten) {
  const CgroupHost host = Host("0::/a\n",
                               "41 31 0:38 / /ro ro - cgroup2 cgroup2 rw\n"
                               "42 31 0:38 / /rw rw - cgroup2 cgroup2 rw\n"
                               "43 31 0:38 / /later rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(Group(FindPlace2(host)), "/rw/a");
}

TEST(CgroupPlace, ReadsEscapedNames) {
  const CgroupHost host = Host("0::/\n", "41 31 0:38 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(Group(FindPlace2(host)), "/my groups");
}

TEST(CgroupPlace, SurvivesNonsense) {
  for (const char* text : {"", ":", "::", "0:", "\n\n", " - ", "a b c d e f - cgroup2", "0::\n"}) {
    EXPECT_EQ(Group(FindPlace2(Host(text, text))), "none") << text;
    EXPECT_EQ(Group(FindPlace1(Host(text, text), "memory")), "none") << text;
  }
}

}  // namespace
}  // namespace palmshed::kernel
