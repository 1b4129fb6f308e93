// Where an instruction of a program's host code stands, as people and addr2line read it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace allranks::server {

// "program+0x1234": the file that the instruction is mapped from, and its address there. If that is
// the C library, where `caller` is, as long as that is code. "host code" if neither is known.
std::string HostPlace(pid_t pid, std::uint64_t pc, std::uint64_t caller);

}  // namespace allranks::server
