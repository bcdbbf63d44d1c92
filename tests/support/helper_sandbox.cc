// Creating sandboxes and running programs in them through the helper.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>

#include "child/step_names.h"
#include "support/helper_driver.h"

namespace palmshed::testing {
namespace {

template <typename T>
void Append(std::vector<char>* bytes, const T& value) {
  const auto* const first = reinterpret_cast<const char*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof value);
}

void AppendString(std::vector<char>* bytes, const std::string& text) {
  bytes->insert(bytes->end(), text.c_str(), text.c_str() + text.size() + 1);
}

void Send(BorrowedFd socket, const std::vector<char>& bytes, const std::vector<BorrowedFd>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(first), fds.data(), fds.size() * sizeof(int));
  }
  (void)::sendmsg(socket, &header, MSG_NOSIGNAL);
}

std::vector<char> PayloadOf(const ExecSpec& spec, const std::vector<std::string>& paths) {
  std::vector<char> payload;
  for (const auto& path : paths) AppendString(&payload, path);
  for (const auto& argument : spec.argv) AppendString(&payload, argument);
  for (const auto& variable : spec.env) AppendString(&payload, variable);
  AppendString(&payload, spec.directory);
  return payload;
}

UniqueFd FileWith(const std::vector<char>& bytes) {
  UniqueFd file(::memfd_create("payload", MFD_CLOEXEC));
  (void)!::write(file.get(), bytes.data(), bytes.size());
  return file;
}

// Both ends; pipes belong to whom the sandbox runs as, so that /dev/stdout can be opened again.
struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};
PipeEnds MakePipe(std::uint32_t owner) {
  int ends[2] = {-1, -1};
  (void)!::pipe2(ends, O_CLOEXEC);
  (void)!::fchown(ends[0], owner, owner);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string Describe(std::string_view who, child::Step step, int sys_errno) {
  return std::string(who) + " failed at " + std::string(child::StepName(step)) + ": " +
         std::strerror(sys_errno);
}

}  // namespace

bool HasSignalScope() {
  constexpr unsigned kVersionOnly = 1;
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionOnly) >= 6;
}

std::uint32_t UsualInitFlags() {
  return child::kInitLoopback | (HasSignalScope() ? child::kInitSignalScope : 0U);
}

bool Finished::exited_with(int code) const {
  return reply.kind == child::EndKind::kExited && WIFEXITED(reply.wait_status) &&
         WEXITSTATUS(reply.wait_status) == code;
}

bool Finished::killed_by(int signal) const {
  return reply.kind == child::EndKind::kExited && WIFSIGNALED(reply.wait_status) &&
         WTERMSIG(reply.wait_status) == signal;
}

bool Finished::failed_at(child::Step step, int sys_errno) const {
  return reply.kind == child::EndKind::kStartupFailed && reply.step == step &&
         reply.sys_errno == sys_errno;
}

