// What a random program consists of. See generator_internal.h.
#include "random/generator.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "random/generator_internal.h"

namespace allranks::node::random {

void Generator::Statement(Place place) {
  if (--budget_ < 0) return Arithmetic();
  const int kind = Below(100);
  if (kind < 34) return Arithmetic();
  if (kind < 42) return FloatArithmetic();
  if (kind < 52) return Compare();
  if (kind < 62 && place.depth < 3) return If(place);
  if (kind < 69 && place.depth < 3) return Loop(place);
  // Not in nested loops: calls make the programs long.
  if (kind < 73 && place.depth <= (place.in_function ? 2 : 1)) return Call();
  if (place.in_function) return Arithmetic();
  if (kind < 77) return LocalMemory();
  if (kind < 81) return Sum();
  if (kind < 89 && (place.uniform || !place.members.empty())) return WarpWide(place);
  if (kind < 94 && place.uniform) return SharedExchange();
  if (place.uniform && place.once) return GlobalExchange(Chance(40));
  Arithmetic();
}

// Collects the lines of a body, so that what it needs is declared before them.
std::string Generator::Body(const std::function<void()>& body) {
  std::string outer;
  std::swap(outer, text_);
  temps_ = wide_temps_ = 0;
  body();
  std::swap(outer, text_);
  return fmt::format(
      "  .reg .b32 %r<{}>, %t<{}>, %gid, %me, %block, %words, %mine;\n  .reg .b64 %w<{}>, %u<{}>, "
      "%in, %out, "
      "%sums, %exchange, %arrived, %local;\n  .reg .f32 %f<{}>;\n  .reg .pred %p<{}>, %q<10>;\n{}",
      kInts, temps_ + 1, kWides, wide_temps_ + 1, kFloats, kPredicates, outer);
}

void Generator::Registers() {
  for (int i = 0; i < kInts; ++i) {
    const std::string at = Temp(), wide = WideTemp();
    Line("mad.lo.u32 {}, %gid, {}, {};", at, 2 * Below(100) + 1, Below(kInWords));
    Line("and.b32 {}, {}, {};", at, at, kInWords - 1);
    Line("mul.wide.u32 {}, {}, 4;", wide, at);
    Line("add.u64 {}, {}, %in;", wide, wide);
    Line("ld.global{}.u32 %r{}, [{}];", One({"", ".nc"}), i, wide);
  }
  for (int i = 0; i < kWides; ++i) Line("mul.wide.u32 %w{}, {}, {};", i, Int(), Int());
  for (int i = 0; i < kFloats; ++i) Line("cvt.rn.f32.s32 %f{}, {};", i, Int());
  for (int i = 0; i < kPredicates; ++i) Line("setp.lt.s32 %p{}, {}, {};", i, Int(), Int());
}

void Generator::Function(int number) {
  functions_ = number;  // those before it: calls end
  calls_ = 1;
  const std::string body = Body([&] {
    Line("ld.param.b32 %r0, [x];");
    Line("ld.param.b32 %r1, [y];");
    for (int i = 2; i < kInts; ++i) Line("mad.lo.u32 %r{}, %r0, {}, %r1;", i, 3 + Below(100));
    for (int i = 0; i < kWides; ++i) Line("cvt.u64.u32 %w{}, {};", i, Int());
    for (int i = 0; i < kFloats; ++i) Line("cvt.rn.f32.s32 %f{}, {};", i, Int());
    for (int i = 0; i < kPredicates; ++i) Line("setp.lt.s32 %p{}, {}, {};", i, Int(), Int());
    Place place;
    place.uniform = place.once = false;
    place.in_function = true;
    place.depth = 2;
    budget_ = 12;
    Block(place, 2 + Below(5));
    if (Chance(30)) {  // some lanes return early
      Line("st.param.b32 [z], {};", Int());
      Line("@{} ret;", Pred());
    }
    Line("st.param.b32 [z], {};", Int());
    Line("ret;");
  });
  text_ += fmt::format(
      ".func (.param .b32 z) f{}(.param .b32 x, .param .b32 y)\n{{\n"
      "prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n{}}}\n",
      number, body);
}

Program Generator::Run() {
  program_.ctas = static_cast<std::uint32_t>(1 + Below(5));
  program_.threads = static_cast<std::uint32_t>(32 * (1 + Below(4)));
  program_.in_words = kInWords;
  program_.sum_words = 28;
  const std::uint32_t all = program_.ctas * program_.threads;
  program_.out_words = all * kOutPerThread;
  program_.exchange_words = all * kMaxExchanges;
  text_ = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const int functions = Below(kFunctions + 1);
  for (int i = 0; i < functions; ++i) Function(i);
  functions_ = functions;
  calls_ = 6;
  const std::string body = Body([&] {
    for (const char* name : {"in", "out", "sums", "exchange", "arrived"}) {
      Line("ld.param.u64 %{}, [{}];", name, name);
    }
    Line("mov.u32 %me, %tid.x;");
    Line("mov.u32 %block, %ctaid.x;");
    Line("mad.lo.u32 %gid, %block, {}, %me;", program_.threads);
    Line("mov.u32 %words, words;");
    Line("shl.b32 %mine, %me, 2;");
    Line("add.u32 %mine, %mine, %words;");
    Line("mov.u64 %local, own;");
    for (int i = 0; i < 16; ++i) Line("st.local.u32 [own+{}], {};", 4 * i, 77 * i);
    Line("setp.eq.u32 %q9, %me, 0;");
    Line("@%q9 st.shared.u32 [sum], 5;");
    CtaBarrier();
    Registers();
    budget_ = 60;
    Block(Place(), 12 + Below(14));
    const std::string wide = WideTemp();
    Line("mul.wide.u32 {}, %gid, {};", wide, 4 * kOutPerThread);
    Line("add.u64 {}, {}, %out;", wide, wide);
    int at = 0;
    for (int i = 0; i < kWides; ++i, at += 8) Line("st.global.u64 [{}+{}], %w{};", wide, at, i);
    for (int i = 0; i < kInts; ++i, at += 4) Line("st.global.u32 [{}+{}], %r{};", wide, at, i);
    for (int i = 0; i < kFloats; ++i, at += 4) Line("st.global.f32 [{}+{}], %f{};", wide, at, i);
    Line("ret;");
  });
  text_ += fmt::format(
      ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u64 exchange,\n"
      "                  .param .u64 arrived)\n{{\n"
      "  .shared .align 4 .b8 words[{}];\n  .shared .align 4 .b8 sum[4];\n"
      "  .local .align 4 .b8 own[64];\n"
      "prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n{}}}\n",
      4 * program_.threads, body);
  program_.text = std::move(text_);
  return program_;
}

Program Generate(std::uint64_t seed, bool racy) { return Generator(seed, racy).Run(); }

}  // namespace allranks::node::random
