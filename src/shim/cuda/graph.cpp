// Graphs, their nodes and edges. graph.h has the overview.
#include "shim/cuda/graph.h"

#include <stdio.h>

#include <algorithm>

namespace allranks::shim {

Graphs& TheGraphs() {
  static Graphs* graphs = new Graphs;
  return *graphs;
}

Graph* FindGraph(CUgraph handle) { return TheGraphs().graphs.Find(handle); }
GraphNode* FindNode(CUgraphNode handle) { return TheGraphs().nodes.Find(handle); }

Graph* NewGraph() { return TheGraphs().graphs.Add(new Graph); }

void AddEdge(GraphNode* from, GraphNode* to, const CUgraphEdgeData& data) {
  to->before.push_back({from, data});
  from->after.push_back(to);
}

CUresult NewNode(Graph* graph, CUgraphNodeType type, const CUgraphNode* before,
                 const CUgraphEdgeData* data, std::size_t count, GraphNode** out) {
  if (count != 0 && before == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const GraphNode* node = FindNode(before[i]);
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(before, before + i, before[i]) != before + i) return CUDA_ERROR_INVALID_VALUE;
  }
  auto* node = new GraphNode;
  node->graph = graph;
  node->number = TheGraphs().next++;
  node->type = type;
  if (const Context* context = CurrentContext()) node->device = context->device;
  for (std::size_t i = 0; i < count; ++i) {
    AddEdge(FindNode(before[i]), node, data != nullptr ? data[i] : CUgraphEdgeData{});
  }
  std::uint64_t stack[wire::kMaxStack];
  node->stack.assign(stack, stack + ar_stack(stack, wire::kMaxStack));
  graph->nodes.push_back(node);
  *out = TheGraphs().nodes.Add(node);
  return CUDA_SUCCESS;
}

void DestroyNode(GraphNode* node) {
  for (const GraphEdge& edge : node->before) std::erase(edge.node->after, node);
  for (GraphNode* next : node->after) {
    std::erase_if(next->before, [&](const GraphEdge& edge) { return edge.node == node; });
  }
  std::erase(node->graph->nodes, node);
  TheGraphs().nodes.Remove(node);
  if (node->child != nullptr) DestroyGraph(node->child);
  delete node;
}

namespace {

void ReleaseUserObject(UserObject* object, unsigned count) {
  object->references -= std::min(object->references, count);
  if (object->references != 0) return;
  TheGraphs().user_objects.Remove(object);
  object->destroy(object->pointer);
  delete object;
}

}  // namespace

void DestroyGraph(Graph* graph) {
  TheGraphs().graphs.Remove(graph);
  while (!graph->nodes.empty()) DestroyNode(graph->nodes.back());
  for (const auto& [object, count] : graph->user_objects) ReleaseUserObject(object, count);
  delete graph;
}

Graph* CloneGraph(const Graph& graph, std::unordered_map<std::uint64_t, GraphNode*>* nodes) {
  Graph* copy = NewGraph();
  std::unordered_map<const GraphNode*, GraphNode*> made;
  for (const GraphNode* node : graph.nodes) {
    GraphNode* clone = nullptr;
    NewNode(copy, node->type, nullptr, nullptr, 0, &clone);
    clone->origin = node->number;
    clone->device = node->device;
    clone->stack = node->stack;
    if (node->child != nullptr) {
      clone->child = CloneGraph(*node->child, nodes);
      clone->child->child = true;
    }
    CopyParams(clone, *node);
    made[node] = clone;
    if (nodes != nullptr) (*nodes)[node->number] = clone;
  }
  for (const GraphNode* node : graph.nodes) {
    for (const GraphEdge& edge : node->before) AddEdge(made[edge.node], made[node], edge.data);
  }
  for (const auto& [object, count] : graph.user_objects) {
    object->references += count;
    copy->user_objects[object] += count;
  }
  return copy;
}

}  // namespace allranks::shim

using namespace allranks::shim;

