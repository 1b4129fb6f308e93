// The statements of random programs. See generator_internal.h.
#include <string>
#include <vector>

#include "random/generator_internal.h"

namespace allranks::node::random {

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

}  // namespace allranks::node::random
