// Reading fat binaries (fatbin.h). The layout of entries was established on nvcc 13.0's output.
#include "ptx/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "ptx/bytes.h"

namespace allranks::ptx {
namespace {

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t content_bytes;
};
static_assert(sizeof(ContainerHeader) == kFatbinHeaderBytes);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;      // distance to the payload
  std::uint64_t payload_bytes;     // with padding
  std::uint32_t compressed_bytes;  // without padding; 0 if not compressed
  std::uint32_t options_offset;    // compiler options, within the header
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t arch;
  std::uint32_t name_offset;  // source file, within the header
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t bytes;  // decompressed; 0 if not compressed
};
static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint16_t kKindElf = 2;
constexpr std::uint64_t kFlagDebug = 0x2;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagEncrypted = 0x10000;  // nvcc's LTO intermediate
constexpr std::uint64_t kFlagSpecific = 0x100000;
constexpr std::uint64_t kFlagFamily = 0x200000;

// What the formats can reach at most: an honest size never exceeds it, and nothing is allocated for
// a dishonest one. LZ4 gains 255 bytes per byte, a block of zstd 128 KiB per 4 bytes.
constexpr std::uint64_t kLz4MostPerByte = 255;
constexpr std::uint64_t kZstdMostPerByte = 32768;

Result<FatbinImage> ReadEntry(Bytes container, std::uint64_t at, const EntryHeader& entry) {
  FatbinImage image;
  if (entry.kind == kKindPtx) image.kind = ImageKind::kPtx;
  if (entry.kind == kKindElf) image.kind = ImageKind::kCubin;
  image.arch = entry.arch;
  image.debug = (entry.flags & kFlagDebug) != 0;
  if ((entry.flags & kFlagSpecific) != 0) image.variant = ArchVariant::kSpecific;
  if ((entry.flags & kFlagFamily) != 0) image.variant = ArchVariant::kFamily;
  const Bytes header = Slice(container, at, entry.header_bytes);
  image.name = AsText(Slice(header, entry.name_offset, entry.name_bytes));
  image.offset = at + entry.header_bytes;
  image.compressed_bytes = entry.payload_bytes;
  image.bytes = entry.payload_bytes;
  if ((entry.flags & kFlagEncrypted) != 0) {
    image.compression = Compression::kUnknown;
  } else if ((entry.flags & (kFlagLz4 | kFlagZstd)) != 0) {
    image.compression = (entry.flags & kFlagLz4) != 0 ? Compression::kLz4 : Compression::kZstd;
    if (entry.compressed_bytes > entry.payload_bytes) {
      return Fail("fatbin: an image's compressed size exceeds its space");
    }
    image.compressed_bytes = entry.compressed_bytes;
    image.bytes = entry.bytes;
  }
  return image;
}

}  // namespace

Result<std::uint64_t> Fatbin::ContainerBytes(Bytes start) {
  ContainerHeader header;
  if (!ReadAt(start, 0, &header)) return Fail("fatbin: too short for a header");
  if (header.magic != kFatbinMagic) return Fail("fatbin: bad magic {:#x}", header.magic);
  if (header.version != 1) return Fail("fatbin: unknown version {}", header.version);
  if (header.header_bytes < sizeof(header)) return Fail("fatbin: malformed header");
  if (header.content_bytes > kMaxFatbinBytes) return Fail("fatbin: larger than any program");
  return header.header_bytes + header.content_bytes;
}

