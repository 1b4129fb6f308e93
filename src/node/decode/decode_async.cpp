// mbarriers, asynchronous copies and clusters: instruction → AsyncOp. See decode.h.
#include <unordered_map>

#include "node/decode/decode_internal.h"
#include "node/decode/opcodes.h"

namespace allranks::node {
namespace {

using ptx::Instruction;

constexpr std::uint64_t kMaxPending = 0x7fffffff;  // of wait_group

}  // namespace

bool IsAsync(const Instruction& in) {
  const std::string_view name = in.opcode;
  if (FindOpcode(name).group == OpcodeGroup::kAsync) return true;
  if (name == "st" && in.Has("bulk")) return true;
  if (name == "st" || name == "red") return in.Has("async");
  return name == "barrier" && in.Has("cluster");
}

// An address in brackets. It need not be a register: a variable's name is as good.
bool Decoder::AsyncOperand(const Operand& operand, Space space, AsyncAddress* address) {
  MemoryOp op;
  op.space = space;
  if (!Address(operand, &op) || op.in_frame) return false;
  address->space = space;
  address->address32 = op.address32;
  address->array = op.array;
  address->address = op.address;
  address->offset = op.offset;
  return true;
}

bool Decoder::Mbarrier(const Instruction& in, AsyncOp* op, Op* out) {
  const auto& operands = in.operands;
  const bool shared = in.Has("shared") || in.Has("shared::cta") || in.Has("shared::cluster");
  const Space space = shared ? Space::kShared : Space::kNone;
  const std::string_view what = in.modifiers.empty() ? "" : in.modifiers[0];
  const auto at = [&](std::size_t i) -> const Operand& { return operands[i]; };
  if (what == "pending_count") {
    op->kind = AsyncOpKind::kPendingCount;
    if (operands.size() != 2 || !Destination(at(0), 4, &out->d)) return false;
    op->value = Place(at(1), 8, false);
    return op->value != kNoSlot;
  }
  if (what == "init" || what == "inval" || what == "expect_tx" || what == "complete_tx") {
    op->kind = what == "init"        ? AsyncOpKind::kInit
               : what == "inval"     ? AsyncOpKind::kInval
               : what == "expect_tx" ? AsyncOpKind::kExpectTx
                                     : AsyncOpKind::kCompleteTx;
    if (operands.size() != (op->kind == AsyncOpKind::kInval ? 1u : 2u)) return false;
    if (!AsyncOperand(at(0), space, &op->bar)) return false;
    if (op->kind == AsyncOpKind::kInval) return true;
    Slot& value = op->kind == AsyncOpKind::kInit ? op->count : op->tx;
    value = Place(at(1), 4, false);
    return value != kNoSlot;
  }
  if (what == "arrive" || what == "arrive_drop") {
    op->kind = what == "arrive" ? AsyncOpKind::kArrive : AsyncOpKind::kArriveDrop;
    op->relaxed = in.Has("relaxed");
    if (in.Has("cluster")) op->scope = Scope::kCluster;
    op->no_complete = in.Has("noComplete");
    // The state is left out by some writers: `mbarrier.arrive.b64 [a];` is not PTX, `_` is.
    if (operands.size() < 2 || !Destination(at(0), 8, &out->d)) return false;
    if (!AsyncOperand(at(1), space, &op->bar)) return false;
    if (in.Has("expect_tx")) {
      if (operands.size() != 3) return false;
      op->tx = Place(at(2), 4, false);
      return op->tx != kNoSlot;
    }
    if (operands.size() == 3) {
      op->count = Place(at(2), 4, false);
      return op->count != kNoSlot;
    }
    return operands.size() == 2 && !op->no_complete;
  }
  if (what != "test_wait" && what != "try_wait") return false;
  op->kind = what == "test_wait" ? AsyncOpKind::kTestWait : AsyncOpKind::kTryWait;
  op->relaxed = in.Has("relaxed");
  if (in.Has("cluster")) op->scope = Scope::kCluster;
  op->blocks = op->kind == AsyncOpKind::kTryWait;
  op->parity = in.Has("parity");
  const std::size_t most = op->blocks ? 4 : 3;
  if (operands.size() < 3 || operands.size() > most) return false;
  if (at(0).kind != Operand::Kind::kSink) {
    if (RegisterType(at(0)) != Type::kPred) return false;
    out->d = Predicate(at(0));
  }
  if (!AsyncOperand(at(1), space, &op->bar)) return false;
  op->value = Place(at(2), op->parity ? 4 : 8, false);
  if (op->value == kNoSlot) return false;
  if (operands.size() == 4) {
    op->limit = Place(at(3), 4, false);
    if (op->limit == kNoSlot) return false;
  }
  return true;
}

bool Decoder::CopyAsync(const Instruction& in, AsyncOp* op) {
  const auto& operands = in.operands;
  if (in.Has("commit_group")) {
    op->kind = AsyncOpKind::kCopyCommit;
    return operands.empty();
  }
  if (in.Has("wait_all")) {
    op->kind = AsyncOpKind::kCopyWait;
    op->read = true;
    return operands.empty();
  }
  if (in.Has("wait_group")) {
    op->kind = AsyncOpKind::kCopyWait;
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::kInt) return false;
    op->pending = static_cast<std::uint32_t>(std::min(operands[0].imm, kMaxPending));
    return true;
  }
  const bool shared = in.Has("shared") || in.Has("shared::cta") || in.Has("shared::cluster");
  if (in.Has("mbarrier")) {
    op->kind = AsyncOpKind::kCopyArrive;
    op->no_increment = in.Has("noinc");
    return operands.size() == 1 &&
           AsyncOperand(operands[0], shared ? Space::kShared : Space::kNone, &op->bar);
  }
  if (!(in.Has("ca") || in.Has("cg")) || !shared || !in.Has("global")) {
    return false;
  }
  op->kind = AsyncOpKind::kCopy;
  if (operands.size() < 3 || operands[2].kind != Operand::Kind::kInt) return false;
  const std::uint64_t bytes = operands[2].imm;
  if (bytes != 16 && (in.Has("cg") || (bytes != 4 && bytes != 8))) return false;
  op->bytes = static_cast<std::uint8_t>(bytes);
  if (!AsyncOperand(operands[0], Space::kShared, &op->dst) ||
      !AsyncOperand(operands[1], Space::kGlobal, &op->src)) {
    return false;
  }
  const std::size_t count = operands.size() - (in.Has("L2::cache_hint") ? 1 : 0);
  if (count > 4) return false;
  if (count == 4) {
    // Either how many bytes to read, or whether to read none.
    const Operand& extra = operands[3];
    if (RegisterType(extra) == Type::kPred) {
      op->skip = Predicate(extra);
      op->skip_negated = extra.negated;
      if (op->skip == kNoSlot) return false;
    } else {
      op->count = Place(extra, 4, false);
      if (op->count == kNoSlot) return false;
    }
  }
  return true;
}

