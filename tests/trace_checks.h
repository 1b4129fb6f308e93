// What every trace must be, whoever made it: JSON that viewers of Chrome's trace event format can
// show.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace allranks {

struct CheckedTrace {
  nlohmann::json all;
  std::map<std::int64_t, std::string> processes;                           // names by pid
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> tracks;     // by (pid, tid)
  std::map<std::string, std::vector<nlohmann::json>> slices;               // by "process/track"
  std::map<std::string, std::vector<std::pair<double, double>>> counters;  // (ts, value)
  std::vector<nlohmann::json> instants;
  // An arrow, and the slices that its ends lie in.
  struct Flow {
    std::string name, from_track, to_track;
    nlohmann::json from, to, start, end;
  };
  std::vector<Flow> flows;

  std::size_t Count(const std::string& track_part, const std::string& name_part) const {
    std::size_t count = 0;
    for (const auto& [track, list] : slices) {
      if (track.find(track_part) == std::string::npos) continue;
      for (const auto& slice : list)
        count += slice["name"].get<std::string>().find(name_part) != std::string::npos ? 1 : 0;
    }
    return count;
  }
};

inline CheckedTrace CheckTrace(const std::string& text) {
  CheckedTrace trace;
  trace.all = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(trace.all.is_discarded()) << text.substr(0, 2000);
  if (trace.all.is_discarded()) return trace;
  EXPECT_TRUE(trace.all["traceEvents"].is_array());
  std::map<std::int64_t, std::int64_t> owners;  // of tracks: viewers may take tids as machine-wide
  for (const auto& event : trace.all["traceEvents"]) {
    if (event["ph"] != "M") continue;
    const auto pid = event["pid"].get<std::int64_t>(), tid = event["tid"].get<std::int64_t>();
    if (event["name"] == "process_name") trace.processes[pid] = event["args"]["name"];
    if (event["name"] != "thread_name") continue;
    EXPECT_TRUE(trace.tracks.emplace(std::pair(pid, tid), event["args"]["name"]).second);
    EXPECT_TRUE(owners.emplace(tid, pid).second) << "two tracks are called " << tid;
  }
  std::map<std::int64_t, std::map<std::string, nlohmann::json>> arrows;
  for (const auto& event : trace.all["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "M") continue;
    const auto pid = event["pid"].get<std::int64_t>();
    EXPECT_TRUE(trace.processes.contains(pid)) << event;
    EXPECT_TRUE(event["ts"].is_number()) << event;
    EXPECT_GE(event["ts"].get<double>(), 0) << event;
    EXPECT_FALSE(event["name"].get<std::string>().empty()) << event;
    if (phase == "C") {
      EXPECT_EQ(event["args"].size(), 1u) << event;
      trace.counters[event["name"]].push_back({event["ts"], event["args"].front()});
      continue;
    }
    const std::pair track(pid, event["tid"].get<std::int64_t>());
    EXPECT_TRUE(trace.tracks.contains(track)) << event;
    if (phase == "i") {
      trace.instants.push_back(event);
      continue;
    }
    if (phase == "s" || phase == "f") {
      auto& ends = arrows[event["id"].get<std::int64_t>()];
      EXPECT_TRUE(ends.emplace(phase, event).second) << event;
      EXPECT_EQ(event.value("bp", ""), phase == "f" ? "e" : "") << "it ends in the slice around it";
      continue;
    }
    EXPECT_EQ(phase, "X") << event;
    EXPECT_GE(event["dur"].get<double>(), 0) << event;
    trace.slices[trace.processes[pid] + "/" + trace.tracks[track]].push_back(event);
  }
  for (const auto& [name, values] : trace.counters) {
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end(), [](const auto& a, const auto& b) {
      return a.first < b.first;
    })) << name;
    EXPECT_EQ(values.front().first, 0.0) << name << ": before its first value it would be nothing";
    EXPECT_EQ(values.back().second, 0.0) << name << ": a link is idle in the end";
    for (const auto& [at, value] : values) EXPECT_GE(value, 0) << name << " at " << at;
    EXPECT_LE(values.size(), 2050u) << name;
  }
  // On a track one follows the other, or lies within it.
  for (auto& [track, list] : trace.slices) {
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      if (a["ts"] != b["ts"])
        return a["ts"].template get<double>() < b["ts"].template get<double>();
      return a["dur"].template get<double>() > b["dur"].template get<double>();
    });
    std::vector<double> ends;
    for (const auto& slice : list) {
      const double begin = slice["ts"], end = begin + slice["dur"].get<double>();
      while (!ends.empty() && ends.back() <= begin + 1e-6) ends.pop_back();
      EXPECT_TRUE(ends.empty() || end <= ends.back() + 1e-6) << track << ": " << slice;
      ends.push_back(end);
    }
  }
  // Viewers find an arrow's ends by process, track and time: the innermost slice there.
  const auto around = [&](const nlohmann::json& event, std::string* track) {
    const std::pair key(event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>());
    *track = trace.processes[key.first] + "/" + trace.tracks[key];
    const double at = event["ts"];
    nlohmann::json found;
    for (const auto& slice : trace.slices[*track]) {
      const double begin = slice["ts"], end = begin + slice["dur"].get<double>();
      if (begin <= at + 1e-6 && (at < end - 1e-6 || begin == end)) found = slice;
    }
    EXPECT_FALSE(found.is_null()) << "no slice around " << event;
    return found;
  };
  for (const auto& [id, ends] : arrows) {
    EXPECT_EQ(ends.size(), 2u) << "arrow " << id;
    if (ends.size() != 2) continue;
    CheckedTrace::Flow flow;
    flow.start = ends.at("s");
    flow.end = ends.at("f");
    EXPECT_EQ(flow.start["cat"], flow.end["cat"]);
    EXPECT_EQ(flow.start["name"], flow.end["name"]);
    flow.name = flow.start["name"];
    flow.from = around(flow.start, &flow.from_track);
    flow.to = around(flow.end, &flow.to_track);
    trace.flows.push_back(std::move(flow));
  }
  return trace;
}

}  // namespace allranks
