// A map from small numbers to values that is never changed, in nodes of which there are no two that
// are equal. Clocks are made of these: two that know nearly the same are joined by looking at where
// they differ only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "node/check/interned.h"

namespace allranks::node::check {

inline std::uint32_t Merged(std::uint32_t a, std::uint32_t b) { return std::max(a, b); }
inline std::uint32_t MergedAll(const std::vector<const std::uint32_t*>& all) {
  std::uint32_t most = 0;
  for (const std::uint32_t* one : all) most = std::max(most, *one);
  return most;
}

// A value that is equal to Value{} is not there. Values have == and std::hash, and are joined by a
// function
//   Value Merged(const Value& a, const Value& b)
//   Value MergedAll(const std::vector<const Value*>& values)
// which return one of them where that is all.
template <class Value>
class Trie {
 public:
  Value Get(std::uint32_t key) const {
    if (root_ == nullptr || key >> kBits * (height_ + 1) != 0) return Value{};
    const Node* node = root_.get();
    for (int height = height_; height > 0; --height)
      if ((node = AsInner(*node).slots[Slot(key, height)].get()) == nullptr) return Value{};
    return AsLeaf(*node).slots[key % kWays];
  }

  Trie With(std::uint32_t key, Value value) const {
    Trie made = *this;
    while (key >> kBits * (made.height_ + 1) != 0) made.Grow();
    made.root_ = Put(made.root_, made.height_, key, std::move(value));
    return made;
  }

  static Trie Joined(const Trie& a, const Trie& b) {
    if (b.root_ == nullptr || a.root_ == b.root_) return a;
    if (a.root_ == nullptr) return b;
    if (a.height_ < b.height_) {
      Trie grown = a;
      while (grown.height_ < b.height_) grown.Grow();
      grown.root_ = JoinNodes(grown.root_, b.root_, b.height_);
      return grown;
    }
    Trie grown = b;
    while (grown.height_ < a.height_) grown.Grow();
    grown.root_ = JoinNodes(a.root_, grown.root_, a.height_);
    return grown;
  }

  // All of them at once: nothing is made that is not part of the result. What is not the same in
  // all is left out unless `keep(key)` holds.
  template <class F>
  static Trie Joined(const std::vector<const Trie*>& tries, F keep) {
    Trie joined;
    for (const Trie* trie : tries)
      if (trie->root_ != nullptr) joined.height_ = std::max(joined.height_, trie->height_);
    std::vector<NodeRef> grown;  // keeps them
    std::vector<const Node*> roots;
    for (const Trie* trie : tries) {
      if (trie->root_ == nullptr) continue;
      Trie high = *trie;
      while (high.height_ < joined.height_) high.Grow();
      AddDistinct(high.root_.get(), 0, roots);
      grown.push_back(std::move(high.root_));
    }
    if (!roots.empty()) joined.root_ = JoinMany(roots, 0, joined.height_, 0, keep);
    joined.Shrink();
    return joined;
  }

  // Those for which `keep(key, value)` holds.
  template <class F>
  Trie Filtered(F keep) const {
    Trie made = *this;
    if (root_ != nullptr) made.root_ = FilterNode(root_, height_, 0, keep);
    made.Shrink();
    return made;
  }

  bool operator==(const Trie& other) const {
    return root_ == other.root_ && (root_ == nullptr || height_ == other.height_);
  }
  std::size_t Hash() const { return std::hash<NodeRef>()(root_); }

