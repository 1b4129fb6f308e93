#include "node/machine/image_text.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "ptx/fatbin.h"

namespace allranks::node {
namespace {

using Resources = std::map<std::string, ptx::KernelResources>;

bool IsFatbin(const LinkSetImage& image) {
  if (image.bytes.size() < ptx::kFatbinHeaderBytes) return false;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image.bytes.data(), 4);
  return magic == ptx::kFatbinMagic;
}

// Adds kernels that `resources` does not have. Machine code that cannot be read leaves them
// estimated.
void Add(const LinkSetImage& image, std::uint32_t arch, Resources* resources) {
  const auto add = [&](std::span<const std::byte> cubin) {
    if (auto read = ptx::ReadCubin(cubin)) resources->merge(*read);
  };
  if (IsElf(image)) {
    add(image.bytes);
  } else if (IsFatbin(image)) {
    const auto fatbin = ptx::Fatbin::Open(image.bytes);
    if (!fatbin) return;
    if (const auto cubin = fatbin->PickCubin(arch)) {
      if (auto bytes = fatbin->Extract(*cubin)) add(std::as_bytes(std::span(*bytes)));
    }
  }
}

}  // namespace

bool IsElf(const LinkSetImage& image) {
  return image.bytes.size() >= 4 && std::memcmp(image.bytes.data(), "\177ELF", 4) == 0;
}

Result<PtxText> TextOf(const LinkSetImage& image, std::uint32_t arch) {
  PtxText text{std::string(image.name), ""};
  if (IsElf(image)) return text;
  if (IsFatbin(image)) {
    auto fatbin = ptx::Fatbin::Open(image.bytes);
    if (!fatbin) return Fail(fatbin.error());
    if (const auto pick = fatbin->PickPtx(arch)) {
      auto extracted = fatbin->Extract(*pick);
      if (!extracted) return Fail(extracted.error());
      text.text = std::move(*extracted);
      if (text.name.empty()) text.name = std::string(fatbin->images()[*pick].name);
    }
  } else {
    text.text.assign(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
    while (!text.text.empty() && text.text.back() == '\0') text.text.pop_back();
  }
  return text;
}

std::uint64_t TextBytes(const LinkSetImage& image, std::uint32_t arch) {
  if (IsElf(image)) return 0;
  if (!IsFatbin(image)) return image.bytes.size();
  const auto fatbin = ptx::Fatbin::Open(image.bytes);
  if (!fatbin) return 0;
  const auto pick = fatbin->PickPtx(arch);
  return pick ? fatbin->images()[*pick].bytes : 0;
}

// Of a linked program the resources of kernels stand in an image of their own, which comes first:
// the others' machine code is decompressed only for kernels that are not there.
Resources ResourcesOf(const std::vector<LinkSetImage>& images, std::uint32_t arch,
                      const ptx::Module& module) {
  Resources resources;
  const auto unknown = [&](const ptx::Function& function) {
    return function.is_entry && function.has_body &&
           !resources.contains(std::string(function.name));
  };
  for (const LinkSetImage& image : images) {
    if (!std::ranges::any_of(module.functions, unknown)) break;
    Add(image, arch, &resources);
  }
  return resources;
}

}  // namespace allranks::node
