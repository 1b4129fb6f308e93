// See generator.h. A program is a tree of statements over a few registers of each kind. What makes
// it free of races:
// - memory that threads exchange has a barrier between writing and reading, and every exchange has
//   words of its own, which are written once;
// - barriers, shuffles and exchanges stand only where all threads come by: at the top, in loops
// whose
//   count is a literal, never under a condition;
// - under a condition, warp-wide operations name the lanes that a ballot before it has counted;
// - an atomic word is only ever changed by one kind of operation, which commutes, and is only read
//   at the end by the host.
#include "random/generator.h"

#include <fmt/format.h>

#include <functional>
#include <random>
#include <vector>

namespace allranks::node::random {
namespace {

constexpr int kInts = 10, kWides = 6, kFloats = 6, kPredicates = 6;
constexpr int kFunctions = 4;
constexpr int kInWords = 256;
constexpr int kMaxExchanges = 24;
constexpr int kOutPerThread = kInts + 2 * kWides + kFloats;
constexpr const char* kSums[] = {"add.u32", "min.u32", "max.s32", "and.b32",
                                 "or.b32",  "xor.b32", "inc.u32"};

class Generator {
 public:
  Generator(std::uint64_t seed, bool racy) : random_(seed), racy_(racy) {}

  Program Run();

 private:
  // Where a statement stands.
  struct Place {
    bool uniform = true;  // every thread of the grid comes by, the same number of times
    bool once = true;     // and exactly once: what needs words of its own may stand here
    bool in_function = false;
    int depth = 0;
    std::string members;  // register with the mask of the warp's lanes here; empty: not known
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string Int() { return fmt::format("%r{}", Below(kInts)); }
  std::string Wide() { return fmt::format("%w{}", Below(kWides)); }
  std::string Float() { return fmt::format("%f{}", Below(kFloats)); }
  std::string Pred() { return fmt::format("%p{}", Below(kPredicates)); }
  std::string IntOrLiteral() {
    return Chance(25) ? fmt::format("{}", Below(1 << 20) - (1 << 19)) : Int();
  }
  std::string Temp() { return fmt::format("%t{}", temps_++); }
  std::string WideTemp() { return fmt::format("%u{}", wide_temps_++); }
  std::string Label() { return fmt::format("L{}", labels_++); }
  const char* One(std::initializer_list<const char*> list) {
    return list.begin()[Below(static_cast<int>(list.size()))];
  }

  void Registers();
  void Arithmetic();
  void FloatArithmetic();
  void Compare();
  void LocalMemory();
  void Sum();
  void If(Place place);
  void Loop(Place place);
  void Call();
  void WarpWide(const Place& place);
  void SharedExchange();
  void GlobalExchange(bool between_ctas);
  void CtaBarrier() {
    if (!racy_) Line("{}", One({"bar.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;"}));
  }
  void GridBarrier();
  void Statement(Place place);
  void Block(const Place& place, int statements) {
    for (int i = 0; i < statements; ++i) Statement(place);
  }
  void Function(int number);
  std::string Body(const std::function<void()>& body);