 private:
  static constexpr int kBits = 3;
  static constexpr std::uint32_t kWays = 1u << kBits;
  struct Node : Counted {
    explicit Node(bool leaf) : is_leaf(leaf) {}
    static void Free(const Node* node) {
      if (node->is_leaf) {
        Interned<Leaf>::Drop(static_cast<const Leaf*>(node));
      } else {
        Interned<Inner>::Drop(static_cast<const Inner*>(node));
      }
    }
    bool is_leaf;
  };
  using NodeRef = Ref<Node>;
  template <class Slot>
  struct NodeOf : Node {
    explicit NodeOf(std::array<Slot, kWays> of)
        : Node(!std::is_same_v<Slot, NodeRef>), slots(std::move(of)) {}
    std::array<Slot, kWays> slots;
    bool operator==(const NodeOf& other) const { return slots == other.slots; }
    std::size_t Hash() const {
      std::size_t hash = 0;
      for (const Slot& slot : slots) hash = MixHash(hash, std::hash<Slot>()(slot));
      return hash;
    }
  };
  using Inner = NodeOf<NodeRef>;
  using Leaf = NodeOf<Value>;
  static const Inner& AsInner(const Node& node) { return static_cast<const Inner&>(node); }
  static const Leaf& AsLeaf(const Node& node) { return static_cast<const Leaf&>(node); }
  static std::uint32_t Slot(std::uint32_t key, int height) {
    return key >> kBits * height & (kWays - 1);
  }

  void Grow() {
    if (root_ != nullptr) {
      std::array<NodeRef, kWays> slots;
      slots[0] = std::move(root_);
      root_ = Interned<Inner>::Of(Inner(std::move(slots)));
    }
    ++height_;
  }

  // As high as it need be, so that equal ones are the same.
  void Shrink() {
    if (root_ == nullptr) height_ = 0;
    const auto set = [](const NodeRef& below) { return below != nullptr; };
    while (height_ > 0) {
      const auto& slots = AsInner(*root_).slots;
      if (std::any_of(slots.begin() + 1, slots.end(), set)) break;
      root_ = NodeRef(slots[0]);
      --height_;
    }
  }

  static NodeRef Put(const NodeRef& node, int height, std::uint32_t key, Value value) {
    if (height == 0) {
      auto slots = node != nullptr ? AsLeaf(*node).slots : std::array<Value, kWays>{};
      slots[key % kWays] = std::move(value);
      return Interned<Leaf>::Of(Leaf(std::move(slots)));
    }
    auto slots = node != nullptr ? AsInner(*node).slots : std::array<NodeRef, kWays>{};
    NodeRef& below = slots[Slot(key, height)];
    below = Put(below, height - 1, key, std::move(value));
    return Interned<Inner>::Of(Inner(std::move(slots)));
  }

  static NodeRef JoinNodes(const NodeRef& a, const NodeRef& b, int height) {
    if (b == nullptr || a == b) return a;
    if (a == nullptr) return b;
    if (height == 0) {
      return JoinSlots<Leaf>(a, b, AsLeaf(*a).slots, AsLeaf(*b).slots,
                             [](const Value& x, const Value& y) { return Merged(x, y); });
    }
    return JoinSlots<Inner>(
        a, b, AsInner(*a).slots, AsInner(*b).slots,
        [&](const NodeRef& x, const NodeRef& y) { return JoinNodes(x, y, height - 1); });
  }

  // One of the two nodes where that is all.
  template <class Kind, class Slots, class F>
  static NodeRef JoinSlots(const NodeRef& a, const NodeRef& b, const Slots& of_a, const Slots& of_b,
                           F join) {
    // Nothing is copied before it is known that the result is neither: mostly it is.
    Slots made{};
    std::array<const typename Slots::value_type*, kWays> joined;
    bool is_a = true, is_b = true;
    for (std::size_t i = 0; i < kWays; ++i) {
      joined[i] = &of_a[i];
      if (of_a[i] == of_b[i]) continue;
      made[i] = join(of_a[i], of_b[i]);
      joined[i] = &made[i];
      is_a = is_a && made[i] == of_a[i];
      is_b = is_b && made[i] == of_b[i];
    }
    if (is_a || is_b) return is_a ? a : b;
    for (std::size_t i = 0; i < kWays; ++i)
      if (joined[i] != &made[i]) made[i] = *joined[i];
    return Interned<Kind>::Of(Kind(std::move(made)));
  }

