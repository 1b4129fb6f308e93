// What the node makes of PTX: per kernel what it needs and which instructions it lacks, and over
// all inputs how many instruction forms there are and can be executed. `allranks ptx` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/ptx_images.h"

namespace allranks::cli {

struct PtxForm {
  std::uint64_t count = 0;
  std::uint64_t unsupported = 0;  // how many of them the decoder has no semantics for
  bool parsed = false;            // in a text that could be parsed
  std::string first;              // where the first unsupported one stands: "a.cu:12", "a.ptx:310"
  std::string why;                // for a form whose whole function could not be decoded
};

struct PtxKernel {
  std::string image, name;
  bool is_entry = true;
  std::uint32_t registers = 0;
  bool registers_known = false;  // from a cubin, not estimated
  std::uint32_t shared = 0, local = 0;
  std::uint64_t instructions = 0;
  std::string error;  // the function could not be decoded
  struct Missing {
    std::string form, at;
    std::uint64_t count = 0;
  };
  std::vector<Missing> missing;  // by first occurrence
};

// A form is the dotted name, and with it the special registers that it reads: for the node
// `mov.u32 %tid.x` and `mov.u32 %clusterid.x` are different things.
struct PtxReport {
  std::vector<PtxKernel> kernels;
  std::map<std::string, PtxForm> forms;
  std::vector<std::string> errors;  // images that could not be parsed

  std::uint64_t Parsed() const;
  std::uint64_t Executable() const;
};

// Adds what one image holds. A text that cannot be parsed is an error in the report, and the forms
// that appear only in such texts count as neither parsed nor executable.
void AddToReport(PtxImage image, PtxReport* report);

}  // namespace allranks::cli
