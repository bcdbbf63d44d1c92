// Decompressing xz within a bound on memory, which libarchive's own filter does not have: the
// header of a hostile stream may ask for a dictionary of 4 GiB.
#pragma once

#include <lzma.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/streams.h"

namespace palmshed::workspace {

/// Enough for `xz -9`, which takes 65 MiB.
inline constexpr std::uint64_t kMaxXzMemory = 128U << 20;

/// The content of the xz streams that `compressed` consists of.
class XzSource final : public ByteSource {
 public:
  /// `compressed` is borrowed for the life of this object.
  explicit XzSource(ByteSource& compressed) : compressed_(compressed) {}
  XzSource(const XzSource&) = delete;
  XzSource& operator=(const XzSource&) = delete;
  ~XzSource() override { ::lzma_end(&stream_); }

  /// FS_ERROR, field "archive", for what is damaged or takes too much memory.
  Result<std::size_t> Read(std::span<std::byte> into) override;

 private:
  Result<void> Fill();

  ByteSource& compressed_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::vector<std::byte> buffer_{};
  bool started_ = false;
  bool input_ended_ = false;
  bool ended_ = false;
};

}  // namespace palmshed::workspace
