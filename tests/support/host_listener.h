// Something on the host that a sandbox must not reach, and that counts who reached it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace palmshed::tests {

/// Listens on a thread of its own from construction on; answers every connection and datagram with
/// "HOST".
class HostListener {
 public:
  static std::unique_ptr<HostListener> Tcp();                          ///< 127.0.0.1
  static std::unique_ptr<HostListener> Tcp6();                         ///< ::1
  static std::unique_ptr<HostListener> Udp();                          ///< 127.0.0.1
  static std::unique_ptr<HostListener> Abstract();                     ///< A stream socket.
  static std::unique_ptr<HostListener> Path(const std::string& path);  ///< Open to everybody.
  ~HostListener();
  HostListener(const HostListener&) = delete;
  HostListener& operator=(const HostListener&) = delete;

  /// How often it was reached.
  int hits() const { return hits_; }
  /// Port, abstract name or path, as an argument of the probe.
  const std::string& where() const { return where_; }

 private:
  HostListener(int socket, std::string where, bool datagrams);
  void Serve(bool datagrams);

  int socket_;
  int stop_;
  std::string where_;
  std::atomic<int> hits_ = 0;
  std::thread thread_;
};

}  // namespace palmshed::tests
