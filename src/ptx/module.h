// A PTX module after parsing: plain data, the only thing the rest of the project knows of PTX text.
// The parser (parser.h) makes it; the node's decoder (node/decode/decode.h) turns one Function of
// it into executable code. Names are views into `Module::text`, which the module owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ptx/type.h"

namespace allranks::ptx {

enum class Space : std::uint8_t { kNone, kReg, kGlobal, kConst, kShared, kLocal, kParam };

// Position in the user's source, from .loc. `file` is the index into Module::files, or -1.
// When code was inlined, `inlined_at` is the index into Module::inline_sites of the call site,
// else -1.
struct SourceLoc {
  std::int32_t file = -1;
  std::int32_t line = 0;
  std::int32_t column = 0;
  std::int32_t inlined_at = -1;
};

struct InlineSite {
  SourceLoc call;             // where the inlined call stands (may itself be inlined)
  std::string_view function;  // name of the inlined function, if the module says it
};

struct Operand {
  enum class Kind : std::uint8_t {
    kReg,      // reg
    kInt,      // imm: integer literal, two's complement
    kF32,      // imm: 32 bits of a 0f literal
    kF64,      // imm: 64 bits of a 0d literal or of a decimal one
    kSpecial,  // name: "%tid.x", "%laneid", "%envreg2", ...
    kSymbol,   // name (+ imm as byte offset): variable, function or label
    kAddress,  // [elements[0] + imm] ; elements[0] is kReg, kSymbol or kInt; further elements are
               // what else stands in the brackets (tensor coordinates as a kVector, ...)
    kVector,   // {elements...}
    kList,     // (elements...): parameter list of a call
    kPair,     // elements[0] | elements[1]: two destinations, e.g. setp p|q, shfl d|p
    kSink,     // _
  };
  Kind kind = Kind::kInt;
  bool negated = false;   // !p, or unary minus before a register
  std::int32_t reg = -1;  // index into Function::registers
  std::uint64_t imm = 0;
  std::string_view name;  // of a kReg: its selector ("x", "b0", "h1"), nearly always empty
  std::vector<Operand> elements;
};

struct Instruction {
  std::string_view opcode;  // "ld", "cp", "bar", "mbarrier", "tcgen05", ...: up to the first dot
  std::vector<std::string_view>
      modifiers;                  // "acquire", "sys", "global", "v4", "f32", "shared::cta", ...
  std::vector<Operand> operands;  // in textual order, destinations first
  std::int32_t guard = -1;        // predicate register of @p, or -1
  bool guard_negated = false;
  SourceLoc loc;
  std::uint32_t text_line = 0;  // line in the PTX text, for messages