  std::mt19937_64 random_;
  const bool racy_;
  Program program_;
  std::string text_;
  int temps_ = 0, wide_temps_ = 0, labels_ = 0, exchanges_ = 0, barriers_ = 0, budget_ = 0;
  int functions_ = 0;  // that may be called here
  int calls_ = 0;      // that may still be made in this function
};

void Generator::Arithmetic() {
  switch (Below(16)) {
    case 0:
    case 1:
    case 2:
      Line("{} {}, {}, {};",
           One({"add.s32", "sub.s32", "mul.lo.s32", "mul.hi.u32", "min.s32", "max.u32", "and.b32",
                "or.b32", "xor.b32"}),
           Int(), Int(), IntOrLiteral());
      break;
    case 3:
      Line("{} {}, {}, {}, {};", One({"mad.lo.s32", "mad.hi.u32", "sad.u32"}), Int(), Int(), Int(),
           Int());
      break;
    case 4:
      Line("{} {}, {};", One({"popc.b32", "clz.b32", "brev.b32", "not.b32", "neg.s32", "abs.s32"}),
           Int(), Int());
      break;
    case 5:
      Line("{} {}, {}, {};", One({"shl.b32", "shr.u32", "shr.s32"}), Int(), Int(), Below(40));
      break;
    case 6: {  // by what cannot be zero
      const std::string divisor = Temp();
      Line("or.b32 {}, {}, 1;", divisor, Int());
      Line("{} {}, {}, {};", One({"div.u32", "rem.u32", "div.s32", "rem.s32"}), Int(), Int(),
           divisor);
      break;
    }
    case 7:
      Line("{} {}, {}, {}, {};", One({"bfe.u32", "bfe.s32"}), Int(), Int(), Below(32), Below(33));
      break;
    case 8:
      Line("bfi.b32 {}, {}, {}, {}, {};", Int(), Int(), Int(), Below(32), Below(32));
      break;
    case 9:
      Line("prmt.b32 {}, {}, {}, {};", Int(), Int(), Int(), Below(1 << 16));
      break;
    case 10:
      Line("shf.{}.b32 {}, {}, {}, {};", One({"l.wrap", "r.wrap", "l.clamp"}), Int(), Int(), Int(),
           Int());
      break;
    case 11:
      Line("lop3.b32 {}, {}, {}, {}, {};", Int(), Int(), Int(), Int(), Below(256));
      break;
    case 12:
      Line("{} {}, {}, {};", One({"add.s64", "sub.s64", "mul.lo.s64", "xor.b64", "and.b64"}),
           Wide(), Wide(), Wide());
      break;
    case 13:
      Line("{} {}, {}, {};", One({"mul.wide.u32", "mul.wide.s32"}), Wide(), Int(), Int());
      break;
    case 14:
      Line("{} {}, {};", One({"cvt.u32.u64", "cvt.s32.s64"}), Int(), Wide());
      break;
    default:
      Line("{} {}, {}, {}, {};", One({"selp.b32", "selp.s32"}), Int(), Int(), Int(), Pred());
      break;
  }
}

void Generator::FloatArithmetic() {
  switch (Below(4)) {
    case 0:
      Line("{} {}, {}, {};",
           One({"add.rn.f32", "sub.rz.f32", "mul.rn.f32", "min.f32", "max.f32", "mul.rn.ftz.f32"}),
           Float(), Float(), Float());
      break;
    case 1:
      Line("fma.rn.f32 {}, {}, {}, {};", Float(), Float(), Float(), Float());
      break;
    case 2:
      Line("{} {}, {};", One({"cvt.rn.f32.s32", "cvt.rz.f32.u32"}), Float(), Int());
      break;
    default:
      Line("{} {}, {};", One({"cvt.rni.s32.f32", "cvt.rzi.u32.f32", "mov.b32"}), Int(), Float());
      break;
  }
}

void Generator::Compare() {
  if (Chance(70)) {
    Line("setp.{} {}, {}, {};",
         One({"eq.s32", "ne.u32", "lt.s32", "ge.u32", "gt.s32", "le.u32", "hi.u32"}), Pred(), Int(),
         IntOrLiteral());
  } else if (Chance(50)) {
    Line("setp.{} {}, {}, {};", One({"lt.f32", "gtu.f32", "eq.f32"}), Pred(), Float(), Float());
  } else {
    Line("{} {}, {}, {};", One({"and.pred", "or.pred", "xor.pred"}), Pred(), Pred(), Pred());
  }
}

// A thread's own 16 words of local memory and of `out`.
void Generator::LocalMemory() {
  const std::string at = Temp(), wide = WideTemp();
  Line("and.b32 {}, {}, 15;", at, Int());
  Line("mul.wide.u32 {}, {}, 4;", wide, at);
  Line("add.u64 {}, {}, %local;", wide, wide);
  Line("st.local.u32 [{}], {};", wide, Int());
  Line("and.b32 {}, {}, 15;", at, Int());
  Line("mul.wide.u32 {}, {}, 4;", wide, at);
  Line("add.u64 {}, {}, %local;", wide, wide);
  Line("ld.local.u32 {}, [{}];", Int(), wide);
}

void Generator::Sum() {
  const int which = Below(static_cast<int>(std::size(kSums)));
  const std::string value = which == 6 ? "4294967295" : Int();
  const std::string at = fmt::format("[%sums+{}]", 4 * (which + 7 * Below(4)));
  if (Chance(50)) {
    Line("red.relaxed.gpu.global.{} {}, {};", kSums[which], at, value);
  } else {
    Line("atom.{}.global.{} {}, {}, {};", One({"relaxed.gpu", "acq_rel.gpu", "relaxed.sys"}),
         kSums[which], Temp(), at, value);
  }
}

void Generator::If(Place place) {
  const std::string predicate = Pred(), other = Label(), end = Label();
  const bool has_else = Chance(50);
  Place inner = place;
  inner.uniform = inner.once = false;
  inner.members.clear();
  ++inner.depth;
  // The condition's register may be changed inside; the lanes' mask is taken before.
  const bool known = place.uniform && !place.in_function;
  if (known) {
    inner.members = Temp();
    Line("vote.sync.ballot.b32 {}, {}, -1;", inner.members, predicate);
  }
  Line("@!{} bra {};", predicate, other);
  Block(inner, 1 + Below(4));
  if (has_else) {
    Line("bra {};", end);
    text_ += other + ":\n";
    inner.members.clear();
    Block(inner, 1 + Below(3));
    text_ += end + ":\n";
  } else {
    text_ += other + ":\n";
  }
}

void Generator::Loop(Place place) {
  const bool literal = Chance(50);
  const std::string count = Temp(), predicate = fmt::format("%q{}", place.depth), head = Label();
  if (literal) {
    Line("mov.u32 {}, {};", count, 1 + Below(4));
  } else {
    Line("and.b32 {}, {}, 7;", count, Int());
    Line("add.u32 {}, {}, 1;", count, count);
    place.uniform = false;
    place.members.clear();
  }
  place.once = false;
  ++place.depth;
  text_ += head + ":\n";
  Block(place, 1 + Below(4));
  Line("sub.u32 {}, {}, 1;", count, count);
  Line("setp.ne.u32 {}, {}, 0;", predicate, count);
  Line("@{} bra {};", predicate, head);
}

void Generator::Call() {
  if (functions_ == 0 || calls_ == 0) return Arithmetic();
  --calls_;
  const int number = Below(functions_);
  Line("{{");
  Line(".param .b32 a; .param .b32 b; .param .b32 c;");
  Line("st.param.b32 [a], {};", Int());
  Line("st.param.b32 [b], {};", Int());
  if (Chance(60)) {
    Line("call (c), f{}, (a, b);", number);
  } else {  // by pointer, which differs between lanes
    const std::string one = WideTemp(), two = WideTemp();
    Line("mov.u64 {}, f{};", one, number);
    Line("mov.u64 {}, f{};", two, Below(functions_));
    Line("selp.b64 {}, {}, {}, {};", one, one, two, Pred());
    Line("call (c), {}, (a, b), prototype;", one);
  }
  Line("ld.param.b32 {}, [c];", Int());
  Line("}}");
}

void Generator::WarpWide(const Place& place) {
  if (!place.uniform) {  // only what concerns the members alone
    switch (Below(3)) {
      case 0:
        Line("redux.sync.{} {}, {}, {};", One({"add.s32", "min.u32", "max.s32", "xor.b32"}), Int(),
             Int(), place.members);
        break;
      case 1:
        Line("vote.sync.{} {}, {}, {};", One({"any.pred", "all.pred"}), Pred(), Pred(),
             place.members);
        break;
      default:
        Line("match.any.sync.b32 {}, {}, {};", Int(), Int(), place.members);
        break;
    }
    return;
  }
  switch (Below(6)) {
    case 0:
      Line("shfl.sync.{}.b32 {}|{}, {}, {}, {}, -1;", One({"up"}), Int(), Pred(), Int(), Below(32),
           0);
      break;
    case 1:
      Line("shfl.sync.{}.b32 {}|{}, {}, {}, 31, -1;", One({"down", "bfly", "idx"}), Int(), Pred(),
           Int(), Below(32));
      break;
    case 2:
      Line("shfl.sync.idx.b32 {}, {}, {}, 31, -1;", Int(), Int(), Int());
      break;
    case 3:
      Line("vote.sync.ballot.b32 {}, {}, -1;", Int(), Pred());
      break;
    case 4:
      Line("redux.sync.{} {}, {}, -1;", One({"add.u32", "or.b32", "max.u32"}), Int(), Int());
      break;
    default:
      Line("match.any.sync.b32 {}, {}, -1;", Int(), Int());
      break;
  }
}

// Everybody writes a word of shared memory and reads somebody else's; in loops again and again.
void Generator::SharedExchange() {
  const std::string at = Temp(), value = Int();
  Line("st.shared.u32 [%mine], {};", value);
  if (Chance(30)) Line("red.shared.add.u32 [sum], {};", Int());
  CtaBarrier();
  Line("add.u32 {}, %me, {};", at, Below(1000));
  Line("rem.u32 {}, {}, {};", at, at, program_.threads);
  Line("shl.b32 {}, {}, 2;", at, at);
  Line("add.u32 {}, {}, %words;", at, at);
  Line("ld.shared.u32 {}, [{}];", Int(), at);
  if (Chance(30)) Line("ld.shared.u32 {}, [sum];", Int());
  CtaBarrier();
}

// The same through global memory, in words of this exchange's own.
void Generator::GlobalExchange(bool between_ctas) {
  if (exchanges_ == kMaxExchanges) return;
  const std::uint32_t all = program_.ctas * program_.threads;
  const auto base = static_cast<std::uint32_t>(exchanges_++) * all * 4;
  const std::string at = Temp(), wide = WideTemp();
  Line("mul.wide.u32 {}, %gid, 4;", wide);
  Line("add.u64 {}, {}, %exchange;", wide, wide);
  Line("st.global.u32 [{}+{}], {};", wide, base, Int());
  if (between_ctas) {
    GridBarrier();
    Line("add.u32 {}, %gid, {};", at, Below(1000));
    Line("rem.u32 {}, {}, {};", at, at, all);
  } else {
    CtaBarrier();
    Line("add.u32 {}, %me, {};", at, Below(1000));
    Line("rem.u32 {}, {}, {};", at, at, program_.threads);
    Line("mad.lo.u32 {}, %block, {}, {};", at, program_.threads, at);
  }
  Line("mul.wide.u32 {}, {}, 4;", wide, at);
  Line("add.u64 {}, {}, %exchange;", wide, wide);
  Line("ld.global.u32 {}, [{}+{}];", Int(), wide, base);
}

// All CTAs are resident, so they may wait for each other.
void Generator::GridBarrier() {
  if (racy_) return;
  const std::string seen = Temp(), head = Label(), end = Label();
  ++barriers_;
  CtaBarrier();
  Line("setp.ne.u32 %q9, %me, 0;");
  Line("@%q9 bra {};", end);
  Line("red.release.gpu.global.add.u32 [%arrived], 1;");
  text_ += head + ":\n";
  Line("ld.acquire.gpu.global.u32 {}, [%arrived];", seen);
  Line("setp.lt.u32 %q9, {}, {};", seen, program_.ctas * static_cast<std::uint32_t>(barriers_));
  Line("@%q9 bra {};", head);
  text_ += end + ":\n";
  Line("bar.warp.sync -1;");
  CtaBarrier();
}

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

}  // namespace

Program Generate(std::uint64_t seed, bool racy) { return Generator(seed, racy).Run(); }

}  // namespace allranks::node::random
