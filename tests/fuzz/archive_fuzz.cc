// Archives with hostile headers, and bytes that are none. Whatever they say, nothing outside of the
// workspace changes; what is refused leaves no new directory; what is taken comes down and goes up
// again as it was.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "fuzz/require.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "palmshed/units.h"
#include "support/temp_dir.h"
#include "workspace/workspace.h"

namespace palmshed::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr ArchiveLimits kLimits{.max_entries = 100, .max_bytes = Bytes{1U << 20}};

// As POSIX.1-1988 has it, which GNU's and pax's extensions fill with entries of their own.
struct Header {
  std::array<char, 100> name;
  std::array<char, 8> mode;
  std::array<char, 8> uid;
  std::array<char, 8> gid;
  std::array<char, 12> size;
  std::array<char, 12> mtime;
  std::array<char, 8> checksum;
  char type;
  std::array<char, 100> link;
  std::array<char, 8> magic;
  std::array<char, 80> owner_and_device;
  std::array<char, 155> prefix;
  std::array<char, 12> padding;
};
static_assert(sizeof(Header) == 512);

/// Never once the input is used up, after which all that is asked for is least.
bool Seldom(FuzzedDataProvider& input) { return input.ConsumeIntegralInRange(0, 11) == 11; }

/// Mostly few names, so that entries meet.
std::string PathOf(FuzzedDataProvider& input) {
  constexpr std::array kParts{"a", "b", "link", "..", ".", "", "../..", "/"};
  std::string path;
  for (int parts = input.ConsumeIntegralInRange(1, 4); parts > 0; --parts) {
    if (!path.empty()) path += '/';
    path += Seldom(input) ? input.ConsumeRandomLengthString(20) : input.PickValueInArray(kParts);
  }
  return path;
}

template <std::size_t N>
void Put(std::array<char, N>& field, std::string_view text) {
  text.copy(field.data(), N);
}

std::string Octal(std::uint64_t number) {
  std::array<char, 24> text{};
  (void)std::snprintf(text.data(), text.size(), "%011llo", static_cast<unsigned long long>(number));
  return text.data();
}

/// With a checksum that fits, and no more of `content` than one block.
std::string Written(Header header, std::string_view content) {
  Put(header.checksum, "        ");
  unsigned sum = 0;
  for (const unsigned char byte :
       std::span(reinterpret_cast<const unsigned char*>(&header), sizeof header)) {
    sum += byte;
  }
  Put(header.checksum, Octal(sum).substr(4, 7));
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  if (content.empty()) return entry;
  entry += content;
  entry.resize(2 * sizeof header);
  return entry;
}

std::string EntryOf(FuzzedDataProvider& input) {
  Header header{};
  // Some of them more often.
  constexpr std::string_view kTypes = "00011222555346xgLKS";
  header.type = kTypes[input.ConsumeIntegralInRange<std::size_t>(0, kTypes.size() - 1)];
  // Links and directories have none: an archive in which they do is damaged behind them.
  const bool has_content = std::string_view("0xgLKS").contains(header.type) || Seldom(input);
  const std::string content = has_content ? input.ConsumeRandomLengthString(64) : "";
  Put(header.name, PathOf(input));
  const unsigned mode =
      input.ConsumeIntegralInRange(0U, 07777U) | S_IRUSR;  // To be taken down again.
  Put(header.mode, Octal(mode).substr(4));
  Put(header.size, Octal(Seldom(input) ? input.ConsumeIntegral<std::uint32_t>() : content.size()));
  Put(header.mtime, Octal(input.ConsumeIntegral<std::uint32_t>()));
  Put(header.link, PathOf(input));
  Put(header.magic, input.ConsumeBool() ? std::string_view("ustar\00000", 8) : "ustar  ");
  if (Seldom(input)) Put(header.prefix, PathOf(input));
  return Written(header, content);
}

std::string ArchiveOf(FuzzedDataProvider& input) {
  if (Seldom(input)) return input.ConsumeRandomLengthString();
  std::string archive;
  for (int entries = input.ConsumeIntegralInRange(1, 8); entries > 0; --entries) {
    archive += EntryOf(input);
  }
  if (input.ConsumeBool()) archive.resize(archive.size() + 1024);  // As the end is marked.
  for (int flips = input.ConsumeIntegralInRange(0, 15) - 12; flips > 0; --flips) {
    archive[input.ConsumeIntegralInRange<std::size_t>(0, archive.size() - 1)] =
        input.ConsumeIntegral<char>();
  }
  return archive;
}

/// A workspace, and what must stay as it is around it.
class Surroundings {
 public:
  Surroundings() { fs::create_directory(workspace()); }

