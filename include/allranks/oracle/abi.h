// What passes between the judge and a problem's oracle, which is a shared object: plain data,
// pointers and counts, so that neither side needs the other's compiler or C++ library. An oracle's
// author uses call.h and check.h instead.
//
// The judge fills a RawCall, calls the one exported function kEntry (an EntryFunction) and gets
// mismatches through RawReport. The shared object is built by the judge itself, from the same
// header; kAbiVersion guards against one from a cache of another release.
#pragma once

#include <cstdint>

namespace allranks::oracle {

inline constexpr std::uint32_t kAbiVersion = 1;
inline constexpr char kEntry[] = "AllranksOracleRun";

// Element types, numbered as in problem.toml's list of types (src/problem/type.h).
enum class Type : std::uint8_t { kF32, kF16, kBf16, kF64, kI8, kU8, kI32, kU32, kI64, kU64 };
enum class Dir : std::uint8_t { kIn, kOut, kSymmetric };

// One tensor; the same on every rank.
struct RawTensor {
  const char* name;
  std::uint64_t count;  // elements
  Type type;
  Dir dir;
};

// One call of all ranks. Tables "by rank" are world x tensors: rank by rank, in each tensor by
// tensor.
struct RawCall {
  std::uint32_t version;
  std::int32_t world;
  std::uint32_t param_count;
  std::uint32_t tensor_count;
  const char* const* param_names;
  const std::int64_t* params;
  const RawTensor* tensors;
  // By rank. kIn: what the judge drew; kOut: what was there when the call closed; symmetric: null.
  // Aligned to at least 16 bytes.
  const void* const* data;
  const std::uint32_t* poison;  // by rank: the word an output was filled with when the call opened
  std::uint64_t random[4];      // unknown to the candidate; for randomised checks
};

struct RawReport {
  void* context;
  // One wrong element; at most `limit` are told.
  void (*wrong)(void* context, std::int32_t rank, std::uint32_t tensor, std::uint64_t index,
                const char* expected, const char* got);
  std::uint64_t limit;
  std::uint64_t wrong_count;  // set by the oracle: all of them
  char error[256];            // set by the oracle if it could not judge
};

// 0: judged. 1: it could not, see `error`. 2: another version of this header.
using EntryFunction = int (*)(const RawCall* call, RawReport* report);

// The least that one rank must do in one call, whatever the algorithm.
struct Floor {
  double ingress, egress;  // payload bytes over links
  double busiest;          // of these, in one direction of the rank with the most; roofline only
  double hbm;              // bytes of the rank's own memory, read or written
  double flops;            // on tensor cores
  double hops;             // one-way link latencies, one after the other
};
inline constexpr char kFloorsEntry[] = "AllranksOracleFloors";
// Floors that depend on what was drawn (counts, routing); `floor` holds problem.toml's values.
// There are no outputs yet. 0: done, also when the oracle has no Floors. Others as above, with
// `error` of 256 bytes.
using FloorsFunction = int (*)(const RawCall* call, std::int32_t rank, Floor* floor, char* error);

}  // namespace allranks::oracle