bool Decoder::Cluster(const Instruction& in, AsyncOp* op, Op* out) {
  const auto& operands = in.operands;
  if (in.opcode == "barrier") {
    if (!operands.empty()) return false;
    op->kind = in.Has("arrive") ? AsyncOpKind::kClusterArrive : AsyncOpKind::kClusterWait;
    op->relaxed = in.Has("relaxed");
    op->scope = Scope::kCluster;
    op->blocks = true;
    return in.Has("arrive") || in.Has("wait");
  }
  const bool mapa = in.opcode == "mapa";
  op->kind = mapa ? AsyncOpKind::kMapa : AsyncOpKind::kCtaRank;
  op->generic = !in.Has("shared::cluster");
  const int bytes = ptx::SizeOf(in.TypeFromEnd());
  if (operands.size() != (mapa ? 3u : 2u) || (bytes != 4 && bytes != 8)) return false;
  op->wide = bytes == 8;
  if (op->generic && !op->wide) return false;
  if (!Destination(operands[0], mapa ? bytes : 4, &out->d)) return false;
  op->value = Place(operands[1], bytes, false);
  if (op->value == kNoSlot) return false;
  if (mapa) {
    op->count = Place(operands[2], 4, false);
    if (op->count == kNoSlot) return false;
  }
  return true;
}

bool Decoder::Async(const Instruction& in) {
  if (in.opcode == "cp" && in.Has("prefetch")) {
    Emit(Start(in, OpKind::kNop));  // a hint
    return true;
  }
  AsyncOp op;
  Op out = Start(in, OpKind::kAsync);
  bool known = false;
  if (in.opcode == "mbarrier") {
    known = Mbarrier(in, &op, &out);
  } else if (in.opcode == "cp") {
    known = in.Has("tensor") ? CopyTensor(in, &op)
            : in.Has("bulk") ? CopyBulk(in, &op)
                             : CopyAsync(in, &op);
  } else if (in.opcode == "st" || in.opcode == "red") {
    known = in.Has("bulk") ? StoreBulk(in, &op) : StoreAsync(in, &op);
  } else {
    known = Cluster(in, &op, &out);
  }
  if (!known) return false;
  out.aux = static_cast<std::uint32_t>(code_->async.size());
  code_->async.push_back(op);
  Emit(out);
  return true;
}

}  // namespace allranks::node
