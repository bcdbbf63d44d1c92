// Running programs through the helper.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::Step;

class HelperExec : public HelperTest {};
INSTANTIATE_TEST_SUITE_P(Users, HelperExec, ::testing::ValuesIn(kEveryUser), ModeName);

TEST_P(HelperExec, RunsAProgram) {
  const Finished finished = sandbox_->Run({.argv = {"/bin/true"}});
  EXPECT_TRUE(finished.exited_with(0));
  EXPECT_EQ(finished.reply.killed_leftovers, 0U);
  for (int i = child::kStampPrepared; i <= child::kStampCleared; ++i) {
    EXPECT_GE(finished.reply.stamps[i], finished.reply.stamps[i - 1]) << i;
  }
  EXPECT_GT(finished.reply.max_rss_bytes, 0U);
}

// C012: an exit code is never taken for a signal.
TEST_P(HelperExec, TellsExitCodesFromSignals) {
  EXPECT_TRUE(sandbox_->Shell("exit 3").exited_with(3));
  EXPECT_TRUE(sandbox_->Shell("exit 137").exited_with(137));
  EXPECT_TRUE(sandbox_->Shell("kill -9 $$").killed_by(SIGKILL));
  EXPECT_TRUE(sandbox_->Shell("kill -SEGV $$").killed_by(SIGSEGV));
}