Result<Fatbin> Fatbin::Open(Bytes bytes) {
  Fatbin fatbin;
  fatbin.bytes_ = bytes;
  std::uint64_t at = 0;
  do {
    const Bytes rest = bytes.subspan(at);
    const Result<std::uint64_t> size = ContainerBytes(rest);
    if (!size) return Fail(size.error());
    if (*size > rest.size()) return Fail("fatbin: {} bytes, but {} needed", rest.size(), *size);
    const Bytes container = bytes.first(at + *size);
    ContainerHeader header;
    ReadAt(rest, 0, &header);
    at += header.header_bytes;
    while (at < container.size()) {
      EntryHeader entry;
      if (!ReadAt(container, at, &entry)) return Fail("fatbin: an entry is cut off");
      if (entry.header_bytes < sizeof(entry) || !Contains(container, at, entry.header_bytes) ||
          !Contains(container, at + entry.header_bytes, entry.payload_bytes)) {
        return Fail("fatbin: an entry reaches beyond its container");
      }
      if (fatbin.images_.size() == kMaxFatbinImages) return Fail("fatbin: too many images");
      Result<FatbinImage> image = ReadEntry(container, at, entry);
      if (!image) return Fail(image.error());
      fatbin.images_.push_back(*image);
      at += entry.header_bytes + entry.payload_bytes;
    }
    // Containers of one section are aligned to 8 bytes.
    while (at % 8 != 0 && at < bytes.size()) ++at;
  } while (at < bytes.size() && ContainerBytes(bytes.subspan(at)).has_value());
  return fatbin;
}

Result<std::string> Fatbin::Extract(std::size_t i, std::uint64_t limit) const {
  if (i >= images_.size()) return Fail("fatbin: there is no image {}", i);
  const FatbinImage& image = images_[i];
  const std::string_view stored = AsText(Slice(bytes_, image.offset, image.compressed_bytes));
  if (image.bytes > limit)
    return Fail("fatbin: an image has {} bytes, the limit is {}", image.bytes, limit);
  const std::uint64_t most_per_byte =
      image.compression == Compression::kLz4 ? kLz4MostPerByte : kZstdMostPerByte;
  switch (image.compression) {
    case Compression::kNone:
      return std::string(stored);
    case Compression::kUnknown:
      return Fail("fatbin: image {} is stored in a form this program cannot read", i);
    case Compression::kLz4:
    case Compression::kZstd:
      break;
  }
  if (image.bytes / most_per_byte > stored.size()) {
    return Fail("fatbin: an image cannot have the size it claims");
  }
  std::string content;
  if (image.compression == Compression::kLz4) {
    constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
    if (stored.size() > kMost || image.bytes > kMost) return Fail("fatbin: image too large");
    content.resize(image.bytes);
    const int size =
        LZ4_decompress_safe(stored.data(), content.data(), static_cast<int>(stored.size()),
                            static_cast<int>(content.size()));
    if (size < 0) return Fail("fatbin: damaged LZ4 data");
    content.resize(static_cast<std::size_t>(size));
  } else {
    const unsigned long long claimed = ZSTD_getFrameContentSize(stored.data(), stored.size());
    if (claimed == ZSTD_CONTENTSIZE_ERROR ||
        (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed > image.bytes)) {
      return Fail("fatbin: damaged zstd data");
    }
    content.resize(image.bytes);
    const std::size_t size =
        ZSTD_decompress(content.data(), content.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0) return Fail("fatbin: damaged zstd data");
    content.resize(size);
  }
  if (content.size() != image.bytes) return Fail("fatbin: an image is shorter than it claims");
  return content;
}

std::optional<std::size_t> Fatbin::Pick(ImageKind kind, std::uint32_t arch) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const FatbinImage& image = images_[i];
    if (image.kind != kind || image.arch > arch) continue;
    if (image.variant == ArchVariant::kSpecific && image.arch != arch) continue;
    const bool same_major = image.arch / 10 == arch / 10;
    if ((image.variant == ArchVariant::kFamily || kind == ImageKind::kCubin) && !same_major)
      continue;
    if (!best || std::tie(image.arch, image.variant) >
                     std::tie(images_[*best].arch, images_[*best].variant)) {
      best = i;
    }
  }
  return best;
}

std::optional<std::size_t> Fatbin::PickPtx(std::uint32_t arch) const {
  if (const auto best = Pick(ImageKind::kPtx, arch)) return best;
  std::optional<std::size_t> lowest;
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const FatbinImage& image = images_[i];
    if (image.kind != ImageKind::kPtx || image.variant != ArchVariant::kPlain) continue;
    if (!lowest || image.arch < images_[*lowest].arch) lowest = i;
  }
  return lowest;
}

std::optional<std::size_t> Fatbin::PickCubin(std::uint32_t arch) const {
  return Pick(ImageKind::kCubin, arch);
}

}  // namespace allranks::ptx
