#include "node/machine/module_index.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "ptx/fatbin.h"

namespace allranks::node {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "allranks module index 1\n";
constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxIndices = 16;     // in the folder
constexpr std::string_view kGnu{"GNU", 4};  // with its end

int FindBuildId(dl_phdr_info* object, std::size_t, void* id) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (end - at >= static_cast<std::ptrdiff_t>(sizeof(Elf64_Nhdr))) {
      Elf64_Nhdr note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const content = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == kGnu)
        static_cast<std::string*>(id)->assign(content, note.n_descsz);
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;  // the program itself comes first
}

// Numbers and strings one behind the other.
class Writer {
 public:
  void Number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Whatever is missing is 0 or empty, and good() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Number() {
    std::uint64_t value = 0;
    const std::string_view bytes = Bytes(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::uint32_t Small() { return static_cast<std::uint32_t>(Number()); }
  std::string Text() { return std::string(Bytes(Number())); }
  // How many things follow, each of a number at least.
  std::uint64_t Count() {
    const std::uint64_t count = Number();
    good_ = good_ && count <= bytes_.size() / sizeof count;
    return good_ ? count : 0;
  }
  bool good() const { return good_; }
  bool AtEnd() const { return good_ && bytes_.empty(); }

 private:
  std::string_view Bytes(std::uint64_t size) {
    good_ = good_ && size <= bytes_.size();
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool good_ = true;
};

void Write(const ptx::Outline& outline, Writer* to) {
  to->Text(outline.text);
  to->Number(outline.text_bytes);
  to->Number(outline.shared_names.size());
  for (const std::string& name : outline.shared_names) to->Text(name);
  to->Number(outline.bodies.size());
  for (const ptx::Outline::Body& body : outline.bodies) {
    to->Number(body.begin);
    to->Number(body.end);
    to->Number(body.first_line);
    to->Number(body.last_line);
    to->Number(body.shared ? 1 : 0);
    to->Number(body.named.size());
    for (const std::uint32_t name : body.named) to->Number(name);
  }
}

ptx::Outline ReadOutline(Reader* from) {
  ptx::Outline outline;
  outline.text = from->Text();
  outline.text_bytes = from->Number();
  for (std::uint64_t left = from->Count(); left != 0; --left)
    outline.shared_names.push_back(from->Text());
  for (std::uint64_t left = from->Count(); left != 0; --left) {
    ptx::Outline::Body& body = outline.bodies.emplace_back();
    body.begin = from->Number();
    body.end = from->Number();
    body.first_line = from->Small();
    body.last_line = from->Small();
    body.shared = from->Number() != 0;
    for (std::uint64_t names = from->Count(); names != 0; --names)
      body.named.push_back(from->Small());
  }
  return outline;
}

// Visits the same members in the same order for both ways.
template <class Resources, class Visit>
void ForMembers(Resources& kernel, Visit visit) {
  visit(kernel.registers);
  visit(kernel.shared_bytes);
  visit(kernel.local_bytes);
  visit(kernel.param_bytes);
  visit(kernel.constant_bytes);
  for (auto& most : kernel.max_threads) visit(most);
  for (auto& required : kernel.required_threads) visit(required);
  visit(kernel.max_registers);
  visit(kernel.barriers);
}

std::string Written(const ModuleIndex& index) {
  Writer to;
  to.Number(index.texts.size());
  for (const ModuleIndex::Text& text : index.texts) {
    to.Number(text.image);
    to.Text(text.name);
    Write(text.outline, &to);
  }
  to.Number(index.resources.size());
  for (const auto& [name, kernel] : index.resources) {
    to.Text(name);
    ForMembers(kernel, [&](const auto& member) { to.Number(member); });
  }
  return to.Take();
}

std::string DigestOf(std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Leaves the youngest files of the folder.
void DropOld(const fs::path& folder) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    files.emplace_back(entry->last_write_time(error), entry->path());
  std::ranges::sort(files);
  for (std::size_t i = 0; i + kMaxIndices < files.size(); ++i) fs::remove(files[i].second, error);
}

}  // namespace

std::string IndexName(const std::vector<LinkSetImage>& images, std::uint32_t arch) {
  std::string build;
  dl_iterate_phdr(FindBuildId, &build);
  if (build.empty()) return {};
  Sha256Stream digest;
  const auto number = [&](std::uint64_t value) { digest.Add(std::as_bytes(std::span(&value, 1))); };
  const auto bytes = [&](std::span<const std::byte> content) {
    number(content.size());
    digest.Add(content);
  };
  bytes(std::as_bytes(std::span(build)));
  number(arch);
  for (const LinkSetImage& image : images) {
    bytes(std::as_bytes(std::span(image.name)));
    const auto fatbin = ptx::Fatbin::Open(image.bytes);
    if (!fatbin) {
      bytes(image.bytes);
      continue;
    }
    // What is for other devices is most of an image.
    for (const auto pick : {fatbin->PickPtx(arch), fatbin->PickCubin(arch)}) {
      number(pick.has_value() ? 1 : 0);
      if (!pick) continue;
      const ptx::FatbinImage& taken = fatbin->images()[*pick];
      bytes(std::as_bytes(std::span(taken.name)));
      number(static_cast<std::uint64_t>(taken.compression));
      number(taken.bytes);
      bytes(image.bytes.subspan(taken.offset, taken.compressed_bytes));
    }
  }
  return Hex(digest.Finish());
}

std::optional<ModuleIndex> LoadIndex(const std::string& folder, const std::string& name) {
  const auto file = ReadWhole(fs::path(folder) / name, kMaxIndexBytes);
  if (!file) return std::nullopt;
  std::string_view bytes = *file;
  if (!bytes.starts_with(kHead)) return std::nullopt;
  bytes.remove_prefix(kHead.size());
  if (bytes.size() < sizeof(Sha256Digest)) return std::nullopt;
  const std::string_view digest = bytes.substr(0, sizeof(Sha256Digest));
  bytes.remove_prefix(digest.size());
  if (DigestOf(bytes) != digest) return std::nullopt;
  Reader from(bytes);
  ModuleIndex index;
  for (std::uint64_t left = from.Count(); left != 0; --left) {
    ModuleIndex::Text& text = index.texts.emplace_back();
    text.image = from.Number();
    text.name = from.Text();
    text.outline = ReadOutline(&from);
  }
  for (std::uint64_t left = from.Count(); left != 0; --left) {
    ptx::KernelResources& kernel = index.resources[from.Text()];
    ForMembers(kernel, [&](auto& member) {
      member = static_cast<std::remove_reference_t<decltype(member)>>(from.Number());
    });
  }
  if (!from.AtEnd()) return std::nullopt;
  return index;
}

void StoreIndex(const std::string& folder, const std::string& name, const ModuleIndex& index) {
  const std::string bytes = Written(index);
  const std::string file = std::string(kHead) + DigestOf(bytes) + bytes;
  // Where it cannot be written the next run reads the images again.
  if (file.size() > kMaxIndexBytes || !WriteWhole(fs::path(folder) / name, file)) return;
  DropOld(folder);
}

}  // namespace allranks::node
