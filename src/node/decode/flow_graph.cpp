// Blocks of a function, their graph, dominators and the places where parted lanes meet again.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "node/decode/flow_internal.h"

namespace allranks::node::flow_internal {
namespace {

// The name a bra or brx.idx goes to: a label, or for brx.idx a target list (its last operand).
std::string_view TargetName(const ptx::Instruction& instruction) {
  using Kind = ptx::Operand::Kind;
  if (instruction.operands.empty()) return {};
  const ptx::Operand& operand = instruction.operands.back();
  return operand.kind == Kind::kSymbol ? operand.name : std::string_view{};
}

bool EndsBlock(const ptx::Instruction& instruction, Effect effect) {
  switch (effect) {
    case Effect::kBranch:
    case Effect::kBranchIndexed:
      return true;
    case Effect::kReturn:
    case Effect::kTrap:
      return instruction.guard < 0;
    default:
      return false;
  }
}

}  // namespace

Adjacency FromEdges(std::uint32_t nodes, const std::vector<Edge>& edges, bool reversed) {
  Adjacency result;
  result.start.assign(nodes + 1, 0);
  result.item.resize(edges.size());
  for (const Edge& edge : edges) ++result.start[(reversed ? edge.second : edge.first) + 1];
  for (std::uint32_t i = 0; i < nodes; ++i) result.start[i + 1] += result.start[i];
  std::vector<std::uint32_t> next(result.start.begin(), result.start.end() - 1);
  for (const Edge& edge : edges) {
    const auto [from, to] = reversed ? Edge{edge.second, edge.first} : edge;
    result.item[next[from]++] = to;
  }
  return result;
}

Graph BuildGraph(const ptx::Function& function) {
  const auto& code = function.code;
  const auto size = static_cast<std::uint32_t>(code.size());
  Graph graph;
  graph.behaviour.reserve(size);
  for (const ptx::Instruction& instruction : code) graph.behaviour.push_back(Describe(instruction));

  // Every label begins a block, also those only the debugger uses: harmless, and no pass is needed
  // to find out which are targets.
  std::vector<bool> begins(size + 1, false);
  begins[0] = true;
  for (const auto& [name, index] : function.labels) {
    if (index <= size) begins[index] = true;
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    if (EndsBlock(code[i], graph.behaviour[i].effect)) begins[i + 1] = true;
  }
  graph.block_of.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (begins[i]) graph.first.push_back(i);
    graph.block_of[i] = static_cast<std::uint32_t>(graph.first.size()) - 1;
  }
  graph.blocks = static_cast<std::uint32_t>(graph.first.size());
  graph.first.push_back(size);

  // The exit's number is known only when all lists are: until then it is kNone.
  std::unordered_map<std::string_view, std::uint32_t> lists;
  std::uint32_t nodes = graph.blocks;
  const auto node_of_label = [&](std::string_view name, std::uint32_t& node) {
    const auto it = function.labels.find(name);
    if (it == function.labels.end() || it->second > size) return false;
    node = it->second == size ? kNone : graph.block_of[it->second];
    return true;
  };
  for (std::uint32_t block = 0; block < graph.blocks; ++block) {
    const std::uint32_t last = graph.Last(block);
    const ptx::Instruction& instruction = code[last];
    const Effect effect = graph.behaviour[last].effect;
    const std::uint32_t next = block + 1 < graph.blocks ? block + 1 : kNone;
    bool falls_through = true;
    if (effect == Effect::kBranch) {
      std::uint32_t target = kNone;
      if (!node_of_label(TargetName(instruction), target)) {
        graph.error = fmt::format("line {}: branch to unknown label '{}'", instruction.text_line,
                                  TargetName(instruction));
        return graph;
      }
      falls_through = instruction.guard >= 0;
      graph.edges.emplace_back(block, target);
    } else if (effect == Effect::kBranchIndexed) {
      const std::string_view name = TargetName(instruction);
      const auto targets = function.target_lists.find(name);
      if (targets == function.target_lists.end()) {
        graph.error = fmt::format("line {}: unknown target list '{}'", instruction.text_line, name);
        return graph;
      }
      const auto [list, is_new] = lists.try_emplace(name, nodes);
      if (is_new) {
        ++nodes;
        for (std::string_view label : targets->second) {
          std::uint32_t target = kNone;
          if (!node_of_label(label, target)) {
            graph.error =
                fmt::format("line {}: branch to unknown label '{}'", instruction.text_line, label);
            return graph;
          }
          graph.edges.emplace_back(list->second, target);
        }
      }
      falls_through = instruction.guard >= 0;
      graph.edges.emplace_back(block, list->second);
    } else if (EndsBlock(instruction, effect)) {
      falls_through = false;
      if (effect == Effect::kReturn) graph.edges.emplace_back(block, kNone);
    }
    if (falls_through) graph.edges.emplace_back(block, next);
  }
  graph.exit = nodes;
  graph.nodes = nodes + 1;
  for (Edge& edge : graph.edges) {
    if (edge.second == kNone) edge.second = graph.exit;
  }
  graph.successors = FromEdges(graph.nodes, graph.edges, false);
  graph.predecessors = FromEdges(graph.nodes, graph.edges, true);
  return graph;
}

