// Programs started without a sandbox: the floor, and peers.
#pragma once

#include <string>
#include <vector>

namespace palmshed::benchmarks {

/// A command in the form that execve(2) takes, made once: a timed run allocates nothing.
class Command {
 public:
  explicit Command(std::vector<std::string> argv);
  Command(Command&&) = default;
  Command& operator=(Command&&) = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() = default;

  /// vfork, exec, two pipes drained to their ends, wait. Empty when it exits with 0, else what it
  /// said last.
  std::string Try() const;
  /// As Try; ends the benchmark unless it exits with 0.
  void Run() const;
  std::string Text() const;  ///< As one would type it.

 private:
  std::vector<std::string> argv_;
  std::vector<char*> pointers_;
};

/// A program installed or built beside this one; empty when there is none.
std::string Beside(const std::string& name);

}  // namespace palmshed::benchmarks
