// Network disabled: the sandbox's own loopback and nothing else. Each refusal has its control: the
// same probe reaches the same listener from outside.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/host_listener.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

class Network : public KernelTest {};

/// Reached once by the control, never from inside.
void ExpectOneHit(Sandbox& sandbox, const HostListener& listener, std::vector<std::string> probe) {
  ExpectOnlyOutside(sandbox, std::move(probe));
  EXPECT_EQ(listener.hits(), 1);
}

// G1, C028
TEST_F(Network, TcpToTheHostIsRefused) {
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Tcp();
  ExpectOneHit(sandbox, *listener, {"tcp", "127.0.0.1", listener->where()});
}

// G1, C028
TEST_F(Network, TcpToTheHostOverIpv6IsRefused) {
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Tcp6();
  ExpectOneHit(sandbox, *listener, {"tcp", "::1", listener->where()});
}

// G1: nothing leads out either.
TEST_F(Network, NoRouteLeadsOut) {
  Sandbox sandbox = MakeSandbox();
  for (const char* address : {"192.0.2.1", "169.254.169.254", "10.0.0.1", "2001:db8::1"}) {
    const ExecResult run = Exec(sandbox, {"./probe", "tcp", address, "80"});
    EXPECT_THAT(run, ExitedWith(kRefused, "REFUSED ENETUNREACH\n")) << address;
  }
  EXPECT_THAT(ExecShell(sandbox, "grep -v ' lo:' /proc/net/dev | grep -c :"), ExitedWith(1, "0\n"));
}

// G2
TEST_F(Network, UdpToTheHostIsRefused) {
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Udp();
  ExpectOneHit(sandbox, *listener, {"udp", "127.0.0.1", listener->where()});
}

// G3
TEST_F(Network, NameServerOfTheHostIsOutOfReach) {
  Sandbox sandbox = MakeSandbox();
  const auto resolver = HostListener::Udp();
  ExpectOneHit(sandbox, *resolver, {"dns", "127.0.0.1", resolver->where()});
}

// G3, C045: without a network a look-up must not wait for name servers.
TEST_F(Network, LookUpFailsFast) {
  Sandbox sandbox = MakeSandbox();
  const auto begin = steady_clock::now();
  const ExecResult run = ExecShell(sandbox, "getent hosts example.com || echo none");
  EXPECT_THAT(run, ExitedWith(0, "none\n"));
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(ExecShell(sandbox, "getent hosts localhost").exit_code, 0);
}

// G4, C080
TEST_F(Network, RawAndPacketSocketsAreRefused) {
  Sandbox sandbox = MakeSandbox();
  for (const char* kind : {"raw", "raw6", "packet", "packet-dgram"}) {
    EXPECT_EQ(Exec(sandbox, {"./probe", "socket", kind}).exit_code, kRefused) << kind;
    if (::geteuid() == 0) {
      EXPECT_EQ(RunOnHost({ProbePath(), "socket", kind}, As::kSelf).exit_code, kReached) << kind;
    }
  }
}

// G4, C080: families that a network namespace does not contain, or that only the kernel needs.
TEST_F(Network, ExoticSocketFamiliesAreRefused) {
  Sandbox sandbox = MakeSandbox();
  for (const char* kind : {"netlink-generic", "netlink-audit", "netlink-uevent"}) {
    ExpectOnlyOutside(sandbox, {"socket", kind});
  }
  for (const char* kind : {"vsock", "alg"}) {  // Not in every kernel.
    EXPECT_EQ(Exec(sandbox, {"./probe", "socket", kind}).exit_code, kRefused) << kind;
  }
  EXPECT_EQ(Exec(sandbox, {"./probe", "socket", "netlink-route"}).exit_code, kReached);
}

// G5
TEST_F(Network, IcmpLeavesNoSandbox) {
  Sandbox sandbox = MakeSandbox();
  // TEST-NET-1: no host answers there, but the packet must not even find a way.
  const ExecResult run = Exec(sandbox, {"./probe", "ping", "192.0.2.1"});
  EXPECT_EQ(run.exit_code, kRefused);
  EXPECT_THAT(run.out.bytes,
              ::testing::AnyOf("REFUSED EACCES\n", "REFUSED EPERM\n", "REFUSED ENETUNREACH\n"));
  if (::geteuid() == 0) {
    EXPECT_EQ(RunOnHost({ProbePath(), "ping", "127.0.0.1"}, As::kSelf).exit_code, kReached);
  }
}

// G6, C044
TEST_F(Network, AbstractSocketOfTheHostIsRefused) {
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Abstract();
  ExpectOneHit(sandbox, *listener, {"abstract", listener->where()});
}

