// A map from small numbers to values that is never changed, in nodes of which there are no two that
// are equal. Clocks are made of these: two that know nearly the same are joined by looking at where
// they differ only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "node/check/interned.h"

namespace allranks::node::check {

inline std::uint32_t Merged(std::uint32_t a, std::uint32_t b) { return std::max(a, b); }
inline std::uint32_t Merged(const std::vector<std::uint32_t>& all) {
  return *std::max_element(all.begin(), all.end());
}

// A value that is equal to Value{} is not there. Values have == and std::hash, and are joined by a
// function
//   Value Merged(const Value& a, const Value& b)
//   Value Merged(std::vector<Value> values)
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

  // All of them at once: nothing is made that is not part of the result.
  static Trie Joined(const std::vector<Trie>& tries) {
    Trie joined;
    for (const Trie& trie : tries)
      if (trie.root_ != nullptr) joined.height_ = std::max(joined.height_, trie.height_);
    std::vector<NodeRef> roots;
    for (Trie trie : tries) {
      if (trie.root_ == nullptr) continue;
      while (trie.height_ < joined.height_) trie.Grow();
      roots.push_back(trie.root_);
    }
    joined.root_ = JoinMany(std::move(roots), joined.height_);
    return joined;
  }

  // Those for which `keep(key, value)` holds.
  template <class F>
  Trie Filtered(F keep) const {
    Trie made = *this;
    if (root_ != nullptr) made.root_ = FilterNode(root_, height_, 0, keep);
    if (made.root_ == nullptr) made.height_ = 0;
    // As high as it need be, so that equal ones are the same.
    const auto set = [](const NodeRef& below) { return below != nullptr; };
    while (made.height_ > 0) {
      const auto& slots = AsInner(*made.root_).slots;
      if (std::any_of(slots.begin() + 1, slots.end(), set)) break;
      made.root_ = NodeRef(slots[0]);
      --made.height_;
    }
    return made;
  }

  bool operator==(const Trie& other) const {
    return root_ == other.root_ && (root_ == nullptr || height_ == other.height_);
  }
  std::size_t Hash() const { return std::hash<NodeRef>()(root_); }

 private:
  static constexpr int kBits = 3;
  static constexpr std::uint32_t kWays = 1u << kBits;
  struct Node {};
  using NodeRef = std::shared_ptr<const Node>;
  template <class Slot>
  struct NodeOf : Node {
    explicit NodeOf(std::array<Slot, kWays> of) : slots(std::move(of)) {}
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
    Slots joined;
    bool is_a = true, is_b = true;
    for (std::size_t i = 0; i < kWays; ++i) {
      joined[i] = of_a[i] == of_b[i] ? of_a[i] : join(of_a[i], of_b[i]);
      is_a = is_a && joined[i] == of_a[i];
      is_b = is_b && joined[i] == of_b[i];
    }
    if (is_a || is_b) return is_a ? a : b;
    return Interned<Kind>::Of(Kind(std::move(joined)));
  }

  static NodeRef JoinMany(std::vector<NodeRef> nodes, int height) {
    KeepDistinct(nodes);
    if (nodes.empty()) return nullptr;
    if (nodes.size() == 1) return nodes[0];
    if (nodes.size() == 2) return JoinNodes(nodes[0], nodes[1], height);
    if (height == 0) {
      return JoinSlotsOf<Leaf>(
          nodes, [](const Node& node) -> const auto& { return AsLeaf(node).slots; },
          [](std::vector<Value> values) {
            KeepDistinct(values);
            return values.empty() ? Value{} : Merged(std::move(values));
          });
    }
    return JoinSlotsOf<Inner>(
        nodes, [](const Node& node) -> const auto& { return AsInner(node).slots; },
        [&](std::vector<NodeRef> below) { return JoinMany(std::move(below), height - 1); });
  }

  // One of the nodes where that is all.
  template <class Kind, class Of, class F>
  static NodeRef JoinSlotsOf(const std::vector<NodeRef>& nodes, Of of, F join) {
    using Slots = std::decay_t<decltype(of(*nodes[0]))>;
    Slots joined;
    std::vector<typename Slots::value_type> slot(nodes.size());
    for (std::size_t i = 0; i < kWays; ++i) {
      for (std::size_t k = 0; k < nodes.size(); ++k) slot[k] = of(*nodes[k])[i];
      joined[i] = join(slot);
    }
    for (const NodeRef& node : nodes)
      if (of(*node) == joined) return node;
    return Interned<Kind>::Of(Kind(std::move(joined)));
  }

  // Without empty ones, in an order of no meaning.
  template <class List>
  static void KeepDistinct(List& list) {
    std::erase(list, typename List::value_type{});
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  template <class F>
  static NodeRef FilterNode(const NodeRef& node, int height, std::uint32_t first, F& keep) {
    bool same = true, empty = true;
    const auto filter = [&](const auto& slots, auto next) {
      auto kept = slots;
      for (std::uint32_t i = 0; i < kWays; ++i) {
        if (kept[i] == typename std::decay_t<decltype(slots)>::value_type{}) continue;
        kept[i] = next(kept[i], first + (i << kBits * height));
        same = same && kept[i] == slots[i];
        empty = empty && kept[i] == typename std::decay_t<decltype(slots)>::value_type{};
      }
      return kept;
    };
    if (height == 0) {
      auto kept = filter(AsLeaf(*node).slots, [&](const Value& value, std::uint32_t key) {
        return keep(key, value) ? value : Value{};
      });
      if (same || empty) return same ? node : nullptr;
      return Interned<Leaf>::Of(Leaf(std::move(kept)));
    }
    auto kept = filter(AsInner(*node).slots, [&](const NodeRef& below, std::uint32_t begin) {
      return FilterNode(below, height - 1, begin, keep);
    });
    if (same || empty) return same ? node : nullptr;
    return Interned<Inner>::Of(Inner(std::move(kept)));
  }

  NodeRef root_;
  int height_ = 0;
};

}  // namespace allranks::node::check
