// What a problem's oracle.cpp includes. An oracle says whether the outputs of one call are right:
//
//   #include <allranks/oracle.h>
//   using namespace allranks::oracle;
//   extern "C" void Verify(const Call& call, Check& check) {
//     std::vector<Piece> in, out;
//     for (int r = 0; r < call.world(); ++r) {
//       in.push_back({r, "in"});
//       out.push_back({r, "out"});
//     }
//     check.Sum(in, out, call.Param("n"));
//   }
//
// It sees what the judge drew and what was there when each rank closed the call, never a seed.
// Where the least traffic depends on what was drawn, it may also define
//   extern "C" void Floors(const Call& call, int rank, Floor& floor)
// which lowers or raises what problem.toml's [floor] says, for one rank and call.
//
// Every element of every output must be compared. call.h has the inputs, check.h the ways to
// compare, bounds.h the error budgets, freivalds.h the check of matrix products.
#pragma once

#include "allranks/oracle/abi.h"
#include "allranks/oracle/bounds.h"
#include "allranks/oracle/call.h"
#include "allranks/oracle/check.h"
#include "allranks/oracle/formats.h"
#include "allranks/oracle/freivalds.h"

// The judge compiles oracle.cpp with this defined: it makes the entry point that it calls.
#ifdef ALLRANKS_ORACLE_MODULE
extern "C" void Verify(const allranks::oracle::Call& call, allranks::oracle::Check& check);
extern "C" __attribute__((weak)) void Floors(const allranks::oracle::Call& call, int rank,
                                             allranks::oracle::Floor& floor);

namespace allranks::oracle {
// Runs `f`; what it throws becomes `error`, of 256 bytes.
template <class F>
int Guard(const RawCall* raw, char* error, F f) {
  if (raw->version != kAbiVersion) return 2;
  error[0] = 0;
  try {
    f(Call(*raw));
    return 0;
  } catch (const std::exception& fault) {
    std::snprintf(error, 256, "%s", fault.what());
  } catch (...) {
    std::snprintf(error, 256, "an exception of an unknown kind");
  }
  return 1;
}
}  // namespace allranks::oracle

extern "C" __attribute__((visibility("default"))) int AllranksOracleRun(
    const allranks::oracle::RawCall* raw, allranks::oracle::RawReport* report) {
  report->wrong_count = 0;
  return allranks::oracle::Guard(raw, report->error, [&](const allranks::oracle::Call& call) {
    allranks::oracle::Check check(call, *report);
    Verify(call, check);
    check.RequireAllSeen();
  });
}

extern "C" __attribute__((visibility("default"))) int AllranksOracleFloors(
    const allranks::oracle::RawCall* raw, std::int32_t rank, allranks::oracle::Floor* floor,
    char* error) {
  return allranks::oracle::Guard(raw, error, [&](const allranks::oracle::Call& call) {
    if (&Floors != nullptr) Floors(call, rank, *floor);
  });
}
#endif