TestSandbox::TestSandbox(LauncherProcess* launcher, const SandboxSpec& spec)
    : launcher_(launcher), uid_(spec.host_uid != 0 ? spec.host_uid : launcher->NextSandboxUid()) {
  workspace_ = directory_.path() + "/workspace";
  for (const char* name : {"/workspace", "/tmp"}) {
    const std::string path = directory_.path() + name;
    (void)::mkdir(path.c_str(), 0700);
    (void)!::chown(path.c_str(), uid_, uid_);
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return;
  socket_.reset(pair[0]);
  SendConfig(spec);
  Create(spec, UniqueFd(pair[1]));
}

void TestSandbox::SendConfig(const SandboxSpec& spec) {
  child::InitConfig config{};
  config.op = child::InitOp::kConfig;
  config.flags = spec.flags;
  config.filter_instructions = spec.filter ? 1 : 0;
  config.rules = static_cast<std::uint32_t>(spec.rules.size());
  config.rlimit_count = static_cast<std::uint32_t>(spec.rlimits.size());
  std::copy(spec.rlimits.begin(), spec.rlimits.end(), config.rlimits);
  config.handled_fs = spec.handled_fs;
  config.shm_bytes = 16U << 20;
  std::vector<char> message;
  Append(&message, config);
  if (spec.filter) Append(&message, sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  for (const auto& rule : spec.rules) {
    Append(&message, child::LandlockRule{rule.access, static_cast<std::uint32_t>(rule.path.size()),
                                         rule.optional ? 1U : 0U});
    AppendString(&message, rule.path);
    message.resize((message.size() + 7) / 8 * 8);
  }
  Send(socket_.get(), message, spec.locks);
}

void TestSandbox::Create(const SandboxSpec& spec, UniqueFd init_socket) {
  std::vector<char> message;
  Append(&message, child::CreateRequest{child::LauncherOp::kCreate, next_sequence_, uid_, 0});
  AppendString(&message, spec.workspace.empty() ? workspace_ : spec.workspace);
  AppendString(&message, directory_.path() + "/tmp");
  Send(launcher_->socket(), message, {init_socket.get()});
  init_socket.reset();
  do {
    created_ = launcher_->Receive(&init_pidfd_);
  } while (created_ && created_->answer == child::LauncherAnswer::kDied);  // Of earlier ones.
  if (!created_ || created_->answer != child::LauncherAnswer::kCreated) return;
  const ReceivedMessage answer = ReceiveWithDeadline(socket_.get());
  if (answer.bytes.size() != sizeof(child::InitReply)) return;
  ready_.emplace();
  std::memcpy(&*ready_, answer.bytes.data(), sizeof *ready_);
}

TestSandbox::~TestSandbox() {
  if (!init_pidfd_.valid()) return;
  (void)::syscall(SYS_pidfd_send_signal, init_pidfd_.get(), SIGKILL, nullptr, 0);
  (void)IsReadable(init_pidfd_.get(), kDeadlineMs);
}

bool TestSandbox::ok() const { return ready_ && ready_->answer == child::InitAnswer::kReady; }

std::string TestSandbox::why_not() const {
  if (!created_) return "the launcher did not answer";
  if (created_->answer != child::LauncherAnswer::kCreated) {
    return Describe("create", created_->step, created_->sys_errno);
  }
  if (!ready_) return "init did not answer";
  return Describe("init", ready_->step, ready_->sys_errno) + ", detail " +
         std::to_string(ready_->detail);
}

pid_t TestSandbox::init_pid() const { return PidOf(init_pidfd_.get()); }

Started TestSandbox::Start(const ExecSpec& spec, void (*bend)(child::ExecRequest*)) {
  const std::vector<std::string> paths =
      spec.paths.empty() ? std::vector<std::string>{spec.argv[0]} : spec.paths;
  const std::vector<char> payload = PayloadOf(spec, paths);
  child::ExecRequest request{};
  request.op = child::InitOp::kExec;
  request.sequence = next_sequence_++;
  request.flags = (spec.stdin_pipe ? child::kExecStdin : 0U) |
                  (spec.payload_in_file ? child::kExecPayloadInFile : 0U) |
                  (spec.terminal ? child::kExecTerminal : 0U);
  request.paths = static_cast<std::uint32_t>(paths.size());
  request.argc = static_cast<std::uint32_t>(spec.argv.size());
  request.envc = static_cast<std::uint32_t>(spec.env.size());
  request.armed = spec.armed;
  request.processes = spec.processes;
  request.file_bytes = spec.file_bytes;
  request.payload_bytes = payload.size();
  if (bend != nullptr) bend(&request);
  std::vector<char> message;
  Append(&message, request);
  PipeEnds in = MakePipe(uid_);
  PipeEnds out = MakePipe(uid_);
  PipeEnds err = MakePipe(uid_);
  std::vector<BorrowedFd> fds;
  if (spec.stdin_pipe) fds.push_back(in.read.get());
  fds.push_back(out.write.get());
  if (!spec.terminal) fds.push_back(err.write.get());
  UniqueFd file;
  if (spec.payload_in_file) {
    file = FileWith(payload);
    fds.push_back(file.get());
  } else {
    message.insert(message.end(), payload.begin(), payload.end());
  }
  Send(spec.socket >= 0 ? spec.socket : BorrowedFd{socket_.get()}, message, fds);
  return {request.sequence, std::move(in.write), std::move(out.read), std::move(err.read)};
}

void TestSandbox::Kill(std::uint32_t sequence, int signal, bool all, std::uint32_t armed) {
  std::vector<char> message;
  Append(&message,
         child::KillRequest{child::InitOp::kKill, sequence, signal, all ? 1U : 0U, armed});
  Send(socket_.get(), message, {});
}

Armed TestSandbox::Arm(child::ChildRole role) {
  Armed armed{.sequence = next_sequence_++, .pidfd = UniqueFd(), .socket = UniqueFd()};
  std::vector<char> message;
  Append(&message, child::ArmRequest{child::InitOp::kArm, armed.sequence, role});
  Send(socket_.get(), message, {});
  for (;;) {
    ReceivedMessage answer = ReceiveWithDeadline(socket_.get());
    child::InitReply reply{};
    if (answer.bytes.size() != sizeof reply) return armed;
    std::memcpy(&reply, answer.bytes.data(), sizeof reply);
    if (reply.answer != child::InitAnswer::kArmed) {
      kept_.push_back({.reply = reply, .fd = UniqueFd()});
      continue;
    }
    if (!answer.fds.empty()) armed.pidfd = std::move(answer.fds[0]);
    if (answer.fds.size() > 1) armed.socket = std::move(answer.fds[1]);
    return armed;
  }
}

void TestSandbox::Disarm(const Armed& armed) {
  std::vector<char> message;
  Append(&message, child::ArmRequest{child::InitOp::kDisarm, armed.sequence, {}});
  Send(socket_.get(), message, {});
}

UniqueFd TestSandbox::OpenWorkspace() {
  const std::uint32_t sequence = next_sequence_++;
  std::vector<char> message;
  Append(&message, child::OpenRequest{child::InitOp::kOpen, sequence, child::Inside::kWorkspace});
  Send(socket_.get(), message, {});
  auto answer = WaitAnswer(sequence, sequence);
  return answer ? std::move(answer->fd) : UniqueFd();
}

std::optional<Answer> TestSandbox::WaitAnswer(std::uint32_t one, std::uint32_t other,
                                              int timeout_ms) {
  for (;;) {
    const auto kept = std::ranges::find_if(kept_, [&](const Answer& answer) {
      return answer.reply.sequence == one || answer.reply.sequence == other;
    });
    if (kept != kept_.end()) {
      Answer answer = std::move(*kept);
      kept_.erase(kept);
      return answer;
    }
    ReceivedMessage message = ReceiveWithDeadline(socket_.get(), timeout_ms);
    if (message.bytes.size() != sizeof(child::InitReply)) return std::nullopt;
    Answer& answer = kept_.emplace_back();
    std::memcpy(&answer.reply, message.bytes.data(), sizeof answer.reply);
    if (!message.fds.empty()) answer.fd = std::move(message.fds[0]);
  }
}

std::optional<child::InitReply> TestSandbox::WaitEnd(std::uint32_t sequence, int timeout_ms) {
  const auto answer = WaitAnswer(sequence, sequence, timeout_ms);
  return answer ? std::optional(answer->reply) : std::nullopt;
}

bool TestSandbox::WaitDisarmed(std::uint32_t armed) {
  const auto reply = WaitEnd(armed);
  return reply && reply->answer == child::InitAnswer::kDisarmed;
}

// The pipes end before the answer comes: nothing of an ended execution is left to hold them.
Finished TestSandbox::Finish(Started* started) {
  Finished finished;
  started->in.reset();
  finished.out = ReadAll(started->out.get());
  finished.err = ReadAll(started->err.get());
  if (auto answer = WaitAnswer(started->sequence, started->sequence)) {
    finished.reply = answer->reply;
    finished.socket = std::move(answer->fd);
  }
  return finished;
}

Finished TestSandbox::Run(const ExecSpec& spec) {
  Started started = Start(spec);
  return Finish(&started);
}

Finished TestSandbox::Shell(const std::string& command) {
  return Run({.argv = {"/bin/sh", "-c", command}});
}

void TestSandbox::WriteFile(const std::string& name, const std::string& content, mode_t mode) {
  const std::string path = workspace_ + "/" + name;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  (void)!::write(file.get(), content.data(), content.size());
  (void)::fchmod(file.get(), mode);
  (void)!::fchown(file.get(), uid_, uid_);
}

}  // namespace palmshed::testing
