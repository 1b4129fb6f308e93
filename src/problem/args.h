// The Args of a problem, as bytes and as C++. The layout is fixed by rules a C++ compiler follows
// for a plain struct, so the driver, which is the same for all problems, can hand a solution an
// Args that it knows only as bytes:
//
//   int32 rank; int32 world;
//   int64 PARAM;                      each parameter, in order
//   [const] TYPE* NAME;               each tensor, in order, followed by
//   TYPE* NAME_peers[kMaxRanks];        if it can be addressed by peers ([rank] is the own one)
//   TYPE* NAME_multicast;               if it has a multicast address
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace allranks::problem {

enum class FieldKind { kRank, kWorld, kParam, kOwn, kPeer, kMulticast };

struct Field {
  FieldKind kind = FieldKind::kRank;
  std::uint32_t offset = 0;
  std::uint32_t index = 0;  // of the parameter or the tensor
  std::uint32_t peer = 0;
};

struct ArgsLayout {
  std::uint32_t bytes = 0;
  std::vector<Field> fields;
};

ArgsLayout LayOut(const Problem& problem);

// problem.h as a solution includes it: types, kMaxRanks, Args, the entry points' declarations, and
// static_asserts that hold the compiler to LayOut.
std::string RenderHeader(const Problem& problem);
// What a solution must define, as problem.h declares it, without the semicolons.
std::vector<std::string> Declarations(const Problem& problem);

}  // namespace allranks::problem