  bool Has(std::string_view modifier) const;
  // The whole dotted name, for messages and coverage: "ld.acquire.sys.global.u32".
  std::string Form() const;
  // The i-th modifier that is a type, counted from the end (0 = last); kNone if there is none.
  Type TypeFromEnd(int i = 0) const;
};

struct Register {
  std::string_view name;     // for a range `%r<79>`: "%r"
  std::int32_t number = -1;  // number within a range, else -1
  Type type = Type::kNone;
  std::string Name() const;  // "%r12"
};

// Initialiser pieces of a variable: raw bytes, and addresses of symbols to be filled in at load.
struct SymbolRef {
  std::uint64_t at = 0;  // byte offset in the variable
  std::string_view symbol;
  std::int64_t addend = 0;
  bool generic = false;    // generic(symbol)
  std::uint8_t size = 8;   // bytes of the address that are stored
  std::uint8_t shift = 0;  // for mask() initialisers: right shift before storing
};

struct Variable {
  std::string_view name;
  Space space = Space::kNone;
  Type type = Type::kNone;   // element type; kB8 for aggregates
  std::uint32_t vector = 1;  // .v2/.v4
  std::uint64_t align = 0;   // 0: natural
  std::uint64_t size = 0;    // bytes; 0 with `unsized` for `extern .shared x[]`
  bool unsized = false;
  bool is_extern = false, is_visible = false, is_weak = false, is_common = false;
  bool managed = false;
  std::vector<std::uint8_t> init;  // empty: zero
  std::vector<SymbolRef> refs;
};

// Performance directives of an entry (.maxntid, .reqntid, .minnctapersm, .reqnctapercluster, ...).
struct EntryLimits {
  std::uint32_t max_threads[3] = {0, 0, 0};
  std::uint32_t required_threads[3] = {0, 0, 0};
  std::uint32_t cluster[3] = {0, 0, 0};
  bool explicit_cluster = false;
  bool blocks_are_clusters = false;
  std::uint32_t max_cluster_rank = 0;
  std::uint32_t min_ctas_per_sm = 0;
  std::uint32_t max_registers = 0;
};

// What an indirect call passes and expects (.callprototype).
struct CallPrototype {
  std::vector<Variable> results;
  std::vector<Variable> params;
  bool noreturn = false;
};

struct Function;
struct Module;

// New names of symbols, by their old ones.
using Renames = std::unordered_map<std::string_view, std::string_view>;

// Reads the bodies of one text that the parser left for later.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // Reads the body of `function` into it, a function of `module`. After a failure it can be tried
  // again, and fails again.
  virtual Result<void> Read(Module* module, Function* function) = 0;
  // From here on the text is part of a linked module: its first file and its first inlined call
  // have these indices there, and its names are these.
  virtual void SetLinked(std::int32_t first_file, std::int32_t first_site,
                         const Renames& renames) = 0;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool is_extern = false, is_visible = false, is_weak = false;
  bool has_body = false;
  bool noreturn = false;
  std::vector<Variable> results;  // .func return parameters
  std::vector<Variable> params;   // in order; space kParam (or kReg in .func)
  std::vector<Register> registers;
  std::vector<Variable> variables;  // .local, .shared, .param declared in the body
  std::vector<Instruction> code;
  std::unordered_map<std::string_view, std::uint32_t>
      labels;  // name -> index into code (may be code.size())
  // .branchtargets and .calltargets lists, by label.
  std::unordered_map<std::string_view, std::vector<std::string_view>> target_lists;
  std::unordered_map<std::string_view, CallPrototype> prototypes;  // by label
  EntryLimits limits;
  std::uint32_t text_line = 0;
  // Not null: the body has not been read; what belongs to it (registers to prototypes) is empty.
  std::shared_ptr<BodyReader> reader;
  std::uint32_t body = 0;  // its number there
  // Of a body that was left for later, also when it has been read: its text or, of an outline
  // (outline.h), what is needed of it.
  std::string_view body_text;
  bool outlined = false;
  bool declares_shared = false;                // in the body
  std::vector<std::string_view> names_shared;  // the module's shared variables that it names
};

// Reads the function's body if that was left for later.
Result<void> ReadBody(Module* module, Function* function);

// Gives the names in a function's body, and its own, new ones where there are some.
void Rename(const Renames& renames, Function* function);

struct Alias {
  std::string_view name, target;
};

struct Module {
  std::shared_ptr<const std::string>
      text;  // all below points into it, into more_texts or into owned
  std::vector<std::shared_ptr<const std::string>> more_texts;  // of a linked module: its inputs
  std::vector<std::unique_ptr<std::string>> owned;  // names that had to be made (scoped duplicates)
  int version_major = 0, version_minor = 0;
  std::string_view target;  // "sm_90a"
  std::vector<std::string_view> target_options;
  int address_size = 64;
  std::vector<std::string> files;  // by .file, index 0 = first .file entry's slot
  std::vector<InlineSite> inline_sites;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;
  std::vector<Alias> aliases;
  // Positions in `functions` (an alias has its target's) and `variables`, by name.
  std::unordered_map<std::string_view, std::uint32_t> function_index;
  std::unordered_map<std::string_view, std::uint32_t> variable_index;

  // nullptr if there is none. FindFunction follows aliases.
  const Function* FindFunction(std::string_view name) const;
  const Variable* FindVariable(std::string_view name) const;
};

}  // namespace allranks::ptx