std::vector<Edge> ExitsOfEndlessLoops(const Graph& graph) {
  std::vector<Edge> result;
  std::vector<bool> reaches_exit(graph.nodes, false);
  std::vector<std::uint32_t> stack{graph.exit};
  reaches_exit[graph.exit] = true;
  std::uint32_t reached = 1;
  while (!stack.empty()) {
    const std::uint32_t node = stack.back();
    stack.pop_back();
    for (std::uint32_t before : graph.predecessors[node]) {
      if (reaches_exit[before]) continue;
      reaches_exit[before] = true;
      ++reached;
      stack.push_back(before);
    }
  }
  if (reached == graph.nodes) return result;

  // Tarjan's components among the other nodes come out successors first, so it is known of each
  // whether something endless lies behind it.
  std::vector<std::uint32_t> number(graph.nodes, 0), low(graph.nodes, 0), next_edge(graph.nodes, 0);
  std::vector<bool> on_stack(graph.nodes, false), endless(graph.nodes, false);
  std::vector<std::uint32_t> component, call;
  std::uint32_t counter = 0;
  for (std::uint32_t root = 0; root < graph.nodes; ++root) {
    if (reaches_exit[root] || number[root] != 0) continue;
    call.push_back(root);
    while (!call.empty()) {
      const std::uint32_t node = call.back();
      if (number[node] == 0) {
        number[node] = low[node] = ++counter;
        component.push_back(node);
        on_stack[node] = true;
      }
      const auto successors = graph.successors[node];
      bool descended = false;
      while (next_edge[node] < successors.size()) {
        const std::uint32_t to = successors[next_edge[node]];
        if (number[to] == 0) {
          call.push_back(to);
          descended = true;
          break;
        }
        if (on_stack[to]) low[node] = std::min(low[node], low[to]);
        ++next_edge[node];
      }
      if (descended) continue;
      call.pop_back();
      if (low[node] != number[node]) continue;

      const auto begin = std::find(component.rbegin(), component.rend(), node).base() - 1;
      bool cycle = component.end() - begin > 1, more_behind = false;
      for (auto it = begin; it != component.end(); ++it) {
        for (std::uint32_t to : graph.successors[*it]) {
          if (to == *it) cycle = true;
          if (endless[to]) more_behind = true;  // of this component none is marked yet
        }
      }
      std::uint32_t last = kNone;
      for (auto it = begin; it != component.end(); ++it) {
        on_stack[*it] = false;
        endless[*it] = cycle || more_behind;
        if (*it < graph.blocks && (last == kNone || *it > last)) last = *it;
      }
      if (cycle && !more_behind) result.emplace_back(last, graph.exit);
      component.erase(begin, component.end());
    }
  }
  return result;
}