#define ALLRANKS_GRAPH_ENTER()             \
  const CUresult ready = Ready();          \
  if (ready != CUDA_SUCCESS) return ready; \
  Hold hold(TheGraphs().lock)

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  ALLRANKS_GRAPH_ENTER();
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = ToHandle(NewGraph());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  ALLRANKS_GRAPH_ENTER();
  Graph* graph = FindGraph(handle);
  if (graph == nullptr || graph->child) return CUDA_ERROR_INVALID_VALUE;
  DestroyGraph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph handle) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *clone = ToHandle(CloneGraph(*graph, nullptr));
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  ALLRANKS_GRAPH_ENTER();
  const GraphNode* node = FindNode(original);
  const Graph* graph = FindGraph(clone);
  if (node == nullptr || graph == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (GraphNode* candidate : graph->nodes) {
    if (candidate->origin != node->number) continue;
    *found = ToHandle(candidate);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  ALLRANKS_GRAPH_ENTER();
  GraphNode* node = FindNode(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DestroyNode(node);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  ALLRANKS_GRAPH_ENTER();
  const GraphNode* node = FindNode(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

namespace {

// The convention of all lists: without a place for them they are counted; what is beyond the list
// is set to null.
template <class T, class F>
CUresult GiveList(const std::vector<T>& items, CUgraphNode* out, std::size_t* count, F node_of) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = items.size();
    return CUDA_SUCCESS;
  }
  const std::size_t given = std::min(*count, items.size());
  for (std::size_t i = 0; i < given; ++i) out[i] = ToHandle(node_of(items[i]));
  for (std::size_t i = given; i < *count; ++i) out[i] = nullptr;
  *count = given;
  return CUDA_SUCCESS;
}

GraphNode* Itself(GraphNode* node) { return node; }

struct PairOfNodes {
  GraphNode* from;
  GraphNode* to;
  CUgraphEdgeData data;
};

bool IsOrdinary(const CUgraphEdgeData& data) {
  return data.from_port == 0 && data.to_port == 0 && data.type == 0;
}

std::vector<PairOfNodes> EdgesOf(const Graph& graph) {
  std::vector<PairOfNodes> edges;
  for (GraphNode* node : graph.nodes) {
    for (const GraphEdge& edge : node->before) edges.push_back({edge.node, node, edge.data});
  }
  return edges;
}

// Data that the caller has no place for must not be lost.
template <class T>
CUresult GiveData(const std::vector<T>& items, bool given, CUgraphEdgeData* data,
                  std::size_t count) {
  for (std::size_t i = 0; i < count && i < items.size(); ++i) {
    if (data != nullptr) {
      data[i] = items[i].data;
    } else if (given && !IsOrdinary(items[i].data)) {
      return CUDA_ERROR_LOSSY_QUERY;
    }
  }
  return CUDA_SUCCESS;
}

bool Reaches(const GraphNode* from, const GraphNode* to) {
  std::vector<const GraphNode*> open = {from};
  std::unordered_set<const GraphNode*> seen;
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (node == to) return true;
    if (!seen.insert(node).second) continue;
    open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return false;
}

}  // namespace

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GiveList(graph->nodes, nodes, count, Itself);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> roots;
  for (GraphNode* node : graph->nodes) {
    if (node->before.empty()) roots.push_back(node);
  }
  return GiveList(roots, nodes, count, Itself);
}

CUresult cuGraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                         size_t* count) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const std::vector<PairOfNodes> edges = EdgesOf(*graph);
  const CUresult result = GiveData(edges, from != nullptr, data, *count);
  if (result != CUDA_SUCCESS) return result;
  std::size_t again = *count;
  GiveList(edges, to, &again, [](const PairOfNodes& edge) { return edge.to; });
  return GiveList(edges, from, count, [](const PairOfNodes& edge) { return edge.from; });
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                                    size_t* count) {
  ALLRANKS_GRAPH_ENTER();
  const GraphNode* node = FindNode(handle);
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = GiveData(node->before, nodes != nullptr, data, *count);
  if (result != CUDA_SUCCESS) return result;
  return GiveList(node->before, nodes, count, [](const GraphEdge& edge) { return edge.node; });
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                                      size_t* count) {
  ALLRANKS_GRAPH_ENTER();
  const GraphNode* node = FindNode(handle);
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphEdge> edges;
  for (GraphNode* next : node->after) {
    for (const GraphEdge& edge : next->before) {
      if (edge.node == node) edges.push_back({next, edge.data});
    }
  }
  const CUresult result = GiveData(edges, nodes != nullptr, data, *count);
  if (result != CUDA_SUCCESS) return result;
  return GiveList(edges, nodes, count, [](const GraphEdge& edge) { return edge.node; });
}

