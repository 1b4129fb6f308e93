// Memory files between judge and node, and where the bytes of a run lie in them.
//
// Inputs: written by the judge, sealed against any write of others, so that what the oracle reads
// is what was drawn, whatever becomes of the node. Outputs: written by the node. Both keep their
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"
#include "wire/frame.h"

namespace allranks::judge {

class MemoryFile {
 public:
  // `sealed`: whoever gets the descriptor can only read.
  static Result<MemoryFile> Make(const char* name, std::size_t size, bool sealed);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  // Gives its memory back; it reads as zeros. Not of a sealed one.
  void Clear() const;

 private:
  MemoryFile() = default;
  wire::Fd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Where tensors of one call and rank lie: those with `dir` kIn in the inputs, kOut in the outputs.
struct Placement {
  struct Item {
    std::uint32_t tensor = 0;
    std::uint64_t place = 0, bytes = 0;
  };
  std::vector<std::vector<Item>> in, out;  // by call * world + rank
  std::uint64_t in_bytes = 0, out_bytes = 0;
};

Placement Place(const problem::Problem& problem, const problem::Case& one, std::uint32_t calls);

}  // namespace allranks::judge
