// What a module is loaded from: PTX text, a fat binary, or several that are linked into one module.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/link_set.h"

namespace allranks::node {

class ModuleImage {
 public:
  // One image, or a link set, whose bytes must outlive this. Implicit, because it is nothing else.
  ModuleImage(std::span<const std::byte> bytes);  // NOLINT(google-explicit-constructor)
  // Pieces that are linked; `key` stands for their content.
  ModuleImage(std::string key, std::vector<LinkSetImage> parts)
      : key_(std::move(key)), parts_(std::move(parts)) {}

  // Code that is not on trial: what the checker finds only among such kernels is not reported.
  bool trusted() const { return trusted_; }
  void Trust() { trusted_ = true; }

  // The bytes are there as long as the machine, so that they can be read again.
  bool stays() const { return stays_; }
  void Stay() { stays_ = true; }

  // Equal for equal contents: of bytes their SHA-256.
  const std::string& key() const { return key_; }
  // Empty: a link set that is damaged.
  const std::vector<LinkSetImage>& parts() const { return parts_; }

 private:
  std::string key_;
  std::vector<LinkSetImage> parts_;
  bool trusted_ = false;
  bool stays_ = false;
};

}  // namespace allranks::node
