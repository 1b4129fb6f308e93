// Fences and membars: instruction → MemoryOp. See decode.h.
#include "node/code/memory_words.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

// The proxies a fence.proxy can name. A fence between proxies orders accesses to the same bytes by
// different ways; as all ways lead to the same memory here, it takes time but changes nothing. The
// checker wants to know of the asynchronous proxy: `space` is where it reads after such a fence,
// kNone for both, kConst if another proxy is meant.
bool IsProxy(std::string_view word) {
  return word == "alias" || word == "async" || word == "async::generic" ||
         word == "tensormap::generic";
}

}  // namespace

bool Decoder::Fence(const Instruction& in) {
  MemoryOp op;
  op.kind = MemoryOpKind::kFence;
  op.order = Order::kAcqRel;
  op.scope = Scope::kCta;
  bool proxy = false, named = false, scope = false, order = false, restricted = false;
  for (const std::string_view word : in.modifiers) {
    if (word == "proxy") {
      proxy = true;
    } else if (IsProxy(word)) {
      named = true;
    } else if (word == "mbarrier_init" || word == "sync_restrict::shared::cta" ||
               word == "sync_restrict::shared::cluster") {
      restricted = true;
    } else if (word == "global" || word == "shared::cta" || word == "shared::cluster") {
      if (!named) return false;  // fence.proxy.async.global
      op.space = word == "global" ? ptx::Space::kGlobal : ptx::Space::kShared;
    } else if (word == "sc" || word == "acq_rel" || word == "acquire" || word == "release") {
      order = true;
      op.order = word == "sc"        ? Order::kSc
                 : word == "acq_rel" ? Order::kAcqRel
                 : word == "acquire" ? Order::kAcquire
                                     : Order::kRelease;
    } else if (word == "cta" || word == "cluster" || word == "gpu" || word == "gl" ||
               word == "sys") {
      scope = true;
      op.scope = word == "cta"       ? Scope::kCta
                 : word == "cluster" ? Scope::kCluster
                 : word == "sys"     ? Scope::kSys
                                     : Scope::kGpu;
    } else {
      return false;
    }
  }
  if (proxy != named) return false;
  const bool tensormap = in.Has("tensormap::generic");
  if (!proxy && (!scope || (restricted && !order))) return false;
  if (proxy && (tensormap && (!scope || !order))) return false;
  op.proxy = proxy || restricted;
  // sync_restrict::shared::cta covers all of the block's shared memory, so its mbarriers, too.
  op.inits = restricted && !proxy && op.order == Order::kRelease;
  if (op.proxy && !in.Has("async") && !in.Has("async::generic")) op.space = ptx::Space::kConst;
  if (restricted && in.Has("async::generic")) op.space = ptx::Space::kShared;
  if (tensormap && op.order == Order::kAcquire) {
    // The map's address and size: checked for what they are, used for nothing.
    MemoryOp map;
    if (in.operands.size() != 2 || !Address(in.operands[0], &map)) return false;
  } else if (!in.operands.empty()) {
    return false;
  }
  // membar.level is fence.sc.level.
  if (in.opcode == "membar" && !proxy) op.order = Order::kSc;
  EmitMemory(in, op);
  return true;
}

}  // namespace allranks::node
