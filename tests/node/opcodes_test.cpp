// The table of PTX opcodes: every arithmetic form has a row, what is not in the table changes
// memory.
#include "node/decode/opcodes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "alu/forms.h"

namespace allranks::node {
namespace {

TEST(Opcodes, EveryArithmeticFormHasARow) {
  int lines = 0;
  for (const auto& [group, forms] :
       alu_test::ReadForms(ALLRANKS_SOURCE_DIR "/tests/node/alu/forms.txt")) {
    for (const auto& line : forms) {
      const std::string& opcode = line.opcode;
      const Opcode row = FindOpcode(opcode);
      EXPECT_EQ(row.group, OpcodeGroup::kAlu) << opcode;
      EXPECT_EQ(row.behaviour.effect, Effect::kPlain) << opcode;
      EXPECT_EQ(row.behaviour.destinations, 1) << opcode;
      ++lines;
    }
  }
  EXPECT_GT(lines, 1000);
}

// A loop with such an instruction must not be taken for a wait.
TEST(Opcodes, WhatIsNotKnownChangesSomething) {
  for (const char* name : {"", "newop", "st2", "LD"}) {
    const Opcode row = FindOpcode(name);
    EXPECT_EQ(row.group, OpcodeGroup::kNone) << name;
    EXPECT_EQ(row.behaviour.effect, Effect::kChange) << name;
  }
}

TEST(Opcodes, NoneIsThereTwice) {
  const char* const names[] = {
#define ALLRANKS_OPCODE(name, group, effect, destinations, early_write) name,
#include "node/decode/opcodes.def"
#undef ALLRANKS_OPCODE
  };
  std::set<std::string> seen;
  for (const char* name : names) EXPECT_TRUE(seen.insert(name).second) << name;
}

}  // namespace
}  // namespace allranks::node
