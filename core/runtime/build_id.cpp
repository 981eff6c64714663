#include "runtime/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>

namespace kerf::runtime {

namespace {

struct Search {
  uintptr_t address;  // of something in the object looked for
  std::string id;
};

bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

// Notes are headers followed by a name and a description, each padded to four bytes.
std::string id_in_notes(const char* note, size_t size) {
  const char* end = note + size;
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const char* name = note + sizeof header;
    const char* description = name + padded(header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string id;
      for (size_t i = 0; i < header.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(description[i]));
      return id;
    }
    note = description + padded(header.n_descsz);
  }
  return "";
}

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.id =
          id_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  static const std::string id = [] {
    Search search{reinterpret_cast<uintptr_t>(&build_id), ""};
    dl_iterate_phdr(visit, &search);
    return search.id;
  }();
  return id;
}

}  // namespace kerf::runtime
