// What a kernel needs of the hardware, as the real assembler decided it: read from the cubin beside
// the PTX. PTX has unlimited registers, so only this tells occupancy and spills. The bytes are
// untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"

namespace allranks::ptx {

struct KernelResources {
  std::uint32_t registers = 0;               // per thread
  std::uint64_t shared_bytes = 0;            // static, per block, without what the system reserves
  std::uint64_t local_bytes = 0;             // stack and spills, per thread, of the whole call tree
  std::uint64_t param_bytes = 0;             // kernel parameters
  std::uint64_t constant_bytes = 0;          // constant bank 0: parameters and what precedes them
  std::uint32_t max_threads[3] = {0, 0, 0};  // 0: not limited by the source
  std::uint32_t required_threads[3] = {0, 0, 0};
  std::uint32_t max_registers = 0;  // the limit the assembler worked under
  std::uint32_t barriers = 0;       // named barriers in use, counted from 0
};

inline constexpr std::size_t kMaxCubinSymbols = std::size_t{1} << 20;

// By (mangled) kernel name. An unlinked cubin (-rdc) counts only the kernel itself, not what it
// calls in other files.
Result<std::map<std::string, KernelResources>> ReadCubin(std::span<const std::byte> cubin);

}  // namespace allranks::ptx