TEST_P(HelperExec, ConnectsTheStreams) {
  const Finished finished = sandbox_->Shell("echo out; echo err >&2");
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

// C060: standard streams can be opened again by name.
TEST_P(HelperExec, LetsStreamsBeReopened) {
  const Finished finished = sandbox_->Shell("echo out > /dev/fd/1; echo err > /proc/self/fd/2");
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

// C013: without stdin a program reads its end at once.
TEST_P(HelperExec, GivesAnEmptyStdin) {
  const Finished finished = sandbox_->Shell("cat; echo done");
  EXPECT_EQ(finished.out, "done\n");
  EXPECT_TRUE(finished.exited_with(0));
}

TEST_P(HelperExec, PassesStdinOn) {
  Started started = sandbox_->Start({.argv = {"/bin/cat"}, .stdin_pipe = true});
  ASSERT_EQ(::write(started.in.get(), "hello", 5), 5);
  const Finished finished = sandbox_->Finish(&started);
  EXPECT_EQ(finished.out, "hello");
}

// C055: each reason not to start is told from the others.
TEST_P(HelperExec, SaysWhyAProgramCannotStart) {
  sandbox_->WriteFile("notexec", "#!/bin/sh\n", 0644);
  sandbox_->WriteFile("nointerp", "#!/no/interp\n");
  sandbox_->WriteFile("garbage", "\x7f not a program");
  const Finished missing = sandbox_->Run({.argv = {"./nosuch"}});
  EXPECT_TRUE(missing.failed_at(Step::kExec, ENOENT));
  EXPECT_EQ(missing.reply.detail, 0U);
  const Finished no_interpreter = sandbox_->Run({.argv = {"./nointerp"}});
  EXPECT_TRUE(no_interpreter.failed_at(Step::kExec, ENOENT));
  EXPECT_EQ(no_interpreter.reply.detail, 1U);
  const Finished not_executable = sandbox_->Run({.argv = {"./notexec"}});
  EXPECT_TRUE(not_executable.failed_at(Step::kExec, EACCES));
  EXPECT_EQ(not_executable.reply.detail, 1U);
  EXPECT_TRUE(sandbox_->Run({.argv = {"./garbage"}}).failed_at(Step::kExec, ENOEXEC));
  EXPECT_TRUE(sandbox_->Run({.argv = {"/usr"}}).failed_at(Step::kExec, EACCES));
  EXPECT_TRUE(sandbox_->Run({.argv = {""}}).failed_at(Step::kExec, ENOENT));
  EXPECT_TRUE(sandbox_->Shell("exit 127").exited_with(127));
}

TEST_P(HelperExec, TriesCandidatesInOrder) {
  sandbox_->WriteFile("notexec", "#!/bin/sh\n", 0644);
  sandbox_->WriteFile("nointerp", "#!/no/interp\n");
  const Finished found =
      sandbox_->Run({.argv = {"echo", "hi"},
                     .paths = {"/no/echo", "/etc/passwd/echo", "./notexec", "/bin/echo"}});
  EXPECT_EQ(found.out, "hi\n");
  const Finished forbidden =
      sandbox_->Run({.argv = {"x"}, .paths = {"./nointerp", "./notexec", "/no/x"}});
  EXPECT_TRUE(forbidden.failed_at(Step::kExec, EACCES));
  const Finished broken = sandbox_->Run({.argv = {"x"}, .paths = {"./nointerp", "/no/x"}});
  EXPECT_TRUE(broken.failed_at(Step::kExec, ENOENT));
  EXPECT_EQ(broken.reply.detail, 1U);
}

// C076: a write descriptor that is about to be closed does not fail the exec.
TEST_P(HelperExec, WaitsForAProgramThatIsBeingWritten) {
  sandbox_->WriteFile("busy", "#!/bin/sh\necho ok\n");
  UniqueFd writer(::open((sandbox_->workspace() + "/busy").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  EXPECT_TRUE(sandbox_->Run({.argv = {"./busy"}}).failed_at(Step::kExec, ETXTBSY));
  Started started = sandbox_->Start({.argv = {"./busy"}});
  writer.reset();
  EXPECT_EQ(sandbox_->Finish(&started).out, "ok\n");
}

// An exec that hangs, here on a program that is being written, does not hold up its own end.
TEST_P(HelperExec, EndsAStartThatHangs) {
  sandbox_->WriteFile("busy", "#!/bin/sh\necho ok\n");
  const UniqueFd writer(::open((sandbox_->workspace() + "/busy").c_str(), O_WRONLY | O_CLOEXEC));
  for (const bool all : {true, false}) {
    Started started = sandbox_->Start({.argv = {"./busy"}});
    sandbox_->Kill(started.sequence, SIGKILL, all);
    EXPECT_TRUE(sandbox_->Finish(&started).killed_by(SIGKILL)) << all;
  }
}

TEST_P(HelperExec, StartsInTheGivenDirectory) {
  EXPECT_EQ(sandbox_->Run({.argv = {"/bin/pwd"}, .directory = "/tmp"}).out, "/tmp\n");
  const Finished missing = sandbox_->Run({.argv = {"/bin/pwd"}, .directory = "/workspace/none"});
  EXPECT_TRUE(missing.failed_at(Step::kChdir, ENOENT));
}

TEST_P(HelperExec, PassesArgumentsAndEnvironmentExactly) {
  const Finished arguments =
      sandbox_->Run({.argv = {"/usr/bin/printf", "[%s]", "", "a b", "\"$x\""}});
  EXPECT_EQ(arguments.out, "[][a b][\"$x\"]");
  const Finished environment =
      sandbox_->Run({.argv = {"/usr/bin/env"}, .env = {"A=1", "B=two words", "C="}});
  EXPECT_EQ(environment.out, "A=1\nB=two words\nC=\n");
}

// C057: more than a message holds travels in a file.
TEST_P(HelperExec, TakesALargePayloadFromAFile) {
  std::vector<std::string> argv{"/bin/sh", "-c", "echo $#", "sh"};
  argv.resize(argv.size() + 50'000, "argument");
  EXPECT_EQ(sandbox_->Run({.argv = argv, .payload_in_file = true}).out, "50000\n");
  const Finished too_long =
      sandbox_->Run({.argv = {"/bin/echo", std::string(200'000, 'a')}, .payload_in_file = true});
  EXPECT_TRUE(too_long.failed_at(Step::kExec, E2BIG));
}

TEST_P(HelperExec, RefusesMalformedRequests) {
  const auto send = [this](child::ExecRequest request, const std::string& payload) {
    std::string message(reinterpret_cast<const char*>(&request), sizeof request);
    message += payload;
    EXPECT_GT(::send(sandbox_->socket(), message.data(), message.size(), MSG_NOSIGNAL), 0);
    const auto reply = sandbox_->WaitEnd(request.sequence);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->kind, child::EndKind::kStartupFailed);
    EXPECT_EQ(reply->step, Step::kRequest);
  };
  child::ExecRequest request{};
  request.op = child::InitOp::kExec;
  request.paths = request.argc = 1;
  request.sequence = 900;
  request.payload_bytes = 4;
  send(request, std::string("a\0b\0", 4));  // No descriptors.
  request.sequence = 901;
  request.payload_bytes = 40;
  send(request, std::string("a\0b\0", 4));  // Too short.
  const std::string junk(16, '\xff');
  EXPECT_GT(::send(sandbox_->socket(), junk.data(), junk.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(sandbox_->Shell("exit 4").exited_with(4));
}

TEST_P(HelperExec, RefusesStringsThatDoNotAddUp) {
  // The driver counts right, so the counts are bent on the way: one candidate too many.
  ExecSpec spec{.argv = {"/bin/true"}};
  Started fine = sandbox_->Start(spec);
  EXPECT_TRUE(sandbox_->Finish(&fine).exited_with(0));
  Started bent = sandbox_->Start(spec, [](child::ExecRequest* request) { ++request->paths; });
  EXPECT_TRUE(sandbox_->Finish(&bent).failed_at(Step::kRequest, EBADMSG));
  Started huge =
      sandbox_->Start(spec, [](child::ExecRequest* request) { request->envc = 0xffffffffU; });
  EXPECT_TRUE(sandbox_->Finish(&huge).failed_at(Step::kRequest, EBADMSG));
}

// The descriptors of such a request are others.
TEST_P(HelperExec, RefusesATerminalThatNobodyTakes) {
  const ExecSpec plain{.argv = {"/bin/true"}};
  Started pipes = sandbox_->Start(
      plain, [](child::ExecRequest* request) { request->flags |= child::kExecTerminal; });
  EXPECT_TRUE(sandbox_->Finish(&pipes).failed_at(Step::kRequest, EBADMSG));
  Started lost = sandbox_->Start({.argv = {"/bin/true"}, .terminal = true});
  EXPECT_TRUE(sandbox_->Finish(&lost).failed_at(Step::kTerminal, ENOTSOCK));
  Started bent = sandbox_->Start({.argv = {"/bin/true"}, .terminal = true},
                                 [](child::ExecRequest* request) { request->flags = 0; });
  EXPECT_TRUE(sandbox_->Finish(&bent).failed_at(Step::kRequest, EBADMSG));
}

TEST_P(HelperExec, HandsOutTheWorkspace) {
  sandbox_->WriteFile("marker", "x");
  const UniqueFd workspace = sandbox_->OpenWorkspace();
  ASSERT_TRUE(workspace.valid());
  struct stat status{};
  EXPECT_EQ(::fstatat(workspace.get(), "marker", &status, 0), 0);
}

// The shell waits for its orphan without using time itself: by reading from a pipe that it holds.
TEST_P(HelperExec, CountsProcessorTimeOfOrphansToo) {
  const std::string burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
  const Finished own = sandbox_->Shell(burn);
  const Finished orphan =
      sandbox_->Shell("mkfifo f; (sh -c '" + burn + "; echo > f' &); read x < f");
  ASSERT_TRUE(orphan.exited_with(0)) << orphan.err;
  EXPECT_GT(own.reply.cpu_ns, 20'000'000U);
  EXPECT_GT(orphan.reply.cpu_ns, own.reply.cpu_ns / 2);
  const Finished idle = sandbox_->Shell("true");
  EXPECT_LT(idle.reply.cpu_ns, own.reply.cpu_ns / 2);
}

}  // namespace
}  // namespace palmshed::testing
