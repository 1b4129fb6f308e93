// Graphs as the driver API shows them: nodes with their parameters and edges, all of it data of
// this process. The node learns of a graph when it is instantiated: it gets the flat list of
// operations (graph_exec.cpp). Capture (capture.cpp) builds the same graphs from calls on streams.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "shim/cuda/driver.h"

namespace allranks::shim {

struct Graph;
struct GraphNode;

struct GraphEdge {
  GraphNode* node = nullptr;
  CUgraphEdgeData data{};
};

// Only what belongs to its type is used.
struct GraphNode {
  Graph* graph = nullptr;
  std::uint64_t number = 0;  // of this process, never reused
  std::uint64_t origin = 0;  // number of the node that it was cloned from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<GraphEdge> before;
  std::vector<GraphNode*> after;
  int device = 0;

  CUDA_KERNEL_NODE_PARAMS kernel{};
  wire::Blob packed;            // the kernel's parameters
  std::vector<void*> pointers;  // into `packed`
  std::vector<CUlaunchAttribute> attributes;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS_v2 memset{};
  CUDA_HOST_NODE_PARAMS host{};
  CUevent event = nullptr;
  std::vector<CUstreamBatchMemOpParams> steps;
  Graph* child = nullptr;            // owned
  std::vector<std::uint64_t> stack;  // where it was made (ar_stack)
};

struct UserObject {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

struct Graph {
  std::vector<GraphNode*> nodes;  // in order of creation
  bool child = false;             // owned by a node
  std::unordered_map<UserObject*, unsigned> user_objects;
};

// What was instantiated: its own copy of the graph, and where each node of it is at the node.
struct GraphExec {
  std::uint64_t id = 0;
  unsigned long long flags = 0;
  Graph* graph = nullptr;
  std::unordered_map<const GraphNode*, std::uint32_t> places;
  std::unordered_map<std::uint64_t, GraphNode*> nodes;  // by `origin`
  std::unordered_map<const GraphNode*, bool> disabled;
};

struct Graphs {
  Mutex lock;  // of everything here; held by public entry points
  Handles<Graph> graphs;
  Handles<GraphNode> nodes;
  Handles<GraphExec> execs;
  Handles<UserObject> user_objects;
  std::uint64_t next = 1;
};
Graphs& TheGraphs();

Graph* FindGraph(CUgraph handle);
GraphNode* FindNode(CUgraphNode handle);
inline CUgraph ToHandle(Graph* graph) { return reinterpret_cast<CUgraph>(graph); }
inline CUgraphNode ToHandle(GraphNode* node) { return reinterpret_cast<CUgraphNode>(node); }

// --- graph.cpp: nodes and edges ---
Graph* NewGraph();
// `data` may be null: ordinary edges.
CUresult NewNode(Graph* graph, CUgraphNodeType type, const CUgraphNode* before,
                 const CUgraphEdgeData* data, std::size_t count, GraphNode** node);
void DestroyNode(GraphNode* node);
void DestroyGraph(Graph* graph);
void AddEdge(GraphNode* from, GraphNode* to, const CUgraphEdgeData& data);
// Each node of the copy has its `origin`; `nodes` (may be null) collects them, children's too.
Graph* CloneGraph(const Graph& graph, std::unordered_map<std::uint64_t, GraphNode*>* nodes);

// --- graph_nodes.cpp: parameters; each checks and then takes what it was given ---
CUresult SetKernel(GraphNode* node, const CUDA_KERNEL_NODE_PARAMS& params);
CUresult SetCopy(GraphNode* node, const CUDA_MEMCPY3D& params, CUcontext context);
CUresult SetMemset(GraphNode* node, const CUDA_MEMSET_NODE_PARAMS_v2& params, CUcontext context);
CUresult SetHost(GraphNode* node, const CUDA_HOST_NODE_PARAMS& params);
CUresult SetEvent(GraphNode* node, CUevent event);
CUresult SetSteps(GraphNode* node, unsigned count, const CUstreamBatchMemOpParams* steps,
                  unsigned flags, CUcontext context);
CUresult SetChild(GraphNode* node, Graph* child);
CUresult SetParams(GraphNode* node, const CUgraphNodeParams& params);
// Takes over what `from` has.
void CopyParams(GraphNode* to, const GraphNode& from);

// --- graph_translate.cpp ---
// A node as an operation, all but `after`. A child graph is the empty operation behind its nodes.
CUresult Translate(const GraphNode& node, wire::GraphNode* out);
struct Flat {
  std::vector<wire::GraphNode> nodes;
  std::unordered_map<const GraphNode*, std::uint32_t>* places;
  const GraphNode* bad = nullptr;  // that could not be translated
};
// Appends a graph's nodes, each behind those it waits for; those that wait for none of the graph
// wait for `outer`.
CUresult Flatten(const Graph& graph, const std::vector<std::uint32_t>& outer, Flat* flat);

}  // namespace allranks::shim
