#include "backends/native/exec_message.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/bytes.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

std::vector<std::byte> Payload(const plan::ExecPlan& plan) {
  std::vector<std::byte> payload;
  for (const auto* list : {&plan.paths, &plan.argv, &plan.env}) {
    for (const std::string& text : *list) AppendString(payload, text);
  }
  std::string directory = plan.workspace;
  if (!plan.work_dir.empty()) directory.append("/").append(plan.work_dir);
  AppendString(payload, directory);
  return payload;
}

Result<UniqueFd> InFile(const std::vector<std::byte>& payload) {
  PALMSHED_TRY(auto file, sys::MemfdCreate("palmshed-exec", false));
  PALMSHED_TRY_VOID(sys::WriteAll(file.get(), payload));
  return file;
}

std::uint32_t FlagsOf(Descendants descendants) {
  switch (descendants) {
    case Descendants::kKill:
      return 0;
    case Descendants::kDetach:
      return child::kExecDetach;
    case Descendants::kWait:
      return child::kExecWait;
  }
  PALMSHED_UNREACHABLE();
}

void AddStreams(const Stdio& stdio, child::ExecRequest& request, std::vector<BorrowedFd>& fds) {
  if (stdio.terminal.valid()) {
    request.flags |= child::kExecTerminal;
    fds.push_back(stdio.terminal.get());
    return;
  }
  if (stdio.in.valid()) {
    request.flags |= child::kExecStdin;
    fds.push_back(stdio.in.get());
  }
  fds.push_back(stdio.out.get());
  fds.push_back(stdio.err.get());
}

}  // namespace

Result<void> SendExec(BorrowedFd socket, const ExecOrder& order, const plan::ExecPlan& plan,
                      const Stdio& stdio) {
  const std::vector<std::byte> payload = Payload(plan);
  const TerminalSize size = plan.terminal.value_or(TerminalSize{});
  child::ExecRequest request{.op = child::InitOp::kExec,
                             .sequence = order.sequence,
                             .flags = FlagsOf(plan.descendants),
                             .armed = order.armed,
                             .paths = static_cast<std::uint32_t>(plan.paths.size()),
                             .argc = static_cast<std::uint32_t>(plan.argv.size()),
                             .envc = static_cast<std::uint32_t>(plan.env.size()),
                             .terminal_rows = size.rows,
                             .terminal_columns = size.columns,
                             .file_bytes = order.carried.file_bytes,
                             .cpu_seconds = order.carried.cpu_seconds,
                             .processes = order.carried.processes,
                             .payload_bytes = payload.size()};
  std::vector<BorrowedFd> fds;
  AddStreams(stdio, request, fds);

  if (sizeof request + payload.size() <= child::kMaxMessage) {
    std::vector<std::byte> message;
    message.reserve(sizeof request + payload.size());
    Append(message, BytesOf(request));
    Append(message, payload);
    return sys::SendMessage(socket, message, fds);
  }
  PALMSHED_TRY(const UniqueFd file, InFile(payload));
  request.flags |= child::kExecPayloadInFile;
  fds.push_back(file.get());
  return sys::SendMessage(socket, BytesOf(request), fds);
}

}  // namespace palmshed::backends::native