CUresult cuGraphAddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* data, size_t count) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* source = FindNode(from[i]);
    GraphNode* target = FindNode(to[i]);
    if (source == nullptr || target == nullptr || source->graph != graph ||
        target->graph != graph || Reaches(target, source)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const bool known = std::any_of(target->before.begin(), target->before.end(),
                                   [&](const GraphEdge& edge) { return edge.node == source; });
    if (known) return CUDA_ERROR_INVALID_VALUE;
    AddEdge(source, target, data != nullptr ? data[i] : CUgraphEdgeData{});
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* source = FindNode(from[i]);
    GraphNode* target = FindNode(to[i]);
    if (source == nullptr || target == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::erase_if(target->before, [&](const GraphEdge& edge) { return edge.node == source; }) ==
        0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::erase(source->after, target);
  }
  return CUDA_SUCCESS;
}

// The forms without data on edges, under their old names.
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
ALLRANKS_SYMBOL(CUresult, cuGraphGetEdges,
                (CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count)) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
ALLRANKS_SYMBOL(CUresult, cuGraphNodeGetDependencies,
                (CUgraphNode node, CUgraphNode* nodes, size_t* count)) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
ALLRANKS_SYMBOL(CUresult, cuGraphNodeGetDependentNodes,
                (CUgraphNode node, CUgraphNode* nodes, size_t* count)) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}
ALLRANKS_SYMBOL(CUresult, cuGraphAddDependencies,
                (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count)) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
ALLRANKS_SYMBOL(CUresult, cuGraphRemoveDependencies,
                (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count)) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned) {
  ALLRANKS_GRAPH_ENTER();
  const Graph* graph = FindGraph(handle);
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FILE* file = fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(file, "digraph graph_ {\n");
  for (const GraphNode* node : graph->nodes) {
    fprintf(file, "  n%llu [label=\"%llu: type %d\"]\n",
            static_cast<unsigned long long>(node->number),
            static_cast<unsigned long long>(node->number), static_cast<int>(node->type));
    for (const GraphEdge& edge : node->before) {
      fprintf(file, "  n%llu -> n%llu\n", static_cast<unsigned long long>(edge.node->number),
              static_cast<unsigned long long>(node->number));
    }
  }
  fprintf(file, "}\n");
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// --- objects that live as long as graphs need them ----------------------------------------------

CUresult cuUserObjectCreate(CUuserObject* handle, void* pointer, CUhostFn destroy, unsigned count,
                            unsigned flags) {
  ALLRANKS_GRAPH_ENTER();
  if (handle == nullptr || destroy == nullptr || count == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* object = new UserObject;
  *object = {pointer, destroy, count};
  *handle = reinterpret_cast<CUuserObject>(TheGraphs().user_objects.Add(object));
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count) {
  ALLRANKS_GRAPH_ENTER();
  UserObject* object = TheGraphs().user_objects.Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
  ALLRANKS_GRAPH_ENTER();
  UserObject* object = TheGraphs().user_objects.Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  ReleaseUserObject(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count,
                                 unsigned flags) {
  ALLRANKS_GRAPH_ENTER();
  Graph* graph = FindGraph(graph_handle);
  UserObject* object = TheGraphs().user_objects.Find(handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count) {
  ALLRANKS_GRAPH_ENTER();
  Graph* graph = FindGraph(graph_handle);
  UserObject* object = TheGraphs().user_objects.Find(handle);
  if (graph == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto held = graph->user_objects.find(object);
  if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  ReleaseUserObject(object, count);
  return CUDA_SUCCESS;
}
