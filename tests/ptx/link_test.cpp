// The device linker on small texts: which definition a name gets, what is renamed, what is refused.
#include "ptx/link.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/link_set.h"
#include "ptx/parser.h"

namespace allranks::ptx {
namespace {

Module Parsed(const std::string& body) {
  auto module = Parse(".version 9.0\n.target sm_90\n.address_size 64\n" + body);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  return module ? std::move(*module) : Module();
}

Result<Module> Linked(const std::vector<std::string>& bodies) {
  std::vector<LinkInput> inputs;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    inputs.push_back({Parsed(bodies[i]), std::string(1, static_cast<char>('a' + i)) + ".cu"});
  }
  return Link(std::move(inputs), [](std::string_view name) { return name == "vprintf"; });
}

// The texts linked, which must succeed.
Module Good(const std::vector<std::string>& bodies) {
  auto module = Linked(bodies);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  return module ? std::move(*module) : Module();
}

std::string Error(const std::vector<std::string>& bodies) {
  const auto module = Linked(bodies);
  return module ? "linked" : module.error().message;
}

// What `name`'s only call calls.
const Function* Callee(const Module& module, std::string_view name) {
  const Function* function = module.FindFunction(name);
  if (function == nullptr) return nullptr;
  for (const Instruction& in : function->code) {
    if (in.opcode != "call") continue;
    for (const Operand& operand : in.operands) {
      if (operand.kind == Operand::Kind::kSymbol) return module.FindFunction(operand.name);
    }
  }
  return nullptr;
}

constexpr const char* kCaller = ".extern .func f();\n.visible .entry k() { call.uni f; ret; }\n";

TEST(Link, AFunctionOfAnotherFile) {
  for (const bool first : {true, false}) {
    const std::string definition = ".visible .func f() { trap; ret; }\n";
    const Module module = first ? Good({definition, kCaller}) : Good({kCaller, definition});
    const Function* f = Callee(module, "k");
    ASSERT_NE(f, nullptr);
    EXPECT_TRUE(f->has_body);
    EXPECT_EQ(f->code.size(), 2u);
    EXPECT_EQ(module.functions.size(), 2u);
  }
}

TEST(Link, UndefinedReferences) {
  EXPECT_EQ(Error({kCaller}), "Undefined reference to 'f' in 'a.cu'");
  EXPECT_EQ(Error({".visible .func g() { ret; }", kCaller}),
            "Undefined reference to 'f' in 'b.cu'");
  EXPECT_EQ(Error({".extern .global .u32 v;\n.visible .entry k() { .reg .b32 %r<2>;\n"
                   "ld.global.u32 %r1, [v]; ret; }"}),
            "Undefined reference to 'v' in 'a.cu'");
  // Of an initialiser.
  EXPECT_EQ(Error({".extern .func f();\n.visible .global .u64 t[1] = {f};"}),
            "Undefined reference to 'f' in 't'");
  // What nobody uses may be missing; what the system has is not.
  Good({".extern .func f();\n.extern .global .u32 v;\n.visible .entry k() { ret; }"});
  Good({".extern .func vprintf();\n.visible .entry k() { call.uni vprintf; ret; }"});
  // A file's own function is not for others.
  EXPECT_EQ(Error({kCaller, ".func f() { ret; }"}), "Undefined reference to 'f' in 'a.cu'");
}

TEST(Link, MultipleDefinitions) {
  const std::string function = ".visible .func f() { ret; }";
  EXPECT_EQ(Error({function, ".visible .func g() { ret; }", function}),
            "Multiple definition of 'f' in 'c.cu', first defined in 'a.cu'");
  EXPECT_EQ(Error({".visible .global .u32 v = 1;", ".visible .global .u32 v = 1;"}),
            "Multiple definition of 'v' in 'b.cu', first defined in 'a.cu'");
}

TEST(Link, WeakGivesWay) {
  const std::string weak = ".weak .func f() { ret; }", strong = ".visible .func f() { trap; ret; }";
  EXPECT_EQ(Good({kCaller, weak, strong}).FindFunction("f")->code.size(), 2u);
  EXPECT_EQ(Good({strong, weak, kCaller}).FindFunction("f")->code.size(), 2u);
  const Module both = Good({weak, weak, kCaller});
  EXPECT_EQ(both.functions.size(), 2u);
  EXPECT_TRUE(both.FindFunction("f")->has_body);
  const Module variable = Good(
      {".weak .global .u32 v = 1;", ".visible .global .u32 v = 2;", ".weak .global .u32 v = 3;"});
  ASSERT_EQ(variable.variables.size(), 1u);
  EXPECT_EQ(variable.variables[0].init[0], 2);
}

TEST(Link, CommonVariablesAreAsLargeAsTheLargest) {
  const Module module = Good({".common .global .align 4 .b8 v[8];",
                              ".common .global .align 16 .b8 v[32];", ".extern .global .b8 v[];"});
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_EQ(module.variables[0].size, 32u);
  EXPECT_EQ(module.variables[0].align, 16u);
  const Module defined = Good({".common .global .u32 v;", ".visible .global .u32 v = 7;"});
  ASSERT_EQ(defined.variables.size(), 1u);
  EXPECT_EQ(defined.variables[0].init[0], 7);
}

TEST(Link, DynamicSharedMemoryIsOne) {
  const std::string user = "() { .reg .b32 %r<2>;\nld.shared.u32 %r1, [s]; ret; }";
  const Module module = Good({".extern .shared .align 4 .b8 s[];\n.visible .entry k" + user,
                              ".extern .shared .align 16 .b8 s[];\n.visible .entry l" + user});
  ASSERT_EQ(module.variables.size(), 1u);
  EXPECT_EQ(module.variables[0].align, 16u);
  EXPECT_TRUE(module.variables[0].unsized);
}

TEST(Link, InternalNamesDoNotMeet) {
  // Both files have an f, a v and an s of their own; c.cu's f is for all.
  const auto file = [](const std::string& kernel, const std::string& value) {
    return ".global .u32 v = " + value + ";\n.global .u64 p[1] = {v};\n.func f() { trap; ret; }\n" +
           ".visible .entry " + kernel +
           "() { .reg .b32 %r<2>;\nld.global.u32 %r1, [v+4]; call.uni f; bra v2; v2: ret; }\n";
  };
  const Module module = Good({file("k", "1"), file("l", "2"), ".visible .func f() { ret; }"});
  const auto loaded = [&](std::string_view kernel) {
    const Operand& address = module.FindFunction(kernel)->code[0].operands[1];
    EXPECT_EQ(address.imm, 4u);
    return module.FindVariable(address.elements[0].name);
  };
  ASSERT_NE(loaded("k"), nullptr);
  ASSERT_NE(loaded("l"), nullptr);
  EXPECT_EQ(loaded("k")->init[0], 1);
  EXPECT_EQ(loaded("l")->init[0], 2);
  EXPECT_NE(Callee(module, "k"), Callee(module, "l"));
  EXPECT_EQ(Callee(module, "k")->code.size(), 2u);
  EXPECT_EQ(module.FindFunction("f")->code.size(), 1u);
  // The pointers of the two tables.
  int found = 0;
  for (const Variable& variable : module.variables) {
    if (variable.refs.empty()) continue;
    ++found;
    const Variable* target = module.FindVariable(variable.refs[0].symbol);
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(target->init[0], variable.name == "p" ? 1 : 2);
  }
  EXPECT_EQ(found, 2);
}

TEST(Link, AFunctionsOwnNamesHideTheModules) {
  const std::string file =
      ".global .u32 v;\n.visible .entry K() { .reg .b32 %r<2>;\n.local .b32 v;\n"
      "ld.local.u32 %r1, [v]; ret; }\n";
  std::string other = file;
  other.replace(other.find('K'), 1, "L");
  const Module module = Good({file, other});
  const Function* l = module.FindFunction("L");
  ASSERT_EQ(l->variables.size(), 1u);
  EXPECT_EQ(l->code[0].operands[1].elements[0].name, l->variables[0].name);
}

TEST(Link, Aliases) {
  const std::string target = ".visible .func real() { trap; ret; }\n";
  const std::string alias = ".visible .func f();\n.alias f, real;\n";
  const Module module = Good({kCaller, target + alias});
  ASSERT_NE(Callee(module, "k"), nullptr);
  EXPECT_EQ(Callee(module, "k")->name, "real");
  EXPECT_EQ(Error({target + alias, ".visible .func f() { ret; }"}),
            "Multiple definition of 'f' in 'b.cu', first defined in 'a.cu'");
}

TEST(Link, TablesOfFunctions) {
  const Module module =
      Good({".extern .func f();\n.extern .func g();\n.visible .global .u64 t[2] = {f, g};",
            ".visible .func f() { ret; }\n.visible .func g() { ret; }"});
  const Variable* table = module.FindVariable("t");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->refs.size(), 2u);
  for (const SymbolRef& ref : table->refs) EXPECT_TRUE(module.FindFunction(ref.symbol)->has_body);
}