  // Adds to those behind `first`, unless it is there.
  template <class T>
  static void AddDistinct(const T* one, std::size_t first, std::vector<const T*>& to) {
    // The same one comes many times running.
    for (std::size_t i = to.size(); i-- > first;)
      if (to[i] == one) return;
    to.push_back(one);
  }

  // Of the nodes behind `first`, which are distinct and have the keys from `key` on. `stack` serves
  // all levels: a join of many clocks touches thousands of nodes, and allocates only new ones.
  template <class F>
  static NodeRef JoinMany(std::vector<const Node*>& stack, std::size_t first, int height,
                          std::uint32_t key, F& keep) {
    if (stack.size() - first == 1) return NodeRef(stack[first]);
    if (height == 0) {
      static thread_local std::vector<const Value*> values;
      return JoinSlotsOf<Leaf>(stack, first, [&](std::uint32_t slot) {
        values.clear();
        for (std::size_t k = first; k < stack.size(); ++k) {
          const Value& value = AsLeaf(*stack[k]).slots[slot];
          if (value != Value{}) values.push_back(&value);
        }
        return values.empty() || !keep(key + slot) ? Value{} : MergedAll(values);
      });
    }
    return JoinSlotsOf<Inner>(stack, first, [&](std::uint32_t slot) -> NodeRef {
      const std::size_t end = stack.size();
      for (std::size_t k = first; k < end; ++k)
        if (const Node* below = AsInner(*stack[k]).slots[slot].get())
          AddDistinct(below, end, stack);
      if (stack.size() == end) return nullptr;
      NodeRef joined = JoinMany(stack, end, height - 1, key + (slot << kBits * height), keep);
      stack.resize(end);
      return joined;
    });
  }

  // One of the nodes where that is all.
  template <class Kind, class F>
  static NodeRef JoinSlotsOf(const std::vector<const Node*>& stack, std::size_t first, F join) {
    decltype(Kind::slots) joined;
    for (std::uint32_t i = 0; i < kWays; ++i) joined[i] = join(i);
    if (joined == decltype(joined){}) return nullptr;
    for (std::size_t k = first; k < stack.size(); ++k)
      if (static_cast<const Kind&>(*stack[k]).slots == joined) return NodeRef(stack[k]);
    return Interned<Kind>::Of(Kind(std::move(joined)));
  }

  template <class F>
  static NodeRef FilterNode(const NodeRef& node, int height, std::uint32_t first, F& keep) {
    if (height == 0) {
      const auto& slots = AsLeaf(*node).slots;
      std::uint32_t there = 0, kept = 0;
      for (std::uint32_t i = 0; i < kWays; ++i) {
        if (slots[i] == Value{}) continue;
        there |= 1u << i;
        if (keep(first + i, slots[i])) kept |= 1u << i;
      }
      if (kept == there) return node;
      if (kept == 0) return nullptr;
      std::array<Value, kWays> made{};
      for (std::uint32_t i = 0; i < kWays; ++i)
        if ((kept >> i & 1) != 0) made[i] = slots[i];
      return Interned<Leaf>::Of(Leaf(std::move(made)));
    }
    const auto& slots = AsInner(*node).slots;
    std::array<NodeRef, kWays> made;
    bool same = true, empty = true;
    for (std::uint32_t i = 0; i < kWays; ++i) {
      if (slots[i] == nullptr) continue;
      made[i] = FilterNode(slots[i], height - 1, first + (i << kBits * height), keep);
      same = same && made[i] == slots[i];
      empty = empty && made[i] == nullptr;
    }
    if (same || empty) return same ? node : nullptr;
    return Interned<Inner>::Of(Inner(std::move(made)));
  }

  NodeRef root_;
  int height_ = 0;
};

}  // namespace allranks::node::check