  std::string workspace() const { return top_.path() + "/workspace"; }
  UniqueFd Open() const {
    return UniqueFd(::open(workspace().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void RequireUntouched() const {
    struct stat st{};
    Require(::lstat(canary_.c_str(), &st) == 0 && st.st_nlink == 1 && S_ISREG(st.st_mode) &&
                (st.st_mode & 07777) == 0644 && tests::Slurp(canary_) == kCanary,
            "what is beside the workspace stays");
    Require(std::distance(fs::directory_iterator(top_.path()), fs::directory_iterator()) == 2,
            "nothing new is beside the workspace");
  }

 private:
  static constexpr std::string_view kCanary = "what was here before";
  const tests::TempDir top_{0700, fs::temp_directory_path()};
  const std::string canary_ = top_.AddFile("canary", kCanary);
};

void RequireHarmless(const std::string& workspace) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(workspace)) {
    struct stat st{};
    Require(::lstat(entry.path().c_str(), &st) == 0, "what is there can be looked at");
    Require(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode),
            "only files, directories and links appear");
    Require((st.st_mode & (S_ISUID | S_ISGID | S_ISVTX)) == 0, "modes have permissions only");
    if (!S_ISLNK(st.st_mode)) continue;
    const fs::path target = fs::read_symlink(entry.path());
    const fs::path meant = (entry.path().parent_path() / target).lexically_normal() / "";
    Require(meant.string().starts_with(workspace + "/"), "no link leads outside");
  }
}

/// All that is below `top`, but for the times of directories and links, which are not kept.
std::map<std::string, std::string> TreeOf(const fs::path& top) {
  std::map<std::string, std::string> tree;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
    struct stat st{};
    Require(::lstat(entry.path().c_str(), &st) == 0, "what is there can be looked at");
    std::string& told = tree[entry.path().lexically_relative(top)];
    told = std::to_string(st.st_mode);
    if (S_ISLNK(st.st_mode)) told += " to " + fs::read_symlink(entry.path()).string();
    if (!S_ISREG(st.st_mode)) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    told += " of " + std::to_string(st.st_mtim.tv_sec) + ": ";
    told.append(std::istreambuf_iterator<char>(file), {});
  }
  return tree;
}

Result<ArchiveSummary> Upload(const workspace::Workspace& workspace, std::string_view path,
                              std::string_view archive) {
  MemorySource source(std::as_bytes(std::span(archive)));
  return workspace.UploadArchive(path, source, kLimits);
}

std::string Download(const workspace::Workspace& workspace, std::string_view path) {
  MemorySink sink;
  const auto summary = workspace.DownloadArchive(path, sink);
  Require(summary.has_value(), "what went up comes down");
  Require(summary->skipped == 0, "only what archives have went up");
  return sink.bytes();
}

/// Into the directory "new", which may be there already.
void RequireSafe(const workspace::Workspace& workspace, const Surroundings& around,
                 std::string_view archive) {
  const bool was_there = workspace.Stat("new").has_value();
  const auto went_up = Upload(workspace, "new", archive);
  around.RequireUntouched();
  RequireHarmless(around.workspace());
  if (!went_up) {
    Require(!went_up.error().message.empty(), "a refusal says why");
    Require(was_there || !workspace.Stat("new"), "what was refused leaves nothing");
    return;
  }
  Require(went_up->entries <= kLimits.max_entries && went_up->bytes <= kLimits.max_bytes,
          "the limits hold");
  const std::string down = Download(workspace, "new");
  const auto again = Upload(workspace, "again", down);
  Require(again.has_value(), "what came down goes up");
  Require(TreeOf(around.workspace() + "/new") == TreeOf(around.workspace() + "/again"),
          "it is the same as before");
  Require(workspace.Remove("again", true).has_value(), "what went up can be removed");
}

/// Were everything refused, nothing would have been shown.
void RequireThatPlainOnesGoUp() {
  const Surroundings around;
  const workspace::Workspace workspace(around.Open());
  Header file{};
  Put(file.name, "d/f");
  Put(file.mode, "0644");
  Put(file.size, Octal(4));
  file.type = '0';
  Put(file.magic, "ustar  ");
  Header link = file;
  Put(link.name, "a/l");
  Put(link.link, "../d/f");
  Put(link.size, Octal(0));
  link.type = '2';
  const auto went_up = Upload(workspace, "plain", Written(file, "text") + Written(link, ""));
  Require(went_up.has_value() && went_up->entries == 2, "a plain archive goes up");
  Require(workspace.ReadFile("plain/a/l").value_or("") == "text", "its link leads to its file");
}

}  // namespace
}  // namespace palmshed::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  palmshed::fuzz::RequireThatPlainOnesGoUp();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace palmshed;
  static const fuzz::Surroundings around;
  static const workspace::Workspace workspace(around.Open());
  FuzzedDataProvider input(data, size);
  const std::string first = fuzz::ArchiveOf(input);
  fuzz::RequireSafe(workspace, around, first);
  // Once more, into what the first has left: its links, above all.
  fuzz::RequireSafe(workspace, around, fuzz::ArchiveOf(input));
  (void)workspace.Remove("new", true);
  return 0;
}
