// Fat binaries: the containers in which nvcc embeds PTX and cubins in host programs. Opening one
// reads only headers; an image is decompressed when asked for. The bytes are untrusted.
//
// A registered program hands over a wrapper {u32 magic = 0x466243b1, u32 version, void* data,
// void* more}. `data` points to a container: a header of 16 bytes {u32 magic = 0xba55ed50, u16
// version, u16 header bytes, u64 bytes that follow} and its images. With version 2 (-rdc) that is
// the linked cubin, and `more` a list, ended by nullptr, of the containers that were linked, with
// their PTX. In a program's file, containers stand in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace allranks::ptx {

inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;
inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
inline constexpr std::size_t kFatbinHeaderBytes = 16;
inline constexpr std::uint64_t kMaxFatbinBytes = std::uint64_t{1} << 31;
inline constexpr std::size_t kMaxFatbinImages = 4096;
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{256} << 20;  // decompressed

enum class ImageKind : std::uint8_t { kPtx, kCubin, kOther };
// sm_90, sm_90a (this architecture only), sm_100f (this one and later ones of its family).
enum class ArchVariant : std::uint8_t { kPlain, kFamily, kSpecific };
enum class Compression : std::uint8_t { kNone, kLz4, kZstd, kUnknown };

struct FatbinImage {
  ImageKind kind = ImageKind::kOther;
  Compression compression = Compression::kNone;
  ArchVariant variant = ArchVariant::kPlain;
  std::uint32_t arch = 0;              // 90 for sm_90, sm_90a
  bool debug = false;                  // compiled with -G
  std::string_view name;               // source file, if nvcc wrote it
  std::uint64_t compressed_bytes = 0;  // stored bytes
  std::uint64_t bytes = 0;             // after decompression
  std::uint64_t offset = 0;            // of the stored bytes
};

class Fatbin {
 public:
  // How many bytes the container has whose first bytes these are (at least kFatbinHeaderBytes), for
  // a caller that knows only where it starts.
  static Result<std::uint64_t> ContainerBytes(std::span<const std::byte> start);

  // `bytes` must outlive the result; names point into it. Bytes after the last container are
  // ignored, as are images of unknown kinds until they are extracted.
  static Result<Fatbin> Open(std::span<const std::byte> bytes);

  const std::vector<FatbinImage>& images() const { return images_; }

  // The image's content: PTX text (perhaps padded with zeros, which Parse ignores) or a cubin.
  Result<std::string> Extract(std::size_t i, std::uint64_t limit = kMaxImageBytes) const;

  // The image that a device of `arch` (90 for compute capability 9.0) would take, as an index into
  // images(). PTX: the highest target that is not above the device's; where there is none, the
  // lowest above it, which a real device would refuse. Cubin: the device's own architecture, else
  // the highest earlier one of the same major number. At equal numbers the `a` variant comes first,
  // then `f`, then the plain one.
  std::optional<std::size_t> PickPtx(std::uint32_t arch) const;
  std::optional<std::size_t> PickCubin(std::uint32_t arch) const;

 private:
  std::optional<std::size_t> Pick(ImageKind kind, std::uint32_t arch) const;

  std::span<const std::byte> bytes_;
  std::vector<FatbinImage> images_;
};

}  // namespace allranks::ptx
