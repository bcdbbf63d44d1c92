#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace palmshed {
namespace {

using Octets = std::span<const unsigned char>;

constexpr std::string_view kOwner{ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)};  // Its zero included.

std::string Hex(Octets bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

/// Names and contents of notes are padded to four bytes (elf(5)).
constexpr std::size_t Padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

std::string FindIn(Octets notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data(), sizeof(note));
    notes = notes.subspan(sizeof(note));
    const std::size_t name = Padded(note.n_namesz);
    if (name > notes.size() || note.n_descsz > notes.size() - name) return {};
    const bool ours = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == kOwner.size() &&
                      std::memcmp(notes.data(), kOwner.data(), kOwner.size()) == 0;
    if (ours) return Hex(notes.subspan(name, note.n_descsz));
    const std::size_t whole = name + Padded(note.n_descsz);
    if (whole > notes.size()) return {};
    notes = notes.subspan(whole);
  }
  return {};
}

bool Holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (const auto& segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) {
      return true;
    }
  }
  return false;
}

/// dl_iterate_phdr(3) ends with the first object for which this is not 0.
int ReadObject(dl_phdr_info* object, std::size_t, void* into) {
  if (!Holds(*object, reinterpret_cast<std::uintptr_t>(&ReadObject))) return 0;
  std::string& id = *static_cast<std::string*>(into);
  for (const auto& segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type != PT_NOTE || !id.empty()) continue;
    // NOLINTBEGIN(performance-no-int-to-ptr): the linker says where things are by number.
    const auto* const begin =
        reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    // NOLINTEND(performance-no-int-to-ptr)
    id = FindIn({begin, segment.p_memsz});
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  std::string id;
  (void)::dl_iterate_phdr(ReadObject, &id);
  return id;
}

}  // namespace palmshed
