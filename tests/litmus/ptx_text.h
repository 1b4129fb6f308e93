// Makes PTX of the threads of a litmus test: one module per kernel, in which every thread finds its
// own code by its place and leaves the registers that expectations name in an output buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "litmus_file.h"

namespace allranks::litmus {

// An address that a kernel is given: of a memory, or of one device's view of it.
struct Argument {
  int memory = 0;
  int view = -1;
};

// A register that is stored at a thread's end, one slot of 8 bytes per lane.
struct Slot {
  int thread = 0;
  char bank = 'r';
  std::uint32_t number = 0;
  std::uint32_t first = 0;  // slot of the thread's first lane
};

struct KernelText {
  std::string name;
  int device = 0;
  std::uint32_t blocks = 1, threads = 1;
  std::vector<Argument> arguments;  // behind the output buffer
  std::vector<Slot> slots;
  std::uint32_t slot_count = 0;
  std::string ptx;
};

// In the order in which their threads are named.
Result<std::vector<KernelText>> MakeKernels(const Test& test, const Section& section);

}  // namespace allranks::litmus
