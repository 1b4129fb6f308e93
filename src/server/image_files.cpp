#include "server/image_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/sha256.h"
#include "wire/frame.h"

namespace allranks::server {
namespace {

constexpr std::string_view kPrefix = "file ";
constexpr std::size_t kMaxParts = 4096, kMaxFiles = 256;

std::string IdentityOf(const struct stat& about) {
  return fmt::format("{}:{} {} {}.{}", about.st_dev, about.st_ino, about.st_size,
                     about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

}  // namespace

bool ImageFiles::IsKey(const std::string& key) {
  return key.starts_with(kPrefix) && key.size() > sizeof(Sha256Digest);
}

ImageFiles::~ImageFiles() {
  for (const auto& [path, file] : files_)
    munmap(const_cast<std::byte*>(file.bytes.data()), file.bytes.size());
}

const ImageFiles::Mapped* ImageFiles::Map(const std::string& path) {
  if (only_ && std::ranges::find(*only_, path) == only_->end()) return nullptr;
  const wire::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat about{};
  if (fd.get() < 0 || fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
    return nullptr;
  const std::string identity = IdentityOf(about);
  if (const auto known = files_.find(path); known != files_.end())
    return known->second.identity == identity ? &known->second : nullptr;
  if (files_.size() >= kMaxFiles) return nullptr;
  const auto size = static_cast<std::size_t>(about.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  return &files_.emplace(path, Mapped{{static_cast<const std::byte*>(mapped), size}, identity})
              .first->second;
}

std::optional<node::ModuleImage> ImageFiles::Find(const wire::FileImage& message) {
  if (message.parts.empty() || message.parts.size() > kMaxParts) return std::nullopt;
  const Mapped* file = Map(message.path);
  if (file == nullptr) return std::nullopt;
  std::string key = std::string(kPrefix) + file->identity;
  std::vector<LinkSetImage> parts;
  for (const wire::FileImage::Part& part : message.parts) {
    if (part.offset > file->bytes.size() || part.size > file->bytes.size() - part.offset)
      return std::nullopt;
    key += fmt::format(" {}+{}", part.offset, part.size);
    parts.push_back({"", file->bytes.subspan(part.offset, part.size)});
  }
  node::ModuleImage image(std::move(key), std::move(parts));
  image.Stay();  // files stay mapped
  return image;
}

}  // namespace allranks::server