// G6, C004
TEST_F(Network, PathSocketOfTheHostIsRefused) {
  const TempDir directory(0755);
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Path(directory.path() + "/host.sock");
  ExpectOneHit(sandbox, *listener, {"path", listener->where()});
}

// G6, C004
TEST_F(Network, WellKnownSocketsOfTheHostAreAbsent) {
  Sandbox sandbox = MakeSandbox();
  for (const char* path :
       {"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock",
        "/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/systemd/private",
        "/run/systemd/resolve/io.systemd.Resolve", "/run/user/0/bus", "/tmp/.X11-unix/X0"}) {
    EXPECT_THAT(Exec(sandbox, {"./probe", "path", path}), ExitedWith(kRefused, "REFUSED ENOENT\n"))
        << path;
  }
}

// G6, C044
TEST_F(Network, AbstractSocketOfOneSandboxIsUnknownToAnother) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox server = MakeSandbox(), client = MakeSandbox();
  const std::string name = "inner-" + UniqueName();
  const Execution serving = Must(server.Start(
      {"python3", "-uc",
       "import socket,sys\ns=socket.socket(socket.AF_UNIX); s.bind('\\0'+sys.argv[1]); s.listen()\n"
       "print('ready')\nwhile True: c,_=s.accept(); c.send(b'x'); c.close()",
       name}));
  ASSERT_TRUE(AwaitOutput(serving, "ready"));
  EXPECT_EQ(Exec(server, {"./probe", "abstract", name}).exit_code, kReached);
  EXPECT_EQ(Exec(client, {"./probe", "abstract", name}).exit_code, kRefused);
  EXPECT_EQ(RunOnHost({ProbePath(), "abstract", name}).exit_code, kRefused);
}

// G7
TEST_F(Network, OrphanedDescendantReachesNoMore) {
  Sandbox sandbox = MakeSandbox();
  const auto listener = HostListener::Tcp();
  ExpectOneHit(sandbox, *listener, {"tcp-from-orphan", "127.0.0.1", listener->where()});
}

// G8
TEST_F(Network, OrdinaryUserGetsTheSameIsolation) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const auto tcp = HostListener::Tcp();
    const auto udp = HostListener::Udp();
    const auto abstract = HostListener::Abstract();
    ExpectOneHit(sandbox, *tcp, {"tcp", "127.0.0.1", tcp->where()});
    ExpectOneHit(sandbox, *udp, {"udp", "127.0.0.1", udp->where()});
    ExpectOneHit(sandbox, *abstract, {"abstract", abstract->where()});
  });
}

// C045
TEST_F(Network, OwnLoopbackWorks) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  for (const char* family : {"AF_INET, '127.0.0.1'", "AF_INET6, '::1'"}) {
    const std::string script = std::string("import socket as k\nf, a = k.") + family +
                               "\ns = k.socket(f); s.bind((a, 0)); s.listen()\n"
                               "k.create_connection(s.getsockname()[:2], 2); print('ok')";
    EXPECT_THAT(Exec(sandbox, {"python3", "-c", script}), ExitedWith(0, "ok\n")) << family;
  }
}

// C004, C080
TEST_F(Network, UnixSocketsWorkInsideOneSandbox) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  const std::string script =
      "import socket as k\na, b = k.socketpair(); a.send(b'x'); print(b.recv(1))\n"
      "s = k.socket(k.AF_UNIX); s.bind('own.sock'); s.listen()\n"
      "c = k.socket(k.AF_UNIX); c.connect('own.sock'); print('ok')";
  EXPECT_THAT(Exec(sandbox, {"python3", "-c", script}), ExitedWith(0, "b'x'\nok\n"));
}

// Two sandboxes have two loopbacks.
TEST_F(Network, LoopbackOfOneSandboxIsUnknownToAnother) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox server = MakeSandbox(), client = MakeSandbox();
  const Execution serving = Must(server.Start(
      {"python3", "-uc",
       "import socket\ns=socket.socket(); s.bind(('127.0.0.1',4711)); s.listen(); print('ready')\n"
       "while True: c,_=s.accept(); c.send(b'x'); c.close()"}));
  ASSERT_TRUE(AwaitOutput(serving, "ready"));
  EXPECT_EQ(Exec(server, {"./probe", "tcp", "127.0.0.1", "4711"}).exit_code, kReached);
  EXPECT_EQ(Exec(client, {"./probe", "tcp", "127.0.0.1", "4711"}).exit_code, kRefused);
}

}  // namespace
}  // namespace palmshed::tests
