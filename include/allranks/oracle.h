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

extern "C" __attribute__((visibility("default"))) int AllranksOracleRun(
    const allranks::oracle::RawCall* raw, allranks::oracle::RawReport* report) {
  if (raw->version != allranks::oracle::kAbiVersion) return 2;
  report->wrong_count = 0;
  report->error[0] = 0;
  try {
    const allranks::oracle::Call call(*raw);
    allranks::oracle::Check check(call, *report);
    Verify(call, check);
    check.RequireAllSeen();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(report->error, sizeof report->error, "%s", error.what());
  } catch (...) {
    std::snprintf(report->error, sizeof report->error, "an exception of an unknown kind");
  }
  return 1;
}
#endif
