// What every test of the machine needs: one made from a shipped profile, and waiting for an
// operation.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "node/hardware/profile.h"
#include "node/machine.h"

namespace allranks::node {

// Null, with a failure recorded, if the profile or the options are refused.
inline std::unique_ptr<Machine> MakeTestMachine(const MachineOptions& options = {},
                                                const std::string& name = "h100x8") {
  auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/" + name + ".toml");
  EXPECT_TRUE(profile) << profile.error().message;
  if (!profile) return nullptr;
  auto machine = Machine::Create(*profile, options);
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? std::move(*machine) : nullptr;
}

// Lets time pass until `op` is complete. False: nothing is left to happen, and it is not.
inline bool WaitFor(Machine& machine, OpId op) {
  bool done = false;
  machine.WhenDone({op}, [&](Time) {
    done = true;
    machine.Stop();
  });
  while (!done && machine.RunUntil(kTimeNever)) {
  }
  return done;
}

}  // namespace allranks::node
