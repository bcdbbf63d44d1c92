#include "workspace/xz_source.h"

#include <lzma.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "base/result.h"
#include "palmshed/error.h"
#include "workspace/archive_error.h"

namespace palmshed::workspace {
namespace {

constexpr std::size_t kChunk = 64U << 10;

std::string_view Meaning(lzma_ret ret) {
  if (ret == LZMA_MEMLIMIT_ERROR) return "needs more than 128 MiB to be decompressed";
  if (ret == LZMA_MEM_ERROR) return "cannot be decompressed for want of memory";
  if (ret == LZMA_BUF_ERROR) return "ends in the middle of its compressed data";
  return "is damaged: its compressed data make no sense";
}

}  // namespace

Result<void> XzSource::Fill() {
  if (stream_.avail_in > 0 || input_ended_) return {};
  buffer_.resize(kChunk);
  PALMSHED_TRY(const std::size_t size, compressed_.Read(buffer_));
  input_ended_ = size == 0;
  stream_.next_in = reinterpret_cast<const std::uint8_t*>(buffer_.data());
  stream_.avail_in = size;
  return {};
}

Result<std::size_t> XzSource::Read(std::span<std::byte> into) {
  if (!started_) {
    const lzma_ret ret = ::lzma_stream_decoder(&stream_, kMaxXzMemory, LZMA_CONCATENATED);
    if (ret != LZMA_OK) return std::unexpected(ArchiveError(Meaning(ret)));
    started_ = true;
  }
  stream_.next_out = reinterpret_cast<std::uint8_t*>(into.data());
  stream_.avail_out = into.size();
  while (!ended_ && stream_.avail_out == into.size()) {
    PALMSHED_TRY_VOID(Fill());
    const lzma_ret ret = ::lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN);
    if (ret != LZMA_OK && ret != LZMA_STREAM_END)
      return std::unexpected(ArchiveError(Meaning(ret)));
    ended_ = ret == LZMA_STREAM_END;
  }
  return into.size() - stream_.avail_out;
}

}  // namespace palmshed::workspace
