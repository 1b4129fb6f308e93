// A problem as data: what problem.toml says, checked. Everything that machines need comes from
// here: the Args of a solution (args.h), both drivers, the facts of a prompt, tensors, cases,
// floors.
//
// Sizes are expressions over the parameters of a case ("2*n*sizeof(T) + 65536", expression.h), so a
// problem is one description for every size and world.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "problem/expression.h"
#include "problem/type.h"

namespace allranks::problem {

enum class Window { kGraph, kStream, kHost, kQuery };
enum class Split { kPublic, kSealed, kPrivate };
// As problem.toml writes them.
const char* NameOf(Window window);  // graph stream host query
const char* NameOf(Split split);    // public sealed private

// How the judge fills an input.
struct Draw {
  enum class Kind {
    kMixed,     // floats: a distribution drawn per call: uniform, wide exponents, integers, spikes
    kUniform,   // floats in [-1, 1)
    kIntegers,  // small integers, so that sums and products are exact: |x| <= limit
    kBits,      // any bits (integers)
    kBelow,     // integers in [0, limit)
    kCounts,    // rows of non-negative counts, each row with a sum of at most limit; Zipf, zeros
    kTopK,      // rows of distinct integers in [0, limit), skewed (routing of tokens to experts)
  };
  Kind kind = Kind::kUniform;
  Expression limit;  // where the kind has one
};

struct Tensor {
  enum class Dir { kIn, kOut, kSymmetric };
  std::string name;
  Dir dir = Dir::kIn;
  Type type = Type::kF32;         // symmetric memory is bytes: kU8
  std::string type_name;          // as solutions write it: "T" of [vary], or CUDA's name
  std::vector<Expression> shape;  // in/out; symmetric memory has `bytes`
  Expression bytes;
  bool peers = false;      // Args has NAME_peers[kMaxRanks]; symmetric memory of devices always
  bool multicast = false;  // Args has NAME_multicast
  bool host = false;       // pinned host memory
  bool changes = false;    // an input that the call may overwrite
  bool same = false;       // an input that is the same on all ranks
  Draw draw;               // kIn
};

// One set of parameters to run. `params` is in the order of Problem::params, without world.
struct Case {
  enum class Kind { kTimed, kVisible, kDrawn };
  std::string name;  // "timed.w8.n4096", "large.w8.n16777216"; of a drawn one "drawn.0": its values
                     // are told only after
  Kind kind = Kind::kTimed;
  int world = 1;
  std::vector<std::int64_t> params;
  bool large = false;   // timed: too large for a burst; its calls follow each other one by one
  bool skew = false;    // ranks enter at drawn times
  std::string profile;  // empty: the one the judge was told to use
};

// What problem.toml says of drawn cases.
struct DrawnCases {
  int count = 0;
  bool skew = true;
  int world_low = 1, world_high = 1;
  std::vector<std::int64_t> low, high, step;  // by param: low, low + step, ... up to high
};

// Least that any algorithm must do, per rank and call. Empty expressions are 0.
struct Floor {
  Expression ingress, egress;  // payload bytes over links
  Expression busiest;          // bytes in one direction of the busiest rank: for the roofline only
  Expression hbm;              // bytes of the rank's own memory, read or written
  Expression flops;            // on tensor cores
  Expression hops;             // one-way link latencies, one after the other
};

// One bug: an operator on a tag of a solution ("publish", "relax"), a replacement, or a patch.
struct Mutant {
  std::string name;  // "publish.relax", "one_buffer"; "flags.one_buffer" of an alternate
  std::string of = "reference.cu";  // or "alternates/flags.cu"
  std::string tag, op;              // empty for a patch
  std::string replace, with;        // a text that occurs once, and what stands there instead
  std::string patch;                // "one_buffer.patch"
  std::string verdict;              // that it must get
  bool needs_checker = false;  // outputs need not show it: `verdict` is what the checker will say
};

struct Problem {
  static constexpr int kSchema = 1;
  std::filesystem::path folder;
  std::string slug;                   // the folder's name, and of a variant ".bf16" behind it
  std::string variant;                // "bf16"; empty for the first
  std::vector<std::string> variants;  // of its folder, this one among them
  std::string title, category, level, library, family, origin;
  std::vector<std::string> given;  // headers in include/allranks that the template uses
  std::vector<std::string> parallelism;
  std::vector<std::string> covers;  // examples of other benchmarks: "CB073", "PKB12"
  Split split = Split::kPublic;

  Window window = Window::kGraph;
  std::vector<std::string> links;   // kinds that may carry payload
  std::vector<std::string> allow;   // kernel memcpy values multicast
  std::vector<std::string> calls;   // entry points, called one after the other; {"launch"}
  std::vector<std::string> faults;  // of the machine: "link:gpu0-nvswitch=0.25" (node/faults.h)
  bool setup = false;
  int host_threads = 0;
  int max_ctas = 0;
  bool arch_specific = false;  // instructions of one architecture alone: sm_90a
  int burst = 6;
  int max_ranks = 8;

  std::vector<std::string> params;                // in the order of Args
  std::vector<Tensor> tensors;                    // in the order of Args
  std::map<std::string, Type> vary;               // types of this variant by their names ("T")
  std::map<std::string, std::int64_t> constants;  // and its numbers ("Width")
  std::vector<Case> cases;                        // timed and visible
  DrawnCases drawn;
  Floor floor;
  std::vector<Mutant> mutants;
};

// Whether [run] allow has `what` ("kernel").
bool Allows(const Problem& problem, std::string_view what);
// Whether solutions are linked with libnccl.so.2.
bool UsesNccl(const Problem& problem);
// The same problem for a solution by NCCL (nccl.cu): with all that NCCL needs.
Problem WithNccl(const Problem& problem);

// Reads and checks `folder`/problem.toml. A message names file, line, key and what is expected.
Result<Problem> Load(const std::filesystem::path& folder, const std::string& variant = "");
// All variants of a folder, which are problems of their own.
Result<std::vector<Problem>> LoadAll(const std::filesystem::path& folder);

// The same from text; `folder` gives slug and category.
Result<Problem> Parse(std::string_view text, const std::filesystem::path& folder,
                      const std::string& variant = "");

// What a candidate can be told, and what an author may expect of one.
const std::vector<std::string>& Verdicts();
const std::vector<std::string>& Categories();

// The folders of problems below `root` (ROOT/CATEGORY/SLUG/problem.toml), sorted by slug.
std::vector<std::filesystem::path> Find(const std::filesystem::path& root);

// One of the drawn cases. `below(n)` draws from [0, n), evenly.
Case DrawCase(const Problem& problem, int index, int world,
              const std::function<std::uint64_t(std::uint64_t)>& below);
// "timed.w8.n4096"
std::string NameOf(const Problem& problem, const Case& one);

// Values for expressions of `problem` in a case: world, params, and sizes of varied types.
Values ValuesOf(const Problem& problem, const Case& one);
// Elements and bytes of a tensor in a case. Parse has made sure that these can be computed in all
// cases of problem.toml; a drawn one in between might divide by zero, which ends in 0.
std::uint64_t CountOf(const Problem& problem, const Tensor& tensor, const Case& one);
std::uint64_t BytesOf(const Problem& problem, const Tensor& tensor, const Case& one);

}  // namespace allranks::problem
