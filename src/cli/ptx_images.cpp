// Finds PTX in files; see ptx_images.h. Programs and objects are not read as ELF: containers begin
// with a magic number and stand at multiples of eight, in whichever section nvcc put them.
#include "cli/ptx_images.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "base/files.h"
#include "ptx/fatbin.h"

namespace allranks::cli {
namespace {

constexpr std::size_t kLargestImage = std::size_t{4} << 30;

bool LooksLikePtx(const std::string& bytes) {
  return bytes.find('\0') == std::string::npos && bytes.find(".version") != std::string::npos;
}

// The images of one container. Those that cannot be read are left out: what else stands there may
// be no container at all.
void AddImages(std::span<const std::byte> container, std::vector<PtxImage>* images) {
  const Result<ptx::Fatbin> fatbin = ptx::Fatbin::Open(container);
  if (!fatbin) return;
  std::map<std::string, ptx::KernelResources> resources;
  const std::size_t first = images->size();
  for (std::size_t i = 0; i < fatbin->images().size(); ++i) {
    const ptx::ImageKind kind = fatbin->images()[i].kind;
    if (kind == ptx::ImageKind::kOther) continue;
    Result<std::string> content = fatbin->Extract(i);
    if (!content) continue;
    if (kind == ptx::ImageKind::kPtx) {
      images->push_back({"", std::move(*content), {}});
    } else if (auto found = ptx::ReadCubin(std::as_bytes(std::span(*content)))) {
      resources.merge(*found);
    }
  }
  for (std::size_t i = first; i < images->size(); ++i) (*images)[i].resources = resources;
}

}  // namespace

Result<std::vector<PtxImage>> ReadPtxImages(const std::string& path) {
  Result<std::string> file = ReadWhole(path, kLargestImage);
  if (!file) return Fail(file.error());
  std::vector<PtxImage> images;
  if (LooksLikePtx(*file)) {
    images.push_back({path, std::move(*file), {}});
    return images;
  }
  const auto bytes = std::as_bytes(std::span(*file));
  std::size_t containers = 0;
  for (std::size_t at = 0; at + ptx::kFatbinHeaderBytes <= bytes.size();) {
    std::uint32_t magic;
    std::memcpy(&magic, bytes.data() + at, sizeof magic);
    const auto size = magic == ptx::kFatbinMagic ? ptx::Fatbin::ContainerBytes(bytes.subspan(at))
                                                 : Result<std::uint64_t>(std::uint64_t{0});
    if (!size || *size == 0 || *size > bytes.size() - at) {
      at += 8;
      continue;
    }
    ++containers;
    AddImages(bytes.subspan(at, static_cast<std::size_t>(*size)), &images);
    at += (static_cast<std::size_t>(*size) + 7) / 8 * 8;
  }
  if (images.empty()) {
    return Fail("{} contains no PTX ({}); compile with `nvcc -ptx`, or with code=compute_XX", path,
                containers == 0 ? "neither PTX text nor a fat binary" : "only machine code");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i].name = i == 0 ? path : fmt::format("{}#{}", path, i + 1);
  }
  return images;
}

}  // namespace allranks::cli
