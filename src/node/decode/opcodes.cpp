// The table of PTX opcodes, by name.
#include "node/decode/opcodes.h"

#include <unordered_map>

namespace allranks::node {

Opcode FindOpcode(std::string_view name) {
  static const std::unordered_map<std::string_view, Opcode> kTable = {
#define ALLRANKS_OPCODE(name, group, effect, destinations, early_write) \
  {name,                                                                \
   {OpcodeGroup::group,                                                 \
    {destinations, Effect::effect, /*reads_destination=*/false, early_write}}},
#include "node/decode/opcodes.def"
#undef ALLRANKS_OPCODE
  };
  const auto found = kTable.find(name);
  return found == kTable.end() ? Opcode{} : found->second;
}

}  // namespace allranks::node
