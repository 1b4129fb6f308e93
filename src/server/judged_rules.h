// A judged run as the desk and the handlers see it: what is different in one. Judged has the rules;
// where there is none (Desk::judged() is null) ranks may do what CUDA programs may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "node/ids.h"
#include "node/memory_api.h"
#include "node/module_image.h"
#include "node/status.h"

namespace allranks::server {

class JudgedRules {
 public:
  virtual ~JudgedRules() = default;

  // Instrumented host code runs beside the kernels.
  virtual bool host_window() const = 0;
  // The host code of a library runs before the windows: it waits and polls as any program does.
  virtual bool library() const = 0;
  // A call of the rank was answered so.
  virtual void Answered(std::int32_t rank, node::Status status) = 0;
  // The rank was refused something: the judge is told why.
  virtual void Forbidden(std::int32_t rank, const std::string& why) = 0;
  // Whether this is what the compiler has made of the candidate's source, or lies in the library
  // that the plan names.
  virtual bool IsOwnModule(const node::ModuleImage& image) const = 0;
  // Host memory of the plan that the rank has not mapped yet; false: none of this size.
  virtual bool TakePinned(std::int32_t rank, std::uint64_t size, node::PinnedMemory* memory) = 0;
  virtual void MadeGraph(std::int32_t rank, node::GraphId graph) = 0;
};

}  // namespace allranks::server
