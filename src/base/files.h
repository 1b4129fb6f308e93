// Files that survive a crash whole or not at all: what a run leaves behind is read by later ones.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks {

// Plain files only: what stands in a folder that others filled may be a pipe, at which reading
// would wait for ever. A file that is longer than `limit` is an error.
Result<std::string> ReadWhole(const std::filesystem::path& path, std::size_t limit = 256u << 20);

// The file has its new content or its old one, whatever happens: written beside it, flushed to the
// disk, renamed. Makes missing folders. A full disk is an error that leaves nothing half-written.
Status WriteWhole(const std::filesystem::path& path, std::string_view bytes);

// What a killed process has left beside files below `folder`. Nobody may be writing there.
void SweepUnfinished(const std::filesystem::path& folder);

// Adds one line (the newline is added) and flushes it to the disk. A crash or a full disk may leave
// half a last line, which the next one does not join: readers skip what does not parse.
Status AppendLine(const std::filesystem::path& path, std::string_view line);

}  // namespace allranks
