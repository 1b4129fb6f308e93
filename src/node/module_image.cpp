#include "node/module_image.h"

#include "base/sha256.h"

namespace allranks::node {

ModuleImage::ModuleImage(std::span<const std::byte> bytes) {
  const Sha256Digest digest = Sha256(bytes);
  key_.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  if (!IsLinkSet(bytes)) {
    parts_ = {{"", bytes}};
  } else if (!ReadLinkSet(bytes, &parts_)) {
    parts_.clear();
  }
}

}  // namespace allranks::node