DominatorTree Dominators(std::uint32_t root, const Adjacency& successors,
                         const Adjacency& predecessors) {
  const auto nodes = static_cast<std::uint32_t>(successors.start.size()) - 1;
  // Everything below is in preorder numbers of a depth-first walk, 0 being the root.
  std::vector<std::uint32_t> number(nodes, kNone), vertex, parent;
  {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack;  // node, next edge
    const auto visit = [&](std::uint32_t node, std::uint32_t from) {
      number[node] = static_cast<std::uint32_t>(vertex.size());
      vertex.push_back(node);
      parent.push_back(from);
      stack.emplace_back(node, 0);
    };
    visit(root, 0);
    while (!stack.empty()) {
      auto& [node, edge] = stack.back();
      const auto targets = successors[node];
      if (edge == targets.size()) {
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = targets[edge++];
      if (number[to] == kNone) visit(to, number[node]);
    }
  }
  const auto count = static_cast<std::uint32_t>(vertex.size());
  std::vector<std::uint32_t> semi(count), label(count), ancestor(count, kNone), dominator(count, 0);
  std::vector<std::uint32_t> bucket(count, kNone), bucket_next(count, kNone), path;
  for (std::uint32_t i = 0; i < count; ++i) semi[i] = label[i] = i;
  const auto eval = [&](std::uint32_t v) {
    if (ancestor[v] == kNone) return v;
    path.clear();
    for (std::uint32_t u = v; ancestor[ancestor[u]] != kNone; u = ancestor[u]) path.push_back(u);
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const std::uint32_t above = ancestor[*it];
      if (semi[label[above]] < semi[label[*it]]) label[*it] = label[above];
      ancestor[*it] = ancestor[above];
    }
    return label[v];
  };
  for (std::uint32_t w = count; w-- > 1;) {
    for (std::uint32_t node : predecessors[vertex[w]]) {
      const std::uint32_t v = number[node];
      if (v != kNone) semi[w] = std::min(semi[w], semi[eval(v)]);
    }
    bucket_next[w] = bucket[semi[w]];
    bucket[semi[w]] = w;
    const std::uint32_t p = parent[w];
    ancestor[w] = p;
    for (std::uint32_t v = bucket[p]; v != kNone; v = bucket_next[v]) {
      const std::uint32_t u = eval(v);
      dominator[v] = semi[u] < semi[v] ? u : p;
    }
    bucket[p] = kNone;
  }
  for (std::uint32_t w = 1; w < count; ++w) {
    if (dominator[w] != semi[w]) dominator[w] = dominator[dominator[w]];
  }

  DominatorTree tree;
  tree.parent.assign(nodes, kNone);
  tree.in.assign(nodes, 0);
  tree.size.assign(nodes, 0);
  std::vector<std::uint32_t> size(count, 1), next(count, 0);
  for (std::uint32_t w = count; w-- > 1;) size[dominator[w]] += size[w];
  for (std::uint32_t w = 0; w < count; ++w) {
    const std::uint32_t node = vertex[w];
    if (w != 0) {
      tree.parent[node] = vertex[dominator[w]];
      tree.in[node] = next[dominator[w]];
      next[dominator[w]] += size[w];
    }
    next[w] = tree.in[node] + 1;
    tree.size[node] = size[w];
  }
  return tree;
}

std::vector<std::uint32_t> MeetingBlocks(const Graph& graph) {
  DominatorTree tree;
  if (const auto exits = ExitsOfEndlessLoops(graph); exits.empty()) {
    tree = Dominators(graph.exit, graph.predecessors, graph.successors);
  } else {
    std::vector<Edge> edges = graph.edges;
    edges.insert(edges.end(), exits.begin(), exits.end());
    tree = Dominators(graph.exit, FromEdges(graph.nodes, edges, true),
                      FromEdges(graph.nodes, edges, false));
  }
  // A list's node is no place in the code: the next real one after it counts. What was found for a
  // chain of lists is kept in the tree, so that a long chain is walked once.
  std::vector<std::uint32_t> result(graph.blocks, kNone), chain;
  for (std::uint32_t block = 0; block < graph.blocks; ++block) {
    std::uint32_t node = tree.parent[block];
    chain.clear();
    while (node != kNone && node >= graph.blocks && node != graph.exit) {
      chain.push_back(node);
      node = tree.parent[node];
    }
    for (std::uint32_t list : chain) tree.parent[list] = node;
    if (node != graph.exit) result[block] = node;
  }
  return result;
}

}  // namespace allranks::node::flow_internal