TEST(Link, WhatDoesNotFit) {
  EXPECT_EQ(Error({".extern .func f(.param .b32 a);", ".visible .func f(.param .b64 a) { ret; }"}),
            "Prototype doesn't match for 'f' in 'b.cu', first specified in 'a.cu'");
  EXPECT_EQ(Error({".extern .global .b8 v[4];", ".visible .global .b8 v[8];"}),
            "Size doesn't match for 'v' in 'b.cu', first specified in 'a.cu'");
  EXPECT_EQ(Error({".extern .const .b8 v[4];", ".visible .global .b8 v[4];"}),
            "Memory space doesn't match for 'v' in 'b.cu', first specified in 'a.cu'");
  EXPECT_EQ(Error({".extern .global .b8 f[4];", ".visible .func f() { ret; }"}),
            "'f' is a function in one of 'a.cu' and 'b.cu' and a variable in the other");
}

TEST(Link, SourcePositionsStayTrue) {
  const auto file = [](const std::string& kernel, const std::string& name) {
    return ".visible .entry " + kernel +
           "() {\n.loc 1 7 0\ntrap;\n.loc 2 9 0, function_name $L__info0, inlined_at 1 8 "
           "3\nret;\n}\n"
           ".file 1 \"" +
           name + "\"\n.file 2 \"" + name +
           ".h\"\n"
           ".section .debug_str {\n$L__info0:\n.b8 102,0\n}\n";
  };
  const Module module = Good({file("k", "a.cu"), file("l", "b.cu")});
  const Function* l = module.FindFunction("l");
  EXPECT_EQ(module.files[static_cast<std::size_t>(l->code[0].loc.file)], "b.cu");
  EXPECT_EQ(module.files[static_cast<std::size_t>(l->code[1].loc.file)], "b.cu.h");
  ASSERT_GE(l->code[1].loc.inlined_at, 0);
  const InlineSite& site = module.inline_sites[static_cast<std::size_t>(l->code[1].loc.inlined_at)];
  EXPECT_EQ(module.files[static_cast<std::size_t>(site.call.file)], "b.cu");
  EXPECT_EQ(site.call.line, 8);
}

TEST(LinkSet, GoesThereAndBack) {
  LinkSetBuilder builder;
  builder.Add("a.cu", "12345", 5);
  builder.Add("", "", 0);
  builder.Add("name", "12345678", 8);
  const std::vector<char>& bytes = builder.Finish();
  const auto all = std::as_bytes(std::span(bytes));
  std::vector<LinkSetImage> images;
  ASSERT_TRUE(ReadLinkSet(all, &images));
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].name, "a.cu");
  EXPECT_EQ(images[0].bytes.size(), 5u);
  EXPECT_EQ(images[1].bytes.size(), 0u);
  EXPECT_EQ(images[2].bytes.size(), 8u);
  for (std::size_t size = 0; size < all.size(); ++size) {
    EXPECT_FALSE(ReadLinkSet(all.first(size), &images)) << size;
  }
}

}  // namespace
}  // namespace allranks::ptx
